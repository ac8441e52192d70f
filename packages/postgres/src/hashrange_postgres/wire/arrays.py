"""Arrays in PostgreSQL's binary form: the driver's own way costs a call for each element."""

from __future__ import annotations

import struct
from typing import Final

BYTEA: Final = 17
BIGINT: Final = 20

_HEAD: Final = struct.Struct(">iiiii")
_EMPTY: Final = struct.Struct(">iii")
_EIGHT: Final = b"\x00\x00\x00\x08"
_NULL: Final = b"\xff\xff\xff\xff"


def pack_bytes(values: list[bytes | None]) -> bytes:
    """A `bytea[]`."""
    if not values:
        return _EMPTY.pack(0, 0, BYTEA)
    parts: list[bytes] = [_HEAD.pack(1, 1, BYTEA, len(values), 1)]
    for value in values:
        if value is None:
            parts.append(_NULL)
        else:
            parts.append(len(value).to_bytes(4, "big"))
            parts.append(value)
    return b"".join(parts)


def pack_numbers(values: list[int]) -> bytes:
    """A `bigint[]`."""
    if not values:
        return _EMPTY.pack(0, 0, BIGINT)
    parts: list[bytes] = [_HEAD.pack(1, 0, BIGINT, len(values), 1)]
    for value in values:
        parts.append(_EIGHT)
        parts.append(value.to_bytes(8, "big", signed=True))
    return b"".join(parts)
