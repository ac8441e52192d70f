"""DynamoDB JSON: one item per line, `{"Item": {"id": {"S": "x"}}}`."""

from __future__ import annotations

from typing import Any

import orjson

from hashrange.interchange.rows import Bad
from hashrange.values import Item

_NO_JSON = "Invalid DynamoDB JSON: the line cannot be read as JSON"
_NO_ITEM = 'Invalid DynamoDB JSON: the line has no "Item" that is an object'


def read(line: bytes) -> Item | Bad:
    """The item of a line. A line that is not JSON ends the object, as on the service."""
    row = read_row(line)
    return row if isinstance(row, Bad) else row["Item"]


def read_row(line: bytes) -> dict[str, Any] | Bad:
    """All members of a line; its `Item` is an object."""
    try:
        row = orjson.loads(line)
    except ValueError:
        return Bad(_NO_JSON, is_end=True)
    if type(row) is not dict or type(row.get("Item")) is not dict:
        return Bad(_NO_ITEM)
    return row


def write(item: bytes) -> bytes:
    """The line of an item in JSON."""
    return b'{"Item":' + item + b"}\n"
