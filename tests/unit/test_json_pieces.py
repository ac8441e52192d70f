"""Reading JSON piece by piece gives what reading it at once gives, and refuses the same texts."""

from __future__ import annotations

import json
import re
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange import json_pieces

NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
SCALARS = st.dictionaries(st.sampled_from(["S", "N", "NULL"]), st.text(max_size=3), min_size=1, max_size=1)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8) | SCALARS | st.lists(SCALARS, min_size=2),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=6),
    max_leaves=40,
)
SIGNS = b'[]{},:"\\ 0a\n'
# The smallest window has room for the longest thing that is not cut, the two escapes of a surrogate pair.
WINDOWS = st.integers(12, 60) | st.just(json_pieces.WINDOW_BYTES)
SEPARATORS = st.sampled_from([None, (", ", ": "), (" ,", " :"), (" " * 50 + ",", " " * 30 + ":" + " " * 30)])


def outcome(read: Any, text: bytes) -> Any:
    try:
        return orjson.dumps(read(text))
    except ValueError:
        return ValueError


def check(text: bytes, piece_bytes: int, window_bytes: int = json_pieces.WINDOW_BYTES) -> None:
    """Read a text in pieces. What is neither an array nor an object is refused."""
    with (
        patch.object(json_pieces, "WHOLE_BYTES", 0),
        patch.object(json_pieces, "PIECE_BYTES", piece_bytes),
        patch.object(json_pieces, "WINDOW_BYTES", window_bytes),
    ):
        found = outcome(json_pieces.loads, text)
    is_container = text.lstrip(b" \t\r\n")[:1] in (b"[", b"{")
    assert found == (outcome(orjson.loads, text) if is_container else ValueError), text


@given(st.text(SIGNS.decode(), max_size=30).map(str.encode))
def test_a_text_is_looked_at_once(text: bytes) -> None:
    """The pattern matches wherever it is tried: a search would go through the text again from each place."""
    places = [match.span() for match in json_pieces._NEXT.finditer(text)]
    assert [begin for begin, _ in places] == [0, *(end for _, end in places[:-1])]


@pytest.mark.parametrize("text", [b'{"a": "' + b"x" * 2**22, b'{"a": 1' + b" " * 2**22, b"[" + b"7" * 2**22])
def test_a_large_text_that_does_not_end_is_refused_at_once(text: bytes) -> None:
    with pytest.raises(ValueError, match="ends before"):
        json_pieces.loads(text)


@given(VALUES, st.integers(0, 20), WINDOWS, st.sampled_from([0, orjson.OPT_INDENT_2]))
def test_what_is_json(value: Any, piece_bytes: int, window_bytes: int, option: int) -> None:
    check(orjson.dumps(value, option=option), piece_bytes, window_bytes)


@given(VALUES, st.integers(0, 20), WINDOWS, SEPARATORS)
def test_json_with_spaces(
    value: Any, piece_bytes: int, window_bytes: int, separators: tuple[str, str] | None
) -> None:
    check(json.dumps(value, separators=separators).encode(), piece_bytes, window_bytes)


@given(VALUES, st.integers(0, 20), WINDOWS, st.sampled_from([None, (", ", ": ")]), st.data())
def test_what_was_json(
    value: Any,
    piece_bytes: int,
    window_bytes: int,
    separators: tuple[str, str] | None,
    data: st.DataObject,
) -> None:
    text = bytearray(json.dumps(value, separators=separators).encode())
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(text)))
        change = data.draw(st.sampled_from(["insert", "delete", "replace"]))
        sign = data.draw(st.sampled_from(SIGNS))
        if change == "insert":
            text.insert(place, sign)
        elif place < len(text):
            if change == "delete":
                del text[place]
            else:
                text[place] = sign
    check(bytes(text), piece_bytes, window_bytes)


@pytest.mark.parametrize(
    "text",
    [
        b'{"a":[1,2,3],"a":{"b":[4,5,6]},"c":0}',
        b'{"a":[1,2,3],"b":[4,5,6],"a":[7,8,9]}',
        b"[1,]",
        b"[,1]",
        b"[[1,2],]",
        b"[,[1,2]]",
        b"[[1,2][3,4]]",
        b"[[1,2] 3]",
        b"[3 [1,2]]",
        b'{"a" [1,2]}',
        b'{"a":1 [1,2]}',
        b'{"a":[1,2] "b":1}',
        b'{[1,2]}',
        b'{"a":[1,2]]',
        b'[{"a":[1,2}]',
        b"[[1,2]] []",
        b"[[1,2]],",
        b' [ [ 1 , 2 ] , [ ] , { } ] ',
        b"[" * 2000 + b"]" * 2000,
        b'["\\ud800",[1,2]]',
        b'["\xff",[1,2]]',
        b'["unclosed',
        b'["abcdefghijklmnopqrstuvwxyz" "abcdefghijklmnopqrstuvwxyz"]',
        b'["abcdefghijklmnopqrstuvwxyz"[1]]',
        b'[1 "abcdefghijklmnopqrstuvwxyz"]',
        b'{"abcdefghijklmnopqrstuvwxyz"}',
        b'{"abcdefghijklmnopqrstuvwxyz":}',
        b'{"abcdefghijklmnopqrstuvwxyz" 1}',
        b'{"abcdefghijklmnopqrstuvwxyz":1 2}',
        b'{"abcdefghijklmnopqrstuvwxyz":1,"b":{"abcdefghijklmnopqrstuvwxyz":"bcdefghijklmnopqrstuvwxyz"}}',
        b'{"abcdefghijklmnopqrstuvwxyz":"a","abcdefghijklmnopqrstuvwxyz":[1]}',
        b'{"a":1,"abcdefghijklmnopqrstuvwxyz" :{ } , "b":2}',
        b'{:"abcdefghijklmnopqrstuvwxyz"}',
        b'{"abcdefghijklmnopqrstuvwxyz":1:"abcdefghijklmnopqrstuvwxyz"}',
        b"[1" + b" " * 40 + b"2]",
        b"[1" + b" " * 40 + b"]",
        b'["' + b"\\" * 31 + b'"]',
        b'["' + b"\\" * 32 + b'"]',
        b'["' + "\u20ac".encode() * 20 + b'"]',
        b'["' + b"\x80" * 40 + b'"]',
        b"[1,2",
        b",",
        b"]",
        b"1,2",
        b"",
    ],
)  # fmt: skip
def test_awkward_texts(text: bytes) -> None:
    for piece_bytes in range(12):
        for window_bytes in (*range(12, 30), json_pieces.WINDOW_BYTES):
            check(text, piece_bytes, window_bytes)


def test_a_long_string_is_passed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_pieces, "MEMBERS_MAX", 500_000)
    text = b'{"a":"' + b'\\"x' * 400_000 + b'","b":[' + b"{}," * 400_000 + b"{}]}"
    assert json_pieces.loads(text) == orjson.loads(text)


MEGABYTES_3 = 3 << 20
NAME = b"n" * MEGABYTES_3
LARGE_TEXTS = {
    "a string": b'{"a":"%b"}' % NAME,
    "escapes": b'{"a":"%b"}' % (b'\\"' * (MEGABYTES_3 // 2)),
    "surrogates": b'["%b"]' % (b"\\ud83d\\ude00" * (MEGABYTES_3 // 12)),
    "characters": b'["%b"]' % ("\U0001f600".encode() * (MEGABYTES_3 // 4)),
    "names": b'{"%b":1,"b":{"%b":[]}}' % (NAME, NAME),
    "a string without an end": b'{"a":"%b' % NAME,
    "spaces": b" %b{%b" % (b" " * MEGABYTES_3, b" " * MEGABYTES_3) + b'"a"' + b" " * MEGABYTES_3 + b":1}",
    "spaces at the end": b'{"a":1}' + b" " * MEGABYTES_3,
    "digits": b"[1" + b"0" * MEGABYTES_3,
    "strings": b"[" + b'"a"' * (MEGABYTES_3 // 3),
    "members": b'[{"N":"%b"}%b]' % (NAME, b',{"N":"1"}' * (MEGABYTES_3 // 10)),
    "strings of members": b"[%b0]" % (b'{"N":"%b"},' % (b"1" * 100_000) * 40),
}


@pytest.mark.parametrize("text", LARGE_TEXTS.values(), ids=LARGE_TEXTS)
def test_no_step_takes_more_than_a_small_part_of_a_text(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step in C keeps the interpreter's lock: a match of a pattern, and the decoding of a piece."""
    steps: list[int] = []

    class Pattern:
        def __init__(self, pattern: re.Pattern[bytes]) -> None:
            self.pattern = pattern

        def match(self, text: bytes, begin: int, end: int) -> Any:
            steps.append(min(end, len(text)) - begin)
            return self.pattern.match(text, begin, end)

    original = orjson.loads

    def loads(text: bytes) -> Any:
        steps.append(len(text))
        return original(text)

    for name in ("_NEXT", "_MEMBERS", "_INSIDE", "_SPACE"):
        monkeypatch.setattr(json_pieces, name, Pattern(getattr(json_pieces, name)))
    monkeypatch.setattr(json_pieces, "orjson", type("Orjson", (), {"loads": staticmethod(loads)}))
    monkeypatch.setattr(json_pieces, "STRING_CHARS_MAX", 2 * MEGABYTES_3)
    monkeypatch.setattr(json_pieces, "MEMBERS_MAX", MEGABYTES_3)
    assert outcome(json_pieces.loads, text) == outcome(original, text)
    assert max(steps) <= 3 * json_pieces.WINDOW_BYTES


@pytest.mark.parametrize("sign", ["x", "\u20ac", '"'])
def test_a_string_that_nothing_accepts_is_cut(sign: str) -> None:
    text = orjson.dumps({"a": sign * MEGABYTES_3, "b": [1]})
    found = json_pieces.loads(text)
    assert found == {"a": sign * len(found["a"]), "b": [1]}
    assert 0 <= len(found["a"]) - json_pieces.STRING_CHARS_MAX < json_pieces.WINDOW_BYTES


def test_what_no_item_can_hold_is_cut() -> None:
    """A dict of a million members grows in one step of 25 ms."""
    numbers = list(range(json_pieces.MEMBERS_MAX + 100_000))
    names = {f"{number}": number for number in numbers}
    found = json_pieces.loads(orjson.dumps({"a": names, "b": numbers, "c": [1]}))
    assert found["c"] == [1]
    assert found["b"] == numbers[: len(found["b"])]
    assert found["a"].items() <= names.items()
    for kept in (found["a"], found["b"]):
        assert 0 <= len(kept) - json_pieces.MEMBERS_MAX < json_pieces.PIECE_BYTES
