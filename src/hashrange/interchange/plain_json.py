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

_REQUESTS: Final = ("PutRequest", "DeleteRequest")

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


def is_container(document: Any) -> bool:
    """Whether an object holds items: whether it is an answer of Scan or Query, or requests of
    BatchWriteItem."""
    return _is_answer(document) or _requests(document) is not None


def _is_answer(document: Any) -> bool:
    return (
        isinstance(document, Mapping)
        and isinstance(document.get("Items"), list)
        and ("Count" in document or len(document) == 1)
    )


def _requests(document: Any) -> Mapping[str, list[Any]] | None:
    """The requests by table of a BatchWriteItem; None for any other value."""
    if isinstance(document, Mapping) and isinstance(document.get("RequestItems"), Mapping):
        document = document["RequestItems"]
    if not isinstance(document, Mapping) or not any(document.values()):
        return None
    for requests in document.values():
        if not isinstance(requests, list) or not all(map(_is_request, requests)):
            return None
    return document


def _is_request(value: Any) -> bool:
    return isinstance(value, Mapping) and len(value) == 1 and not value.keys().isdisjoint(_REQUESTS)


def listed(document: Any, table: str) -> list[Any]:
    """The items of a document for a table: the document itself, the `Items` of an answer, the requests of a
    BatchWriteItem for the table, or a document that is an item. Raises NoItem."""
    if isinstance(document, list):
        return document
    if _is_answer(document):
        items: list[Any] = document["Items"]
        return items
    requests = _requests(document)
    if requests is None:
        return [document]
    for name, members in requests.items():
        if name.rpartition("/")[2] == table:  # a name, or an ARN
            return members
    raise NoItem(f"the items are for {', '.join(requests)}, and none is for the table {table}")


def unwrapped(line: Any) -> Any:
    """The item in a line of an export, or in a request to put an item. Raises NoItem for a request to delete
    one."""
    if isinstance(line, Mapping):
        if line.keys() == {"DeleteRequest"}:
            raise NoItem("this is a request to delete an item, not to put one")
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
    if item and all(map(is_typed, item.values())):
        return dict(item)
    return {str(name): typed(value) for name, value in item.items()}


def is_typed(value: Any) -> bool:
    """Whether a value is an attribute value in DynamoDB's JSON."""
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
    raise NoItem(f"{value!r} is not a value of an attribute: DynamoDB has no {type(value).__name__}")


def _set(values: set[Any] | frozenset[Any]) -> dict[str, Any]:
    members = [typed(value) for value in values]
    kinds = {kind for member in members for kind in member}
    if len(kinds) != 1 or not kinds <= {"S", "N", "B"}:
        raise NoItem(f"{values!r} is not a set: its members are texts, or numbers, or bytes")
    (kind,) = kinds
    return {f"{kind}S": sorted(member[kind] for member in members)}
