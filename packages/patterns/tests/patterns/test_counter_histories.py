"""Counters by histories: each event counts once, whatever happens to the requests of those who count it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import rule

from hashrange_patterns import Event
from hashrange_patterns.counters import COUNTER_ITEM, CounterFlows
from hashrange_patterns.once import WEEK_SECONDS
from hashrange_patterns.sharded import Layouts, Moving, ShardedCounterFlows
from patterns.steps import Histories, Outcome, check

EVENTS = [Event(f"event{number}", {"/": number + 1, f"/{number % 3}": 1}) for number in range(8)]
NUMBERS = st.integers(0, len(EVENTS) - 1)
NAMES = ["/", "/0", "/1", "/2"]


class Counting(Histories):
    """Events that are delivered again and again, and additions that are not."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.started: set[int] = set()
        self.counted: Counter[int] = Counter()
        """How often each event was reported as new."""
        self.hidden: set[int] = set()
        """The events of calls that told nobody what they did."""
        self.added = self.added_at_most = 0
        self.counters = [self.make(number) for number in range(2)]

    def make(self, number: int) -> Any:
        """The counters as a process of its own has them."""
        return CounterFlows(self.table, COUNTER_ITEM, "count", WEEK_SECONDS, self.steps.runtime())

    @rule(process=st.integers(0, 1), numbers=st.lists(NUMBERS, min_size=1, max_size=5))
    def count(self, process: int, numbers: list[int]) -> None:
        self.started |= set(numbers)

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                self.counted.update(
                    number for number, new in zip(numbers, outcome.result, strict=True) if new
                )
            else:
                self.hidden |= set(numbers)

        self.start(self.counters[process].count([EVENTS[number] for number in numbers]), then)

    @rule(process=st.integers(0, 1), by=st.integers(1, 9))
    def add(self, process: int, by: int) -> None:
        self.added_at_most += by  # (while it is under way)

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                self.added += by
            elif not outcome.unknown:
                self.added_at_most -= by

        self.start(self.counters[process].add("/", by), then)

    def read(self, name: str) -> int:
        value: int = self.alone(self.counters[0].value(name, consistent=True))
        return value

    def verdict(self) -> None:
        for number in self.hidden:  # the queue delivers again what nobody acknowledged
            self.alone(self.counters[1].count([EVENTS[number]]))
        expected: Counter[str] = Counter()
        for number in self.started:
            expected.update(EVENTS[number].amounts)
        assert self.added <= self.read("/") - expected["/"] <= self.added_at_most
        others = NAMES[1:]
        assert {name: self.read(name) for name in others} == {name: expected[name] for name in others}
        assert max(self.counted.values(), default=1) == 1
        assert self.started <= self.counted.keys() | self.hidden


class Sharding(Counting):
    """The same in shards that come and go."""

    def make(self, number: int) -> Any:
        counters = super().make(number)
        return ShardedCounterFlows(counters, 3, Layouts([0.0, 60.0][number]))

    @rule(process=st.integers(0, 1), shards=st.integers(1, 5))
    def reshard(self, process: int, shards: int) -> None:
        self.start(self.counters[process].reshard("/", shards))

    @rule()
    def sum(self) -> None:
        """A sum has all that was counted before it was asked for, and no more than there is after."""
        before = self.read("/")

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                assert before <= outcome.result <= self.read("/")

        self.start(self.counters[1].value("/"), then, Moving)

    def read(self, name: str) -> int:
        value: int = self.alone(self.counters[0].value(name))
        return value

    def verdict(self) -> None:
        super().verdict()
        for name in NAMES:
            value = self.read(name)
            self.alone(self.counters[1].reshard(name, 1))
            assert self.alone(self.counters[0].layout(name)).shards == 1
            assert self.alone(self.counters[0].counters.value(name, consistent=True)) == value


def test_each_event_counts_once_however_often_it_is_delivered_and_whatever_fails(
    in_process_client: Any,
) -> None:
    check(Counting, in_process_client)


def test_shards_come_and_go_and_each_event_counts_once(in_process_client: Any) -> None:
    check(Sharding, in_process_client)
