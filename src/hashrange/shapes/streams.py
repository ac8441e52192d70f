"""Requests of DynamoDB Streams, the second service on the same endpoint."""

from typing import Final

from hashrange.shapes.members import LONG_ARN, POSITIVE_INTEGER, TABLE_NAME
from hashrange.shapes.vocabulary import TIMESTAMP, String, Structure, enum, required

LIST_STREAMS: Final = Structure(
    "ListStreamsInput",
    {
        "TableName": TABLE_NAME,
        "Limit": POSITIVE_INTEGER,
        "ExclusiveStartStreamArn": LONG_ARN,
    },
)

SHARD_ID: Final = String(28, 65)
SHARD_FILTER: Final = Structure(
    "ShardFilter",
    {
        "Type": enum("CHILD_SHARDS"),
        "ShardId": SHARD_ID,
    },
)

DESCRIBE_STREAM: Final = Structure(
    "DescribeStreamInput",
    {
        "StreamArn": required(LONG_ARN),
        "Limit": POSITIVE_INTEGER,
        "ExclusiveStartShardId": SHARD_ID,
        "ShardFilter": SHARD_FILTER,
    },
)

GET_SHARD_ITERATOR: Final = Structure(
    "GetShardIteratorInput",
    {
        "StreamArn": required(LONG_ARN),
        "ShardId": required(SHARD_ID),
        "ShardIteratorType": required(
            enum("TRIM_HORIZON", "LATEST", "AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER", "AT_TIMESTAMP")
        ),
        "SequenceNumber": String(21, 40),
        "Timestamp": TIMESTAMP,
    },
)

GET_RECORDS: Final = Structure(
    "GetRecordsInput",
    {
        "ShardIterator": required(String(1, 2048)),
        "Limit": POSITIVE_INTEGER,
    },
)

OPERATIONS: Final = {
    "ListStreams": LIST_STREAMS,
    "DescribeStream": DESCRIBE_STREAM,
    "GetShardIterator": GET_SHARD_ITERATOR,
    "GetRecords": GET_RECORDS,
}
