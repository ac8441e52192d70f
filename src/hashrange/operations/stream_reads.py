"""DynamoDB Streams: ListStreams, DescribeStream, GetShardIterator and GetRecords.

A shard iterator is an opaque text that holds the stream, the shard, the sequence number to read behind, and
when it was issued; it needs no memory here and is valid for 15 minutes.

Source: API reference, Amazon DynamoDB Streams.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from itertools import islice
from typing import Any, NamedTuple

import msgspec
import orjson

from hashrange.errors import (
    ExpiredIteratorException,
    ResourceNotFoundException,
    TrimmedDataAccessException,
    ValidationException,
)
from hashrange.operations.context import Answer, Caller, Context, ReadBody, Request, stream_arn, table_name
from hashrange.storage.api import Reader
from hashrange.tables import catalog, streams
from hashrange.tables.streams import Change, Shard, Stream
from hashrange.tables.table import KeySchema

_ITERATOR_SECONDS = 15 * 60
_PAGE_RECORDS = 1_000
_PAGE_BYTES = 1024 * 1024
_STREAMS_MAX = 100
_SHARDS_MAX = 100


class _Position(NamedTuple):
    """What a shard iterator says: read records of `shard` with sequences above `after`."""

    table: str
    label: str
    shard: str
    after: int
    issued: float


_ENCODE = msgspec.json.Encoder()
_DECODE = msgspec.json.Decoder(_Position)


def _token(position: _Position) -> str:
    return urlsafe_b64encode(_ENCODE.encode(position)).decode()


def _position(token: str, now: float) -> _Position:
    try:
        position = _DECODE.decode(urlsafe_b64decode(token))
    except (ValueError, msgspec.DecodeError):
        raise ValidationException("Invalid ShardIterator") from None
    if now - position.issued > _ITERATOR_SECONDS:
        raise ExpiredIteratorException(
            "Iterator expired. The iterator was created at time "
            f"{position.issued:.3f} while right now it is {now:.3f} which is further in the future than the "
            f"tolerated delay of {_ITERATOR_SECONDS * 1000} milliseconds."
        )
    return position


def _open(reader: Reader, arn: str) -> Stream:
    """The stream that an ARN names. Raises `ResourceNotFoundException` and `ValidationException`."""
    _, found, label = arn.partition("/stream/")
    if not arn.startswith("arn:") or not found:
        raise ValidationException(f"Invalid StreamArn: {arn}")
    stream = streams.find(reader, table_name(arn), label)
    if stream is None:
        raise ResourceNotFoundException(f"Requested resource not found: Stream: {arn} not found")
    return stream


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListStreams."""
    limit = min(request.get("Limit") or _STREAMS_MAX, _STREAMS_MAX)
    only = table_name(request["TableName"]) if request.get("TableName") else None
    start = request.get("ExclusiveStartStreamArn")

    def body(reader: Reader) -> Answer:
        after = (table_name(start), start.partition("/stream/")[2]) if start is not None else None
        wanted = (s for s in streams.all_streams(reader, after) if only is None or s.table == only)
        found = list(islice(wanted, limit + 1))
        shown = [
            {
                "StreamArn": stream_arn(context.caller, stream.table, stream.label),
                "TableName": stream.table,
                "StreamLabel": stream.label,
            }
            for stream in found[:limit]
        ]
        answer: Answer = {"Streams": shown}
        if len(found) > limit:
            answer["LastEvaluatedStreamArn"] = shown[-1]["StreamArn"]
        return answer

    return body


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeStream."""
    arn = request["StreamArn"]
    limit = min(request.get("Limit") or _SHARDS_MAX, _SHARDS_MAX)
    start, shard_filter = request.get("ExclusiveStartShardId"), request.get("ShardFilter")

    def body(reader: Reader) -> Answer:
        stream = _open(reader, arn)
        shards = sorted(stream.shards, key=lambda shard: shard.id)
        if shard_filter is not None:
            shards = [shard for shard in shards if shard.parent == shard_filter.get("ShardId")]
        shards = [shard for shard in shards if start is None or shard.id > start]
        table = catalog.find(reader, stream.table, context.now)
        shown: dict[str, Any] = {
            "StreamArn": arn,
            "StreamLabel": stream.label,
            "StreamStatus": "ENABLED" if stream.closed is None else "DISABLED",
            "StreamViewType": stream.view_type,
            "CreationRequestDateTime": stream.created,
            "TableName": stream.table,
            "Shards": [_show_shard(shard) for shard in shards[:limit]],
        }
        if table is not None:
            shown["KeySchema"] = _key_schema(table.key)
        if len(shards) > limit:
            shown["LastEvaluatedShardId"] = shards[limit - 1].id
        return {"StreamDescription": shown}

    return body


def _key_schema(key: KeySchema) -> list[dict[str, str]]:
    return [{"AttributeName": one.name, "KeyType": "HASH"} for one in key.partition] + [
        {"AttributeName": one.name, "KeyType": "RANGE"} for one in key.sort
    ]


def _show_shard(shard: Shard) -> dict[str, Any]:
    numbers = {"StartingSequenceNumber": streams.show_sequence(shard.start)}
    if shard.end is not None:
        numbers["EndingSequenceNumber"] = streams.show_sequence(shard.end)
    shown: dict[str, Any] = {"ShardId": shard.id, "SequenceNumberRange": numbers}
    if shard.parent is not None:
        shown["ParentShardId"] = shard.parent
    return shown


def prepare_iterator(request: Request, context: Context) -> ReadBody:
    """The body of a GetShardIterator."""
    kind, text = request["ShardIteratorType"], request.get("SequenceNumber")
    if kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER") and text is None:
        raise ValidationException(f"SequenceNumber must be specified for ShardIteratorType {kind}")
    if kind == "AT_TIMESTAMP" and request.get("Timestamp") is None:
        raise ValidationException("Timestamp must be specified for ShardIteratorType AT_TIMESTAMP")

    def body(reader: Reader) -> Answer:
        stream = _open(reader, request["StreamArn"])
        shard = next((one for one in stream.shards if one.id == request["ShardId"]), None)
        if shard is None:
            raise ResourceNotFoundException(
                f"Requested resource not found: Shard: {request['ShardId']} in Stream: "
                f"{request['StreamArn']} not found"
            )
        after = _start(reader, stream, shard, request)
        position = _Position(stream.table, stream.label, shard.id, after, context.now)
        return {"ShardIterator": _token(position)}

    return body


def _start(reader: Reader, stream: Stream, shard: Shard, request: Request) -> int:
    """The sequence number behind which an iterator of the requested type starts."""
    match request["ShardIteratorType"]:
        case "TRIM_HORIZON":
            return shard.start
        case "LATEST":
            return streams.newest(reader, stream, shard)
        case "AT_TIMESTAMP":
            moment = request["Timestamp"]
            for sequence, change in streams.read(reader, stream, shard.id, shard.start, 2**62):
                if change.time >= moment:
                    return sequence - 1
            return streams.newest(reader, stream, shard)
    try:
        sequence = streams.parse_sequence(request["SequenceNumber"])
    except ValueError:
        raise ValidationException(f"Invalid SequenceNumber: {request['SequenceNumber']}") from None
    if sequence < shard.start or (shard.end is not None and sequence > shard.end):
        raise ValidationException(
            "Invalid SequenceNumber: it is not in the range of the shard"
        )
    first = next(streams.read(reader, stream, shard.id, shard.start, 1), None)
    if first is not None and shard.start < sequence < first[0]:
        raise TrimmedDataAccessException(
            "The operation attempted to read past the oldest stream record in a shard"
        )
    return sequence - 1 if request["ShardIteratorType"] == "AT_SEQUENCE_NUMBER" else sequence


def prepare_records(request: Request, context: Context) -> ReadBody:
    """The body of a GetRecords."""
    position = _position(request["ShardIterator"], context.now)
    limit = min(request.get("Limit") or _PAGE_RECORDS, _PAGE_RECORDS)

    def body(reader: Reader) -> Answer:
        stream = streams.find(reader, position.table, position.label)
        if stream is None:
            raise ResourceNotFoundException("Requested resource not found: Stream not found")
        shard = next((one for one in stream.shards if one.id == position.shard), None)
        if shard is None:
            raise TrimmedDataAccessException(
                "The operation attempted to read past the oldest stream record in a shard"
            )
        shown: list[dict[str, Any]] = []
        after, total = position.after, 0
        complete = True
        for sequence, change in streams.read(reader, stream, position.shard, position.after, limit):
            if total and total + change.size > _PAGE_BYTES:
                complete = False
                break
            total += change.size
            shown.append(_show_record(stream, sequence, change, context.caller))
            after = sequence
        answer: Answer = {"Records": shown}
        exhausted = shard.end is not None and complete and len(shown) < limit
        if not exhausted:
            answer["NextShardIterator"] = _token(position._replace(after=after, issued=context.now))
        return answer

    return body


def _show_record(stream: Stream, sequence: int, change: Change, caller: Caller) -> dict[str, Any]:
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
        "awsRegion": caller.region,
        "dynamodb": body,
    }
    if change.by_expiry:
        shown["userIdentity"] = {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
    return shown
