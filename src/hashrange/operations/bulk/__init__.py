"""Bulk operations: the objects of a bucket are put into a table that exists.

    start_bulk_put_items      begin one
    describe_bulk_operation   how far it is
    list_bulk_operations      those of the last 90 days
    cancel_bulk_operation     end one before its time
    description               a bulk operation as answers show it
    rows                      the write of a row

The work itself is done in the background: `tables.bulk`.

Source: API reference; Developer Guide, "Bulk put items", as far as its pages could be read. What was not
found there is marked [assumed]; docs/bulk.md lists it.
"""
