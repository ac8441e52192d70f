"""Streams: the changes of a table's items.

    changes      `record`, on the path of every write: makes the stream record of a change; compiled
    logs         streams, their shards, and the records in them: made, read, trimmed; not compiled
"""
