"""The access pattern of a request: what it asks, without the values that it asks with.

Two requests have the same pattern if their operation, table, index and expressions agree. Placeholders of
names are replaced by the names, so that `#s = :s` reads `status = :s`; the values in a PartiQL statement are
replaced by `?`. So the number of patterns depends on the programs, not on the data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from hashrange.operations.context import Request

TEXT_CHARACTERS_MAX: Final = 300
_EXPRESSIONS: Final = (
    ("KeyConditionExpression", ""),
    ("FilterExpression", "filter "),
    ("UpdateExpression", ""),
    ("ConditionExpression", "if "),
)
_LEGACY: Final = (
    ("KeyConditions", ""),
    ("QueryFilter", "filter "),
    ("ScanFilter", "filter "),
    ("AttributeUpdates", ""),
    ("Expected", "if "),
)
_NAME: Final = re.compile(r"#\w+")
_LITERAL: Final = re.compile(r"'(?:[^']|'')*'|(?<![\w\"])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")
_SPACE: Final = re.compile(r"\s+")
_COMPARED: Final = re.compile(r"^\(*\s*(\w[\w.\[\]-]*)\s*=\s*:\w+")


def text_of(request: Request) -> str:
    """The expressions of a request, in one line; "" if it has none. The request may have any form."""
    statement = request.get("Statement")
    if isinstance(statement, str):
        return _short(_LITERAL.sub("?", statement))
    names = request.get("ExpressionAttributeNames")
    parts = []
    for member, word in _EXPRESSIONS:
        expression = request.get(member)
        if isinstance(expression, str):
            parts.append(word + _named(expression, names))
    for member, word in _LEGACY:
        compared = request.get(member)
        if isinstance(compared, Mapping) and compared:
            parts.append(word + ", ".join(map(str, compared)))
    return _short("; ".join(parts))


def filtered_attribute(text: str) -> str:
    """The attribute that the filter of a pattern first compares by `=`; "" if there is none."""
    for part in text.split("; "):
        if part.startswith("filter "):
            match = _COMPARED.match(part.removeprefix("filter "))
            return match[1] if match is not None else ""
    return ""


def is_consistent(operation: str, request: Request) -> bool:
    """Whether a request reads strongly consistently. A transaction does so too, but cannot do otherwise."""
    if operation == "BatchGetItem":
        tables = request.get("RequestItems")
        parts = tables.values() if isinstance(tables, Mapping) else ()
        return any(isinstance(part, Mapping) and part.get("ConsistentRead") is True for part in parts)
    return request.get("ConsistentRead") is True


def members(request: Request) -> int:
    """How many members a transaction has; 0 for other requests."""
    items = request.get("TransactItems", request.get("TransactStatements"))
    return len(items) if isinstance(items, list) else 0


def _named(expression: str, names: Any) -> str:
    if not isinstance(names, Mapping):
        return expression
    return _NAME.sub(lambda match: str(names.get(match[0], match[0])), expression)


def _short(text: str) -> str:
    text = _SPACE.sub(" ", text).strip()
    return text if len(text) <= TEXT_CHARACTERS_MAX else f"{text[: TEXT_CHARACTERS_MAX - 1]}…"
