"""Shard iterators: opaque texts for the position at which GetRecords continues.

A shard iterator contains the stream, the shard, the sequence number after which to read, and the time of its
issue, so the server need not store it. It is valid for 15 minutes, and begins with the stream's ARN, as on
AWS.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from datetime import UTC, datetime
from typing import Final, NamedTuple

import msgspec

from hashrange.errors import ExpiredIteratorException, ValidationException
from hashrange.operations.streams.stream_requests import STREAM_ARN

SEQUENCE_MAX: Final = 2**64 - 2
_ITERATOR_SECONDS: Final = 15 * 60
_TIME_MAX: Final = 1e11


class Position(NamedTuple):
    """The position of a shard iterator: it reads records of `shard` with sequences above `after`."""

    shard: str
    after: int
    issued: float


_ENCODE = msgspec.json.Encoder()
_DECODE = msgspec.json.Decoder(Position)


def show(arn: str, position: Position) -> str:
    """The iterator for a position in a stream."""
    return f"{arn}|1|{urlsafe_b64encode(_ENCODE.encode(position)).decode()}"


def parse(iterator: str, now: float) -> tuple[str, Position]:
    """The stream's ARN and the position in an iterator.

    Raises `ValidationException` for a text that is not an iterator, and `ExpiredIteratorException`.
    """
    arn, _, token = iterator.partition("|1|")
    try:
        position = _DECODE.decode(urlsafe_b64decode(token))
    except (ValueError, msgspec.DecodeError):
        raise ValidationException("Invalid ShardIterator") from None
    possible = 0 <= position.after <= SEQUENCE_MAX and 0 <= position.issued <= _TIME_MAX
    if not possible or not STREAM_ARN.fullmatch(arn):
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
