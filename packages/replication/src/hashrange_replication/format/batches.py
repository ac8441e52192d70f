"""Committed batches, one after the other.

    length, checksum, body    4, 4 and `length` bytes; the checksum is CRC-32 of the body

The body is MessagePack: an array of the batch's number, its moment in milliseconds since the Unix epoch, and
a map of its raw records (nil: deleted).

Refuses to know: what records mean.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from hashrange_replication.failures import Damaged

_HEAD_BYTES: Final = 8


class Batch(NamedTuple):
    """A committed batch: its number, the moment of its commit in epoch milliseconds, its raw records."""

    number: int
    moment: int
    records: Mapping[bytes, bytes | None]


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[int, int, dict[bytes, bytes | None]]).decode


def frame(number: int, moment: int, records: Mapping[bytes, bytes | None]) -> bytes:
    """A batch as bytes."""
    body = _encode((number, moment, records))
    return len(body).to_bytes(4) + zlib.crc32(body).to_bytes(4) + body


def frames(content: bytes) -> Iterator[Batch]:
    """The batches in `content`. Raises Damaged."""
    at = 0
    view = memoryview(content)
    while at < len(content):
        end = at + _HEAD_BYTES
        length = int.from_bytes(view[at : at + 4])
        body = view[end : end + length]
        if len(body) != length or end > len(content):
            raise Damaged("a batch is cut off")
        if zlib.crc32(body) != int.from_bytes(view[at + 4 : end]):
            raise Damaged("the checksum of a batch is wrong")
        try:
            yield Batch(*_decode(body))
        except msgspec.DecodeError as error:
            raise Damaged(f"a batch cannot be read: {error}") from None
        at = end + length
