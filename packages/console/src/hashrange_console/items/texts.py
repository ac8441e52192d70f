"""Items in DynamoDB's JSON, as users type them.

Numbers are text, so that no reader of JSON loses their digits. A name that stands twice in an object is
refused, because readers of JSON keep one of the two values and drop the other without a word.
"""

from __future__ import annotations

import re
from typing import Any, Final

import orjson

from hashrange import limits
from hashrange.errors import ServiceError
from hashrange.values import admit_value
from hashrange_console.reach import Refused
from hashrange_console.values import NAMES, Item, Value

_TOKENS: Final = re.compile(r'("[^"\\]*(?:\\.[^"\\]*)*")(\s*:)?|[{}\[\]]', re.DOTALL)
_LEVELS_MAX: Final = limits.READABLE_LEVELS_MAX * 2
"""The most levels of JSON: a level of values takes two."""


def item_of(text: str) -> Item:
    """An item in DynamoDB's JSON. Raises `Refused` with the place of an error."""
    check_json(text)
    item = orjson.loads(text)
    if not isinstance(item, dict):
        raise Refused("An item is a JSON object of attributes.")
    for name, value in item.items():
        _check(name, value)
    return item


def check_json(text: str) -> None:
    """Refuse what is not JSON, is nested too deeply, or has a name twice in an object."""
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Refused(f"This is not JSON: {error}.") from None
    objects: list[set[str] | None] = []
    path: list[str] = []
    for token in _TOKENS.finditer(text):
        if token[1] is not None:
            names = objects[-1] if objects else None
            if token[2] is None or names is None:
                continue
            name = orjson.loads(token[1])
            path[-1] = name
            if name in names:
                place = ".".join(part for part in path if part)
                raise Refused(f"{place}: this name occurs twice in the same object. Remove one of the two.")
            names.add(name)
        elif token[0] in "{[":
            objects.append(set() if token[0] == "{" else None)
            path.append("")
            if len(objects) > _LEVELS_MAX:
                raise Refused(f"The JSON is nested too deeply: more than {_LEVELS_MAX} levels.")
        else:
            objects.pop()
            path.pop()


def _check(path: str, value: Any) -> None:
    """Refuse what is not a value in DynamoDB's JSON: above all a number that is not text, whose digits a
    reader of JSON may have lost."""
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in NAMES:
        types = ", ".join(NAMES)
        raise Refused(f'{path}: a value is an object with its type, such as {{"S": "text"}}; types: {types}.')
    kind, inner = next(iter(value.items()))
    expected: type = str
    match kind:
        case "L" | "SS" | "NS" | "BS":
            expected = list
        case "M":
            expected = dict
        case "BOOL" | "NULL":
            expected = bool
    if not isinstance(inner, expected):
        example = '{"N": "12.5"}' if kind == "N" else f"a JSON {expected.__name__}"
        raise Refused(f"{path}: a {NAMES[kind]} is written as {example}.")
    if kind in ("L", "M"):
        members: dict[Any, Any] = value[kind] if kind == "M" else dict(enumerate(value[kind]))
        for name, member in members.items():
            _check(f"{path}.{name}" if kind == "M" else f"{path}[{name}]", member)


def admit(path: str, value: Value) -> None:
    """Put a value into its normal form, in which equal numbers and binaries have equal texts. Raises
    `Refused` with the path of a value that DynamoDB refuses."""
    try:
        admit_value(value)
    except ServiceError as error:
        raise Refused(f"{path}: {error.message or error.code}") from None


def admit_all(item: Item) -> Item:
    """An item, with its values put into their normal form. Raises `Refused`."""
    for name, value in item.items():
        admit(name, value)
    return item
