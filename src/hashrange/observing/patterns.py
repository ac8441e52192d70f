"""The access pattern of a request: what it asks, without the values that it asks with.

Two requests have the same pattern if their operation, table, index and expressions agree. Placeholders of
names are replaced by the names, so that `#s = :s` reads `status = :s`; the values in a PartiQL statement are
replaced by `?`. So the number of patterns depends on the programs, not on the data.

    expressions_of(request)                            "pk = :p; filter status = :s"
    key_of(operation, request, target, names, show)    "pk = USER#* AND sk > *", with values as `show` has it

A request may have any form here, because refused ones are observed too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

from hashrange.operations.context import Request
from hashrange.operations.targets import Target

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
_COMPARISONS: Final = {
    "EQ": "{0} = {1}", "LT": "{0} < {1}", "LE": "{0} <= {1}", "GT": "{0} > {1}", "GE": "{0} >= {1}",
    "BEGINS_WITH": "begins_with({0}, {1})", "BETWEEN": "{0} BETWEEN {1} AND {2}",
}  # fmt: skip
"""The comparisons of KeyConditions, as expressions write them: of an attribute with values."""
_NAME: Final = re.compile(r"#\w+")
_PLACEHOLDER: Final = re.compile(r"[#:]\w+")
_LITERAL: Final = re.compile(r"'(?:[^']|'')*'|(?<![\w\"])-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?\b")
_SPACE: Final = re.compile(r"\s+")

Show = Callable[[Any], str]
"""The text for an attribute value in DynamoDB's JSON, or for what stands in its place."""


def expressions_of(request: Request) -> str:
    """The expressions of a request, in one line; "" if it has none."""
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
    return _joined(texts, tuple(_names(request).items()))


def key_of(operation: str, request: Request, target: Target, key_names: tuple[str, ...], show: Show) -> str:
    """The key by which a request names or finds the items of a target, in one line; "" if it names none.

    `key_names` are those of the table, by which the key of a put is found in its item; () if they are not
    known.
    """
    if operation == "Query":
        condition = request.get("KeyConditionExpression")
        if not isinstance(condition, str):
            return _short(" AND ".join(_legacy_comparisons(request.get("KeyConditions"), show)))
        names, values = _names(request), request.get("ExpressionAttributeValues")
        if not isinstance(values, Mapping):
            values = {}
        return _short(
            _PLACEHOLDER.sub(
                lambda match: (
                    names.get(match[0], match[0]) if match[0][0] == "#" else show(values.get(match[0]))
                ),
                condition,
            )
        )
    given = target.attributes
    if not isinstance(given, Mapping):
        return ""
    if not key_names and _names_keys_only(operation, request):
        key_names = tuple(sorted(given))
    return _short(" AND ".join([f"{name} = {show(given[name])}" for name in key_names if name in given]))


def _names_keys_only(operation: str, request: Request) -> bool:
    """Whether a target's attributes are a key, and cannot be an item."""
    return "Item" not in request and operation not in ("BatchWriteItem", "TransactWriteItems")


def _legacy_comparisons(conditions: Any, show: Show) -> Iterator[str]:
    if not isinstance(conditions, Mapping):
        return
    for name, condition in conditions.items():
        values = condition.get("AttributeValueList") if isinstance(condition, Mapping) else None
        form = _COMPARISONS.get(str(condition.get("ComparisonOperator"))) if values is not None else None
        if form is not None and isinstance(values, list) and len(values) == form.count("{") - 1:
            yield form.format(name, *map(show, values))


def _names(request: Request) -> Mapping[str, str]:
    """The names of attributes by their placeholders."""
    names = request.get("ExpressionAttributeNames")
    is_sound = isinstance(names, Mapping) and all(isinstance(name, str) for name in names.values())
    return names if is_sound and names is not None else {}


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


def _short(text: str) -> str:
    text = _SPACE.sub(" ", text).strip()
    return text if len(text) <= TEXT_CHARACTERS_MAX else f"{text[: TEXT_CHARACTERS_MAX - 1]}…"
