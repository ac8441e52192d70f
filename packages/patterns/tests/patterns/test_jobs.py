"""Jobs, by example."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any, cast

import pytest
from botocore.exceptions import ReadTimeoutError

from hashrange_patterns import AsyncJobs, Job, Jobs, JobWorker, Runtime, Table
from hashrange_patterns.flows import Call
from hashrange_patterns.jobs import PAYLOAD_BYTES_MAX
from hashrange_patterns.tables import Address
from patterns.asynchronous import asynchronous
from patterns.faults import Intercepted, answer_of

NOW = float(int(time.time()) + 86_400)  # (a server under test deletes what expired by the real time)


class Hand:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.time = NOW

    def runtime(self) -> Runtime:
        return Runtime(now=lambda: self.time, chance=lambda: 0.0)


def test_a_job_is_taken_done_and_gone(client: Any, table: Table) -> None:
    jobs = Jobs(client, table, "mail")
    assert jobs.take() is None
    identifier = jobs.put("hello")
    job = jobs.take()
    assert job is not None
    assert (job.id, job.payload, job.attempts) == (identifier, "hello", 1)
    assert jobs.take() is None
    assert jobs.done(job)
    assert jobs.done(job)  # a job that is gone is done
    assert jobs.take() is None
    assert jobs.dead() == []


def test_the_job_of_a_silent_worker_goes_to_another_worker(client: Any, table: Table) -> None:
    hand = Hand()
    jobs = Jobs(client, table, "mail", lease_seconds=30, runtime=hand.runtime())
    jobs.put("hello")
    slow = jobs.take()
    assert slow is not None
    hand.time += 20
    assert jobs.extend(slow)
    hand.time += 20
    assert jobs.take() is None
    hand.time += 11
    quick = jobs.take()
    assert quick is not None
    assert quick.attempts == 2
    # The late worker can neither keep the job nor take it off the queue.
    assert not jobs.extend(slow)
    assert not jobs.done(slow)
    jobs.retry(slow, "late")
    assert jobs.take() is None
    assert jobs.done(quick)


def test_a_job_is_not_delivered_before_it_is_due(client: Any, table: Table) -> None:
    hand = Hand()
    jobs = Jobs(client, table, "mail", runtime=hand.runtime())
    jobs.put("later", delay_seconds=60)
    jobs.put("now")
    now = jobs.take()
    assert now is not None
    assert now.payload == "now"
    assert jobs.done(now)
    assert jobs.take() is None
    hand.time += 60
    late = jobs.take()
    assert late is not None
    assert late.payload == "later"


def test_a_job_that_keeps_failing_is_put_aside_and_replayed(client: Any, table: Table) -> None:
    hand = Hand()
    jobs = Jobs(client, table, "mail", attempts_max=2, lease_seconds=10, runtime=hand.runtime())
    jobs.put("poison")
    jobs.put("silence")
    for _ in range(2):
        for _ in range(2):
            job = jobs.take()
            assert job is not None
            if job.payload == "poison":
                jobs.retry(job, "no such address", delay_seconds=5)
        hand.time += 11
    assert jobs.take() is None
    dead = {one.payload: (one.attempts, one.reason) for one in jobs.dead()}
    assert dead == {"poison": (2, "no such address"), "silence": (2, "its worker ended without a word")}
    for one in jobs.dead():
        assert jobs.replay(one)
        assert not jobs.replay(one)
    again = [jobs.take(), jobs.take()]
    assert sorted((job.payload, job.attempts) for job in again if job) == [("poison", 1), ("silence", 1)]
    assert jobs.dead() == []


def test_a_job_exists_if_and_only_if_its_transaction_was_committed(client: Any, table: Table) -> None:
    """A job exists if and only if the transaction that it is a member of was committed."""
    jobs = Jobs(client, table, "mail")
    order = {
        "TableName": table.name,
        "Item": {"PK": {"S": "ORDER#1"}, "SK": {"S": "ORDER"}},
        "ConditionExpression": "attribute_not_exists(PK)",
    }
    client.transact_write_items(TransactItems=[{"Put": order}, jobs.member("order 1")])
    with pytest.raises(client.exceptions.TransactionCanceledException):
        client.transact_write_items(TransactItems=[{"Put": order}, jobs.member("order 1 again")])
    taken = [jobs.take(), jobs.take()]
    assert [job.payload if job else None for job in taken] == ["order 1", None]


def test_shards_are_all_looked_at(client: Any, table: Table) -> None:
    jobs = Jobs(client, table, "mail", shards=4)
    put = {jobs.put(str(number)) for number in range(30)}
    taken = set()
    while job := jobs.take():
        taken.add(job.id)
        assert jobs.done(job)
    assert taken == put


def test_more_jobs_in_work_than_one_look_takes(client: Any, table: Table) -> None:
    jobs = Jobs(client, table, "mail")
    for number in range(60):
        jobs.put(str(number))
    assert len({job.id for _ in range(60) if (job := jobs.take())}) == 60


def test_a_lost_answer_costs_no_attempt(client: Any, table: Table) -> None:
    class Losing(Intercepted):
        """Performs every request, and loses the first answer of each."""

        lost = 0

        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            answer = super().perform(operation, parameters)
            self.lost += 1
            if self.lost % 2:
                raise ReadTimeoutError(endpoint_url="https://dynamodb.invalid")
            return answer

    jobs = Jobs(cast(Any, Losing(client)), table, "mail")
    jobs.put("hello")
    job = jobs.take()
    assert job is not None
    assert job.attempts == 1
    assert jobs.extend(job)
    assert jobs.done(job)
    assert jobs.take() is None


def test_no_worker_gets_a_job_whose_lease_is_over(client: Any, table: Table) -> None:
    hand = Hand()

    class Slow(Intercepted):
        """Performs updates, loses the first answer of each, and takes 11 seconds for it."""

        is_slow = True

        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            answer = super().perform(operation, parameters)
            if operation == "update_item" and self.is_slow:
                self.is_slow = False
                hand.time += 11
                raise ReadTimeoutError(endpoint_url="https://dynamodb.invalid")
            return answer

    slow = Slow(client)
    jobs = Jobs(cast(Any, slow), table, "mail", lease_seconds=10, runtime=hand.runtime())
    jobs.put("hello")
    assert jobs.take() is None
    job = jobs.take()
    assert job is not None
    assert job.attempts == 2
    slow.is_slow = True
    assert not jobs.extend(job)
    again = jobs.take()
    assert again is not None
    assert again.attempts == 3


def test_a_worker_that_returns_at_the_last_moment_keeps_its_job(client: Any, table: Table) -> None:
    hand = Hand()
    jobs = Jobs(client, table, "mail", attempts_max=1, lease_seconds=10, runtime=hand.runtime())
    jobs.put("hello")
    mine = jobs.take()
    assert mine is not None
    hand.time += 11
    other = jobs._flows.take()
    look = next(other)
    assert isinstance(look, Call)
    bury = other.send(client.query(**look.parameters))
    assert jobs.extend(mine)
    assert isinstance(bury, Call)
    with pytest.raises(client.exceptions.TransactionCanceledException):
        client.transact_write_items(**bury.parameters)
    assert jobs.dead() == []
    assert jobs.done(mine)


def test_every_payload_that_is_put_can_be_taken_and_put_aside(client: Any, table: Table) -> None:
    hand = Hand()
    jobs = Jobs(client, table, "q" * 900, attempts_max=2, runtime=hand.runtime())
    largest = "é" * (PAYLOAD_BYTES_MAX // 2)
    jobs.put(largest)
    for reason in ("first", "\ud800 " + "é" * 5_000):
        hand.time += 1
        job = jobs.take()
        assert job is not None
        assert jobs.extend(job)
        jobs.retry(job, reason)
    [dead] = jobs.dead()
    assert dead.payload == largest
    assert dead.reason.startswith("\\ud800 é")
    assert jobs.replay(dead)
    assert jobs.take() is not None
    for refused in (lambda: jobs.put(largest + "x"), lambda: jobs.member(largest + "x")):
        with pytest.raises(ValueError, match="at most 400,000 bytes, and this one has 400,001"):
            refused()
    with pytest.raises(TypeError, match="bytes"):
        jobs.put(cast(Any, b"x"))


def test_a_job_of_others_that_nobody_can_claim_is_put_aside(client: Any, table: Table) -> None:
    hand = Hand()
    jobs = Jobs(client, table, "mail", runtime=hand.runtime())
    oversized = jobs.member("x")["Put"]
    oversized["Item"]["payload"] = {"S": "x" * 409_500}
    client.put_item(**oversized)
    jobs.put("behind")
    hand.time += 1
    taken = [jobs.take() for _ in range(3)]
    assert [job.payload for job in taken if job is not None] == ["behind"]
    assert [(len(dead.payload), dead.reason) for dead in jobs.dead()] == [(409_500, "too large")]


def test_a_job_that_is_given_back_costs_no_attempt(client: Any, table: Table) -> None:
    hand = Hand()
    jobs = Jobs(client, table, "mail", attempts_max=2, runtime=hand.runtime())
    jobs.put("hello")
    fences = []
    for _ in range(9):
        hand.time += 1
        job = jobs.take()
        assert job is not None
        fences.append(job.attempts)
        jobs.give_back(job)
        assert not jobs.done(Job(job.id, job.payload, job.attempts - 1, job.address))
    assert fences == list(range(1, 10))
    for number in range(2):
        hand.time += 1
        assert jobs.dead() == []
        job = jobs.take()
        assert job is not None
        jobs.retry(job, f"failed {number}")
    assert [dead.reason for dead in jobs.dead()] == ["failed 1"]


def test_dead_jobs_come_in_pages(client: Any, table: Table) -> None:
    hand = Hand()
    jobs = Jobs(client, table, "mail", attempts_max=1, runtime=hand.runtime())
    names = [f"{number}" + "x" * 300_000 for number in range(7)]
    for name in names:
        jobs.put(name)
        hand.time += 1
        job = jobs.take()
        assert job is not None
        jobs.retry(job, "no")
    assert [dead.payload for dead in jobs.dead()] == names
    first = jobs.dead(limit=5)
    assert [dead.payload for dead in first] == names[:5]
    assert [dead.payload for dead in jobs.dead(after=first[-1])] == names[5:]


def test_the_result_of_a_job_is_written_once_with_its_end(client: Any, table: Table) -> None:
    hand = Hand()
    jobs = Jobs(client, table, "add", lease_seconds=10, attempts_max=3, runtime=hand.runtime())
    key = table.key(Address("SUM", "SUM"))

    def adding(job: Job) -> list[dict[str, Any]]:
        add = {
            "TableName": table.name,
            "Key": key,
            "UpdateExpression": "ADD amount :amount",
            "ExpressionAttributeValues": {":amount": {"N": job.payload}},
        }
        return [{"Update": add}]

    worker = JobWorker(jobs, adding)
    jobs.put("3")
    jobs.put("poison")
    hand.time += 1
    late = jobs.take()
    assert late is not None
    hand.time += 11
    while worker.step():
        hand.time += 60
    assert not jobs.done(late, *adding(late))  # (another worker did it)
    assert [dead.payload for dead in jobs.dead()] == ["poison"]
    read = client.get_item(TableName=table.name, Key=key, ConsistentRead=True)["Item"]
    assert read["amount"] == {"N": "3"}
    assert jobs.waiting(at_most=1) == 0


def test_a_job_worker_waits_while_the_table_is_throttled(client: Any, table: Table) -> None:
    jobs = Jobs(client, table, "mail", attempts_max=1)
    jobs.put("hello")
    stop, calls = threading.Event(), []

    def handle(job: Job) -> None:
        calls.append(job.attempts)
        if len(calls) < 4:
            raise answer_of("ThrottlingException")
        stop.set()

    JobWorker(jobs, handle, poll_seconds=0.0, runtime=Runtime(pause_seconds=0.0)).run(stop)
    assert calls == [1, 2, 3, 4]
    assert (jobs.dead(), jobs.waiting(at_most=1)) == ([], 0)


@pytest.mark.parametrize(
    "options",
    [
        {"shards": 0},
        {"attempts_max": 0},
        *({"lease_seconds": seconds} for seconds in (0, -1, float("nan"), float("inf"))),
    ],
)
def test_mistakes_are_refused(options: dict[str, float]) -> None:
    with pytest.raises(ValueError):
        Jobs(cast(Any, None), "t", "mail", **cast(Any, options))


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_a_delay_is_a_number_of_seconds(client: Any, table: Table, seconds: float) -> None:
    jobs = Jobs(client, table, "mail")
    with pytest.raises(ValueError, match="delay_seconds"):
        jobs.put("hello", delay_seconds=seconds)
    assert jobs.waiting(at_most=1) == 0


def test_the_asynchronous_twin(client: Any, table: Table) -> None:
    async def tour() -> None:
        jobs = AsyncJobs(asynchronous(client), table, "mail")
        await jobs.put("hello")
        job = await jobs.take()
        assert job is not None
        assert await jobs.done(job)
        assert "Put" in jobs.member("x")

    asyncio.run(tour())
