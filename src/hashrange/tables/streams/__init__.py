"""The changes of a table, as its stream keeps them.

    changes      what a stream keeps of the change of an item
    logs         streams, their shards, and the records in them
"""
