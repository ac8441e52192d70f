"""Streams: the changes of a table's items.

    changes  `record`, on the path of every write: makes the stream record of a change; compiled
    logs     makes, reads and trims streams, their shards, and the records in them; not compiled
"""
