"""Reads JSON texts of megabytes piece by piece, and frees their values piece by piece.

A decoder in C keeps the interpreter's lock until it has decoded the whole text: a third of a second for 16
MB of small values, in which no other thread runs. This module cuts a large text where a member of an array
or object ends, and decodes the pieces one by one, so that other threads can run in between. Texts up to
`WHOLE_BYTES` are decoded at once.

It returns the values that `orjson.loads` returns, and refuses the texts that `orjson.loads` refuses. It is
not compiled on purpose, because the interpreter lets other threads run between any two steps.
"""

from __future__ import annotations

import re
import sys
from typing import Any, Final

import orjson

from hashrange import pace

WHOLE_BYTES: Final = 64 * 1024
PIECE_BYTES: Final = 32 * 1024
DEPTH_MAX: Final = 1024
"""The depth of nesting that `orjson` accepts."""

_OWN_REFERENCES: Final = 3  # of `discard` to a member: its list, its name, and the call that counts
_FREED_MEMBERS: Final = 64

# Matches the text up to the next structural character (a string counts as a whole), and then this character.
# The groups are atomic and possessive (`>` and `+`): without backtracking, a long string costs no memory.
# In a string, an escape is matched with what follows it, which makes 15 MB of escapes eight times as fast.
# Where no such character follows, it matches without the group: if it did not match, a long string that does
# not end would be tried again from each of its characters, which takes minutes for 100 KB.
_NEXT: Final = re.compile(rb'(?>[^"\[\]{},]+|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+(?:([\[\]{},])|.|\Z)', re.DOTALL)

# Matches many members like `{"N": "1"},` or `"name": {"N": "1"},` behind a comma. Large items mostly consist
# of them, and to match each of their structural characters takes five times as long.
_MEMBERS: Final = re.compile(rb'(?>(?> ?"[^"\\]*+":)?+ ?\{"[^"\\]*+": ?"[^"\\]*+"\},){1,1000}+')
_MEMBERS_PAUSE_MAX: Final = 255

_OPEN_LIST, _OPEN_MAP, _COMMA = b"[", b"{", b","
_CLOSING: Final = {b"]": b"[", b"}": b"{"}


class _Container:
    """An array or object whose end was not reached yet: where it begins, and where its undecoded piece
    begins.

    `content` is None until a piece was decoded. `comma` is the position of its last comma.
    """

    __slots__ = ("begin", "comma", "content", "joined", "piece", "sign")

    def __init__(self, sign: bytes, begin: int) -> None:
        self.sign = sign
        self.begin = begin
        self.piece = begin + 1
        self.comma = begin
        self.joined = False  # the last member is in `content` already: a comma or the end must follow
        self.content: Any = None

    def take(self, text: bytes, end: int, *, last: bool) -> None:
        """Decode the members up to `end`. After `end` comes a comma or, with `last`, the closing bracket."""
        piece = text[self.piece : end]
        if self.content is None:
            self.content = [] if self.sign == _OPEN_LIST else {}
        self.piece = end + 1
        if self.joined:
            self.joined = False
            if piece.strip(b" \t\r\n"):
                raise ValueError("something stands behind a member")
            return
        if self.sign == _OPEN_LIST:
            members = orjson.loads(b"[" + piece + b"]")
            self.content += members
        else:
            members = orjson.loads(b"{" + piece + b"}")
            self.content.update(members)
        if not members and not (last and self.comma == self.begin):
            raise ValueError("a comma without a member")

    def join(self, text: bytes, begin: int, end: int, member: Any) -> None:
        """Add `member`, which was decoded already, and whose text is between `begin` and `end`."""
        if self.joined:
            raise ValueError("two members without a comma")
        before = text[self.piece : begin]
        if self.comma >= self.piece:
            # Before it are members that are not decoded yet.
            comma = self.comma
            self.take(text, comma, last=False)
            before = text[comma + 1 : begin]
        if self.content is None:
            self.content = [] if self.sign == _OPEN_LIST else {}
        if self.sign == _OPEN_LIST:
            if before.strip(b" \t\r\n"):
                raise ValueError("something stands before a member")
            self.content.append(member)
        else:
            (name,) = orjson.loads(b"{" + before + b"0}")
            self.content[name] = member
        self.piece = end
        self.joined = True


def loads(text: bytes | bytearray) -> Any:
    """The value of a JSON text. Raises ValueError if the text is not JSON."""
    if len(text) <= WHOLE_BYTES:
        return orjson.loads(text)
    text = bytes(text)
    if not text.lstrip(b" \t\r\n").startswith((_OPEN_LIST, _OPEN_MAP)):
        return orjson.loads(text)
    stack: list[_Container] = []
    position, pause, commas = 0, 0, 0
    while True:
        match = _NEXT.match(text, position)
        sign = match[1] if match is not None else None
        if match is None or sign is None:
            break
        place = match.start(1)
        position = place + 1
        if sign == _COMMA:
            _pass_comma(stack, text, place)
            commas += 1
            if commas > pause:
                # Where there are no such members, this looks for them ever more rarely.
                members = _MEMBERS.match(text, position)
                commas, pause = 0, min(2 * pause + 1, _MEMBERS_PAUSE_MAX)
                if members is not None:
                    position, pause = members.end(), 0
                    _pass_comma(stack, text, position - 1)
        elif sign in _CLOSING:
            if not stack or stack[-1].sign != _CLOSING[sign]:
                raise ValueError("a closing sign that closes nothing")
            top = stack.pop()
            if not stack:
                top.take(text, place, last=True)
                if text[place + 1 :].strip(b" \t\r\n"):
                    raise ValueError("something stands behind the value")
                return top.content
            if top.content is not None:
                top.take(text, place, last=True)
                stack[-1].join(text, top.begin, place + 1, top.content)
        else:
            if len(stack) == DEPTH_MAX:
                raise ValueError("nested too deep")
            stack.append(_Container(sign, place))
    raise ValueError("the text ends before the value")


def _pass_comma(stack: list[_Container], text: bytes, place: int) -> None:
    """Note a comma. Decode what is before it, if that is enough for a piece."""
    if not stack:
        raise ValueError("a comma outside of everything")
    top = stack[-1]
    if top.joined or place - top.piece >= PIECE_BYTES:
        top.take(text, place, last=False)
    top.comma = place


def discard(value: dict[str, Any]) -> None:
    """Free the value that a large text was decoded to, when it is no longer needed.

    It is freed in pieces: millions of objects that are freed in one step would hold up all other threads.
    Objects that other code still refers to stay.
    """
    stack: list[Any] = [value]
    while stack:
        pace.point()
        top = stack[-1]
        if not top:
            stack.pop()
            continue
        if type(top) is list:
            members = top[-_FREED_MEMBERS:]
            del top[-_FREED_MEMBERS:]
        else:
            members = [top.popitem()[1] for _ in range(min(len(top), _FREED_MEMBERS))]
        for member in members:
            if type(member) not in (dict, list) or _is_scalar(member):
                continue
            if sys.getrefcount(member) == _OWN_REFERENCES:
                stack.append(member)


def _is_scalar(value: Any) -> bool:
    """Whether a decoded container is an attribute value like {"N": "1"}, which is freed fast."""
    if type(value) is list or len(value) != 1:
        return False
    (content,) = value.values()
    return type(content) is str
