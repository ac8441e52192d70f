"""The types of a CSV's columns: what a field stands for, and how a value is written so that it comes back.

    S      a text                        N      a number
    BOOL   true or false                 JSON   a value in JSON, plain or in DynamoDB's JSON
    AUTO   as it looks: a number, true, false, null, a value in JSON; else a text

An empty field is an empty text in a column of texts, and no attribute in the others. Texts that look like
something else are written in JSON, with quotes. Refuses to know how rows are split into fields.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

import orjson

from hashrange.errors import ServiceError
from hashrange.interchange.plain_json import DECODER, NoItem, is_typed, typed
from hashrange.values.numbers import normalise

KINDS: Final = {"S": "text", "N": "number", "BOOL": "true or false", "JSON": "JSON", "AUTO": "as it looks"}
"""The types of columns, and what they are called."""
TYPED_SUFFIX: Final = ".typed.csv"
"""How the name of a CSV ends whose values were written by `write`: all its columns are read as they look."""
_WORDS: Final[dict[str, Any]] = {"true": {"BOOL": True}, "false": {"BOOL": False}, "null": {"NULL": True}}
_NUMBER: Final = re.compile(r"-?[0-9]")

Value = dict[str, Any]


def read(field: str, kind: str) -> Value | None:
    """The value of a field in a column of a type, None for no attribute. Raises ValueError."""
    if kind == "S":
        return {"S": field}
    if not field:
        return None
    if kind == "AUTO":
        return looks(field)
    if kind == "BOOL":
        if field.lower() not in ("true", "false"):
            raise ValueError(f"{field!r} is neither true nor false")
        return {"BOOL": field.lower() == "true"}
    if kind == "JSON":
        return _of_json(field)
    try:
        return {"N": normalise(field.strip())}
    except ServiceError:
        raise ValueError(f"{field!r} is not a number") from None


def looks(field: str) -> Value:
    """The value that a field looks like. A number is in the form in which DynamoDB answers it, so that a code
    such as 007 stays a text."""
    if field in _WORDS:
        return dict(_WORDS[field])
    if _NUMBER.match(field) and _is_number(field):
        return {"N": field}
    if field.startswith(('"', "{", "[")):
        try:
            return _of_json(field)
        except ValueError:
            pass
    return {"S": field}


def write(value: Value) -> str:
    """The field of a value, which `looks` reads as an equal one."""
    ((kind, inner),) = value.items()
    if kind == "S":
        return str(inner) if inner and looks(inner) == value else _json(inner)
    if kind == "N":
        return str(inner)
    if kind in ("BOOL", "NULL"):
        return _json(inner if kind == "BOOL" else None)
    return _json(value)


def proposed(fields: Iterable[str]) -> str:
    """The type of a column of which some fields are given: that of all of them, or as they look. Where some
    look like numbers and others like texts, they are codes, and so texts."""
    kinds = {_KIND_OF.get(next(iter(looks(field))), "JSON") for field in fields if field}
    if len(kinds) == 1:
        return kinds.pop()
    return "S" if kinds <= {"S", "N"} else "AUTO"


_KIND_OF: Final = {"S": "S", "N": "N", "BOOL": "BOOL", "NULL": "AUTO"}


def _of_json(field: str) -> Value:
    try:
        decoded = DECODER.decode(field)
        return dict(decoded) if is_typed(decoded) else typed(decoded)
    except (ValueError, RecursionError, NoItem) as error:
        raise ValueError(f"{field[:40]!r} is not JSON: {error}") from None


def _is_number(field: str) -> bool:
    try:
        return normalise(field) == field
    except ServiceError:
        return False


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
