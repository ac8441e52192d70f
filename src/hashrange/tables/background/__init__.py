"""Background work: work that is due at a later time, or is too much for one request.

    queues       queues by time, with marks from which they are read
    expiry       time to live: the queue of items by expiry time, and the deletion of expired items
    lag          the queue of changes for global indexes that lag behind
    builds       the build of an index or a queue from the items that exist already
    backfill     the build of a new global index
    sweeps       lists all background work that may be due
    units        runs the background work in units; when one unit fails, the others go on
    jobs         the stored records of backups, and of long jobs as imports and exports are
    transfers    runs such jobs: a unit for each that is in progress
    turns        lets the steps of jobs run one at a time, and closes what they keep open
    ondemand     kinds of work that most databases never have
    bites        how much background work is done in one transaction

A change of an item (`tables.data.items`) adds work to the queues. The sweeps do this work later; they change
items by `items.apply`, as requests do.
"""
