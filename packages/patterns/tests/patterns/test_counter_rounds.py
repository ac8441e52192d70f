"""Counters under many faults at once, by random rounds.

Duplicates, disorder, faults, lost answers, deaths, resharding. Events come from a queue that delivers at
least once: a delivery that was not acknowledged comes again, and some come twice or in any order without a
reason. Whatever happens, in the end every event counted once.

`make pattern-rounds ROUNDS=200` makes as many rounds of each kind.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

import pytest

from hashrange_patterns import Event, Table, TimedEvent
from hashrange_patterns.counters import COUNTER_ITEM, CounterFlows
from hashrange_patterns.flows import Call, Flow
from hashrange_patterns.sharded import Layouts, ShardedCounterFlows
from hashrange_patterns.visitors import ApproximateVisitorFlows, UniqueVisitorFlows
from hashrange_patterns.windows import WindowedCounterFlows
from patterns.simulation import Simulation

T = TypeVar("T")
WEEK = 7 * 86_400


class Deliveries(Generic[T]):
    """A queue that delivers at least once, in no order."""

    def __init__(self, simulation: Simulation, messages: Sequence[T]) -> None:
        self._chance = simulation.chance
        self._waiting = list(messages)
        self.failed: list[T] = []
        """What was in the hands of a worker that failed or died."""
        self._waiting += self._chance.choices(messages, k=len(messages) // 3)

    def worker(self, work: Callable[[list[T]], Flow[Any]], batch_max: int) -> Callable[[], Flow[None]]:
        """A worker that takes batches until none are left; what it fails at, or dies over, comes again."""

        def run() -> Flow[None]:
            while self._waiting:
                self._chance.shuffle(self._waiting)
                size = self._chance.randint(1, batch_max)
                batch, self._waiting = self._waiting[:size], self._waiting[size:]
                try:
                    yield from work(batch)
                except (Exception, GeneratorExit) as end:
                    self._waiting += batch
                    self.failed += batch
                    if isinstance(end, GeneratorExit):
                        raise
                else:
                    if self._chance.random() < 0.05:  # the acknowledgement is lost
                        self._waiting += batch

        return run

    def deliver(self, simulation: Simulation, work: Callable[[list[T]], Flow[Any]], workers: int = 3) -> None:
        """Let workers loose on the queue, and at last one that meets no faults."""
        for _ in range(workers):
            simulation.start(self.worker(work, batch_max=12))
        simulation.run()
        simulation.calm()
        simulation.start(self.worker(work, batch_max=200))
        simulation.run()


def make_events(simulation: Simulation, number: int, names: Sequence[str]) -> list[Event]:
    """Events with ids of their own; each adds to one or some of the counters."""
    chance = simulation.chance
    return [
        Event(
            f"{chance.getrandbits(48):012x}-{serial}",
            {name: chance.randint(1, 5) for name in chance.sample(names, chance.randint(1, len(names)))},
        )
        for serial in range(number)
    ]


def totals(events: Sequence[Event]) -> Counter[str]:
    total: Counter[str] = Counter()
    for event in events:
        total.update(event.amounts)
    return total


def test_events_count_once(client: Any, table: Table, rounds: range) -> None:
    for seed in rounds:
        simulation = Simulation(client, seed)
        flows = CounterFlows(table, COUNTER_ITEM, f"count{seed}", WEEK, simulation.runtime())
        names = ["/", "/about", "/news"]
        events = make_events(simulation, 60, names)
        returned: Counter[str] = Counter()

        def work(
            batch: list[Event], flows: CounterFlows = flows, returned: Counter[str] = returned
        ) -> Flow[None]:
            counted = yield from flows.count(batch)
            returned.update(event.id for event, new in zip(batch, counted, strict=True) if new)

        deliveries = Deliveries(simulation, events)
        deliveries.deliver(simulation, work)
        values = simulation.perform(flows.values(names, consistent=True))
        assert values == dict(totals(events)), seed
        assert max(returned.values()) == 1, seed
        # Although answers are lost, one of the workers was told that it counted the event.
        assert {event.id for event in events} - returned.keys() <= {
            event.id for event in deliveries.failed
        }, seed


def test_an_add_counts_what_was_answered_and_perhaps_what_was_not(
    client: Any, table: Table, rounds: range
) -> None:
    for seed in rounds:
        simulation = Simulation(client, seed, death_rate=0.0)
        flows = CounterFlows(table, COUNTER_ITEM, f"count{seed}", WEEK, simulation.runtime())
        answered = [0]

        def adds(flows: CounterFlows = flows, answered: list[int] = answered) -> Flow[None]:
            for _ in range(20):
                try:
                    yield from flows.add("/")
                except Exception:
                    continue
                answered[0] += 1

        for _ in range(3):
            simulation.start(adds)
        simulation.run()
        unknown = simulation.faults.unknown
        simulation.calm()
        value = simulation.perform(flows.value("/", consistent=True))
        assert answered[0] <= value <= answered[0] + unknown, seed
        assert value <= 60, seed


def closed_shards(flows: ShardedCounterFlows) -> Flow[list[bool]]:
    """For each shard that writers may choose whether it refuses them."""
    layout = yield from flows.layout("/")
    closed = []
    for shard in range(layout.open):
        key = flows.counters.table.key(flows.shard("/", shard))
        parameters = {"TableName": flows.counters.table.name, "Key": key, "ConsistentRead": True}
        answer = yield Call("get_item", parameters)
        closed.append("Item" not in answer or "closed" in answer["Item"])
    return closed


def test_shards_come_and_go_while_events_count(client: Any, table: Table, rounds: range) -> None:
    for seed in rounds:
        simulation = Simulation(client, seed)

        def flows(simulation: Simulation = simulation, seed: int = seed) -> ShardedCounterFlows:
            """As a process of its own would have them, with what it knows of the layout."""
            counters = CounterFlows(table, COUNTER_ITEM, f"count{seed}", WEEK, simulation.runtime())
            return ShardedCounterFlows(counters, 3, Layouts(simulation.chance.choice([0.0, 0.5, 60.0])))

        events = [Event(f"event{number}", {"/": number % 7 + 1}) for number in range(80)]
        total = sum(totals(events).values())
        seen: list[int] = []
        writers = [flows() for _ in range(3)]

        def work(
            batch: list[Event],
            simulation: Simulation = simulation,
            writers: list[ShardedCounterFlows] = writers,
        ) -> Flow[None]:
            yield from simulation.chance.choice(writers).count(batch)

        def reshard(
            simulation: Simulation = simulation,
            flows: Callable[[], ShardedCounterFlows] = flows,
        ) -> Flow[None]:
            for _ in range(8):
                try:
                    yield from flows().reshard("/", simulation.chance.randint(1, 6))
                except Exception:
                    continue

        def read(flows: Callable[[], ShardedCounterFlows] = flows, seen: list[int] = seen) -> Flow[None]:
            for _ in range(40):
                try:
                    seen.append((yield from flows().value("/")))
                except Exception:
                    continue

        simulation.start(reshard)
        simulation.start(reshard)
        simulation.start(read, mortal=False)
        Deliveries(simulation, events).deliver(simulation, work)
        # One reader, one value after the other: a sum never falls, nor passes what there is.
        assert seen == sorted(seen), seed
        assert max(seen, default=0) <= total, seed
        assert simulation.perform(flows().value("/")) == total, seed
        assert not any(simulation.perform(closed_shards(flows()))), seed
        simulation.perform(flows().reshard("/", 1))
        assert simulation.perform(flows().layout("/")).shards == 1
        assert simulation.perform(flows().counters.value("/", consistent=True)) == total, seed


def test_windows_add_up(client: Any, table: Table, rounds: range) -> None:
    for seed in rounds:
        simulation = Simulation(client, seed)
        chance = simulation.chance
        flows = WindowedCounterFlows(table, f"W{seed}", WEEK, None, simulation.runtime())
        begin = datetime.fromtimestamp(simulation.time, UTC).replace(second=0, microsecond=0)
        events = [
            TimedEvent(
                f"event{number}",
                begin + timedelta(seconds=chance.randrange(3 * 86_400)),
                {"/": number % 5 + 1},
            )
            for number in range(60)
        ]
        Deliveries(simulation, events).deliver(simulation, flows.count)
        for _ in range(12):
            start, end = sorted(begin + timedelta(minutes=chance.randrange(4 * 1440)) for _ in range(2))
            expected = sum(event.amounts["/"] for event in events if start <= event.at < end)
            assert simulation.perform(flows.total("/", start, end)) == expected, (seed, start, end)
        midnight = begin.replace(hour=0, minute=0)
        for grain in ("minute", "hour", "day"):
            end = midnight + timedelta(days=5)
            series = simulation.perform(flows.series("/", midnight, end, grain))
            assert sum(bucket.count for bucket in series) == sum(event.amounts["/"] for event in events), seed
            assert len(series) == {"minute": 7200, "hour": 120, "day": 5}[grain]


def test_visitors_count_once_a_day(client: Any, table: Table, rounds: range) -> None:
    for seed in rounds:
        simulation = Simulation(client, seed)
        chance = simulation.chance
        flows = UniqueVisitorFlows(table, f"V{seed}", WEEK, simulation.runtime())
        begin = datetime.fromtimestamp(simulation.time, UTC)
        visits = [
            (f"reader{chance.randrange(20)}", begin + timedelta(hours=chance.randrange(60)))
            for _ in range(80)
        ]

        def work(batch: list[tuple[str, datetime]], flows: UniqueVisitorFlows = flows) -> Flow[None]:
            for visitor, at in batch:
                yield from flows.seen("/", visitor, at)

        Deliveries(simulation, visits).deliver(simulation, work)
        for day in {at.date() for _, at in visits}:
            expected = sorted({visitor for visitor, at in visits if at.date() == day})
            assert simulation.perform(flows.visitors("/", day)) == expected, seed
            assert simulation.perform(flows.count("/", day, consistent=True)) == len(expected), seed


def test_sketches_take_in_every_visitor(client: Any, table: Table, rounds: range) -> None:
    datasketches = pytest.importorskip("datasketches")
    for seed in rounds:
        simulation = Simulation(client, seed)
        flows = ApproximateVisitorFlows(table, f"S{seed}", simulation.runtime())
        day = datetime.fromtimestamp(simulation.time, UTC).date()
        visitors = [f"reader{seed}-{number}" for number in range(300)]

        def work(batch: list[str], flows: ApproximateVisitorFlows = flows) -> Flow[None]:
            yield from flows.add("/", simulation_day(batch), batch)

        def simulation_day(batch: list[str], day: Any = day) -> Any:
            return day - timedelta(days=len(batch[0]) % 3)

        Deliveries(simulation, visitors).deliver(simulation, work)
        exact = datasketches.hll_sketch(12)
        for visitor in visitors:
            exact.update(visitor)
        estimate = simulation.perform(flows.count("/", day - timedelta(days=2), day))
        # Merged from three days by many writers, and made in one go: of the same visitors.
        assert abs(estimate.count - exact.get_estimate()) < 3, seed
        assert estimate.low <= estimate.count <= estimate.high
