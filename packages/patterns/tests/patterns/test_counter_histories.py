"""Counters by histories: each event counts once, whatever happens to the requests of those who count it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import rule

from hashrange_patterns import Event, TimedEvent
from hashrange_patterns.counters import COUNTER_ITEM, CounterFlows
from hashrange_patterns.flows import Flow
from hashrange_patterns.once import WEEK_SECONDS
from hashrange_patterns.sharded import Layouts, Moving, ShardedCounterFlows
from hashrange_patterns.visitors import UniqueVisitorFlows
from hashrange_patterns.windows import WindowedCounterFlows
from patterns.steps import BEGIN_SECONDS, Histories, Outcome, check

EVENTS_MAX: Final = 8
PROCESSES: Final = st.integers(0, 1)
NUMBERS: Final = st.lists(st.integers(0, EVENTS_MAX - 1), min_size=1, max_size=5)
BEGIN: Final = datetime.fromtimestamp(BEGIN_SECONDS, UTC)


class Delivering(Histories):
    """A queue that delivers events again and again, to two processes that count them."""

    make: Callable[[int], Any]
    """The counters as a process of its own has them."""
    counting: Callable[[int, list[int]], Flow[list[bool]]]
    """The call by which a process counts events; for each, whether it is new."""

    def __init__(self, client: Any) -> None:
        super().__init__(client)
        self.started: set[int] = set()
        self.counted: Counter[int] = Counter()
        """How often each event was reported as new."""
        self.hidden: set[int] = set()
        """The events of calls that told nobody what they did."""
        self.processes: list[Any] = [self.make(number) for number in range(2)]

    @rule(process=PROCESSES, numbers=NUMBERS)
    def deliver(self, process: int, numbers: list[int]) -> None:
        self.started |= set(numbers)

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                self.counted.update(
                    number for number, new in zip(numbers, outcome.result, strict=True) if new
                )
            else:
                self.hidden |= set(numbers)

        self.start(self.counting(process, numbers), then)

    def verdict(self) -> None:
        for number in self.hidden:  # the queue delivers again what nobody acknowledged
            self.alone(self.counting(1, [number]))
        assert max(self.counted.values(), default=1) == 1
        assert self.started <= self.counted.keys() | self.hidden


class Counting(Delivering):
    """Counters of events, and additions that are not events."""

    added = added_at_most = 0

    def make(self, number: int) -> Any:
        return CounterFlows(self.table, COUNTER_ITEM, "count", WEEK_SECONDS, self.steps.runtime())

    def counting(self, process: int, numbers: list[int]) -> Flow[list[bool]]:
        flow: Flow[list[bool]] = self.processes[process].count(
            Event(f"event{number}", {"/": number + 1, f"/{number % 2}": 1}) for number in numbers
        )
        return flow

    @rule(process=PROCESSES, by=st.integers(1, 9))
    def add(self, process: int, by: int) -> None:
        self.added_at_most += by  # (while it is under way)

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                self.added += by
            elif not outcome.unknown:
                self.added_at_most -= by

        self.start(self.processes[process].add("/", by), then)

    def value(self, name: str) -> int:
        value: int = self.alone(self.processes[0].value(name, consistent=True))
        return value

    def verdict(self) -> None:
        super().verdict()
        assert (
            self.added <= self.value("/") - sum(number + 1 for number in self.started) <= self.added_at_most
        )
        for rest in range(2):
            assert self.value(f"/{rest}") == sum(number % 2 == rest for number in self.started)


class Sharding(Counting):
    """The same in shards that come and go."""

    def make(self, number: int) -> Any:
        return ShardedCounterFlows(super().make(number), 3, Layouts([0.0, 60.0][number]))

    @rule(process=PROCESSES, shards=st.integers(1, 5))
    def reshard(self, process: int, shards: int) -> None:
        self.start(self.processes[process].reshard("/", shards))

    @rule()
    def sum(self) -> None:
        """A sum has all that was counted before it was asked for, and no more than there is after."""
        before = self.value("/")

        def then(outcome: Outcome) -> None:
            if outcome.returned:
                assert before <= outcome.result <= self.value("/")

        self.start(self.processes[1].value("/"), then, Moving)

    def value(self, name: str) -> int:
        value: int = self.alone(self.processes[0].value(name))
        return value

    def verdict(self) -> None:
        super().verdict()
        value = self.value("/")
        self.alone(self.processes[1].reshard("/", 1))
        assert self.alone(self.processes[0].layout("/")).shards == 1
        assert self.alone(self.processes[0].counters.value("/", consistent=True)) == value


class Windows(Delivering):
    """Counters of minutes, hours and days, whose events lie on both sides of their bounds."""

    at = tuple(BEGIN + timedelta(minutes=minutes) for minutes in (0, 1, 59, 60, 1_439, 1_440, 1_500, 4_320))

    def make(self, number: int) -> Any:
        return WindowedCounterFlows(self.table, "W", WEEK_SECONDS, None, self.steps.runtime())

    def counting(self, process: int, numbers: list[int]) -> Flow[list[bool]]:
        flow: Flow[list[bool]] = self.processes[process].count(
            TimedEvent(f"event{number}", self.at[number], {"/": 1 << number}) for number in numbers
        )
        return flow

    @rule(start=st.integers(0, EVENTS_MAX - 1), end=st.integers(0, EVENTS_MAX - 1))
    def total(self, start: int, end: int) -> None:
        """A sum has all that was counted in its range before it was asked for, and each event once."""
        start, end = min(start, end), max(start, end)
        before = {number for number in self.counted if start <= number < end}

        def then(outcome: Outcome) -> None:
            found = {
                number for number in range(EVENTS_MAX) if outcome.returned and outcome.result >> number & 1
            }
            if outcome.returned:
                assert before <= found <= self.started & set(range(start, end))

        self.start(self.processes[0].total("/", self.at[start], self.at[end], consistent=True), then)

    def verdict(self) -> None:
        super().verdict()
        expected = {self.at[number]: 1 << number for number in self.started}
        flows = self.processes[0]
        for start in self.at:
            end = BEGIN + timedelta(days=4)
            total = sum(by for at, by in expected.items() if start <= at < end)
            assert self.alone(flows.total("/", start, end, consistent=True)) == total
        for grain in ("minute", "hour", "day"):
            series = self.alone(flows.series("/", BEGIN, BEGIN + timedelta(days=4), grain, consistent=True))
            assert sum(bucket.count for bucket in series) == sum(expected.values())
            if grain == "minute":
                assert {bucket.start: bucket.count for bucket in series if bucket.count} == expected


class Visiting(Delivering):
    """Visits of a page by some people on two days."""

    def make(self, number: int) -> Any:
        return UniqueVisitorFlows(self.table, "V", WEEK_SECONDS, self.steps.runtime())

    def counting(self, process: int, numbers: list[int]) -> Flow[list[bool]]:
        seen, new = self.processes[process].seen, []
        for number in numbers:
            new += [(yield from seen("/", f"reader{number // 2}", self.at(number)))]
        return new

    @staticmethod
    def at(number: int) -> datetime:
        return BEGIN + timedelta(days=number % 2, hours=number)

    def verdict(self) -> None:
        super().verdict()
        days: dict[date, list[str]] = {BEGIN.date() + timedelta(days=day): [] for day in range(2)}
        for number in sorted(self.started):
            days[self.at(number).date()].append(f"reader{number // 2}")
        for day, readers in days.items():
            assert self.alone(self.processes[0].visitors("/", day)) == readers
            assert self.alone(self.processes[0].count("/", day, consistent=True)) == len(readers)


def test_each_event_counts_once_however_often_it_is_delivered_and_whatever_fails(
    in_process_client: Any,
) -> None:
    check(Counting, in_process_client)


def test_shards_are_added_and_removed_and_each_event_counts_once(in_process_client: Any) -> None:
    check(Sharding, in_process_client)


def test_each_event_counts_once_in_its_minute_its_hour_and_its_day(in_process_client: Any) -> None:
    check(Windows, in_process_client)


def test_each_visitor_counts_once_a_day_whatever_fails(in_process_client: Any) -> None:
    check(Visiting, in_process_client)
