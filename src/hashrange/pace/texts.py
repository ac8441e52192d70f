"""Reads large JSON texts piece by piece: requests, and the records of large items.

A decoder in C keeps the interpreter's lock until it has decoded the whole text: half a second for 16 MB of
small values. So a text of more than `WINDOW_BYTES` is cut at commas between the members of an array or
object, and `orjson` decodes the pieces; a member that is too large for a piece is read as the text is, and a
string is cut between two characters. In between, other threads run. One match of a pattern finds a piece in a
few milliseconds.

It returns the values that `orjson.loads` returns, and refuses the texts that `orjson.loads` refuses, with two
exceptions, which no valid request meets: a large text may be nested less deep, and of an array or object with
more members than `MEMBERS_MAX` it keeps about that many. It is not compiled on purpose, because the
interpreter lets other threads run between any two steps.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from hashrange.pace import turns

WINDOW_BYTES: Final = 64 * 1024
MEMBERS_MAX: Final = 256 * 1024
"""No item has this many members, since each takes two bytes at least. To free millions takes long."""
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
_SPACES: Final = re.compile(_SPACE)
_SCALAR: Final = re.compile(rb'[^",:\[\]{} \t\r\n]*+')
# A part of a string. It ends before the first escape that is wrong or not whole; a character outside of the
# BMP may be written as two escapes.
_HEX: Final = rb"[0-9a-fA-F]"
_PAIR: Final = rb"\\u[dD][89abAB]%b{2}\\u[dD][c-fC-F]%b{2}" % (_HEX, _HEX)
_SINGLE: Final = rb"\\u(?![dD][89a-fA-F])%b{4}" % _HEX
_CHARACTERS: Final = re.compile(rb'(?:[^"\\]++|\\[^u]|%b|%b)*+' % (_SINGLE, _PAIR), re.DOTALL)
_CHARACTER_BYTES_MAX: Final = 12
_CLOSING: Final = {b"[": b"]", b"{": b"}"}


def loads(text: bytes | bytearray) -> Any:
    """The value of a JSON text. Raises ValueError if the text is not JSON."""
    if len(text) <= WINDOW_BYTES:
        return orjson.loads(text)
    value, end = _value(text, 0, DEPTH_MAX + 1)
    if _after_spaces(text, end) < len(text):
        raise ValueError("there is more after the value")
    return value


def _read(text: bytes | bytearray, begin: int, opening: bytes, depth: int) -> tuple[Any, int]:
    """The array or object whose first member is at `begin`, and the place behind it."""
    if not depth:
        raise ValueError("nested too deep")
    is_list, closing = opening == b"[", _CLOSING[opening]
    content: Any = [] if is_list else {}
    add = content.extend if is_list else content.update
    place = begin = _after_spaces(text, begin)
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
            if is_list:
                value, place = _value(text, place, depth)
                content.append(value)
            else:
                name, place = _string(text, place)
                sign, place = _sign(text, place)
                if sign != b":":
                    raise ValueError("a name without a value")
                content[name], place = _value(text, place, depth)
            sign, place = _sign(text, place)
        if sign != b",":
            if sign != closing:
                raise ValueError("the text ends before the value, or another value does")
            return content, place


def _value(text: bytes | bytearray, place: int, depth: int) -> tuple[Any, int]:
    """A value that may be large and is nested `depth` levels deep at most, and the place behind it."""
    sign, behind = _sign(text, place)
    if sign in _CLOSING:
        return _read(text, behind, sign, depth - 1)
    if sign == b'"':
        return _string(text, place)
    scalar = _SCALAR.match(text, behind - 1)
    assert scalar is not None
    return orjson.loads(scalar[0]), scalar.end()


def _string(text: bytes | bytearray, place: int) -> tuple[str, int]:
    """The string at `place`, and the place behind it."""
    quote, place = _sign(text, place)
    if quote != b'"':
        raise ValueError("a string begins with a quote")
    pieces: list[str] = []
    while text[place : place + 1] != b'"':
        turns.point()
        part = _CHARACTERS.match(text, place, place + WINDOW_BYTES + _CHARACTER_BYTES_MAX)
        assert part is not None
        end = part.end()
        while place < end < len(text) and 0x80 <= text[end] < 0xC0:  # inside a character in UTF-8
            end -= 1
        if end == place:
            raise ValueError("a string does not end, or has a wrong escape")
        pieces.append(orjson.loads(b'"' + text[place:end] + b'"'))
        place = end
    return "".join(pieces), place + 1


def _sign(text: bytes | bytearray, place: int) -> tuple[bytes, int]:
    """The first byte at `place` that is no space, and the place behind it; no byte at the end of the text."""
    place = _after_spaces(text, place)
    return bytes(text[place : place + 1]), place + 1


def _after_spaces(text: bytes | bytearray, place: int) -> int:
    spaces = _SPACES.match(text, place)
    assert spaces is not None
    return spaces.end()
