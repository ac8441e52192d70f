"""Reads JSON texts of megabytes piece by piece.

A decoder in C keeps the interpreter's lock until it has decoded the whole text: a third of a second for 16
MB of small values, in which no other thread runs. This module cuts a large text where a member of an array
or object ends, and decodes the pieces one by one, so that other threads can run in between. A string that is
longer than a piece is decoded in pieces of its own. Every match of a pattern looks at `WINDOW_BYTES` at most,
because a match keeps the lock as well. Texts up to `WHOLE_BYTES` are decoded at once.

It returns the values that `orjson.loads` returns, and refuses the texts that `orjson.loads` refuses, with
three exceptions, which no valid request meets: of a string longer than `STRING_CHARS_MAX` it keeps about so
many characters, since to make a string of 15 MB takes 15 ms at least; of an array or object with more members
than `MEMBERS_MAX` it keeps about so many, since a dict of a million grows in a step of 25 ms; and it refuses
a large text that is neither an array nor an object, or has a number of more than a megabyte. It is not
compiled on purpose, because the interpreter lets other threads run between any two steps.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from hashrange import pace

WHOLE_BYTES: Final = 64 * 1024
PIECE_BYTES: Final = 32 * 1024
WINDOW_BYTES: Final = 64 * 1024
"""How many bytes of a text a pattern looks at in one match, which takes a millisecond at most."""
STRING_CHARS_MAX: Final = 2 * 1024 * 1024
"""Longer strings are cut. The longest that a valid request has is a binary value of 546,136 characters."""
MEMBERS_MAX: Final = 256 * 1024
"""Of arrays and objects with more members, the first are kept. So many are too large for any item: each takes
two bytes at least."""
DEPTH_MAX: Final = 1024
"""The depth of nesting that `orjson` accepts."""

# Matches the text up to the next structural character (a string counts as a whole), and then this character;
# or up to a string that does not end in the window, and its quotation mark; or all of the window. The groups
# are atomic and possessive (`>` and `+`): without backtracking, a long string costs no memory. In a string,
# an escape is matched with what follows it, which makes 15 MB of escapes eight times as fast. The pattern
# matches wherever it is tried: otherwise it would be tried again from each character of a long string, which
# takes minutes for 100 KB.
_NEXT: Final = re.compile(rb'(?>[^"\[\]{},]+|"[^"\\]*+(?:\\.[^"\\]*+)*+")*+(?:([\[\]{},])|(")|\Z)', re.DOTALL)
_STRUCTURE, _QUOTE = 1, 2  # the groups

# Matches many members like `{"N": "1"},` or `"name": {"N": "1"},`, `{},` or `"name": 1,` behind a comma.
# Large requests mostly consist of them, and to match each of their structural characters takes five times as
# long or longer.
_MEMBERS: Final = re.compile(
    rb'(?>(?> ?"[^"\\]*+":)?+ ?'
    rb'(?>\{(?>"[^"\\]*+": ?"[^"\\]*+")?+\}|\[\]|"[^"\\]*+"|[-+.0-9A-Za-z]++),){1,1000}+'
)
_MEMBERS_PAUSE_MAX: Final = 255

# Matches the inside of a string up to its end, or up to an escape that does not end in the window. The two
# escapes of a surrogate pair are one.
_INSIDE: Final = re.compile(
    rb'[^"\\]*+(?:\\(?:[^u]|u(?:[dD][89abAB]..\\u[dD][c-fC-F]..|(?![dD][89abAB])....))[^"\\]*+)*+',
    re.DOTALL,
)
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")

# More windows than these without a structural character or a long string are no member.
_WINDOWS_MAX: Final = 16

_OPEN_LIST, _OPEN_MAP, _COMMA = b"[", b"{", b","
_CLOSING: Final = {b"]": b"[", b"}": b"{"}


class _Source:
    """The text that is read. `gaps` are the places of long white space in it, in order; no piece has them."""

    __slots__ = ("gaps", "text")

    def __init__(self, text: bytes | bytearray) -> None:
        self.text = text
        self.gaps: list[tuple[int, int]] = []

    def cut(self, begin: int, end: int) -> bytes | bytearray:
        """The piece between two places."""
        if not self.gaps or self.gaps[-1][1] <= begin:
            return self.text[begin:end]
        parts = []
        for gap_begin, gap_end in self.gaps:
            if begin < gap_end and gap_begin < end:
                parts.append(self.text[begin:gap_begin])
                begin = gap_end
        return b"".join([*parts, self.text[begin:end]])

    def past_space(self, begin: int) -> int:
        """The place of the first character from `begin` that is not white space."""
        while True:
            end = _end(_SPACE, self.text, begin)
            if end < begin + WINDOW_BYTES:
                return end
            begin = end

    def skip_space(self, begin: int) -> int:
        """As `past_space`; a long space becomes a gap, but for its first character, which stays in order that
        two numbers do not become one."""
        end = self.past_space(begin)
        if end > begin + 1:
            self.gaps.append((begin + 1, end))
        return end

    def string(self, begin: int) -> tuple[str, int]:
        """The string whose quotation mark is at `begin`, decoded in pieces, and the place behind its end."""
        text = self.text
        position, chars = begin + 1, 0
        parts: list[str] = []
        while True:
            pace.point()
            end = _end(_INSIDE, text, position)
            if end >= len(text):
                raise ValueError("the text ends before the value")
            if text[end] != 0x22:
                while text[end] & 0xC0 == 0x80 and end > position:
                    end -= 1  # not within a character of several bytes
                if end == position:
                    raise ValueError("an escape without a meaning")
            part = orjson.loads(b'"' + text[position:end] + b'"')
            if chars < STRING_CHARS_MAX:
                parts.append(part)
                chars += len(part)
            if text[end] == 0x22:
                return "".join(parts), end + 1
            position = end


def _end(pattern: re.Pattern[bytes], text: bytes | bytearray, begin: int) -> int:
    """The end of the match of a pattern, which matches everywhere, in the window at `begin`."""
    match = pattern.match(text, begin, begin + WINDOW_BYTES)
    assert match is not None
    return match.end()


class _Container:
    """An array or object whose end was not reached yet: where it begins, and where its undecoded piece
    begins.

    `content` is None until a piece was decoded. `comma` is the position of its last comma. `name` is the name
    of the member that follows, if it was decoded already because it is long.
    """

    __slots__ = ("begin", "comma", "content", "joined", "name", "piece", "sign")

    def __init__(self, sign: bytes, begin: int) -> None:
        self.sign = sign
        self.begin = begin
        self.piece = begin + 1
        self.comma = begin
        self.joined = False  # the last member is in `content` already: a comma or the end must follow
        self.name: str | None = None
        self.content: Any = None

    def is_due(self, place: int) -> bool:
        """Whether the members before the comma at `place` are to be decoded now."""
        return self.joined or self.name is not None or place - self.piece >= PIECE_BYTES

    def take(self, source: _Source, end: int, *, last: bool) -> None:
        """Decode the members up to `end`. After `end` comes a comma or, with `last`, the closing bracket."""
        pace.point()
        piece = source.cut(self.piece, end)
        if self.content is None:
            self.content = [] if self.sign == _OPEN_LIST else {}
        self.piece = end + 1
        if self.joined:
            self.joined = False
            if piece.strip(b" \t\r\n"):
                raise ValueError("something stands behind a member")
            return
        if self.name is not None:
            (member,) = orjson.loads(b'{""' + piece + b"}").values()
            self.content[self.name] = member
            self.name = None
            return
        if self.sign == _OPEN_LIST:
            members = orjson.loads(b"[" + piece + b"]")
            if len(self.content) < MEMBERS_MAX:
                self.content += members
        else:
            members = orjson.loads(b"{" + piece + b"}")
            if len(self.content) < MEMBERS_MAX:
                self.content.update(members)
        if not members and not (last and self.comma == self.begin):
            raise ValueError("a comma without a member")

    def join(self, source: _Source, begin: int, end: int, member: Any) -> None:
        """Add `member`, which was decoded already, and whose text is between `begin` and `end`."""
        before = self._before(source, begin)
        if self.sign == _OPEN_LIST:
            if before.strip(b" \t\r\n"):
                raise ValueError("something stands before a member")
            self.content.append(member)
        elif self.name is not None:
            if orjson.loads(b'{""' + before + b"0}") != {"": 0}:
                raise ValueError("something stands before a member")
            self.content[self.name] = member
            self.name = None
        else:
            (name,) = orjson.loads(b"{" + before + b"0}")
            self.content[name] = member
        self.piece = end
        self.joined = True

    def _before(self, source: _Source, begin: int) -> bytes | bytearray:
        """Decode the members before the one that begins at `begin`, and return what stands between."""
        if self.joined:
            raise ValueError("two members without a comma")
        if self.comma >= self.piece:
            self.take(source, self.comma, last=False)
        if self.content is None:
            self.content = [] if self.sign == _OPEN_LIST else {}
        return source.cut(self.piece, begin)

    def join_string(self, source: _Source, begin: int, end: int, text: str) -> None:
        """Add a string that was decoded already: it is a member, or the name of one."""
        if self.sign == _OPEN_MAP and self.name is None:
            before = self._before(source, begin)
            if not before.strip(b" \t\r\n"):
                self.name = text
                self.piece = end
                return
        self.join(source, begin, end, text)


def loads(text: bytes | bytearray) -> Any:
    """The value of a JSON text. Raises ValueError if the text is not JSON."""
    if len(text) <= WHOLE_BYTES:
        return orjson.loads(text)
    source = _Source(text)
    position = source.past_space(0)
    if text[position : position + 1] not in (_OPEN_LIST, _OPEN_MAP):
        raise ValueError("neither an array nor an object")
    return _read(source, position)


def _read(source: _Source, position: int) -> Any:
    """The value of the array or object that begins at `position`."""
    stack: list[_Container] = []  # those that are not read to their ends
    text = source.text
    windows, pause, commas = 0, 0, 0
    while True:
        match = _NEXT.match(text, position, position + WINDOW_BYTES)
        assert match is not None
        if match.lastindex != _STRUCTURE:
            windows += 1
            if match.lastindex == _QUOTE:
                begin, windows = match.start(_QUOTE), 0
                string, position = source.string(begin)
                stack[-1].join_string(source, begin, position, string)
            elif match.end() >= len(text) or windows > _WINDOWS_MAX:
                raise ValueError("the text ends before the value")
            else:
                position = source.skip_space(match.end())
            continue
        windows = 0
        sign = match[_STRUCTURE]
        place = match.start(_STRUCTURE)
        position = place + 1
        if sign == _COMMA:
            _pass_comma(stack, source, place)
            commas += 1
            if commas > pause:
                # Where there are no such members, this looks for them ever more rarely.
                members = _MEMBERS.match(text, position, position + WINDOW_BYTES)
                commas, pause = 0, min(2 * pause + 1, _MEMBERS_PAUSE_MAX)
                if members is not None:
                    position, pause = members.end(), 0
                    _pass_comma(stack, source, position - 1)
        elif sign in _CLOSING:
            if not stack or stack[-1].sign != _CLOSING[sign]:
                raise ValueError("a closing sign that closes nothing")
            top = stack[-1]
            if len(stack) == 1:
                top.take(source, place, last=True)
                if source.past_space(place + 1) < len(text):
                    raise ValueError("something stands behind the value")
                return top.content
            if top.content is not None:
                top.take(source, place, last=True)
                stack[-2].join(source, top.begin, place + 1, top.content)
            stack.pop()
        else:
            if len(stack) == DEPTH_MAX:
                raise ValueError("nested too deep")
            stack.append(_Container(sign, place))


def _pass_comma(stack: list[_Container], source: _Source, place: int) -> None:
    """Note a comma. Decode what is before it, if that is enough for a piece."""
    top = stack[-1]
    if top.is_due(place):
        top.take(source, place, last=False)
    top.comma = place
