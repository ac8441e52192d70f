"""A queue of jobs in a table, and an outbox: jobs that exist if and only if your own transaction was
committed.

A program that writes an order and then sends a message loses the message if it dies in between. A program
that sends the message first may send messages for orders that do not exist. `member` makes a job a member of
your own TransactWriteItems, so that both are written, or neither.

A job is delivered at least once. A worker has it until its lease ends. If the worker has neither finished nor
extended it by then, it is delivered again, so workers must be able to do a job twice. After `attempts_max`
deliveries it is put aside (a dead letter), and can be inspected and replayed; deliveries after which the job
was given back (`give_back`) do not count. `Job.attempts` grows with each delivery: a worker can write it with
its results, to distinguish a late worker from the current one.

    JOBS#mail#0    <due>#<id>    payload, until, attempts, uncounted
    DEAD#mail      <id>          payload, attempts, reason

Jobs are taken roughly in the order of their due times: workers that read at the same time choose among the
first jobs at random. Leases are measured by the workers' clocks. If clocks differ by more than the lease, two
workers may have a job at the same time.

Refuses to know the contents of jobs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

from hashrange_patterns.batches import query_all
from hashrange_patterns.flows import AsyncClient, Awaiting, Blocking, C, Client, Flow, Performing, performed
from hashrange_patterns.identifiers import Identifiers
from hashrange_patterns.requests import (
    Runtime,
    check_seconds,
    failed_members,
    is_met,
    request,
    transact,
    unmet,
)
from hashrange_patterns.tables import Address, Item, Table, number, table_of

_MILLIS: Final = 1_000
_DUE_DIGITS: Final = 15
_LOOKED_AT: Final = 25
_REASON_BYTES_MAX: Final = 1_000
# A job was not delivered again since.
_HELD: Final = "#attempts = :attempts"
PAYLOAD_BYTES_MAX: Final = 400_000
"""An item has 409,600 bytes at most: the rest is for the keys, the lease, and the reason of a dead letter."""


@dataclass(frozen=True, slots=True)
class Job:
    """A job that was taken: its payload, the number of its deliveries, including this one, and how many of
    the earlier ones do not count."""

    id: str
    payload: str
    attempts: int
    address: Address
    uncounted: int = 0


@dataclass(frozen=True, slots=True)
class DeadJob:
    """A job that was put aside."""

    id: str
    payload: str
    attempts: int
    reason: str


@dataclass(frozen=True, slots=True)
class JobFlows:
    """The logic of `Jobs`."""

    table: Table
    queue: str
    lease_seconds: float
    attempts_max: int
    shards: int
    runtime: Runtime
    identifiers: Identifiers

    def __post_init__(self) -> None:
        if self.shards < 1:
            raise ValueError(f"a queue has 1 shard or more, not {self.shards}")
        if self.attempts_max < 1:
            raise ValueError(f"a job is delivered once or more, not {self.attempts_max} times")
        check_seconds("lease_seconds", self.lease_seconds)

    def member(self, payload: str, *, delay_seconds: float = 0.0) -> Item:
        """A job as a member of your own TransactWriteItems: the outbox. Costs 2 write units there."""
        return {"Put": self._put(self.identifiers.next(), payload, delay_seconds)}

    def put(self, payload: str, *, delay_seconds: float = 0.0) -> Flow[str]:
        """Put a job into the queue, due in `delay_seconds`; returns its id.

        Raises ValueError for a payload of more than `PAYLOAD_BYTES_MAX` bytes. Costs 2 write units for each
        KB, because it is a transaction, so that a repeat does not put back a job that was done meanwhile. If
        it raises, the job may still be in the queue.
        """
        identifier = self.identifiers.next()
        yield from transact(self.runtime, [{"Put": self._put(identifier, payload, delay_seconds)}])
        return identifier

    def take(self) -> Flow[Job | None]:
        """A job that is due, for `lease_seconds`; None if there is none.

        Costs 1 write unit, and a read of at most 25 jobs for each shard that it looks at.
        """
        first = int(self.runtime.chance() * self.shards)
        for shard in range(self.shards):
            job = yield from self._take_from((first + shard) % self.shards)
            if job is not None:
                return job
        return None

    def done(self, job: Job, *results: Item) -> Flow[bool]:
        """Remove a finished job from the queue; False if the lease was over and another worker has the job
        now.

        `results` are members of a TransactWriteItems that write what the work gave: they are written exactly
        once, together with the job's end, or not at all if this returns False. If the condition of a result
        fails, the client's TransactionCanceledException is raised. Costs 1 write unit; 2 with results, and
        theirs.
        """
        if results:
            delete = self.table.at(job.address, condition=_HELD, attempts=job.attempts)
            try:
                yield from transact(self.runtime, [{"Delete": delete}, *results])
            except Exception as error:
                if 0 in failed_members(error):
                    return False
                raise
            return True
        # A job that is no longer there counts as done: the answer to an earlier attempt may have been lost.
        condition = f"{_HELD} OR attribute_not_exists(#attempts)"
        delete = self.table.at(job.address, condition=condition, attempts=job.attempts)
        return (yield from is_met(self.runtime, "delete_item", delete))

    def extend(self, job: Job) -> Flow[bool]:
        """Keep a job for `lease_seconds` from now; False if another worker has it or has finished it: stop
        then.

        Costs 1 write unit.
        """
        until = self._after(self.lease_seconds)
        return (yield from self._set_until(job, until)) and not self._is_over(until)

    def retry(self, job: Job, reason: str, *, delay_seconds: float = 0.0) -> Flow[None]:
        """Give a job back, due again in `delay_seconds`; put it aside if this was its last attempt.

        Costs 1 write unit, or 4 to put it aside. Does nothing if another worker has the job now.
        """
        if job.attempts - job.uncounted >= self.attempts_max:
            yield from self._bury(job, reason)
        else:
            yield from self._set_until(job, self._after(delay_seconds))

    def give_back(self, job: Job) -> Flow[None]:
        """Give a job back that was not tried, due again at once; this delivery does not count.

        Costs 1 write unit. Does nothing if another worker has the job now.
        """
        yield from self._set_until(job, self._after(0.0), uncounted=job.uncounted + 1)

    def dead(self, *, limit: int = 100, after: DeadJob | None = None) -> Flow[list[DeadJob]]:
        """The jobs that were put aside, oldest first; with `after`, those behind that one."""
        parameters = self.table.query(f"DEAD#{self.queue}")
        if after is not None:
            parameters["ExclusiveStartKey"] = self.table.key(self._dead_address(after.id))
        return [
            DeadJob(
                self.table.address(item).sort,
                item["payload"]["S"],
                int(item["attempts"]["N"]),
                item["reason"]["S"],
            )
            for item in (yield from query_all(self.runtime, parameters, limit=limit))
        ]

    def replay(self, dead: DeadJob) -> Flow[bool]:
        """Put a dead job back into the queue, with all its attempts; False if somebody else did.

        Costs 4 write units.
        """
        delete = self.table.at(self._dead_address(dead.id), condition="attribute_exists(#pk)")
        put = self._put(self.identifiers.next(), dead.payload, 0.0)
        return not (yield from unmet(self.runtime, [{"Delete": delete}, {"Put": put}]))

    def put_aside(self, dead: DeadJob) -> Flow[None]:
        """Store a dead job that was never in this table: an event that a broker queue gave up.

        Costs 1 write unit for each KB. Safe to repeat.
        """
        yield from request(self.runtime, "put_item", self._put_dead(dead), repeatable=True)

    def forget(self, dead: DeadJob) -> Flow[bool]:
        """Delete a dead job; False if somebody else did. Costs 1 write unit."""
        parameters = {**self.table.at(self._dead_address(dead.id)), "ReturnValues": "ALL_OLD"}
        answer = yield from request(self.runtime, "delete_item", parameters, repeatable=True)
        return "Attributes" in answer

    def waiting(self, *, at_most: int) -> Flow[int]:
        """How many jobs are in the queue, including those that are being worked on; counts up to `at_most`.

        Costs half a read unit for each 4 KB of jobs.
        """
        counted = 0
        for shard in range(self.shards):
            parameters = {**self.table.query(f"JOBS#{self.queue}#{shard}"), "Select": "COUNT"}
            while counted < at_most:
                page = {**parameters, "Limit": at_most - counted}
                answer = yield from request(self.runtime, "query", page, repeatable=True)
                counted += answer["Count"]
                if "LastEvaluatedKey" not in answer:
                    break
                parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        return counted

    def _dead_address(self, identifier: str) -> Address:
        return Address(f"DEAD#{self.queue}", identifier)

    def _put(self, identifier: str, payload: str, delay_seconds: float) -> dict[str, Any]:
        check_payload(payload)
        due = self._after(delay_seconds)
        partition = f"JOBS#{self.queue}#{int(self.runtime.chance() * self.shards)}"
        item = {
            **self.table.key(Address(partition, f"{due:0{_DUE_DIGITS}}#{identifier}")),
            "payload": {"S": payload},
            "until": number(due),
            "attempts": number(0),
        }
        return self.table.put(item)

    def _take_from(self, shard: int) -> Flow[Job | None]:
        now = int(self.runtime.now() * _MILLIS)
        partition, end = f"JOBS#{self.queue}#{shard}", f"{now + 1:0{_DUE_DIGITS}}"
        parameters = self.table.query(partition, sort="#sk < :end", only="#until <= :now", end=end, now=now)
        parameters |= {"ConsistentRead": True, "Limit": _LOOKED_AT}
        while True:
            answer = yield from request(self.runtime, "query", parameters, repeatable=True)
            waiting = list(answer["Items"])
            while waiting:
                # Choose at random: otherwise workers that read at the same moment would all try to take the
                # first job.
                item = waiting.pop(int(self.runtime.chance() * len(waiting)))
                job = yield from self._claim(item)
                if job is not None:
                    return job
            if "LastEvaluatedKey" not in answer:
                return None
            parameters["ExclusiveStartKey"] = answer["LastEvaluatedKey"]

    def _claim(self, item: Item) -> Flow[Job | None]:
        """The job in `item`, unless another worker was faster. A job without further attempts is put aside.

        So is a job that no worker could claim, because another program wrote it and its payload is too large.
        A job whose lease expired while the claim was repeated is left to others, who may have it by now.
        """
        attempts = int(item["attempts"]["N"])
        job = Job(
            self.table.address(item).sort.partition("#")[2],
            item["payload"]["S"],
            attempts,
            self.table.address(item),
            int(item.get("uncounted", {}).get("N", "0")),
        )
        reason = None
        if attempts - job.uncounted >= self.attempts_max:
            reason = "its worker ended without a word"
        elif len(job.payload.encode()) > PAYLOAD_BYTES_MAX:
            reason = "too large"
        if reason is not None:
            yield from self._bury(job, reason, until=item["until"])
            return None
        until = self._after(self.lease_seconds)
        claim = self.table.at(
            job.address,
            update="SET #until = :until, #attempts = :next, #claim = :claim",
            # The claim shows a repeat that an earlier attempt succeeded and its answer was lost; the lease,
            # that nothing was done with the job since.
            condition=f"({_HELD} AND #until = :seen) OR (#claim = :claim AND #until = :until)",
            until=until,
            seen=item["until"],
            attempts=attempts,
            next=attempts + 1,
            claim=self.runtime.token(),
        )
        if not (yield from is_met(self.runtime, "update_item", claim)) or self._is_over(until):
            return None
        return replace(job, attempts=attempts + 1)

    def _after(self, seconds: float) -> int:
        """The time in `seconds`, in milliseconds."""
        check_seconds("delay_seconds", seconds, zero=True)
        return int((self.runtime.now() + seconds) * _MILLIS)

    def _is_over(self, until: int) -> bool:
        return self.runtime.now() * _MILLIS >= until

    def _set_until(self, job: Job, until: int, *, uncounted: int | None = None) -> Flow[bool]:
        values = {"until": until, "attempts": job.attempts}
        if uncounted is not None:  # (only `give_back` counts: an earlier request may arrive after)
            values["uncounted"] = uncounted
        update = "SET " + ", ".join(f"#{name} = :{name}" for name in values if name != "attempts")
        set_until = self.table.at(job.address, update=update, condition=_HELD, **values)
        return (yield from is_met(self.runtime, "update_item", set_until))

    def _bury(self, job: Job, reason: str, *, until: Item | None = None) -> Flow[None]:
        """Put a job aside, unless it was delivered again; with `until`, only if nobody extended its lease."""
        held: dict[str, Any] = {"condition": _HELD, "attempts": job.attempts}
        if until is not None:
            held |= {"condition": f"{_HELD} AND #until = :until", "until": until}
        delete = self.table.at(job.address, **held)
        put = self._put_dead(DeadJob(job.id, job.payload, job.attempts, reason))
        yield from unmet(self.runtime, [{"Delete": delete}, {"Put": put}])

    def _put_dead(self, dead: DeadJob) -> dict[str, Any]:
        return self.table.put(
            {
                **self.table.key(self._dead_address(dead.id)),
                "payload": {"S": dead.payload},
                "attempts": number(dead.attempts),
                "reason": {"S": _cut(dead.reason)},
            }
        )


def check_payload(payload: str) -> None:
    """Raise ValueError for a payload that an item cannot hold, TypeError for one that is not a string."""
    if not isinstance(payload, str):
        raise TypeError(f"a payload is a text, and {payload!r} is a {type(payload).__name__}")
    size = len(payload.encode())
    if size > PAYLOAD_BYTES_MAX:
        raise ValueError(
            f"a payload has at most {PAYLOAD_BYTES_MAX:,} bytes, and this one has {size:,}: "
            "store it elsewhere, and put its place"
        )


def _cut(reason: str) -> str:
    """A reason as an item takes it: no lone surrogates, and not too long."""
    return reason.encode(errors="backslashreplace")[:_REASON_BYTES_MAX].decode(errors="ignore")


class _Jobs(Performing[JobFlows, C]):
    def __init__(
        self,
        client: C,
        table: Table | str,
        queue: str,
        *,
        lease_seconds: float = 60.0,
        attempts_max: int = 5,
        shards: int = 1,
        runtime: Runtime = Runtime(),  # noqa: B008 (frozen)
    ) -> None:
        identifiers = Identifiers(runtime.now)
        super().__init__(
            client,
            JobFlows(table_of(table), queue, lease_seconds, attempts_max, shards, runtime, identifiers),
        )

    put = performed(JobFlows.put)
    take = performed(JobFlows.take)
    done = performed(JobFlows.done)
    extend = performed(JobFlows.extend)
    retry = performed(JobFlows.retry)
    give_back = performed(JobFlows.give_back)
    dead = performed(JobFlows.dead)
    replay = performed(JobFlows.replay)
    put_aside = performed(JobFlows.put_aside)
    forget = performed(JobFlows.forget)
    waiting = performed(JobFlows.waiting)

    def member(self, payload: str, *, delay_seconds: float = 0.0) -> Item:
        """A job as a member of your own TransactWriteItems: the outbox. Costs 2 write units there."""
        return self._flows.member(payload, delay_seconds=delay_seconds)

    @property
    def queue(self) -> str:
        """The queue's name."""
        return self._flows.queue

    @property
    def lease_seconds(self) -> float:
        """How long a job belongs to its worker."""
        return self._flows.lease_seconds


class Jobs(_Jobs[Client], Blocking[JobFlows]):
    """A queue of jobs in a table, with a boto3 client.

    A job belongs to its worker for `lease_seconds`, and is delivered at most `attempts_max` times. A shard
    takes about 250 jobs a second; all users of a queue have to pass the same number of shards.
    """


class AsyncJobs(_Jobs[AsyncClient], Awaiting[JobFlows]):
    """`Jobs` with an aiobotocore client."""
