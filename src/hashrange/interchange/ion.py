"""Amazon Ion: one item per line, `$ion_1_0 {Item:{id:"x"}}`, with the types of DynamoDB's exports.

    S string   N decimal   B blob   BOOL bool   NULL null   L list   M struct
    SS, NS, BS list with the annotation $dynamodb_SS, $dynamodb_NS or $dynamodb_BS

Source: Developer Guide, "DynamoDB table export output format" and "Amazon S3 import formats for DynamoDB".
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from hashrange.interchange.ion_text import AnnotatedValue, Blob, IonError, Number
from hashrange.interchange.ion_text import read as read_text
from hashrange.interchange.rows import Bad
from hashrange.values import AttributeValue, Item

_SETS: Final = {"$dynamodb_SS": "S", "$dynamodb_NS": "N", "$dynamodb_BS": "B"}
_STRUCTS: Final = ("Item", "ExpressionAttributeValues")
_NO_ITEM: Final = "Invalid Ion: the line has no Item that is a struct"
_IS_PLAIN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*").fullmatch
_KEYWORDS: Final = frozenset(("null", "true", "false", "nan"))


def read(line: bytes) -> Item | Bad:
    """The item of a line. A line that is not Ion ends the object, as on the service."""
    row = read_row(line)
    return row if isinstance(row, Bad) else row["Item"]


def read_row(line: bytes) -> dict[str, Any] | Bad:
    """All members of a line; the values in its `_STRUCTS` are attribute values."""
    try:
        row = read_text(line.decode())
    except IonError as error:
        return Bad(f"Invalid Ion: {error}", is_end=not error.is_ion)
    except UnicodeDecodeError:
        return Bad("Invalid Ion: the line is not UTF-8", is_end=True)
    if type(row) is not dict or type(row.get("Item")) is not dict:
        return Bad(_NO_ITEM)
    try:
        return {name: _member(name, member) for name, member in row.items()}
    except IonError as error:
        return Bad(f"Invalid Ion: {error}")


def _member(name: str, member: Any) -> Any:
    if name in _STRUCTS and type(member) is dict:
        return {part: _value(value) for part, value in member.items()}
    return member


def _value(value: Any) -> AttributeValue:
    kind = type(value)
    if kind is str:
        return {"S": value}
    if kind is Number:
        return {"N": str(value)}
    if kind is bool:
        return {"BOOL": value}
    if kind is dict:
        return {"M": {name: _value(member) for name, member in value.items()}}
    if kind is list:
        return {"L": [_value(member) for member in value]}
    if kind is Blob:
        return {"B": str(value)}
    if value is None:
        return {"NULL": True}
    return _noted(value)


def _noted(noted: AnnotatedValue) -> AttributeValue:
    member = next((_SETS[note] for note in noted.notes if note in _SETS), None)
    if member is None:
        return _value(noted.value)
    if type(noted.value) is not list:
        raise IonError(f"a value with the annotation $dynamodb_{member}S is not a list", is_ion=True)
    members = []
    for element in noted.value:
        value = _value(element)
        if member not in value:
            raise IonError(f"a set of type {member}S has a member of another type", is_ion=True)
        members.append(value[member])
    return {f"{member}S": members}


def write(item: Item) -> bytes:
    """The line of an item."""
    return f"$ion_1_0 {{Item:{struct(item)}}}\n".encode()


def struct(item: Item) -> str:
    """An item, or a map, as a struct."""
    return "{" + ",".join(f"{symbol(name)}:{_written(value)}" for name, value in item.items()) + "}"


def symbol(name: str) -> str:
    """The name of a field."""
    if _IS_PLAIN(name) and name not in _KEYWORDS:
        return name
    return "'" + orjson.dumps(name).decode()[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"


def _written(value: AttributeValue) -> str:
    for kind, content in value.items():
        match kind:
            case "S":
                return orjson.dumps(content).decode()
            case "N":
                return number(content)
            case "B":
                return f"{{{{{content}}}}}"
            case "BOOL":
                return "true" if content else "false"
            case "NULL":
                return "null"
            case "M":
                return struct(content)
            case "L":
                return "[" + ",".join(map(_written, content)) + "]"
            case "SS":
                return f"$dynamodb_SS::{orjson.dumps(content).decode()}"
            case "NS":
                return "$dynamodb_NS::[" + ",".join(map(number, content)) + "]"
            case _:
                return "$dynamodb_BS::[" + ",".join(f"{{{{{member}}}}}" for member in content) + "]"
    raise ValueError("An attribute value has one type.")


def number(text: str) -> str:
    """A number in normal form as a decimal, as the service writes it: 103 is `103.`, and 600 is `6d2`."""
    if "." in text:
        return text
    digits = text.rstrip("0")
    if digits in ("", "-") or digits == text:
        return f"{text}."
    return f"{digits}d{len(text) - len(digits)}"
