"""Items in plain JSON, as users type them: every number keeps the text that it has in the JSON.

Plain JSON has no sets and no binary values. A text or an array in the place of one keeps the type of the item
that was shown; where that does not fit, the user is asked to use DynamoDB's JSON or the form.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any, Final

import msgspec

from hashrange_console.items.texts import check_json
from hashrange_console.reach import Refused
from hashrange_console.values import NAMES, Item, Raw, Value, plain

_ELSEWHERE: Final = "Use the form, or DynamoDB JSON, to change its type."
_SETS: Final = {"SS": (str, "texts"), "NS": (Raw, "numbers"), "BS": (str, "texts in base64")}
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
_ARRAY: Final = msgspec.json.Decoder(list[msgspec.Raw])
_OTHER: Final = msgspec.json.Decoder(str | bool | None)


def item_of_plain(text: str, shown: Item) -> Item:
    """The item of a text in plain JSON, which was edited from an item that was `shown`. Raises `Refused`."""
    check_json(text)
    values = exact(text.encode())
    if not isinstance(values, dict):
        raise Refused("An item is a JSON object of attributes.")
    return {name: _typed(name, value, shown.get(name)) for name, value in values.items()}


def exact(text: bytes | msgspec.Raw) -> Any:
    """The value of a valid JSON text, in which numbers are their texts (`Raw`)."""
    start = bytes(memoryview(text)[:64]).lstrip()[:1]
    match start:
        case b"{":
            return {name: exact(part) for name, part in _OBJECT.decode(text).items()}
        case b"[":
            return [exact(part) for part in _ARRAY.decode(text)]
        case b'"' | b"t" | b"f" | b"n":
            return _OTHER.decode(text)
        case b"":
            return exact(bytes(memoryview(text)).strip())
        case _:
            return Raw(bytes(memoryview(text)).strip().decode())


def _typed(path: str, value: Any, shown: Value | None) -> Value:
    """A value, with the type of the value that was shown where the JSON does not say it."""
    kind = next(iter(shown)) if shown else ""
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case Raw():
            return {"N": str(value)}
        case str() if kind == "B":
            return {"B": _binary(path, value)}
        case str():
            return {"S": value}
        case list() if shown and kind in _SETS:
            return {kind: _set(path, kind, value)}
        case list():
            return {"L": _list(path, value, shown["L"] if shown and kind == "L" else [])}
        case _:
            members = shown["M"] if shown and kind == "M" else {}
            return {
                "M": {
                    name: _typed(f"{path}.{name}", content, members.get(name))
                    for name, content in value.items()
                }
            }


def _binary(path: str, text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refused(f"{path}: this value is binary, and the text is not base64. {_ELSEWHERE}") from None
    return text


def _set(path: str, kind: str, values: list[Any]) -> list[str]:
    expected, members = _SETS[kind]
    if not values or any(type(value) is not expected for value in values):
        raise Refused(f"{path}: this value is a {NAMES[kind]}: an array of {members}. {_ELSEWHERE}")
    if kind == "BS":
        return [_binary(path, value) for value in values]
    return [str(value) for value in values]


def _list(path: str, values: list[Any], shown: list[Value]) -> list[Value]:
    """The members of a list. Members that are as they were shown keep their types, even if others before them
    were added or removed."""
    before = [plain(value) for value in shown]
    shorter = min(len(values), len(before))
    start = next((n for n in range(shorter) if not _same(values[n], before[n])), shorter)
    shorter -= start
    end = next((n for n in range(shorter) if not _same(values[-1 - n], before[-1 - n])), shorter)
    changed, replaced = values[start : len(values) - end], shown[start : len(shown) - end]
    if len(changed) != len(replaced):
        if changed and any(map(_is_unspoken, replaced)):
            raise Refused(
                f"{path}: plain JSON does not say which of these members are binary or sets. {_ELSEWHERE}"
            )
        replaced = []
    pairs: list[Value | None] = [*shown[:start], *replaced]
    pairs += [None] * (len(values) - end - len(pairs))
    pairs += shown[len(shown) - end :]
    return [
        _typed(f"{path}[{n}]", value, pair) for n, (value, pair) in enumerate(zip(values, pairs, strict=True))
    ]


def _same(left: Any, right: Any) -> bool:
    """Whether two plain values are equal, where a number differs from a text of its digits."""
    if type(left) is not type(right):
        return False
    if isinstance(left, list):
        return len(left) == len(right) and all(map(_same, left, right))
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(_same(left[name], right[name]) for name in left)
    return bool(left == right)


def _is_unspoken(value: Value) -> bool:
    """Whether a value is binary or a set, or holds one: plain JSON does not say its type."""
    kind, inner = next(iter(value.items()))
    if kind == "L":
        return any(map(_is_unspoken, inner))
    if kind == "M":
        return any(map(_is_unspoken, inner.values()))
    return kind in ("B", *_SETS)
