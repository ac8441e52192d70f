"""The rules that are in force on a database: `Faults`. It alone decides what happens to a request.

    with database.faults(throttle("PutItem", table="orders").on_call(3)) as [throttled]:
        ...
    assert throttled.fired == 1

Thread-safe. While there are no rules, the database does not call this module at all.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hashrange.clock import Clock, ManualClock, VirtualClock
from hashrange.faults.effects import Fate, Latency, Met
from hashrange.faults.rules import Rule
from hashrange.faults.text import parse, show
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.operations.context import NONE_LEFT, OPERATOR, Caller, Request
from hashrange.operations.targets import Target, targets


class Armed:
    """A rule that is in force: its `number` on this database, how many requests it matched (`met`), and on
    how many of these it `fired`."""

    __slots__ = ("_random", "fired", "matched", "number", "rule")

    def __init__(self, number: int, rule: Rule) -> None:
        self.number = number
        self.rule = rule
        self.matched = 0
        self.fired = 0
        self._random = random.Random(rule.seed)

    def __repr__(self) -> str:
        return f"<fault {self.number}: {show(self.rule)}; matched {self.matched}, fired {self.fired}>"

    def meet(
        self, operation: str, request: Request, caller: Caller, now: float, targets: tuple[Target, ...]
    ) -> Fate | None:
        """What the rule does to a request; None: nothing."""
        rule = self.rule
        matching = rule.matches(operation, targets)
        if not matching:
            return None
        self.matched += 1
        if rule.calls and self.matched not in rule.calls:
            return None
        if self.matched <= rule.after or self.fired == rule.times:
            return None
        if rule.probability < 1 and self._random.random() >= rule.probability:
            return None
        call = Met(operation, request, caller, now, targets, matching, rule.index, bool(rule.key))
        fate = rule.effect.meet(call)
        if fate is not None:
            self.fired += 1
        return fate


class Faults(Observer):
    """The rules of a database, whose clock `clock` returns. `observe` begins and ends the observing of the
    database's requests."""

    name = "fault rules"
    rank = 10

    def __init__(self, clock: Callable[[], Clock], observe: Callable[[Observer, bool], None]) -> None:
        self._clock_of = clock
        self._observe = observe
        self._lock = threading.Lock()
        self._armed: tuple[Armed, ...] = ()
        self._last = 0

    @contextmanager
    def __call__(self, *rules: Rule | str) -> Iterator[tuple[Armed, ...]]:
        """Keep the rules in force while the block runs; the block gets them with their counts."""
        armed = tuple(self._arm(rules))
        try:
            yield armed
        finally:
            for rule_in_force in armed:
                self.remove(rule_in_force)

    def __len__(self) -> int:
        return len(self._armed)

    def __iter__(self) -> Iterator[Armed]:
        return iter(self._armed)

    def add(self, rule: Rule | str) -> Armed:
        """Put a rule in force until it is removed. Raises ValueError for a rule that cannot be."""
        return self._arm((rule,))[0]

    def remove(self, armed: Armed | int) -> bool:
        """Remove a rule, given itself or its number. Returns whether it was in force."""
        with self._lock:
            remaining = tuple(
                [other for other in self._armed if other is not armed and other.number != armed]
            )
            was_in_force = len(remaining) < len(self._armed)
            self._armed = remaining
        self._observe(self, len(self._armed) > 0)
        return was_in_force

    def clear(self) -> None:
        """Remove all rules."""
        with self._lock:
            self._armed = ()
        self._observe(self, len(self._armed) > 0)

    def _arm(self, rules: tuple[Rule | str, ...]) -> list[Armed]:
        wanted = [parse(rule) if isinstance(rule, str) else rule for rule in rules]
        for rule in wanted:
            effect = rule.effect
            is_virtual = isinstance(effect, Latency) and effect.virtual
            if is_virtual and not isinstance(self._clock_of(), VirtualClock | ManualClock):
                raise ValueError(
                    f"{show(rule)!r} moves a virtual clock, and the database runs on the machine's; start it "
                    "with a VirtualClock (hashrange serve --virtual-clock), or leave virtual=yes out"
                )
        armed = []
        with self._lock:
            for rule in wanted:
                self._last += 1
                armed.append(Armed(self._last, rule))
            self._armed += tuple(armed)
        self._observe(self, len(self._armed) > 0)
        return armed

    def decides(self, seen: ObservedRequest) -> frozenset[int]:
        """Let the rules decide what happens to a request."""
        fate = self.decide(seen.operation, seen.request, seen.caller)
        if fate is None:
            return NONE_LEFT
        seen.by_rule = True
        seen.keep(self, fate)
        if fate.error is not None and not fate.performed:
            seen.refusal = fate.error
        return fate.left

    def settles(self, seen: ObservedRequest) -> None:
        """Replace the outcome of a request, or delay it, as the rules have decided."""
        fate: Fate | None = seen.kept(self)
        if fate is None:
            return
        seen.delay_seconds += fate.delay_seconds
        if fate.error is not None:
            seen.error = fate.error
        if fate.virtual_seconds:
            self.pass_time(fate.virtual_seconds)

    def decide(self, operation: str, request: Request, caller: Caller) -> Fate | None:
        """What happens to a well-formed request; None: it is just answered.

        Every rule counts every request that it matches. If several fire, their delays add up, and the first
        of their errors is the answer. Requests of the admin plane meet no rule, and are not counted: faults
        are for programs, and an operator has to see what they do.
        """
        if caller.access_key == OPERATOR:
            return None
        now = self._clock_of().now()
        targets_ = targets(operation, request)
        fate: Fate | None = None
        with self._lock:
            for armed in self._armed:
                further = armed.meet(operation, request, caller, now, targets_)
                if further is not None:
                    fate = further if fate is None else fate.joined(further)
        return fate

    def pass_time(self, seconds: float) -> None:
        """Move the virtual clock on."""
        clock = self._clock_of()
        assert isinstance(clock, VirtualClock | ManualClock)
        clock.advance(seconds)
