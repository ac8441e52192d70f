"""The stored form of an item: a header and its JSON, exactly as the wire shows it.

    1 byte    format version, 1
    4 bytes   item size as DynamoDB counts it, big-endian
    rest      the item as JSON

An answer gets this JSON spliced in without decoding, which makes reads several times as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

import orjson

from hashrange import json_pieces, pace
from hashrange.values import Item

FORMAT_VERSION: Final = 1
HEADER_BYTES: Final = 5

_LARGE_BYTES: Final = json_pieces.WHOLE_BYTES
_VALUES_MAX: Final = 4_000
"""Decoding an item with this many values takes about a millisecond."""
_FRAGMENTS: Final = 256

_HEADER: Final = Struct(">BI")
_pack_header = _HEADER.pack


def pack(item: Item, size: int) -> bytes:
    """The stored form of an item of `size` bytes."""
    return _pack_header(FORMAT_VERSION, size) + orjson.dumps(item)


def size_of(record: bytes) -> int:
    """The item size of a stored record."""
    return int.from_bytes(record[1:HEADER_BYTES])


def item_of(record: bytes) -> Item:
    """The item of a stored record, as a new dict that the caller may change.

    An item of very many values is decoded in pieces, and not on the event loop (`pace.TurnOver`).
    """
    if len(record) > _LARGE_BYTES and record.count(b'{"') > _VALUES_MAX and pace.in_pieces():
        return json_pieces.loads(record[HEADER_BYTES:])  # type: ignore[no-any-return]
    return orjson.loads(memoryview(record)[HEADER_BYTES:])  # type: ignore[no-any-return]


def item_to_change(record: bytes) -> Item:
    """Like `item_of`, for a body that writes. The body does not say when it no longer needs the item, so an
    item of very many values is freed, in pieces, after the task of this worker thread has ended."""
    item = item_of(record)
    if len(record) > _LARGE_BYTES:
        pace.free_later(item)
    return item


def fragment_of(record: bytes) -> orjson.Fragment:
    """The item of a stored record, to be spliced into an answer.

    Calls `pace.point` if the record is large: copying the records of a 16 MB batch takes 20 ms.
    """
    if len(record) > _LARGE_BYTES:
        pace.point()
    return orjson.Fragment(record[HEADER_BYTES:])


def fragments_of(found: list[bytes]) -> list[orjson.Fragment]:
    """Like `fragment_of`, for the many records of a page."""
    fragment = orjson.Fragment
    fragments: list[orjson.Fragment] = []
    for start in range(0, len(found), _FRAGMENTS):
        pace.point()
        fragments += [fragment(record[HEADER_BYTES:]) for record in found[start : start + _FRAGMENTS]]
    return fragments


def shown(record: bytes, show: Callable[[Item], Item]) -> Item:
    """What `show` takes from the item of a record, such as a projection. Calls `pace.point`."""
    pace.point()
    item = item_of(record)
    result = show(item)
    let_go(record, item)
    return result


def let_go(record: bytes, item: Item) -> None:
    """Free the item of a record, which is no longer needed, in pieces if it has very many values. The parts
    of the item that other code refers to stay."""
    if len(record) > _LARGE_BYTES and pace.is_aside():
        json_pieces.discard(item)
