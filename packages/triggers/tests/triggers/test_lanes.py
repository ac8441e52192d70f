"""The lanes of one shard, without a stream: a lane that raises an error disturbs none of the others."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event, Lock
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange_triggers.delivery import Policy, Reason
from hashrange_triggers.events import Record
from hashrange_triggers.shard import Batching, Handling, ShardRun

LANES = 4
RECORDS = 40


def record(number: int) -> Record:
    keys = {"id": {"N": str(number % 8)}}
    return {"dynamodb": {"SequenceNumber": str(number), "ApproximateCreationDateTime": 0.0, "Keys": keys}}


def numbers(records: list[Record]) -> list[int]:
    return [int(one["dynamodb"]["SequenceNumber"]) for one in records]


class Listed:
    """A shard that holds `RECORDS` records."""

    def __init__(self) -> None:
        self.after: str | None = None
        self.exhausted = False

    def read(self) -> list[Record]:
        self.exhausted, self.after = True, str(RECORDS)
        return [record(number) for number in range(1, RECORDS + 1)]


class Shard:
    """A run whose function fails for the records `poison`, which are discarded. The first `outages` calls of
    `discard` fail."""

    def __init__(self, poison: set[int], outages: int) -> None:
        self.poison = poison
        self.outages = outages
        self.done: list[int] = []
        self.running = 0
        self.lock = Lock()
        self.saved: list[int] = []
        handling = Handling(lambda record: True, self.call, self.discard, Policy(retries=0))
        batching = Batching(batch_size=2, parallelization_factor=LANES)
        self.run = ShardRun(Listed(), batching, handling, save=self.save, report=lambda *arguments: None)

    def call(self, records: list[Record], attempt: int) -> Any:
        with self.lock:
            self.running += 1
        try:
            self.work(records)
        finally:
            with self.lock:
                self.running -= 1

    def work(self, records: list[Record]) -> None:
        if self.poison & set(numbers(records)):
            raise RuntimeError("poison")
        self.keep(records)

    def keep(self, records: list[Record]) -> None:
        with self.lock:
            self.done += numbers(records)

    def discard(self, records: list[Record], reason: Reason, calls: int) -> None:
        with self.lock:
            self.outages -= 1
            if self.outages >= 0:
                raise ConnectionError("the destination does not answer")
        self.keep(records)

    def save(self, sequence: str) -> None:
        """A checkpoint passes no record that is not done."""
        assert set(range(1, int(sequence) + 1)) <= set(self.done)
        self.saved.append(int(sequence))

    def finish(self) -> None:
        """Run to the end of the shard, as a worker does, which tries again after a lost connection."""
        now = 0.0
        for _ in range(1_000):
            if self.run.finished:
                break
            try:
                now += self.run.step(now)
            except ConnectionError:
                assert self.running == 0, "a lane still ran when the step ended"
                now += 60.0
        self.run.close()
        assert self.run.finished


class Slow(Shard):
    """A shard whose function is slow for all records but the poisoned ones: it ends when a discard fails,
    and a moment later."""

    def __init__(self, poison: set[int], outages: int) -> None:
        super().__init__(poison, outages)
        self.failed = Event()

    def work(self, records: list[Record]) -> None:
        if self.outages > 0 and not self.poison & set(numbers(records)):
            self.failed.wait(5)
            Event().wait(0.1)
        super().work(records)

    def discard(self, records: list[Record], reason: Reason, calls: int) -> None:
        try:
            super().discard(records, reason, calls)
        except ConnectionError:
            self.failed.set()
            raise


def orders(done: list[int]) -> Iterator[list[int]]:
    """The records of each item, in the order in which they were done."""
    for key in range(8):
        yield [number for number in done if number % 8 == key]


def assert_each_done_in_order(shard: Shard) -> None:
    assert set(shard.done) == set(range(1, RECORDS + 1))
    assert all(done == sorted(done) for done in orders(shard.done))
    assert len(shard.done) == RECORDS
    assert shard.saved[-1] == RECORDS


@pytest.mark.parametrize("outages", [1, 3])
def test_a_step_ends_when_no_lane_runs_also_if_one_failed(outages: int) -> None:
    shard = Slow({1, 2, 3}, outages)
    shard.finish()
    assert_each_done_in_order(shard)


@given(st.sets(st.integers(1, RECORDS)), st.integers(0, 10))
def test_no_record_is_lost_while_none_can_be_given_up(poison: set[int], outages: int) -> None:
    shard = Shard(poison, outages)
    shard.finish()
    assert_each_done_in_order(shard)
