"""Reads the JSON of large requests piece by piece.

A decoder in C keeps the interpreter's lock until it has decoded the whole text: half a second for 16 MB of
small values. So a text of more than `WINDOW_BYTES` is cut at commas between the members of an array or
object, and `orjson` decodes the pieces; a member that is too large for a piece is read as the text is. In
between, other threads run. One match of a pattern finds a piece in a few milliseconds.

It returns the values that `orjson.loads` returns, and refuses the texts that `orjson.loads` refuses, with two
exceptions, which no valid request meets: a large text may be nested less deep, and of an array or object with
more members than `MEMBERS_MAX` it keeps about so many. It is not compiled on purpose, because the interpreter
lets other threads run between any two steps.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from hashrange.pace import turns

WINDOW_BYTES: Final = 64 * 1024
MEMBERS_MAX: Final = 256 * 1024
"""No item has so many members, since each takes two bytes at least. To free millions takes long."""
DEPTH_MAX: Final = 80
"""A valid request is nested 72 levels deep at most: an item's 32 levels of maps or lists are two each."""

# Repetitions are possessive (`+`): without backtracking, a long text costs no memory. An escape is matched
# with the character that follows it.
_SPACE: Final = rb"[ \t\r\n]*+"
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_VALUE: Final = rb'\{"[A-Z]++":"[^"\\]*+"\}|' + _STRING  # {"N":"1"} in one go, which halves the time


def _members(depth: int) -> bytes:
    """Matches text outside of arrays and objects, and whole ones, which are nested `depth` levels at most."""
    inside = rb""
    for _ in range(depth):
        inside = rb'(?:[^"\[\]{}]++|%b|[\[{]%b[\]}])*+' % (_VALUE, inside)
    return inside


# A part of an array or object: members that commas follow, then the last one, if the end is in sight.
_MEMBER: Final = rb'(?:[^",\[\]{}]++|%b|[\[{]%b[\]}])*+' % (_VALUE, _members(DEPTH_MAX))
_PART: Final = re.compile(rb"(?:%b,)*+(?:%b([\]}]))?" % (_MEMBER, _MEMBER), re.DOTALL)
# The beginning of a large member: its name, and the bracket of an array or object.
_OPENING: Final = rb"(?:([\[{])%b)" % _SPACE
_LARGE: Final = re.compile(rb"%b(?:(%b)%b:%b)?%b?" % (_SPACE, _STRING, _SPACE, _SPACE, _OPENING), re.DOTALL)
_SCALAR: Final = re.compile(rb'%b|[^",\[\]{} \t\r\n]*+' % _STRING, re.DOTALL)
_BEHIND: Final = re.compile(_SPACE + rb"([,\]}])?")
_BEGINNING: Final = re.compile(_SPACE + _OPENING)
_CLOSING: Final = {b"[": b"]", b"{": b"}"}


def loads(text: bytes | bytearray) -> Any:
    """The value of a JSON text. Raises ValueError if the text is not JSON."""
    beginning = _BEGINNING.match(text) if len(text) > WINDOW_BYTES else None
    if beginning is None:
        return orjson.loads(text)
    value, end = _read(text, beginning.end(), beginning[1], DEPTH_MAX)
    if text[end:].strip(b" \t\r\n"):
        raise ValueError("something stands behind the value")
    return value


def _read(text: bytes | bytearray, begin: int, opening: bytes, depth: int) -> tuple[Any, int]:
    """The array or object whose first member is at `begin`, and the place behind it."""
    if not depth:
        raise ValueError("nested too deep")
    is_list, closing = opening == b"[", _CLOSING[opening]
    content: Any = [] if is_list else {}
    add = content.extend if is_list else content.update
    place = begin
    while True:
        turns.point()
        part = _PART.match(text, place, place + WINDOW_BYTES)
        assert part is not None
        if part.end() > place:
            sign = part[1] or b","
            members = orjson.loads(opening + text[place : part.end() - 1] + closing)
            if not members and (place > begin or sign == b","):
                raise ValueError("a comma without a member")
            if len(content) < MEMBERS_MAX:
                add(members)
            place = part.end()
        else:
            large = _LARGE.match(text, place)
            assert large is not None
            if (large[1] is None) != is_list:
                raise ValueError("a member of an object has a name, one of an array has none")
            if large[2] is not None:
                value, place = _read(text, large.end(), large[2], depth - 1)
            else:
                scalar = _SCALAR.match(text, large.end())
                assert scalar is not None
                value, place = orjson.loads(scalar[0]), scalar.end()
            if is_list:
                content.append(value)
            else:
                content[orjson.loads(large[1])] = value
            behind = _BEHIND.match(text, place)
            assert behind is not None
            sign, place = behind[1], behind.end()
        if sign != b",":
            if sign != closing:
                raise ValueError("the text ends before the value, or another value does")
            return content, place
