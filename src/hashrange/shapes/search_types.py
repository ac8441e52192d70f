"""Checks the JSON types of a SearchVectors, which a reader with words of its own reads.

Like `wire_types`, this reader stops at the first value of a wrong type, in the request's order; but a member
that it needs must not be null. Its messages name a column of the request's text, which is not known here:
the column is that of the same request without spaces between its tokens.

Source: [report] paritysuite's captures (in every week to October 2026) for null and for a missing table name,
dynoxide's of August 2026 for a fraction; the words for other types are [assumed].
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from hashrange.errors import SerializationException, ValidationException, shown
from hashrange.limits import SHOWN_CHARS_MAX

_EXPECTED: Final[dict[str, tuple[type, str]]] = {
    "TableName": (str, "a string"),
    "IndexName": (str, "a string"),
    "SearchVector": (list, "a sequence"),
    "TopK": (int, "i32"),
}


def check(request: dict[str, Any]) -> None:
    """Raise `SerializationException` at the first needed member of a wrong type, and `ValidationException` if
    the table's name is missing."""
    for name, value in request.items():
        kind, words = _EXPECTED.get(name, (type(value), ""))
        if type(value) is not kind:
            column = _column(request, name)
            raise SerializationException(f"invalid type: {_described(value)}, expected {words} at {column}")
    if "TableName" not in request:
        raise ValidationException(f"missing field `TableName` at {_column(request, '')}")


def _described(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return f"boolean `{str(value).lower()}`"
        case int():
            return f"integer `{value}`"
        case float():
            return f"floating point `{value}`"
        case str():
            return f"string {orjson.dumps(shown(value, SHOWN_CHARS_MAX)).decode()}"
    return "sequence" if type(value) is list else "map"


def _column(request: dict[str, Any], last: str) -> str:
    """The place behind the value of the member `last`, or before a list or map; without it the last place."""
    read: dict[str, Any] = {}
    for name, value in request.items():
        read[name] = value
        if name == last:
            break
    behind = len(_text(read)) - (last in read)
    if type(read.get(last)) in (list, dict):
        behind -= len(_text(read[last])) - 1
    return f"line 1 column {behind}"


def _text(value: Any) -> bytes:
    try:
        return orjson.dumps(value)
    except TypeError:
        # A member that is not known may be nested too deeply to be written as JSON.
        return b""
