"""Expressions of changes: the condition that an item is as it was shown, and the update of what changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

from hashrange import limits
from hashrange_console.differences import Difference, Path, differences, whole
from hashrange_console.reach import Refused
from hashrange_console.values import Item, Value

TERMS_MAX: Final = 140
"""The most attributes that a condition compares: an expression has at most 300 operators."""
_TOO_MANY: Final = (
    "These are too many changes for one UpdateItem, whose expression has at most 4 KB. "
    "Save some of them first."
)


@dataclass(slots=True)
class Placeholders:
    """The names and values of an expression."""

    names: dict[str, str] = field(default_factory=dict)
    values: Item = field(default_factory=dict)
    _known: dict[str, str] = field(default_factory=dict)

    def name(self, name: str) -> str:
        placeholder = self._known.setdefault(name, f"#a{len(self._known)}")
        self.names[placeholder] = name
        return placeholder

    def value(self, value: Value) -> str:
        placeholder = f":v{len(self.values)}"
        self.values[placeholder] = value
        return placeholder

    def path(self, path: Path) -> str:
        text = ""
        for step in path:
            if isinstance(step, int):
                text += f"[{step}]"
            else:
                text += f".{self.name(step)}" if text else self.name(step)
        return text

    def members(self) -> dict[str, Any]:
        """The members of a request."""
        members: dict[str, Any] = {"ExpressionAttributeNames": self.names}
        return members | ({"ExpressionAttributeValues": self.values} if self.values else {})


def update(table: str, keys: list[str], shown: Item, edited: Item) -> dict[str, Any]:
    """The UpdateItem that makes an item as it was shown what it was edited to; both are in normal form.

    It writes the changed paths, or the changed attributes where the paths are too many. Raises `Refused`.
    """
    if any(shown.get(name) != edited.get(name) for name in keys):
        raise Refused("The key of an item cannot be changed. Make a new item, and delete this one.")
    changed = whole(shown, edited)
    if not changed:
        raise Refused("There are no changes to save.")
    for changes in (differences(shown, edited), changed):
        request = _update(table, keys, shown, changes)
        if len(request["UpdateExpression"]) <= limits.EXPRESSION_BYTES_MAX:
            return request
    raise Refused(_TOO_MANY)


def _update(table: str, keys: list[str], shown: Item, changes: list[Difference]) -> dict[str, Any]:
    placeholders = Placeholders()
    condition = as_shown(shown, keys, {str(change.path[0]) for change in changes}, placeholders)
    sets = [
        f"{placeholders.path(change.path)} = {placeholders.value(change.after)}"
        for change in changes
        if change.after is not None
    ]
    removes = [placeholders.path(change.path) for change in changes if change.after is None]
    parts = [f"SET {', '.join(sets)}" if sets else "", f"REMOVE {', '.join(removes)}" if removes else ""]
    return {
        "TableName": table,
        "Key": {name: shown[name] for name in keys},
        "UpdateExpression": " ".join(part for part in parts if part),
        "ConditionExpression": condition,
        **placeholders.members(),
    }


def deletion(table: str, keys: list[str], shown: Item) -> dict[str, Any]:
    """The DeleteItem of an item, on the condition that it is as it was shown."""
    placeholders = Placeholders()
    return {
        "TableName": table,
        "Key": {name: shown[name] for name in keys},
        "ConditionExpression": as_shown(shown, keys, set(), placeholders),
        **placeholders.members(),
    }


def creation(table: str, keys: list[str], item: Item) -> dict[str, Any]:
    """The PutItem of an item, on the condition that there is none."""
    return {
        "TableName": table,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(#a0)",
        "ExpressionAttributeNames": {"#a0": keys[0]},
    }


def as_shown(shown: Item, keys: list[str], changed: set[str], placeholders: Placeholders) -> str:
    """The condition that an item is as it was shown. Of an item with very many attributes it compares only
    the changed ones, for which alone an expression has room."""
    compared = [name for name in shown if name not in keys]
    if len(shown) + len(changed) > TERMS_MAX:
        compared = [name for name in compared if name in changed]
    terms = [
        f"{placeholders.name(name)} = {placeholders.value(shown[name])}" for name in [*keys, *compared]
    ]
    terms += [f"attribute_not_exists({placeholders.name(name)})" for name in sorted(changed - set(shown))]
    return " AND ".join(terms)
