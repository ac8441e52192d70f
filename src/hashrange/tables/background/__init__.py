"""Background work: work that is due later, or too much for a single request.

    queues       queues by time, with marks from which they are read
    expiry       time to live: the queue of items by expiry time, and the deletion of expired items
    lag          the queue of changes for global indexes that lag behind
    builds       the build of an index or a queue from existing items
    backfill     the build of a new global index
    restoring    fills a table that is restored: a build, too
    sweeps       lists all background work that may be due
    units        runs the background work in units; when one unit fails, the others go on
    job_records  the stored records of backups, and of jobs such as imports and exports
    transfers    runs such jobs: a unit for each that is in progress
    objects      reads the rows of the objects of a bucket
    turns        lets the steps of jobs run one at a time, and closes what they keep open
    sharing      shares the work among the servers of one store
    leaps        whether the clock can be trusted with what time destroys
    ondemand     kinds of work that most databases never have
    bites        how much background work is done in one transaction

A change of an item (`tables.data.items`) adds work to the queues. The sweeps do this work later; they change
items by `items.apply`, as requests do.
"""
