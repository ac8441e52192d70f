"""The access pattern of a request: what it asks, without the values that it asks with.

Two requests have the same pattern if their operation, table, index and expressions agree. Placeholders of
names are replaced by the names, so that `#s = :s` reads `status = :s`; the values in a PartiQL statement are
replaced by `?`. So the number of patterns depends on the programs, not on the data.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from hashrange.operations.context import Request

TEXT_CHARACTERS_MAX: Final = 300
_EXPRESSIONS: Final = (
    ("KeyConditionExpression", ""),
    ("FilterExpression", "filter "),
    ("UpdateExpression", ""),
    ("ConditionExpression", "if "),
)
_MEMBERS: Final = tuple([member for member, _ in _EXPRESSIONS])
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
    texts = tuple([text if isinstance(text := request.get(member), str) else "" for member in _MEMBERS])
    legacy = [
        word + ", ".join(map(str, compared))
        for member, word in _LEGACY
        if isinstance(compared := request.get(member), Mapping) and compared
    ]
    if legacy:
        return _short("; ".join(legacy))
    names = request.get("ExpressionAttributeNames")
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names.values()):
        names = {}
    return _joined(texts, tuple(names.items()))


@lru_cache(maxsize=512)
def _joined(texts: tuple[str, ...], names: tuple[tuple[str, str], ...]) -> str:
    """The text of the expressions in the order of `_EXPRESSIONS`. Programs send the same ones again and
    again."""
    named = dict(names)
    parts = [
        word + _NAME.sub(lambda match: named.get(match[0], match[0]), text)
        for text, (_, word) in zip(texts, _EXPRESSIONS, strict=True)
        if text
    ]
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


def _short(text: str) -> str:
    text = _SPACE.sub(" ", text).strip()
    return text if len(text) <= TEXT_CHARACTERS_MAX else f"{text[: TEXT_CHARACTERS_MAX - 1]}…"
