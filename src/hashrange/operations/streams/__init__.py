"""DynamoDB Streams: the operations that read a table's changes.

    iterators        shard iterators, which `get_shard_iterator` makes and `get_records` reads
    stream_requests  the members that their requests share
"""
