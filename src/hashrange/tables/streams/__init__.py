"""The changes of a table, as its stream keeps them.

    changes      `record`, on the path of every write: appends the change of an item; compiled
    logs         streams, their shards, and the records in them: made, read, trimmed; not compiled
"""
