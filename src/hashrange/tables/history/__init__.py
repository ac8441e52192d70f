"""The history of a table: every moment of its past can be read, as long as it is needed.

    images     the record of an item before a change, which every change stores
    past       a reader that shows a table's items as they were at a moment
    versions   the versions of an item, and the items that changed between two moments
    recording  begins and ends a history, and gives it a new span now and then
    sources    the table whose past a job reads, existing or deleted

A change of an item (`writes.applying.apply`) stores the item's record from before the change, its *image*,
under the stamp of its transaction (`definitions.spans`):

    (space of the span, partition, place + stamp) → an image

The place is the item's sort, escaped and terminated, so images are in the order of the table: by partition,
then by sort, then by stamp. The state of an item at a stamp is its first image above that stamp, or the item
itself if there is none. So reading a table as of a moment is a merge of ordered scans, and the state at a
moment never changes later. See decision 14.
"""
