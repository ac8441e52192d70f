"""Writes that are made only if what they write over is what was read.

An update touches the attributes that differ, under the condition that each still has the value that was
read, so a change of another attribute in the meantime stays. A new item is put only if there is none. These
need no look at what was there.

Two writes can meet an attribute that no condition can name, because nobody knew of it: a deletion, and a put
of more attributes than an expression can compare. They are `blind`: who makes them asks for the old image,
and compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from hashrange_sync.items import Item, Value, change_digest, differences, digest, size

_COMPARED_MAX: Final = 120
"""Expressions have at most 300 operators and 4 KB."""
_VALUES_BYTES_MAX: Final = 1_000_000
"""Expressions have values of at most 2 MB."""


@dataclass(frozen=True, slots=True)
class Write:
    """A conditional write of one item: the operation, and its request. `member` is what it is in a
    transaction.

    echo: recognises the write in the stream: the digest of its change, or of its new image if it is blind.
    """

    operation: Literal["put_item", "update_item", "delete_item"]
    request: dict[str, Any]
    blind: bool
    echo: bytes

    @property
    def member(self) -> dict[str, Any]:
        """The write in a transaction."""
        return {_MEMBERS[self.operation]: self.request}


_MEMBERS: Final = {"put_item": "Put", "update_item": "Update", "delete_item": "Delete"}


def write_of(table: str, key: Item, before: Item | None, after: Item | None) -> Write | None:
    """The write that makes `after` of `before`; None if they are equal."""
    changes = differences(before, after)
    if before is None and after is None:
        return None
    if before is None and after is not None:
        condition = Expression().absent(next(iter(key)))
        request = {"TableName": table, "Item": after, **condition.request()}
        return Write("put_item", request, False, change_digest(None, after))
    if after is None:
        compared = {name: value for name, value in (before or {}).items() if name not in key}
        request = {"TableName": table, "Key": key, **_guard(key, compared.items()).request()}
        return Write("delete_item", request, True, b"")
    if not changes:
        return None
    if len(changes) > _COMPARED_MAX:
        old = [(name, old) for name, (old, _) in changes.items()]
        request = {"TableName": table, "Item": after, **_guard(key, old).request()}
        return Write("put_item", request, True, digest(after))
    expression = _guard(key, [(name, old) for name, (old, _) in changes.items()])
    for name, (_, new) in changes.items():
        expression.assign(name, new)
    request = {"TableName": table, "Key": key, **expression.request()}
    return Write("update_item", request, False, change_digest(before, after))


def _guard(key: Item, values: Iterable[tuple[str, Value | None]]) -> Expression:
    """The condition that the item exists, and has these values; of very many only the first."""
    expression = Expression().exists(next(iter(key)))
    room = _VALUES_BYTES_MAX
    for number, (name, value) in enumerate(values):
        room -= size(value)
        if number == _COMPARED_MAX or room < 0:
            break
        expression.equal(name, value)
    return expression


class Expression:
    """A condition, and an update, with short names for attributes and values."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}
        self._values: dict[str, Value] = {}
        self._conditions: list[str] = []
        self._set: list[str] = []
        self._remove: list[str] = []

    def _name(self, name: str) -> str:
        return self._names.setdefault(name, f"#{len(self._names):x}")

    def _value(self, value: Value) -> str:
        short = f":{len(self._values):x}"
        self._values[short] = value
        return short

    def exists(self, name: str) -> Expression:
        """The item has the attribute."""
        self._conditions.append(f"attribute_exists({self._name(name)})")
        return self

    def absent(self, name: str) -> Expression:
        """The item, if any, has no such attribute."""
        self._conditions.append(f"attribute_not_exists({self._name(name)})")
        return self

    def equal(self, name: str, value: Value | None) -> Expression:
        """The attribute has the value; None: it is absent."""
        if value is None:
            return self.absent(name)
        self._conditions.append(f"{self._name(name)}={self._value(value)}")
        return self

    def assign(self, name: str, value: Value | None) -> Expression:
        """Set the attribute; None: remove it."""
        if value is None:
            self._remove.append(self._name(name))
        else:
            self._set.append(f"{self._name(name)}={self._value(value)}")
        return self

    def request(self) -> dict[str, Any]:
        """The members of a request."""
        made: dict[str, Any] = {"ConditionExpression": " AND ".join(self._conditions)}
        update = [f"SET {','.join(self._set)}"] if self._set else []
        update += [f"REMOVE {','.join(self._remove)}"] if self._remove else []
        if update:
            made["UpdateExpression"] = " ".join(update)
        made["ExpressionAttributeNames"] = self._names and {
            short: name for name, short in self._names.items()
        }
        if self._values:
            made["ExpressionAttributeValues"] = self._values
        return made
