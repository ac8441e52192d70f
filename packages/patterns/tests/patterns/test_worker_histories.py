"""Workers of events and jobs: histories in which they stall, fail and die, and their clock jumps."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Final

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from hashrange_patterns import Job, Jobs, JobWorker, Runtime, Table, TableEvents, Unreachable, Worker
from hashrange_patterns.flows import Client
from hashrange_patterns.tables import Address
from patterns.processes import HOW, How, Process, Processes, in_process, in_thread, judge

LEASE: Final = 3_000.0  # (long: the thread that extends leases goes by real seconds, and has nothing to do)


class Hand(Process):
    """A process with a worker, which handles the events `handled`, and has them at least until `until`."""

    handled: Sequence[str] = ()
    until = 0.0


class WorkerHistories(Processes):
    """A queue of events. An event that begins with "poison" cannot be handled."""

    number = 2
    waits = 500.0, 2_000.0, 4_000.0, -1_000.0
    expected = (Unreachable,)

    def __init__(self, client: Any, table: Table, serial: str) -> None:
        super().__init__(client, table, serial)
        self.put: set[str] = set()
        self.handled: Counter[str] = Counter()
        self.numbers = iter(range(10**6))

    @initialize(attempts_max=st.integers(1, 3))
    def opens(self, attempts_max: int) -> None:
        self.attempts_max = attempts_max

    def process(self) -> Hand:
        return Hand(self)

    def runtime(self) -> Runtime:
        """That of a process, which pauses for no real time."""
        return Runtime(
            now=lambda: self.time,
            elapsed=lambda: self.latest,
            chance=lambda: 0.0,
            attempts_max=2,
            pause_seconds=0.0,
        )

    @property
    def options(self) -> dict[str, Any]:
        return {"lease_seconds": LEASE, "attempts_max": self.attempts_max, "runtime": self.runtime()}

    def jobs(self, client: Client) -> Jobs:
        return Jobs(client, self.table, f"q{self.serial}", **self.options)

    def putting(self, client: Client, body: str) -> None:
        TableEvents(client, self.table, f"q{self.serial}", **self.options).put([body])

    def worker(self, client: Client, process: Hand) -> Callable[[], object]:
        """What takes events and handles them."""
        queue = TableEvents(client, self.table, f"q{self.serial}", **self.options)

        def handle(bodies: Sequence[str]) -> None:
            self.handle(client, process, bodies)
            self.handled.update(bodies)

        worker = Worker(queue, handle, batch_max=2, wait_seconds=0.0, runtime=self.runtime())
        return lambda: worker.step(threading.Event())

    def handle(self, client: Client, process: Hand, bodies: Sequence[str]) -> None:
        """Nobody else handles an event within its lease."""
        for other in self.processes:
            if other is not process and other.until > self.latest:
                assert not set(bodies) & set(other.handled)
        process.handled, process.until = bodies, process.began + LEASE
        client.get_item(**self.table.at(Address("WORK", "WORK")))  # (work may fail, and take long)
        process.handled = ()
        if any(body.startswith("poison") for body in bodies):
            raise ValueError("indigestible")

    @precondition(lambda self: self.idle)
    @rule(data=st.data(), how=HOW, kind=st.sampled_from(["event", "event", "poison"]))
    def an_event_is_put(self, data: st.DataObject, how: How, kind: str) -> None:
        body = f"{kind} {next(self.numbers)}"
        self.passes(0.01)  # (events of one moment have no certain order)
        put = in_thread(lambda client: self.putting(client, body))
        data.draw(st.sampled_from(self.idle)).begin(how, put, lambda _: self.put.add(body))

    @precondition(lambda self: self.idle)
    @rule(data=st.data(), how=HOW)
    def a_worker_works(self, data: st.DataObject, how: How) -> None:
        process = data.draw(st.sampled_from(self.idle))

        def over() -> None:
            process.handled = ()

        process.begin(how, in_thread(lambda client: self.worker(client, process)()), always=over)

    def verdict(self) -> None:
        lapses = self.passed // LEASE
        self.put_aside_rightly(lapses)
        for _ in range(2 * self.attempts_max + 2):
            self.passes(self.latest - self.time + LEASE + 100.0)
            step = self.worker(self.client, self.process())
            while step():
                pass
        dead = self.put_aside_rightly(lapses + 1)
        assert self.jobs(self.client).waiting(at_most=1) == 0
        assert self.put <= dead | self.done()

    def put_aside_rightly(self, lapses: float) -> set[str]:
        """The events that were put aside, after all attempts; healthy ones if their leases ended as often."""
        dead = self.jobs(self.client).dead()
        for one in dead:
            assert one.attempts >= self.attempts_max
            assert one.payload.startswith("poison") or lapses >= self.attempts_max
        return {one.payload for one in dead}

    def done(self) -> set[str]:
        """The events that were handled."""
        return set(self.handled)


class JobWorkerHistories(WorkerHistories):
    """A queue of jobs, each of which gives a result."""

    def putting(self, client: Client, body: str) -> None:
        self.jobs(client).put(body)

    def worker(self, client: Client, process: Hand) -> Callable[[], object]:
        def handle(job: Job) -> list[dict[str, Any]]:
            self.handle(client, process, [job.payload])
            add = self.table.at(Address(f"RESULT{self.serial}", job.payload), update="ADD #times :one", one=1)
            return [{"Update": add}]

        return JobWorker(self.jobs(client), handle, retry_seconds=0.0, runtime=self.runtime()).step

    def done(self) -> set[str]:
        results = self.client.query(**self.table.query(f"RESULT{self.serial}"))["Items"]
        assert all(result["times"] == {"N": "1"} for result in results)
        return {result["SK"]["S"] for result in results}


@in_process
@pytest.mark.parametrize("histories", [WorkerHistories, JobWorkerHistories])
def test_no_event_is_lost_or_put_aside_without_a_reason(
    client: Any, table: Table, histories: type[WorkerHistories]
) -> None:
    judge(lambda serial: histories(client, table, serial), client)
