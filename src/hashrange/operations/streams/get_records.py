"""GetRecords: the records of a shard after an iterator's position, in pages of up to 1,000 records and 1 MB.

Source: API reference, GetRecords; for error messages DynamoDB Local, as decision 5 says.
"""

from __future__ import annotations

import math
from typing import Any, Final

import orjson

from hashrange.errors import TrimmedDataAccessException
from hashrange.operations.context import Answer, Billed, BilledReadBody, Context, Request
from hashrange.operations.streams import iterators
from hashrange.operations.streams.iterators import Position
from hashrange.operations.streams.stream_requests import TRIMMED, limit_of, open_stream
from hashrange.storage.api import Reader
from hashrange.tables import streams
from hashrange.tables.items import capacity
from hashrange.tables.streams import Stream, StreamRecord

_PAGE_RECORDS: Final = 1_000
_PAGE_BYTES: Final = 1024 * 1024


def prepare(request: Request, context: Context) -> BilledReadBody:
    """The body of a GetRecords."""
    limit = limit_of(request, _PAGE_RECORDS, "Limit should be less than or equal to")
    arn, position = iterators.parse(request["ShardIterator"], context.now)
    region = context.caller.region
    delay = context.settings.stream_delay_seconds
    newest = context.now - delay if delay > 0 else math.inf  # (the clock may have been set back)

    def body(reader: Reader) -> Billed:
        stream = open_stream(reader, arn, context.scope)
        shard = next((candidate for candidate in stream.shards if candidate.id == position.shard), None)
        if shard is None or position.after < shard.trimmed:
            raise TrimmedDataAccessException(TRIMMED)
        shown: list[dict[str, Any]] = []
        after, total = position.after, 0
        complete = True
        for sequence, change in streams.read(reader, stream, shard.id, after, limit):
            if (total and total + change.size > _PAGE_BYTES) or change.time > newest:
                complete = False
                break
            total += change.size
            shown.append(_show_record(stream, sequence, change, region))
            after = sequence
        answer: Answer = {"Records": shown}
        exhausted = shard.end is not None and complete and len(shown) < limit
        if not exhausted:
            answer["NextShardIterator"] = iterators.show(arn, Position(shard.id, after, context.now))
        return answer, capacity.stream_read(stream.table) if context.billed else capacity.NO_BILL

    return body


def _show_record(stream: Stream, sequence: int, change: StreamRecord, region: str) -> dict[str, Any]:
    body: dict[str, Any] = {
        "ApproximateCreationDateTime": int(change.time),
        "Keys": orjson.Fragment(change.keys),
        "SequenceNumber": streams.show_sequence(sequence),
        "SizeBytes": change.size,
        "StreamViewType": stream.view_type,
    }
    if change.new is not None:
        body["NewImage"] = orjson.Fragment(change.new)
    if change.old is not None:
        body["OldImage"] = orjson.Fragment(change.old)
    shown: dict[str, Any] = {
        "eventID": f"{stream.space:08x}{sequence:024x}",
        "eventName": change.event,
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": region,
        "dynamodb": body,
    }
    if change.by_expiry:
        shown["userIdentity"] = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
    return shown
