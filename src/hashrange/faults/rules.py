"""Rules: which requests get a fault, and which effect it has on them.

    throttle("PutItem", table="orders").on_call(3)
    unprocessed(table="orders").with_probability(0.2, seed=7)

A rule is a value. `faults.text` has its form as text, which is the same on the command line, in files and on
the admin plane. Refuses to know how often a rule has matched: `faults.armed` counts.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from hashrange.faults.effects import Effect, Fate, Met, Throttle
from hashrange.operations import REGISTRY
from hashrange.operations.targets import Target

_NAME_NO_ITEM: Final = frozenset({
    "BatchExecuteStatement", "ExecuteStatement", "ExecuteTransaction", "Scan",
})  # fmt: skip
_READ_INDEXES: Final = frozenset({
    "BatchExecuteStatement", "ExecuteStatement", "ExecuteTransaction", "Query", "Scan",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Rule:
    """A fault: an effect, and the requests that get it. Raises ValueError if no request can.

    `operations` (none: all that the effect fits), `table`, `index` and `key` say which requests the rule
    matches. `key` are pairs of a key attribute and the text of its value; an item matches if it has all of
    them. The matching requests are counted from 1. The fault happens to those that `calls` names (none: all),
    after the first `after`, at most `times` times, and each time with `probability`, drawn from a generator
    that starts with `seed`.

    `index` is the index that is read; for a throttled write it is the index that refuses.
    """

    effect: Effect
    operations: tuple[str, ...] = ()
    table: str = ""
    index: str = ""
    key: tuple[tuple[str, str], ...] = ()
    calls: tuple[int, ...] = ()
    after: int = 0
    times: int | None = None
    probability: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        for operation in self.operations:
            self._check(operation)
        if any(call < 1 for call in self.calls):
            raise ValueError("nth counts the requests that a rule matches, from 1 on")
        if self.after < 0 or (self.times is not None and self.times < 1):
            raise ValueError("after is 0 or more, and times is 1 or more")
        if not 0 < self.probability <= 1:
            raise ValueError(f"probability={self.probability} is not above 0 and at most 1, as 0.1 is")

    def _check(self, operation: str) -> None:
        word = self.effect.word
        if operation not in REGISTRY:
            near = difflib.get_close_matches(operation, REGISTRY, 1)
            hint = f"; did you mean {near[0]}?" if near else ", as PutItem and Query are"
            raise ValueError(f"{operation!r} is not an operation that works here{hint}")
        if not self.effect.fits(operation):
            fitting = ", ".join(name for name in REGISTRY if self.effect.fits(name))
            raise ValueError(f"{word} cannot happen to {operation}; it is for {fitting}")
        if self.key and operation in _NAME_NO_ITEM:
            raise ValueError(f"a {operation} names no key, so a rule with a key never matches one")
        if self.index and operation not in _READ_INDEXES and not self._index_refuses(operation):
            raise ValueError(f"a {operation} reads no index; leave index={self.index} out")

    def on_call(self, *numbers: int) -> Rule:
        """The rule for the requests with these numbers, among those that it matches, counted from 1."""
        return replace(self, calls=numbers)

    def after_calls(self, number: int) -> Rule:
        """The rule for the requests that follow the first `number`."""
        return replace(self, after=number)

    def at_most(self, times: int) -> Rule:
        """The rule for the first `times` requests that would get the fault."""
        return replace(self, times=times)

    def with_probability(self, probability: float, *, seed: int = 0) -> Rule:
        """The rule for a share of the requests: equal requests and seeds give equal choices."""
        return replace(self, probability=probability, seed=seed)

    def matches(self, operation: str, targets: tuple[Target, ...]) -> tuple[Target, ...]:
        """The targets of a request that the rule is about."""
        if operation not in self.operations and (self.operations or not self.effect.fits(operation)):
            return ()
        return tuple([target for target in targets if self._matches(operation, target)])

    def _matches(self, operation: str, target: Target) -> bool:
        if self.table and target.table != self.table:
            return False
        if self.index and target.index != self.index and not self._index_refuses(operation):
            return False
        if not self.key:
            return True
        attributes = target.attributes
        return attributes is not None and all(_is(attributes.get(name), text) for name, text in self.key)

    def _index_refuses(self, operation: str) -> bool:
        """Whether `index` is an index that refuses a write; the write itself does not name it."""
        entry = REGISTRY[operation]
        writes = entry.consumes and entry.writes and operation not in _READ_INDEXES
        return writes and isinstance(self.effect, Throttle)

    def meets(self, incident: Met) -> Fate | None:
        """What the effect does to a request."""
        return self.effect.meet(incident)


def _is(value: Any, text: str) -> bool:
    """Whether the value of a key attribute has this text."""
    if not isinstance(value, Mapping):
        return False
    [(kind, content)] = value.items()
    if kind != "N":
        return bool(content == text)
    try:
        return Decimal(content) == Decimal(text)
    except InvalidOperation:
        return False
