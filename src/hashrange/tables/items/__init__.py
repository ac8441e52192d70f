"""An item in its stored form, which writes and reads share.

    keys         an item's key: its rules and its address
    records      the stored form of an item
    indexes      the entries that an item has in secondary indexes
    vectors      the vectors of items, in entries of vector indexes; the log of changed entries
    item_change  the change of an item, from its operation to the indexes and the stream
    capacity     read and write units, and the ConsumedCapacity of an answer
"""
