"""The stored form of an item: a header and its JSON, exactly as the wire shows it.

    1 byte    format version, 1
    4 bytes   item size as DynamoDB counts it, big-endian
    rest      the item as JSON

This JSON is spliced into answers without decoding, which makes reads several times as fast.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import msgspec
import orjson

from hashrange import pace
from hashrange.pace import texts
from hashrange.values import Item

FORMAT_VERSION: Final = 1
HEADER_BYTES: Final = 5

# Compiled code reads a final name at once; an attribute of a module it has to look up.
_loads: Final = orjson.loads
_dumps: Final = orjson.dumps
_fragment: Final = orjson.Fragment

_VERSION: Final = bytes((FORMAT_VERSION,))
_LARGE_BYTES: Final = 64 * 1024
_COPIED_BYTES_MAX: Final = 4 * 1024
_MANY_VALUES: Final = 10_000
_TEXTS: Final = 256


def pack(item: Item, size: int) -> bytes:
    """The stored form of an item of `size` bytes."""
    return b"%b%b%b" % (_VERSION, size.to_bytes(HEADER_BYTES - 1, "big"), _dumps(item))


def size_of(record: bytes) -> int:
    """The item size of a stored record; 0 of a record without a header, which `hashrange check` finds."""
    if len(record) < HEADER_BYTES:
        return 0
    return record[1] << 24 | record[2] << 16 | record[3] << 8 | record[4]


def item_of(record: bytes) -> Item:
    """The item of a stored record, as a new dict that the caller may change.

    An item of many values is not decoded on the event loop (`pace.before`), and on a thread piece by piece:
    400 KB of tiny numbers take 25 ms.
    """
    if len(record) > _LARGE_BYTES:
        values = record.count(b"{")
        pace.before(values)
        if values >= _MANY_VALUES:
            return texts.loads(record[HEADER_BYTES:])  # type: ignore[no-any-return]
    if len(record) <= _COPIED_BYTES_MAX:
        # To copy a small text costs less than to make a view of it.
        return _loads(record[HEADER_BYTES:])  # type: ignore[no-any-return]
    return _loads(memoryview(record)[HEADER_BYTES:])  # type: ignore[no-any-return]


def members_of(record: bytes, names: tuple[str, ...]) -> Item:
    """The attributes `names` of a stored record, which has them all. The others are not decoded, which for
    the key of an item of 1 KB takes a third of the time."""
    decoder = _decoder(names)
    if decoder is None:
        item = item_of(record)
        return {name: item[name] for name in names}
    members = decoder.decode(memoryview(record)[HEADER_BYTES:])
    return dict(zip(names, msgspec.structs.astuple(members), strict=True))


@lru_cache(maxsize=1_000)
def _decoder(names: tuple[str, ...]) -> msgspec.json.Decoder[Any] | None:
    """Decodes the attributes `names`; None if the JSON of a name is not the name itself."""
    if any(_dumps(name) != b'"%b"' % name.encode() for name in names):
        return None
    renamed = {f"member_{number}": name for number, name in enumerate(names)}
    return msgspec.json.Decoder(msgspec.defstruct("Members", [*renamed], rename=renamed))


def fragment_of(record: bytes) -> orjson.Fragment:
    """The item of a stored record, to be spliced into an answer.

    Calls `pace.point` if the record is large: copying the records of a 16 MB batch takes 20 ms.
    """
    if len(record) > _LARGE_BYTES:
        pace.point()
    return _fragment(record[HEADER_BYTES:])


def list_of(
    records_: list[bytes], show: Callable[[Item], Item] | None = None
) -> list[Item] | orjson.Fragment:
    """The list of an answer that shows records: what `show` makes of each item, or the whole items as one
    text to be spliced in: `orjson` would copy what it has written several times while it adds them one by
    one. Calls `pace.point`."""
    if show is not None:
        return [shown(record, show) for record in records_]
    texts: list[bytes] = []
    for start in range(0, len(records_), _TEXTS):
        pace.point()
        texts += [record[HEADER_BYTES:] for record in records_[start : start + _TEXTS]]
    if not texts:
        return _fragment(b"[]")
    texts[0] = b"[" + texts[0]
    texts[-1] += b"]"
    return _fragment(b",".join(texts))


def shown(record: bytes, show: Callable[[Item], Item]) -> Item:
    """The result of `show`, such as a projection, for the item of a record. Calls `pace.point`."""
    pace.point()
    return show(item_of(record))
