"""A cache for the evaluation of one request, so that no large value is processed twice.

An expression of 4 KB may name one value of 400 KB hundreds of times, and a page may have 30,000 items. So the
forms of large values that comparisons need are computed once: those of the request's own values once for the
request, those of an item's values once for the item. The map of a request's values carries its `Memo` under a
name that no placeholder has. Without a memo, each form is computed when it is needed.

Rules: a form is cached under the `id` of its value, together with the value, so that no other value can get
the same `id`. A memo belongs to one request, and to one thread at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from hashrange.values import AttributeValue, Item, decode_binary, kind, levels
from hashrange.values.compare import canonical, canonical_members, has_sets

Test: TypeAlias = Callable[[Item, Mapping[str, AttributeValue]], bool]

_NAME: Final = ""
LARGE: Final = 32
"""Forms are cached for values with at least this many members or characters."""
BRIEF_CHARS_MAX: Final = 100
"""An expression up to this length has too few operands to need a memo for a single item."""


class Memo:
    """The forms of one request's values, and of the current item's values."""

    __slots__ = ("_constants", "_item", "_of_constants", "_of_item", "_once", "appended")

    def __init__(self, values: Mapping[str, AttributeValue]) -> None:
        self._constants = frozenset([id(value) for value in values.values()])
        self._of_constants: dict[tuple[str, int], Any] = {}
        self._of_item: dict[tuple[str, int], Any] = {}
        self._item: Item | None = None
        self._once: dict[object, Any] = {}
        self.appended = 0  # members of all lists that one run of an update has joined

    def forget_item(self) -> None:
        """Drop the current item and its forms. A request may have a hundred memos, each with an item of
        400 KB: to free all of them at once would make all other threads wait."""
        self._item = None
        self._of_item = {}

    def _kept(self, value: AttributeValue, item: Item) -> dict[tuple[str, int], Any]:
        if id(value) in self._constants:
            return self._of_constants
        if item is not self._item:
            self._item = item
            self._of_item = {}
        return self._of_item

    def canonical(self, value: AttributeValue, item: Item) -> bytes:
        """As `values.compare.canonical`."""
        forms = self._kept(value, item)
        key = ("canonical", id(value))
        form = forms.get(key)
        if form is None:
            form = forms[key] = (canonical(value), value)
        return form[0]

    def binary(self, value: AttributeValue, item: Item) -> bytes:
        """The bytes of a binary value."""
        forms = self._kept(value, item)
        key = ("binary", id(value))
        form = forms.get(key)
        if form is None:
            form = forms[key] = (decode_binary(value["B"]), value)
        return form[0]

    def size(self, value: AttributeValue, item: Item) -> AttributeValue:
        """The result of `size` for a text: its UTF-16 units."""
        forms = self._kept(value, item)
        key = ("size", id(value))
        form = forms.get(key)
        if form is None:
            form = forms[key] = ({"N": str(text_size(value["S"]))}, value)
        return form[0]

    def levels(self, value: AttributeValue, item: Item) -> int:
        """As `values.levels`."""
        forms = self._kept(value, item)
        key = ("levels", id(value))
        form = forms.get(key)
        if form is None:
            form = forms[key] = (levels(value), value)
        return form[0]

    def has(self, value: AttributeValue, part: AttributeValue, item: Item) -> bool | None:
        """Whether a list or set has the member `part`. None at the first call for a value: one search costs
        less than an index of its members."""
        name = kind(value)
        forms = self._kept(value, item)
        key = ("members", id(value))
        form = forms.get(key)
        if form is None:
            forms[key] = (None, value)
            return None
        if form[0] is None:
            form = forms[key] = (_members(value, name), value)
        if name == "L":
            return canonical(part) in form[0]
        return part.get(name[0]) in form[0]

    def choices(self, node: object, names: list[str], values: Mapping[str, AttributeValue]) -> Any:
        """The canonical forms of an IN's constants; None at the first call for this IN."""
        if node not in self._once:
            self._once[node] = None
            return None
        forms = self._once[node]
        if forms is None:
            forms = self._once[node] = frozenset([canonical(values[name]) for name in names])
        return forms

    def verdict(self, node: object) -> bool | None:
        """The cached result of a test that only uses constants; None if the test has not run."""
        return self._once.get(node)

    def keep_verdict(self, node: object, verdict: bool) -> None:
        """Cache the result of a test that only uses constants."""
        self._once[node] = verdict


def _members(value: AttributeValue, name: str) -> frozenset[Any]:
    content = value[name]
    if name != "L":
        return frozenset(content)
    return canonical_members(content)


def text_size(text: str) -> int:
    """The UTF-16 units of a text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def with_memo(values: Mapping[str, AttributeValue]) -> dict[str, AttributeValue]:
    """The values with a new memo."""
    return {**values, _NAME: {"memo": Memo(values)}}


def memo_of(values: Mapping[str, AttributeValue]) -> Memo | None:
    """The memo that the values carry, if any."""
    carrier = values.get(_NAME)
    return None if carrier is None else carrier["memo"]


def forgetting(test: Test) -> Test:
    """The test of a condition, for a write: when it has run, the memo of its values drops the item. A filter
    keeps it, because a projection may need the same forms."""

    def run(item: Item, values: Mapping[str, AttributeValue]) -> bool:
        verdict = test(item, values)
        memo = memo_of(values)
        if memo is not None:
            memo.forget_item()
        return verdict

    return run


def same(first: AttributeValue, second: AttributeValue, item: Item, memo: Memo) -> bool:
    """Like `values.equal`, for values that may be large."""
    name = kind(first)
    if name not in second:
        return False
    content, compared = first[name], second[name]
    if name in ("BOOL", "NULL", "B"):
        return bool(content == compared)
    if len(content) != len(compared):
        return False
    return memo.canonical(first, item) == memo.canonical(second, item)


def contains_in_list(content: list[AttributeValue], part: AttributeValue) -> bool:
    """Whether a list has a member that equals `part`."""
    if not has_sets(part):
        # Plain equality is enough if no value is a set: only sets compare equal in any order.
        return part in content
    form = canonical(part)
    name = kind(part)
    for member in content:  # noqa: SIM110 (a generator costs more)
        if name in member and canonical(member) == form:
            return True
    return False
