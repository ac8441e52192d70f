"""Jobs: histories of workers that die, fail, come late, and whose requests are lost or late."""

from __future__ import annotations

from collections import Counter
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from hashrange_patterns import Job, Table
from hashrange_patterns.identifiers import Identifiers
from hashrange_patterns.jobs import JobFlows
from hashrange_patterns.tables import Address
from patterns.processes import HOW, How, Process, Processes, in_process, judge
from patterns.steps import Fate

LEASE = 5.0


class Laborer(Process):
    """A process that puts jobs, and does one at a time. It has its job at least until `until`."""

    job: Job | None = None
    until = 0.0


class JobHistories(Processes):
    """A queue."""

    number = 2
    waits = 0.5, 3.0, 7.0, 30.0, -3.0

    def __init__(self, client: Any, table: Table, serial: str) -> None:
        super().__init__(client, table, serial)
        self.put_ids: set[str] = set()
        self.ended: set[str] = set()
        self.asked_to_end: set[str] = set()
        self.attempts: Counter[str] = Counter()
        self.given_back: Counter[str] = Counter()
        self.written: set[str] = set()

    @initialize(attempts_max=st.sampled_from([1, 2]))
    def begin(self, attempts_max: int) -> None:
        runtime = self.processes[0].runtime
        self.attempts_max = attempts_max
        self.flows = JobFlows(
            self.table, f"q{self.serial}", LEASE, attempts_max, 1, runtime, Identifiers(runtime.now)
        )

    def process(self) -> Laborer:
        return Laborer(self)

    @precondition(lambda self: self.idle)
    @rule(data=st.data(), how=HOW)
    def put(self, data: st.DataObject, how: How) -> None:
        process = data.draw(st.sampled_from(self.idle))
        process.begin(how, self.flows.put("payload"), self.put_ids.add)

    @precondition(lambda self: self.free)
    @rule(data=st.data(), how=HOW)
    def take(self, data: st.DataObject, how: How) -> None:
        process = data.draw(st.sampled_from(self.free))

        def taken(job: Job | None) -> None:
            if job is None:
                return
            assert job.attempts > self.attempts[job.id]
            assert all(one.until <= self.latest for one in self.processes if one.job and one.job.id == job.id)
            assert job.id not in self.ended
            self.attempts[job.id] = job.attempts
            process.job, process.until = job, process.began + LEASE

        process.begin(how, self.flows.take(), taken)

    @precondition(lambda self: self.at_work)
    @rule(
        data=st.data(),
        how=HOW,
        what=st.sampled_from(["extend", "extend", "done", "done with results", "retry", "give back"]),
    )
    def work(self, data: st.DataObject, how: How, what: str) -> None:
        process = data.draw(st.sampled_from(self.at_work))
        job, until = process.job, process.until

        def kept(still: bool) -> None:
            """Whoever has a job loses it when the lease is over, and not before."""
            assert still or until <= self.latest
            if what == "extend":
                process.job, process.until = (job, process.began + LEASE) if still else (None, until)
            elif still:
                self.ended.add(job.id)
                self.written |= {job.id} if "results" in what else set()

        def given(_: None) -> None:
            self.given_back[job.id] += self.latest < until

        if what == "extend":
            process.begin(how, self.flows.extend(job), kept)
            return
        process.job = None
        if what == "give back":
            process.begin(how, self.flows.give_back(job), given)
        elif what == "retry":
            delay = data.draw(st.sampled_from([0.0, 3.0]))
            process.begin(how, self.flows.retry(job, "bad luck", delay_seconds=delay))
        else:
            self.asked_to_end.add(job.id)
            results = [self.result(job)] if "results" in what else []
            process.begin(how, self.flows.done(job, *results), kept)

    def verdict(self) -> None:
        dead = self.steps.alone(self.flows.dead())
        for one in dead:
            assert one.attempts - self.given_back[one.id] >= self.attempts_max
        left = {one.id for one in dead}
        self.passes(self.latest - self.time + LEASE + 3.0)
        while job := self.steps.alone(self.flows.take()):
            assert self.steps.alone(self.flows.done(job, self.result(job)))
            assert job.id not in self.ended
            self.written.add(job.id)
            left.add(job.id)
        left |= {one.id for one in self.steps.alone(self.flows.dead())}
        assert self.steps.alone(self.flows.waiting(at_most=1)) == 0
        assert self.put_ids <= self.asked_to_end | left
        for identifier in self.attempts:
            key = self.table.key(self.at(identifier))
            item = self.client.get_item(TableName=self.table.name, Key=key, ConsistentRead=True).get("Item")
            times = int(item["times"]["N"]) if item else 0
            assert times <= 1
            assert times == 1 or identifier not in self.written

    @property
    def free(self) -> list[Any]:
        return [one for one in self.idle if one.job is None]

    @property
    def at_work(self) -> list[Any]:
        return [one for one in self.idle if one.job is not None]

    def at(self, identifier: str) -> Address:
        return Address(f"RESULT{self.serial}", identifier)

    def result(self, job: Job) -> dict[str, Any]:
        """What the work gives."""
        return {"Update": self.table.at(self.at(job.id), update="ADD #times :one", one=1)}


@in_process
def test_a_late_request_does_not_undo_a_later_one(client: Any, table: Table) -> None:
    world = JobHistories(client, table, "late")
    world.begin(attempts_max=1)
    flows, worker = world.flows, world.processes[0]
    taken: list[Job] = []
    world.steps.alone(flows.put("payload"))
    worker.begin(([Fate.ANSWERED, Fate.LATE], True), flows.take(), taken.append)
    world.passes(4.0)
    worker.begin(([Fate.LATE], True), flows.extend(taken[0]))
    world.steps.deliver(0)
    world.passes(4.0)
    assert world.steps.alone(flows.take()) is None  # (the lease was extended)
    world.steps.alone(flows.give_back(taken[0]))
    world.steps.deliver(0)
    world.passes(LEASE)
    again = world.steps.alone(flows.take())
    assert (again.attempts, again.uncounted) == (2, 1)


@in_process
def test_no_job_is_lost_and_results_are_written_once(client: Any, table: Table) -> None:
    judge(lambda serial: JobHistories(client, table, serial), client)
