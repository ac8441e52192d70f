"""Reading JSON piece by piece gives what reading it at once gives, and refuses the same texts."""

from __future__ import annotations

import json
from typing import Any
from unittest.mock import patch

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.pace import texts

NUMBERS = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False)
SCALARS = st.dictionaries(st.sampled_from(["S", "N", "NULL"]), st.text(max_size=3), min_size=1, max_size=1)
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | NUMBERS | st.text(max_size=8) | SCALARS | st.lists(SCALARS, min_size=2),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=4), inner, max_size=6),
    max_leaves=40,
)
SIGNS = b'[]{},:"\\ 0a\n'
# In a small window every member is a large one.
WINDOWS = st.integers(1, 60)
SEPARATORS = st.sampled_from([None, (", ", ": "), (" ,", " :"), (" " * 50 + ",", " " * 30 + ":" + " " * 30)])


def outcome(read: Any, text: bytes) -> Any:
    try:
        return orjson.dumps(read(text))
    except ValueError:
        return ValueError


def check(text: bytes, window_bytes: int) -> None:
    with patch.object(texts, "WINDOW_BYTES", window_bytes):
        found = outcome(texts.loads, text)
    assert found == outcome(orjson.loads, text), text


@given(VALUES, WINDOWS, st.sampled_from([0, orjson.OPT_INDENT_2]))
def test_what_is_json(value: Any, window_bytes: int, option: int) -> None:
    check(orjson.dumps(value, option=option), window_bytes)


@given(VALUES, WINDOWS, SEPARATORS)
def test_json_with_spaces(
    value: Any, window_bytes: int, separators: tuple[str, str] | None
) -> None:
    check(json.dumps(value, separators=separators).encode(), window_bytes)


# Whole characters, halves of surrogate pairs, parts of characters in UTF-8, and wrong escapes.
ESCAPES = [r"\n", r"\"", r"\\", r"\u0041", r"\u20AC", r"\ud83d\ude00", r"\uDBFF\uDFFF"]
WHOLE = ["a", "é", "€", "\U0001f600", *ESCAPES]
BROKEN = [r"\ud83d", r"\ude00", r"\u12", r"\x", "\\", '"', "\n"]
BYTES = [b"\x80", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xff"]
CHARACTERS = [text.encode() for text in WHOLE]
BROKEN_TOO = [*CHARACTERS, *(text.encode() for text in BROKEN), *BYTES]


@given(st.lists(st.sampled_from(CHARACTERS)) | st.lists(st.sampled_from(BROKEN_TOO), max_size=12))
def test_a_string_is_cut_between_characters(characters: list[bytes]) -> None:
    string = b"".join(characters)
    for window_bytes in range(1, 30):
        check(b'["%b"]' % string, window_bytes)
        check(b'{"%b":"%b"}' % (string, string), window_bytes)


@given(VALUES, WINDOWS, st.sampled_from([None, (", ", ": ")]), st.data())
def test_what_was_json(
    value: Any,
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
    check(bytes(text), window_bytes)


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
    for window_bytes in range(1, 30):
        check(text, window_bytes)


MEGABYTES_3 = 3 << 20
NAME = b"n" * MEGABYTES_3
SPACES = b" " * MEGABYTES_3
LARGE_TEXTS = {
    "a string": b'{"a":"%b"}' % NAME,
    "only a string": b'"%b"' % NAME,
    "escapes": b'{"a":"%b"}' % (b'\\"' * (MEGABYTES_3 // 2)),
    "surrogates": b'["%b"]' % (b"\\ud83d\\ude00" * (MEGABYTES_3 // 12)),
    "characters": b'["%b"]' % ("\U0001f600".encode() * (MEGABYTES_3 // 4)),
    "names": b'{"%b":1,"b":{"%b":[]}}' % (NAME, NAME),
    "a string without an end": b'{"a":"%b' % NAME,
    "spaces": b" %b{%b" % (SPACES, SPACES) + b'"a"' + SPACES + b":1}",
    "spaces at the end": b'{"a":1}' + SPACES,
    "nothing but spaces": b"[%b]" % SPACES,
    "spaces without an end": b'{"a":1' + SPACES,
    "digits": b"[1" + b"0" * MEGABYTES_3,
    "brackets": b"[" * MEGABYTES_3,
    "strings without commas": b"[" + b'"a"' * (MEGABYTES_3 // 3),
    "a long member": b'[{"N":"%b"}%b]' % (NAME, b',{"N":"1"}' * (MEGABYTES_3 // 10)),
    "long members": b"[%b0]" % (b'{"N":"%b"},' % (b"1" * 100_000) * 40),
    "a comma too many": b"[" + b"{}," * (MEGABYTES_3 // 3) + b"]",
}


@pytest.mark.parametrize("text", LARGE_TEXTS.values(), ids=LARGE_TEXTS)
def test_large_texts(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "MEMBERS_MAX", MEGABYTES_3)
    assert outcome(texts.loads, text) == outcome(orjson.loads, text)


MANY = 300_000
ITEM = b'{"PutRequest":{"Item":{"p":{"S":"x"},"l":{"L":[%b{"N":"1"}]}}}}' % (b'{"N":"1"},' * (MANY // 3))


@pytest.mark.parametrize(
    "text",
    [
        b"[" + b"{}," * MANY + b"{}]",
        b"{" + b",".join(b'"%x":{"N":"1"}' % number for number in range(MANY)) + b"}",
        b"[" + (b"[" * 40 + b"1," * 9 + b"1" + b"]" * 40 + b",") * (MANY // 100) + b"0]",
        b'{"RequestItems":{"table":[%b,%b,%b]}}' % (ITEM, ITEM, ITEM),
        b"[" * 30 + b"{}," * MANY + b"{}" + b"]" * 30,
        b'{"%b":"%b"}' % (b"\\n" * MANY, b"\\ud83d\\ude00" * MANY),
    ],
)
def test_no_piece_is_large(text: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Decoding keeps the interpreter's lock."""
    pieces: list[int] = []
    original = orjson.loads

    def loads(text: bytes) -> Any:
        pieces.append(len(text))
        return original(text)

    monkeypatch.setattr(texts, "orjson", type("Orjson", (), {"loads": staticmethod(loads)}))
    monkeypatch.setattr(texts, "MEMBERS_MAX", 2 * MANY)
    assert texts.loads(text) == original(text)
    assert max(pieces) <= texts.WINDOW_BYTES + 14  # two quotes, and a character as two escapes


def test_what_a_valid_request_nests_is_read() -> None:
    """An item has 32 levels at most, of two brackets each, and lies in six."""
    text = b'{"a":' * 74 + b"[" + b"1," * 100_000 + b"1]" + b"}" * 74
    for window_bytes in (1, texts.WINDOW_BYTES):
        check(text, window_bytes)


def test_of_what_no_item_can_hold_the_beginning_is_kept() -> None:
    numbers = list(range(texts.MEMBERS_MAX + 100_000))
    names = {f"{number}": number for number in numbers}
    found = texts.loads(orjson.dumps({"a": names, "b": numbers, "c": [1]}))
    assert found["c"] == [1]
    assert found["b"] == numbers[: len(found["b"])]
    assert found["a"].items() <= names.items()
    for kept in (found["a"], found["b"]):
        assert 0 <= len(kept) - texts.MEMBERS_MAX < texts.WINDOW_BYTES
