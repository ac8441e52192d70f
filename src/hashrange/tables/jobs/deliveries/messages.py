"""A change of an item in the JSON form in which DynamoDB sends it to a Kinesis data stream.

It is the form of a stream record, with these differences: there are no sequence number and view type, the
table is named, both images are always there, and the time counts milliseconds or microseconds. The name of
the precision is there if it was chosen. The identifier is made from the place of the change in the outbox, so
a change that is sent twice has the same one.

Source: Developer Guide, "Using Kinesis Data Streams to capture changes to DynamoDB"; [report] aws-lambda-go
478 and 633 and aws-lambda-java-libs 543 for the time and its precision. The order of the members, and that
`recordFormat` and a null `userIdentity` are there, is [assumed].
"""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Final

import orjson

from hashrange.tables.definitions.table import Destination
from hashrange.tables.streams import StreamRecord

_BY_EXPIRY: Final = {"principalId": "dynamodb.amazonaws.com", "type": "Service"}
_PER_SECOND: Final = {"MILLISECOND": 1_000, "MICROSECOND": 1_000_000}


def message(table: str, outbox_space: int, sequence: int, change: StreamRecord, to: Destination) -> bytes:
    """The record for a change of the table called `table`, with this sequence in its outbox."""
    body: dict[str, Any] = {
        "ApproximateCreationDateTime": int(change.time * _PER_SECOND[to.precision or "MILLISECOND"]),
        "Keys": orjson.Fragment(change.keys),
    }
    if change.new is not None:
        body["NewImage"] = orjson.Fragment(change.new)
    if change.old is not None:
        body["OldImage"] = orjson.Fragment(change.old)
    body["SizeBytes"] = change.size
    if to.precision is not None:
        body["ApproximateCreationDateTimePrecision"] = to.precision
    return orjson.dumps(
        {
            "awsRegion": region_of(to.arn),
            "eventID": _identifier(table, outbox_space, sequence),
            "eventName": change.event,
            "userIdentity": _BY_EXPIRY if change.by_expiry else None,
            "recordFormat": "application/json",
            "tableName": table,
            "dynamodb": body,
            "eventSource": "aws:dynamodb",
        }
    )


def partition_key(change: StreamRecord) -> str:
    """The partition key of the record: the same for all changes of an item, so that Kinesis keeps their
    order. DynamoDB's own is not documented."""
    return blake2b(change.keys, digest_size=16).hexdigest()


def region_of(arn: str) -> str:
    """The region in the ARN of a Kinesis data stream."""
    return arn.split(":", 5)[3]


def _identifier(table: str, outbox_space: int, sequence: int) -> str:
    """An identifier in the form of a UUID."""
    digits = blake2b(f"{table} {outbox_space} {sequence}".encode(), digest_size=16).hexdigest()
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
