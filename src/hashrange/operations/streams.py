"""DynamoDB Streams: the operations that read a table's changes.

A shard iterator is an opaque text for the position at which GetRecords continues. It has the stream, the
shard, the sequence number after which to read, and the time of its issue, so the server need not store it. It
is valid for 15 minutes, and begins with the stream's ARN, as on AWS.

Source: API reference, DynamoDB Streams; for error messages DynamoDB Local, as decision 5 says.
"""

from __future__ import annotations

import math
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from itertools import islice
from typing import Any, Final, NamedTuple

import msgspec
import orjson

from hashrange.errors import (
    INVALID,
    RESOURCE_NOT_FOUND,
    ExpiredIteratorException,
    ResourceNotFoundException,
    TrimmedDataAccessException,
    ValidationException,
)
from hashrange.operations.context import (
    Answer,
    Billed,
    BilledReadBody,
    Context,
    ReadBody,
    Request,
    is_in_scope,
    stream_arn,
    table_name,
)
from hashrange.storage.api import Reader
from hashrange.tables import streams
from hashrange.tables.items import capacity
from hashrange.tables.streams import Shard, Stream, StreamRecord

TRIMMED: Final = "The data you are trying to access has been trimmed"
_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:(?P<region>[^:]*):(?P<account>[^:]*):table/(?P<table>[a-zA-Z0-9_.-]{1,255})"
    r"/stream/(?P<label>[0-9T:.-]+)"
)
_PAGE_MAX: Final = 100
"""The most streams, or shards of a stream, of a page."""
_PAGE_RECORDS: Final = 1_000
_PAGE_BYTES: Final = 1024 * 1024
_SEQUENCE_MAX: Final = 2**64 - 2
_ITERATOR_SECONDS: Final = 15 * 60
_TIME_MAX: Final = 1e11


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListStreams."""
    limit = _limit_of(request, _PAGE_MAX, "Limit cannot be greater than the maximum allowed size:")
    only = table_name(request["TableName"], context.scope) if request.get("TableName") else None
    start = request.get("ExclusiveStartStreamArn")
    after = _names_in(start) if start is not None else None

    def body(reader: Reader) -> Answer:
        found = streams.all_streams(reader, after, context.scope)
        wanted = (s for s in found if only is None or s.table == only)
        page = list(islice(wanted, limit + 1))
        shown = [
            {
                "StreamArn": stream_arn(context.caller, stream.table, stream.label),
                "TableName": stream.table,
                "StreamLabel": stream.label,
            }
            for stream in page[:limit]
        ]
        answer: Answer = {"Streams": shown}
        if len(page) > limit:
            answer["LastEvaluatedStreamArn"] = shown[-1]["StreamArn"]
        return answer

    return body


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeStream."""
    arn = request["StreamArn"]
    limit = _limit_of(request, _PAGE_MAX, "Limit cannot be greater than the maximum:")
    start, shard_filter = request.get("ExclusiveStartShardId"), request.get("ShardFilter")
    if shard_filter is not None and shard_filter.get("Type") is None:
        raise ValidationException(
            "1 validation error detected: Value 'null' at 'shardFilter.type' failed to satisfy constraint: "
            "Member must be CHILD_SHARDS"
        )
    if shard_filter is not None and not shard_filter.get("ShardId"):
        raise ValidationException("ShardFilter must have a ShardId")

    def body(reader: Reader) -> Answer:
        stream = _open(reader, arn, context.scope)
        shards = sorted(stream.shards, key=lambda shard: shard.id)
        if shard_filter is not None:
            shards = [shard for shard in shards if shard.parent == shard_filter["ShardId"]]
        shards = [shard for shard in shards if start is None or shard.id > start]
        shown: dict[str, Any] = {
            "StreamArn": arn,
            "StreamLabel": stream.label,
            "StreamStatus": "ENABLED" if stream.closed is None else "DISABLED",
            "StreamViewType": stream.view_type,
            "CreationRequestDateTime": round(stream.created, 3),
            "TableName": stream.table,
            "KeySchema": [{"AttributeName": name, "KeyType": kind} for name, kind in stream.key],
            "Shards": [_show_shard(shard) for shard in shards[:limit]],
        }
        if len(shards) > limit:
            shown["LastEvaluatedShardId"] = shards[limit - 1].id
        return {"StreamDescription": shown}

    return body


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
        raise ValidationException(f"{INVALID}Invalid SequenceNumber")
    if kind in ("LATEST", "TRIM_HORIZON") and text is not None:
        raise ValidationException(f"{INVALID}SequenceNumber should not be passed for this iterator type")
    if kind == "AT_TIMESTAMP" and request.get("Timestamp") is None:
        raise ValidationException("Timestamp must be specified for ShardIteratorType AT_TIMESTAMP")

    def body(reader: Reader) -> Answer:
        arn = request["StreamArn"]
        stream = _open(reader, arn, context.scope)
        shard = _open_shard(stream, request["ShardId"])
        after = _start(reader, stream, shard, request)
        return {"ShardIterator": show_iterator(arn, Position(shard.id, after, context.now))}

    return body


def _start(reader: Reader, stream: Stream, shard: Shard, request: Request) -> int:
    """The sequence number after which an iterator of the requested type starts."""
    kind = request["ShardIteratorType"]
    if kind == "TRIM_HORIZON":
        return shard.horizon
    if kind == "LATEST":
        return streams.newest(reader, stream, shard)
    if kind == "AT_TIMESTAMP":
        return streams.mark_at(reader, stream, shard, request["Timestamp"])
    try:
        sequence = streams.parse_sequence(request["SequenceNumber"])
    except ValueError:
        raise ValidationException(f"{INVALID}Invalid SequenceNumber") from None
    end = shard.end if shard.end is not None else _SEQUENCE_MAX
    if not shard.start <= sequence <= end:
        raise ValidationException("Invalid SequenceNumber for the shard")
    # No record has the shard's start as its sequence number, so starting there means starting at the first
    # record.
    after = max(shard.start, sequence - 1 if kind == "AT_SEQUENCE_NUMBER" else sequence)
    if after < shard.trimmed:
        raise TrimmedDataAccessException(TRIMMED)
    return after


def _open_shard(stream: Stream, shard_id: str) -> Shard:
    """A shard of a stream. Raises `ResourceNotFoundException`."""
    for shard in stream.shards:
        if shard.id == shard_id:
            return shard
    raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Shard does not exist")


def prepare_records(request: Request, context: Context) -> BilledReadBody:
    """The body of a GetRecords."""
    limit = _limit_of(request, _PAGE_RECORDS, "Limit should be less than or equal to")
    arn, position = parse_iterator(request["ShardIterator"], context.now)
    region = context.caller.region
    delay = context.settings.stream_delay_seconds
    newest = context.now - delay if delay > 0 else math.inf  # (the clock may have been set back)

    def body(reader: Reader) -> Billed:
        stream = _open(reader, arn, context.scope)
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
            answer["NextShardIterator"] = show_iterator(arn, Position(shard.id, after, context.now))
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


class Position(NamedTuple):
    """The position of a shard iterator: it reads records of `shard` with sequences above `after`."""

    shard: str
    after: int
    issued: float


_ENCODE: Final = msgspec.json.Encoder()
_DECODE: Final = msgspec.json.Decoder(Position)


def show_iterator(arn: str, position: Position) -> str:
    """The iterator for a position in a stream."""
    return f"{arn}|1|{urlsafe_b64encode(_ENCODE.encode(position)).decode()}"


def parse_iterator(iterator: str, now: float) -> tuple[str, Position]:
    """The stream's ARN and the position in an iterator.

    Raises `ValidationException` for a text that is not an iterator, and `ExpiredIteratorException`.
    """
    arn, _, token = iterator.partition("|1|")
    try:
        position = _DECODE.decode(urlsafe_b64decode(token))
    except (ValueError, msgspec.DecodeError):
        raise ValidationException("Invalid ShardIterator") from None
    possible = 0 <= position.after <= _SEQUENCE_MAX and 0 <= position.issued <= _TIME_MAX
    if not possible or not _ARN.fullmatch(arn):
        raise ValidationException("Invalid ShardIterator")
    if now - position.issued > _ITERATOR_SECONDS:
        raise expired(position, now)
    return arn, position


def expired(position: Position, now: float) -> ExpiredIteratorException:
    """The error of an iterator that is too old."""
    return ExpiredIteratorException(
        f"Iterator expired. The iterator was created at time {_show_time(position.issued)} while right "
        f"now it is {_show_time(now)} which is further in the future than the tolerated delay of "
        f"{_ITERATOR_SECONDS * 1000} milliseconds."
    )


def _show_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%a %b %d %H:%M:%S UTC %Y")


def _names_in(arn: str) -> tuple[str, str]:
    """The table and the label in a stream's ARN. Raises `ValidationException`."""
    match = _matched(arn)
    return match["table"], match["label"]


def _matched(arn: str) -> re.Match[str]:
    match = _ARN.fullmatch(arn)
    if match is None:
        raise ValidationException(f"Invalid StreamArn: {arn}")
    return match


def _open(reader: Reader, arn: str, scope: str) -> Stream:
    """The stream that an ARN names, if it belongs to `scope`.

    Raises `ResourceNotFoundException` and `ValidationException`.
    """
    match, stream = _matched(arn), None
    if is_in_scope(scope, match["account"], match["region"]):
        stream = streams.find(reader, match["table"], match["label"], scope)
    if stream is None:
        raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Stream: {arn} not found")
    return stream


def _limit_of(request: Request, most: int, refusal: str) -> int:
    """The request's Limit, or the maximum if it has none. Raises `ValidationException`."""
    limit = int(request.get("Limit") or most)
    if limit > most:
        raise ValidationException(f"{INVALID}{refusal} {most}")
    return limit
