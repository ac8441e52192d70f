"""Encodes large answers piece by piece.

`orjson` keeps the interpreter's lock until it has encoded the whole answer: 20 ms for the 16 MB of a batch.
So the members of a batch are encoded one by one, and other threads run in between. A page of a table or an
index, which has 1 MB, is one piece.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from hashrange.pace import turns

MEMBERS_MAX: Final = 100
"""No batch has more members. A longer list is a page, whose items are small."""
_LEVELS: Final = 3


def pieces(answer: Any) -> list[bytes]:
    """The pieces of the JSON of an answer: together what `orjson.dumps` returns."""
    parts: list[bytes] = []
    _add(answer, _LEVELS, parts)
    return parts


def _add(value: Any, levels: int, parts: list[bytes]) -> None:
    """Add the pieces of a value, whose members are encoded one by one on this many levels."""
    if levels and value and type(value) is dict:
        sign = b"{"
        for name, member in value.items():
            parts.append(b"%b%b:" % (sign, orjson.dumps(name)))
            _add(member, levels - 1, parts)
            sign = b","
        parts.append(b"}")
    elif levels and type(value) is list and 0 < len(value) <= MEMBERS_MAX:
        sign = b"["
        for member in value:
            parts.append(sign)
            _add(member, levels - 1, parts)
            sign = b","
        parts.append(b"]")
    else:
        turns.point()
        parts.append(orjson.dumps(value))
