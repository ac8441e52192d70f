"""Makes a broken request from a valid one.

values    members lost, repeated, renamed, replaced, moved, nested, grown; strings and numbers changed
text      the JSON text cut, joined, salted with tokens that JSON has and has not
headers   target, type, credentials, method and others, in HTTP that stays valid
framing   the bytes of HTTP itself; sent on a connection of their own
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import Any

import orjson

from bench.wire import target
from hostile.material import AUTHORIZATION, FRAMING, HEADERS, JUNK, LEVELS, NUMBERS, TOKENS, WORDS
from hostile.seeds import Seeds

KINDS = ("values", "text", "headers", "framing")
_WEIGHTS = (78, 13, 6, 3)
BODY_BYTES_MAX = 1 << 20

# How much of a long or deep request is searched for a place to break; searching all of it would take too
# long.
_PLACES_MAX = 200
_LEVELS_HELD_MAX = 64
_DEEP = re.compile(rb'"\\u0001([0-3]) ([0-9]{1,4})"')
# The text before and behind a value at each level.
_FORMS = ((b'{"M":{"a":', b"}}"), (b'{"L":[', b"]}"), (b"[", b"]"), (b'{"a":', b"}"))


@dataclass(frozen=True, slots=True)
class Mutation:
    """A request as it is sent. `body` is its JSON text, `head` everything before it; for `framing` `head`
    holds both."""

    kind: str
    operation: str
    head: bytes
    body: bytes

    @property
    def sent(self) -> bytes:
        return self.head + self.body


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) inside a value. It uses no recursion, because values may be deeply nested."""
    stack = [value]
    while stack:
        container = stack.pop()
        if isinstance(container, dict):
            for key, member in container.items():
                yield container, key
                if isinstance(member, dict | list):
                    stack.append(member)
        elif isinstance(container, list):
            for number, member in enumerate(container):
                yield container, number
                if isinstance(member, dict | list):
                    stack.append(member)


def encode(value: Any) -> bytes:
    """JSON text; the surrogates that UTF-8 cannot hold are written as escapes."""
    return _DEEP.sub(_deep_text, _dumped(value))


def _dumped(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except (TypeError, orjson.JSONEncodeError):
        return json.dumps(value, separators=(",", ":")).encode()


def _deep_text(found: re.Match[bytes]) -> bytes:
    start, end = _FORMS[int(found[1])]
    levels = int(found[2])
    return start * levels + b'{"S":"x"}' + end * levels


def head_of(operation: str, length: int, **changed: str | None) -> bytes:
    """The head of a request; `changed` replaces headers, and leaves out those that are None."""
    headers: dict[str, str | None] = {
        "Host": "127.0.0.1",
        "Content_Type": "application/x-amz-json-1.0",
        "X_Amz_Date": "20260101T000000Z",
        "Authorization": AUTHORIZATION,
        "X_Amz_Target": target(operation),
        "Content_Length": str(length),
        **changed,
    }
    line = headers.pop("line", None) or "POST / HTTP/1.1"
    lines = [
        line,
        *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items() if value is not None),
    ]
    return "\r\n".join(lines).encode("latin-1", "replace") + b"\r\n\r\n"




class Mutator:
    """Draws mutations from a seed."""

    def __init__(self, seeds: Seeds, seed: str) -> None:
        self.seeds = seeds
        self.chance = Random(seed)

    def draw(self) -> Mutation:
        """The next broken request; a few are left valid."""
        chance = self.chance
        operation = chance.choice(self.seeds.operations)
        golden = chance.random() < 0.4
        body = chance.choice(self.seeds.golden(operation) if golden else self.seeds.own[operation])
        (kind,) = chance.choices(KINDS, _WEIGHTS)
        if kind == "values" or chance.random() < 0.3:
            body = self.break_values(body)
        if kind == "text":
            body = self.break_text(body)
        if len(body) > BODY_BYTES_MAX:
            body = body[:BODY_BYTES_MAX]
        head = (
            self.break_headers(operation, len(body)) if kind == "headers" else head_of(operation, len(body))
        )
        if kind == "framing":
            return Mutation(kind, operation, self.break_framing(operation, head + body), b"")
        return Mutation(kind, operation, head, body)

    # -- values --

    def break_values(self, body: bytes) -> bytes:
        request = orjson.loads(body)
        for _ in range(self.chance.choice((1, 1, 1, 1, 1, 1, 2, 2, 3, 6))):
            found = list(islice(places(request), _PLACES_MAX))
            if not found:
                return encode(self.chance.choice(JUNK))
            self._break_place(*self.chance.choice(found), found)
        return encode(request)

    def _break_place(self, container: Any, key: Any, found: list[tuple[Any, Any]]) -> None:
        chance = self.chance
        value = container[key]
        how = chance.randrange(9)
        if how == 0:
            del container[key]
        elif how == 1:
            # Usually of the same form: another form seldom gets past the check of types.
            alike = [junk for junk in JUNK if type(junk) is type(value)] if chance.random() < 0.85 else JUNK
            container[key] = _copy(chance.choice(alike or JUNK))
        elif how == 2:
            alike_places = [pair for pair in found if type(pair[0][pair[1]]) is type(value)]
            other, other_key = chance.choice(alike_places)
            container[key] = _copy(other[other_key])
        elif how == 3:
            container[key] = self._nested(value)
        elif how == 4 and isinstance(container, list):
            container.extend([value] * chance.choice((1, 2, 25, 101, 300)))
        elif how == 4:
            container[str(key) + chance.choice(["", "x", " ", "\u0000", "\ud800"])] = _copy(
                chance.choice(JUNK)
            )
        elif how == 5 and isinstance(value, dict) and len(value) == 1:
            (held,) = value.values()
            kinds = ("S", "N", "B") if isinstance(held, str) else ("SS", "NS", "BS", "L")
            others = ("S", "N", "B", "SS", "NS", "BS", "M", "L", "NULL", "BOOL", "s", "", "X")
            container[key] = {chance.choice(kinds if chance.random() < 0.6 else others): held}
        elif isinstance(value, str):
            container[key] = self._text(value)
        elif isinstance(value, bool | int | float) or value is None:
            container[key] = chance.choice(JUNK[:12] if chance.random() < 0.3 else NUMBERS)
        elif isinstance(value, dict):
            name = chance.choice((*value, "x", ""))
            value[self._text(name)] = _copy(value.get(name))
        else:
            container[key] = (
                dict.fromkeys("abc", value) if chance.random() < 0.3 else value * chance.choice((0, 2, 30))
            )

    def _nested(self, value: Any) -> Any:
        """The value under many levels of maps or lists, of attribute values or of bare JSON.

        A mark stands for very many levels, because Python's stack is limited; `encode` makes their text.
        """
        levels = self.chance.choice(LEVELS)
        form = self.chance.randrange(len(_FORMS))
        if levels > _LEVELS_HELD_MAX:
            return f"\u0001{form} {levels}"
        for _ in range(levels):
            value = ({"M": {"a": value}}, {"L": [value]}, [value], {"a": value})[form]
        return value

    def _text(self, text: str) -> str:
        """A changed string: a word inserted, removed or moved; a changed character; another length."""
        chance = self.chance
        how = chance.randrange(7)
        if how <= 2:
            words = text.split(" ")
            for _ in range(chance.randint(1, 3)):
                place = chance.randrange(len(words) + 1)
                if how == 0:
                    words.insert(place, chance.choice(WORDS))
                elif how == 1 and words:
                    del words[place - 1]
                elif words:
                    words[place - 1] = chance.choice(WORDS + words)
            return " ".join(words)
        place = chance.randrange(len(text) + 1)
        if how == 3:
            return text[:place] + chance.choice(WORDS) + text[place:]
        if how == 4:
            return text[:place] + text[place + chance.randint(1, 4) :]
        if how == 5:
            return (
                text[:place]
                + chr(chance.choice((0, 9, 34, 39, 92, 127, 233, 0xD800, 0xFFFF, 0x1F600)))
                + text[place:]
            )
        return (text or "x") * chance.choice((2, 10, 100, 1_000)) if len(text) < 200 else text[:place]

    # -- text --

    def break_text(self, body: bytes) -> bytes:
        chance = self.chance
        for _ in range(chance.choice((1, 1, 2, 4))):
            place = chance.randrange(len(body) + 1)
            end = min(len(body), place + chance.choice((1, 1, 2, 8, 40)))
            how = chance.randrange(6)
            if how == 0:
                body = body[:place] + chance.choice(TOKENS) + body[place:]
            elif how == 1:
                body = body[:place] + body[end:]
            elif how == 2:
                body = body[:place] + chance.choice(TOKENS) + body[end:]
            elif how == 3:
                body = body[:end] + body[place:]
            elif how == 4:
                body = body[:place] + bytes([chance.randrange(256)]) + body[place + 1 :]
            else:
                body = body[:place] if chance.random() < 0.3 else body + chance.choice(TOKENS)
        return body

    # -- headers --

    def break_headers(self, operation: str, length: int) -> bytes:
        """A head with one or two changed headers, after which the connection can still be used."""
        chance = self.chance
        changed: dict[str, str | None] = {}
        for _ in range(chance.choice((1, 1, 2))):
            name, values = chance.choice(HEADERS)
            changed[name] = chance.choice(values)
        if chance.random() < 0.1:
            changed["X_Amz_Target"] = target(chance.choice(self.seeds.operations))
        if chance.random() < 0.1:
            changed["Authorization"] = (
                self._text(AUTHORIZATION).replace("\r", "").replace("\n", "").replace("\0", "")
            )
        return head_of(operation, length, **changed)

    # -- framing --

    def break_framing(self, operation: str, sent: bytes) -> bytes:
        """The bytes of a request, changed anywhere; sometimes with valid requests before and after it."""
        chance = self.chance
        head_end = sent.index(b"\r\n\r\n")
        for _ in range(chance.choice((1, 1, 2, 3))):
            place = chance.randrange(head_end if chance.random() < 0.8 else len(sent))
            how = chance.randrange(5)
            if how == 0:
                sent = sent[:place] + chance.choice(FRAMING) + sent[place:]
            elif how == 1:
                sent = sent[:place] + sent[place + chance.choice((1, 2, 9, 60)) :]
            elif how == 2:
                sent = sent[:place] + bytes([chance.randrange(256)]) + sent[place + 1 :]
            elif how == 3:
                line_end = sent.find(b"\r\n", place)
                sent = sent[: line_end + 2] + chance.choice(FRAMING) + sent[line_end + 2 :]
            else:
                sent = sent[:place]
            head_end = max(1, min(head_end, len(sent)))
            if not sent:
                break
        valid = head_of("ListTables", 2) + b"{}"
        return valid * chance.choice((0, 0, 1, 3)) + sent + valid * chance.choice((0, 0, 1))


def _copy(value: Any) -> Any:
    """A deep copy. Values here may be deeper than the copy module can go."""
    if not isinstance(value, dict | list):
        return value
    text = _dumped(value)
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return json.loads(text)


