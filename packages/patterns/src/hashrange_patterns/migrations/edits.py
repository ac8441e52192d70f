"""What a change makes of an item, and the conditional write of this.

A change is a function of an item that settles: made of its own result, it gives the same. So it needs no mark
in the items, may begin again after a kill, and leaves alone what a newer program wrote. `edit_of` makes each
change twice, and refuses one that does not settle.

The write's condition is that the attributes which the change saw are unchanged, so nothing that others write
meanwhile is lost. An item of `entities` gets a new version, so that no update of an older read overwrites it.

Refuses to know requests and tables' definitions.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from hashrange_patterns.entities.attributes import attributes, plain, same
from hashrange_patterns.entities.model import SHAPE, VERSION, AnyEntity, kind_of, schema_of
from hashrange_patterns.tables import Item, Table

Values: TypeAlias = dict[str, Any]
"""An item as Python values: whole numbers are int, other numbers Decimal."""
DELETE: Final[Values] = {}
"""What a change returns for an item that is to be deleted."""
Making: TypeAlias = Callable[[Item], Item]
"""A change of items as the client gives and takes them; an empty item is deleted."""


class Unsettled(Exception):
    """A change gives something else if it is made of its own result: it would not survive a repetition."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of each item: `up`, and back `down`, if there is a way.

    Both are functions of an item's values, keys included, that return the new values, or `DELETE`. They must
    not change keys, and must settle: what they have made they return as it is. With `reads` they see these
    attributes and the keys only, and may write only these: then others may write the other attributes at any
    time without making the change start again.
    """

    up: Callable[[Values], Values]
    down: Callable[[Values], Values] | None = None
    reads: Sequence[str] | None = None

    def making(self, table: Table, *, up: bool) -> Making:
        """The change as a function of items."""
        function = self.up if up else self.down
        assert function is not None

        def make(item: Item) -> Item:
            values = function(copy.deepcopy(plain(item)))
            if not isinstance(values, dict):
                raise TypeError(
                    f"{getattr(function, '__name__', 'the change')} returned {values!r}: "
                    "return the item's values, or DELETE"
                )
            return attributes(values)

        return make

    @property
    def goes_back(self) -> bool:
        """Whether there is a way back."""
        return self.down is not None


@dataclass(frozen=True, slots=True)
class Shape:
    """Write the items of a class of entities in its newest shape, as an update would: see `Entity`.

    Programs convert the items that they read, so they need not wait for this step.
    """

    kind: type[AnyEntity]
    reads: Sequence[str] | None = None

    def making(self, table: Table, *, up: bool) -> Making:
        """The change as a function of items."""
        schema = schema_of(self.kind)

        def make(item: Item) -> Item:
            shape = int(item.get(SHAPE, {}).get("N", "0"))
            if kind_of(table, item, [self.kind]) is None or shape >= len(schema.migrations):
                return item
            changed, removed = schema.changes(table, schema.decode(table, item), item)
            return {name: value for name, value in item.items() if name not in removed} | changed

        return make

    @property
    def goes_back(self) -> bool:
        """Whether there is a way back."""
        return False


@dataclass(frozen=True, slots=True)
class Edit:
    """An item's attributes that the change saw, and what it makes of them: nothing to delete the item."""

    keys: tuple[str, ...]
    before: Item
    after: Item

    @property
    def key(self) -> Item:
        """The item's key."""
        return {name: self.before[name] for name in self.keys}

    @property
    def differences(self) -> dict[str, tuple[Any, Any]]:
        """By attribute, the values before and after; None for none."""
        before, after = plain(self.before), plain(self.after)
        names = (*self.before, *(name for name in self.after if name not in self.before))
        return {
            name: (before.get(name), after.get(name))
            for name in names
            if not _same_value(self.before.get(name), self.after.get(name))
        }

    def write(self, table_name: str, version: str) -> tuple[str, dict[str, Any]]:
        """The operation, and its parameters: an update, or a delete; `version` is an entity's new one."""
        names: dict[str, str] = {}
        values: Item = {}

        def name(attribute: str) -> str:
            return names.setdefault(attribute, f"#a{len(names)}")

        def value(given: Any) -> str:
            values[f":v{len(values)}"] = given
            return f":v{len(values) - 1}"

        after = self.after
        if after and VERSION in self.before:
            after = {**after, VERSION: {"S": version}}
        changed = {one: given for one, given in after.items() if not _same_value(self.before.get(one), given)}
        removed = [one for one in self.before if one not in after]
        conditions = [f"attribute_exists({name(self.keys[0])})"]
        conditions += [
            f"{name(one)} = {value(given)}" for one, given in self.before.items() if one not in self.keys
        ]
        conditions += [f"attribute_not_exists({name(one)})" for one in changed if one not in self.before]
        parameters: dict[str, Any] = {"TableName": table_name, "Key": self.key}
        if after:
            update = "SET " + ", ".join(f"{name(one)} = {value(changed[one])}" for one in changed)
            parameters["UpdateExpression"] = (update if changed else "") + (
                " REMOVE " + ", ".join(map(name, removed)) if removed else ""
            )
        parameters["ConditionExpression"] = " AND ".join(conditions)
        parameters["ExpressionAttributeNames"] = {short: one for one, short in names.items()}
        if values:
            parameters["ExpressionAttributeValues"] = values
        return ("update_item" if after else "delete_item"), parameters


def edit_of(item: Item, keys: tuple[str, ...], make: Making, reads: Sequence[str] | None) -> Edit | None:
    """What `make` does to `item`; None if nothing.

    Raises `Unsettled`, and ValueError if the change touches a key, or an attribute that it does not read.
    """
    if reads is not None:
        seen = {*keys, *reads, VERSION}
        item = {name: value for name, value in item.items() if name in seen}
    after = make(item)
    if same_items(item, after):
        return None
    edit = Edit(keys, item, after)
    if not after:
        return edit
    if any(not _same_value(item[name], after.get(name)) for name in keys):
        raise ValueError(
            f"the change gives {plain(edit.key)} another key, which would be another item: "
            "put the new item in the program, and DELETE the old one here"
        )
    if reads is not None and (unread := after.keys() - {*keys, *reads, VERSION}):
        raise ValueError(f"the change writes {', '.join(sorted(unread))}, which `reads` does not name")
    if not same_items(after, again := make(after)):
        different = Edit(keys, after, again).differences
        raise Unsettled(
            f"made of its own result, the change of {plain(edit.key)} gives something else: {different}. "
            "Let it return an item that it has changed as it is, for example by a new attribute's name"
        )
    return edit


def same_items(first: Mapping[str, Any], second: Mapping[str, Any]) -> bool:
    """Whether two items are equal; their order and the digits of their numbers do not matter."""
    return first.keys() == second.keys() and all(same(first[name], second[name]) for name in first)


def _same_value(first: Item | None, second: Item | None) -> bool:
    if first is None or second is None:
        return first is second
    return same(first, second)
