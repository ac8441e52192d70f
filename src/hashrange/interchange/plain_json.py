"""Items from plain values, as JSON and Python have them, in the form of the wire.

An item whose attributes are all typed ({"S": "x"}) is in DynamoDB's JSON; any other item is plain, and its
numbers keep all their digits.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import msgspec

Item = dict[str, Any]

DECODER: Final = msgspec.json.Decoder(float_hook=Decimal)
"""Reads JSON, keeping all digits of its numbers."""

_KINDS: Final[dict[str, type | tuple[type, ...]]] = {
    "S": str,
    "N": str,
    "B": str,
    "BOOL": bool,
    "NULL": bool,
    "M": Mapping,
    "L": list,
    "SS": list,
    "NS": list,
    "BS": list,
}


class NoItem(ValueError):
    """A value is not an item, or not a list of items; the text says why."""


def listed(document: Any) -> list[Any]:
    """The list of a document: the document itself, or its `Items`. Raises NoItem."""
    if isinstance(document, Mapping) and isinstance(document.get("Items"), list):
        document = document["Items"]
    if not isinstance(document, list):
        raise NoItem('there is no list of items, and no {"Items": [...]}')
    return document


def unwrapped(line: Any) -> Any:
    """The item in a line of an export, or in a request to put an item."""
    if isinstance(line, Mapping):
        put = line.get("PutRequest")
        if isinstance(put, Mapping) and len(line) == 1:
            line = put
        if len(line) == 1 and isinstance(line.get("Item"), Mapping):
            return line["Item"]
    return line


def item_of(item: Any) -> Item:
    """The item of a mapping, plain or in DynamoDB's JSON. Raises NoItem."""
    if not isinstance(item, Mapping):
        raise NoItem(f"an item is an object, not {item!r}")
    if item and all(map(_is_typed, item.values())):
        return dict(item)
    return {str(name): typed(value) for name, value in item.items()}


def _is_typed(value: Any) -> bool:
    if not isinstance(value, Mapping) or len(value) != 1:
        return False
    ((kind, content),) = value.items()
    return kind in _KINDS and isinstance(content, _KINDS[kind])


def typed(value: Any) -> dict[str, Any]:
    """The attribute value of a Python value: text, numbers, bytes, bool, None, lists, mappings and sets.

    Raises NoItem for any other value.
    """
    match value:
        case None:
            return {"NULL": True}
        case bool():
            return {"BOOL": value}
        case str():
            return {"S": value}
        case int() | Decimal():
            return {"N": str(value)}
        case float():
            return {"N": repr(value)}
        case bytes() | bytearray():
            return {"B": b64encode(value).decode()}
        case Mapping():
            return {"M": {str(name): typed(content) for name, content in value.items()}}
        case list() | tuple():
            return {"L": [typed(content) for content in value]}
        case set() | frozenset():
            return _set(value)
    raise NoItem(f"{value!r} is no value of an attribute: DynamoDB has no {type(value).__name__}")


def _set(values: set[Any] | frozenset[Any]) -> dict[str, Any]:
    members = [typed(value) for value in values]
    kinds = {kind for member in members for kind in member}
    if len(kinds) != 1 or not kinds <= {"S", "N", "B"}:
        raise NoItem(f"{values!r} is no set: its members are texts, or numbers, or bytes")
    (kind,) = kinds
    return {f"{kind}S": sorted(member[kind] for member in members)}
