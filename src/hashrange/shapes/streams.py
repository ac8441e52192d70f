"""Requests of DynamoDB Streams, the second service on the same endpoint."""

from typing import Final

from hashrange.shapes.members import LONG_ARN, POSITIVE_INTEGER, TABLE_NAME
from hashrange.shapes.vocabulary import TIMESTAMP, String, Structure, enum, requests, required

_SHARD_ID: Final = String(28, 65)
_SHARD_FILTER: Final = Structure("ShardFilter", {"Type": enum("CHILD_SHARDS"), "ShardId": _SHARD_ID})
_ITERATOR_TYPE: Final = enum(
    "TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "AT_TIMESTAMP"
)

OPERATIONS: Final = requests(
    {
        "ListStreams": {
            "TableName": TABLE_NAME,
            "Limit": POSITIVE_INTEGER,
            "ExclusiveStartStreamArn": LONG_ARN,
        },
        "DescribeStream": {
            "StreamArn": required(LONG_ARN),
            "Limit": POSITIVE_INTEGER,
            "ExclusiveStartShardId": _SHARD_ID,
            "ShardFilter": _SHARD_FILTER,
        },
        "GetShardIterator": {
            "StreamArn": required(LONG_ARN),
            "ShardId": required(_SHARD_ID),
            "ShardIteratorType": required(_ITERATOR_TYPE),
            "SequenceNumber": String(21, 40),
            "Timestamp": TIMESTAMP,
        },
        "GetRecords": {"ShardIterator": required(String(1, 2048)), "Limit": POSITIVE_INTEGER},
    }
)
