"""Committed batches, one after the other.

    length, body    4 and `length` bytes, repeated

The body is MessagePack: an array of the batch's number, its moment in milliseconds since the Unix epoch, and
a map of its raw records (nil: deleted). There is no checksum: the digest of the object covers the batches
(`objects`).

Refuses to know: what records mean.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

import msgspec

from hashrange_replication.failures import Damaged

_HEAD_BYTES: Final = 4


class Batch(NamedTuple):
    """A committed batch: its number, the moment of its commit in epoch milliseconds, its raw records."""

    number: int
    moment: int
    records: Mapping[bytes, bytes | None]


_encode_into = msgspec.msgpack.Encoder().encode_into
_decode = msgspec.msgpack.Decoder(tuple[int, int, dict[bytes, bytes | None]]).decode


def add_frame(content: bytearray, number: int, moment: int, records: Mapping[bytes, bytes | None]) -> None:
    """Add a batch to the end of `content`."""
    start = len(content)
    content += bytes(_HEAD_BYTES)
    _encode_into((number, moment, records), content, start + _HEAD_BYTES)
    content[start : start + _HEAD_BYTES] = (len(content) - start - _HEAD_BYTES).to_bytes(_HEAD_BYTES)


def frames(content: bytes) -> Iterator[Batch]:
    """The batches in `content`. Raises Damaged."""
    at = 0
    view = memoryview(content)
    while at < len(content):
        end = at + _HEAD_BYTES
        length = int.from_bytes(view[at:end])
        body = view[end : end + length]
        if len(body) != length or end > len(content):
            raise Damaged("a batch is cut off")
        try:
            yield Batch(*_decode(body))
        except msgspec.DecodeError as error:
            raise Damaged(f"a batch cannot be read: {error}") from None
        at = end + length
