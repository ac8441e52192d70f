"""What a write of an item does, in the transaction of the item.

    read_modify_write  `perform`: put, update, delete and condition check, for every operation that writes
    tokens             ClientRequestToken: a repeated transaction has no second effect
    holds              transactions that stay in flight, so that programs can be tested against conflicts
    applying           `apply`: the only way an item changes; it calls the modules below, `items.indexes` and
                       `history.images`
    stream_records     the stream record of a change
    expiry             time to live: the queue of items by expiry time
    lag                the queue of changes for global indexes that lag behind
    backfill           the build of a new global index, which the writes of its table take part in
    builds             the build of an index or a queue from existing items
    queues             queues by time, with marks from which they are read

A write adds to the queues, and tells builds which items they can leave out. `tables.background` does the work
that is due later, such as the deletion of expired items.
"""
