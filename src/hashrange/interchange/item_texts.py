"""Items as texts that people and programs read: lines of plain JSON, of DynamoDB's JSON, and of CSV.

Numbers keep all their digits. A CSV holds texts, numbers and binary values as they are, and other values as
plain JSON; only DynamoDB's JSON keeps every type.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson

from hashrange.interchange import dynamodb_json

_NEED_QUOTES: Final = ',"\r\n'

Item = Mapping[str, Any]


def from_boto3(value: dict[str, Any]) -> dict[str, Any]:
    """A value in DynamoDB's JSON, from boto3, which has decoded binary."""
    for kind, content in value.items():
        if kind == "B":
            return {"B": b64encode(content).decode()}
        if kind == "BS":
            return {"BS": [b64encode(member).decode() for member in content]}
        if kind == "M":
            return {"M": {name: from_boto3(member) for name, member in content.items()}}
        if kind == "L":
            return {"L": [from_boto3(member) for member in content]}
    return value


def plain(value: Mapping[str, Any]) -> Any:
    """A value without types, for `orjson.dumps`: sets are arrays, binary values base64."""
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return orjson.Fragment(content)
        case "NS":
            return [orjson.Fragment(number) for number in content]
        case "L":
            return [plain(member) for member in content]
        case "M":
            return {name: plain(member) for name, member in content.items()}
        case "NULL":
            return None
        case _:
            return content


def plain_lines(items: Iterable[Item]) -> bytes:
    """A line of plain JSON for each item."""
    return b"".join(
        orjson.dumps({name: plain(value) for name, value in item.items()}) + b"\n" for item in items
    )


def typed_lines(items: Iterable[Item]) -> bytes:
    """A line of DynamoDB's JSON for each item, as exports have them."""
    return b"".join(dynamodb_json.write(orjson.dumps(item)) for item in items)


def csv_field(value: Mapping[str, Any] | None) -> str:
    """A value in a CSV; "" for an attribute that an item does not have."""
    if value is None:
        return ""
    ((kind, content),) = value.items()
    return str(content) if kind in ("S", "N", "B") else orjson.dumps(plain(value)).decode()


def csv_lines(rows: Iterable[Iterable[str]]) -> bytes:
    """Rows as RFC 4180 has them, but with line ends of one character. (Python's csv then leaves carriage
    returns without quotes, before Python 3.13.)"""
    # (an empty line would be no row)
    lines = [",".join(map(_quoted, row)) or '""' for row in rows]
    return "".join(f"{line}\n" for line in lines).encode()


def _quoted(text: str) -> str:
    needs_quotes = any(character in text for character in _NEED_QUOTES)
    return '"{}"'.format(text.replace('"', '""')) if needs_quotes else text
