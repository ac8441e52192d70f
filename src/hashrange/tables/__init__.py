"""What a table is, and the two funnels that everything goes through.

    table        the definition of a table and of its indexes, as it is stored
    catalog      tables by name: create, open, change, remove
    states       how CREATING, UPDATING and DELETING end
    keys         an item's key: its rules and its address
    indexes      the entries that an item has in secondary indexes
    items        `apply`: the only way an item changes
    writes       one read-modify-write: put, update, delete, check
    ranges       `read_page`: the only ordered read
    sources      what may be read, what it shows and what that costs
    capacity     read and write units, and the ConsumedCapacity of an answer
    queues       what is due when: queues by time, with marks from which they are read
    expiry       time to live: the queue by time, and the sweep
    builds       what new indexes and queues make of the items that were there before
    sweeps       the background work that may be due; `background` runs it, in `bites`
    tokens       answers to ClientRequestToken
    check        the integrity checker

Knows nothing of expressions, request shapes or sockets: conditions and updates arrive as functions.
"""
