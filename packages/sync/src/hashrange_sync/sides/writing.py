"""Writes that are made only if what they write over is what was read.

An update touches the attributes that differ, under the condition that each still has the value that was
read, so a change of another attribute in the meantime stays. A new item is put only if there is none. These
need no look at what was there.

Most of them can also be said in PartiQL (`Write.statement`). One request takes many statements, each of which
holds or fails by itself.

Two writes can meet an attribute that no condition can name, because nobody knew of it: a deletion, and a put
of more attributes than an expression can compare. They are `blind`: who makes them asks for the old image,
and compares.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, Literal

from hashrange_sync.items import Differences, Item, Value, change_digest, differences, digest, size

_COMPARED_MAX: Final = 120
"""Expressions have at most 300 operators and 4 KB."""
_VALUES_BYTES_MAX: Final = 1_000_000
"""Expressions have values of at most 2 MB."""
_STATEMENT_MAX: Final = 8_000
"""Statements have at most 8,192 characters."""
_STATEMENT_BYTES_MAX: Final = 40_000
"""So a batch of 25 has at most 1 MB."""


@dataclass(frozen=True, slots=True)
class Write:
    """A conditional write of one item, which makes `after` of `before`: the operation, and its request."""

    operation: Literal["put_item", "update_item", "delete_item"]
    request: dict[str, Any]
    blind: bool
    before: Item | None
    after: Item | None

    @property
    def member(self) -> dict[str, Any]:
        """The write in a transaction."""
        return {_MEMBERS[self.operation]: self.request}

    def echo(self) -> bytes:
        """What recognises the write in the stream: the digest of its change, or of its new image if it is
        blind."""
        return digest(self.after) if self.blind else change_digest(self.before, self.after)

    def statement(self, key: Item) -> dict[str, Any] | None:
        """The write of the item with `key` in a batch; None if it does not fit there."""
        table = str(self.request["TableName"])
        if self.blind or self.after is None:
            return None
        if self.before is None:
            return _inserting(table, self.after)
        return _updating(table, key, differences(self.before, self.after))


_MEMBERS: Final = {"put_item": "Put", "update_item": "Update", "delete_item": "Delete"}


def write_of(table: str, key: Item, before: Item | None, after: Item | None) -> Write | None:
    """The write that makes `after` of `before`; None if they are equal."""
    if before is None:
        if after is None:
            return None
        condition = Expression().absent(next(iter(key)))
        request = {"TableName": table, "Item": after, **condition.request()}
        return Write("put_item", request, False, before, after)
    if after is None:
        compared = {name: value for name, value in before.items() if name not in key}
        request = {"TableName": table, "Key": key, **_guard(key, compared.items()).request()}
        return Write("delete_item", request, True, before, after)
    changes = differences(before, after)
    if not changes:
        return None
    if len(changes) > _COMPARED_MAX:
        old = [(name, old) for name, (old, _) in changes.items()]
        request = {"TableName": table, "Item": after, **_guard(key, old).request()}
        return Write("put_item", request, True, before, after)
    expression = _guard(key, [(name, old) for name, (old, _) in changes.items()])
    for name, (_, new) in changes.items():
        expression.assign(name, new)
    request = {"TableName": table, "Key": key, **expression.request()}
    return Write("update_item", request, False, before, after)


def _inserting(table: str, item: Item) -> dict[str, Any] | None:
    members = ",".join(f"{_quoted(name, _TEXT)}:?" for name in item)
    return _statement(f"INSERT INTO {_quoted(table)} VALUE {{{members}}}", list(item.values()))


def _updating(table: str, key: Item, changes: Differences) -> dict[str, Any] | None:
    """An update, which holds only if the item exists."""
    text, values, conditions, compared = f"UPDATE {_quoted(table)}", [], [], []
    for name, (_, new) in changes.items():
        if new is None:
            text += f" REMOVE {_quoted(name)}"
        else:
            text += f" SET {_quoted(name)}=?"
            values.append(new)
    for name, old in [*key.items(), *((name, old) for name, (old, _) in changes.items())]:
        if old is None:
            conditions.append(f"{_quoted(name)} IS MISSING")
        else:
            conditions.append(f"{_quoted(name)}=?")
            compared.append(old)
    return _statement(f"{text} WHERE {' AND '.join(conditions)}", [*values, *compared])


_NAME: Final = '"'
_TEXT: Final = "'"


def _quoted(name: str, mark: str = _NAME) -> str:
    return f"{mark}{name.replace(mark, 2 * mark)}{mark}"


def _statement(text: str, values: list[Value]) -> dict[str, Any] | None:
    fits = len(text) <= _STATEMENT_MAX and size(values) <= _STATEMENT_BYTES_MAX
    return {"Statement": text, "Parameters": values} if fits else None


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
