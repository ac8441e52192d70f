"""DynamoDB JSON: an item a line, `{"Item": {"id": {"S": "x"}}}`."""

from __future__ import annotations

import orjson

from hashrange.interchange.rows import Bad
from hashrange.values import Item

_NO_JSON = "Invalid DynamoDB JSON: the line cannot be read as JSON"
_NO_ITEM = 'Invalid DynamoDB JSON: the line has no "Item" that is an object'


def read(line: bytes) -> Item | Bad:
    """The item of a line. What is not JSON ends the object, as on the service."""
    try:
        row = orjson.loads(line)
    except ValueError:
        return Bad(_NO_JSON, is_end=True)
    item = row.get("Item") if type(row) is dict else None
    return item if type(item) is dict else Bad(_NO_ITEM)


def write(item: bytes) -> bytes:
    """The line of an item, which is given as JSON."""
    return b'{"Item":' + item + b"}\n"
