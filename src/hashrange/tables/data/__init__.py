"""The data path: the one way to change an item, and the one way to read items in order.

    keys         an item's key: its rules and its address
    records      the stored form of an item
    indexes      the entries that an item has in secondary indexes
    vectors      the vectors of items, in entries of vector indexes; the log of changed entries
    item_change  the change of an item, from its operation to the indexes and the stream
    items        `apply`: the only way an item changes
    writes       one read-modify-write: put, update, delete, check
    ranges       `read_page`: the only ordered read
    sources      which table or index a read uses, which attributes it shows, and what the read costs
    capacity     read and write units, and the ConsumedCapacity of an answer
    tokens       ClientRequestToken: a repeated transaction has no second effect
    holds        transactions that stay in flight, so that programs can be tested against conflicts
"""
