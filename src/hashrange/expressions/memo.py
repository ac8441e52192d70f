"""A cache for the evaluation of one request, so that no large value is processed twice.

An expression of 4 KB may name one value of 400 KB hundreds of times, and a page may have 30,000 items. So the
forms of large values that comparisons need are made once: for the request's own values once for the request,
for an item's values once for the item. The map of a request's values carries its `Memo` under a name that no
placeholder has. Without a memo, each form is computed when it is needed.

Rules: a value is found by its `id`. The memo keeps the value as long as its form, so that no other value
gets the same `id`. A memo belongs to one request, and to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hashrange.values import AttributeValue, Item, decode_binary, kind, levels
from hashrange.values.compare import canonical, canonical_members, has_sets

_NAME: Final = ""
LARGE: Final = 32
"""Forms of values with at least this many members or characters are kept."""
BRIEF_CHARS_MAX: Final = 100
"""For one item and an expression up to this length no memo is made, because it has too few operands."""


class Memo:
    """The forms of one request's values, and of the values of the present item."""

    __slots__ = ("_constants", "_item", "_of_constants", "_of_item", "_once", "appended")

    def __init__(self, values: Mapping[str, AttributeValue]) -> None:
        self._constants = frozenset([id(value) for value in values.values()])
        self._of_constants: dict[tuple[str, int], Any] = {}
        self._of_item: dict[tuple[str, int], Any] = {}
        self._item: Item | None = None
        self._once: dict[object, Any] = {}
        self.appended = 0  # members of the lists that one run of an update has put together

    def _kept(self, value: AttributeValue, item: Item) -> dict[tuple[str, int], Any]:
        if id(value) in self._constants:
            return self._of_constants
        if item is not self._item:
            self._item = item
            self._of_item = {}
        return self._of_item

    def canonical(self, value: AttributeValue, item: Item) -> bytes:
        """As `values.compare.canonical`."""
        kept = self._kept(value, item)
        key = ("canonical", id(value))
        found = kept.get(key)
        if found is None:
            found = kept[key] = (canonical(value), value)
        return found[0]

    def binary(self, value: AttributeValue, item: Item) -> bytes:
        """The bytes of a binary value."""
        kept = self._kept(value, item)
        key = ("binary", id(value))
        found = kept.get(key)
        if found is None:
            found = kept[key] = (decode_binary(value["B"]), value)
        return found[0]

    def size(self, value: AttributeValue, item: Item) -> AttributeValue:
        """The result of `size` for a text: its UTF-16 units."""
        kept = self._kept(value, item)
        key = ("size", id(value))
        found = kept.get(key)
        if found is None:
            found = kept[key] = ({"N": str(text_size(value["S"]))}, value)
        return found[0]

    def levels(self, value: AttributeValue, item: Item) -> int:
        """As `values.levels`."""
        kept = self._kept(value, item)
        key = ("levels", id(value))
        found = kept.get(key)
        if found is None:
            found = kept[key] = (levels(value), value)
        return found[0]

    def has(self, value: AttributeValue, part: AttributeValue, item: Item) -> bool | None:
        """Whether a list or set has the member `part`. None at the first call for a value: one search costs
        less than an index of its members."""
        name = kind(value)
        kept = self._kept(value, item)
        key = ("members", id(value))
        found = kept.get(key)
        if found is None:
            kept[key] = (None, value)
            return None
        if found[0] is None:
            found = kept[key] = (_members(value, name), value)
        if name == "L":
            return canonical(part) in found[0]
        return part.get(name[0]) in found[0]

    def choices(self, node: object, names: list[str], values: Mapping[str, AttributeValue]) -> Any:
        """The canonical forms of an IN's constants; None at the first call for this IN."""
        if node not in self._once:
            self._once[node] = None
            return None
        found = self._once[node]
        if found is None:
            found = self._once[node] = frozenset([canonical(values[name]) for name in names])
        return found

    def verdict(self, node: object) -> bool | None:
        """The kept result of a test that only uses constants; None if none is kept."""
        return self._once.get(node)

    def keep_verdict(self, node: object, verdict: bool) -> None:
        """Keep the result of a test that only uses constants."""
        self._once[node] = verdict


def _members(value: AttributeValue, name: str) -> frozenset[Any]:
    content = value[name]
    if name != "L":
        return frozenset(content)
    return canonical_members(content)


def text_size(text: str) -> int:
    """The UTF-16 units of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def with_memo(values: Mapping[str, AttributeValue]) -> Mapping[str, AttributeValue]:
    """The values with a new memo."""
    return {**values, _NAME: {"memo": Memo(values)}}


def memo_of(values: Mapping[str, AttributeValue]) -> Memo | None:
    """The memo that the values carry, if any."""
    found = values.get(_NAME)
    return None if found is None else found["memo"]


def same(one: AttributeValue, other: AttributeValue, item: Item, memo: Memo) -> bool:
    """Like `values.equal`, for values that may be large."""
    name = kind(one)
    if name not in other:
        return False
    content, compared = one[name], other[name]
    if name in ("BOOL", "NULL", "B"):
        return bool(content == compared)
    if len(content) != len(compared):
        return False
    return memo.canonical(one, item) == memo.canonical(other, item)


def contains_in_list(content: list[AttributeValue], part: AttributeValue) -> bool:
    """Whether a list has a member that equals `part`."""
    if not has_sets(part):
        # Plain equality is enough if no value is a set: only sets compare equal in any order.
        return part in content
    wanted = canonical(part)
    name = kind(part)
    for member in content:  # noqa: SIM110 (a generator costs more)
        if name in member and canonical(member) == wanted:
            return True
    return False
