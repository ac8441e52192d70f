"""GetShardIterator: makes an iterator for a position in a shard, from which GetRecords reads.

Source: API reference, GetShardIterator; for error messages DynamoDB Local, as decision 5 says.
"""

from __future__ import annotations

from hashrange.errors import (
    INVALID,
    RESOURCE_NOT_FOUND,
    ResourceNotFoundException,
    TrimmedDataAccessException,
    ValidationException,
)
from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.operations.streams import iterators
from hashrange.operations.streams.iterators import SEQUENCE_MAX, Position
from hashrange.operations.streams.stream_requests import TRIMMED, open_stream
from hashrange.storage.api import Reader
from hashrange.tables import streams
from hashrange.tables.streams import Shard, Stream


def prepare(request: Request, context: Context) -> ReadBody:
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
        stream = open_stream(reader, arn, context.scope)
        shard = _open_shard(stream, request["ShardId"])
        after = _start(reader, stream, shard, request)
        return {"ShardIterator": iterators.show(arn, Position(shard.id, after, context.now))}

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
    end = shard.end if shard.end is not None else SEQUENCE_MAX
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
