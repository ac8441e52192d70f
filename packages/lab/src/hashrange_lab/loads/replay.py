"""Sends the requests of a recording to an endpoint, and compares the answers with those that were recorded.

Each connection of the recording has a connection here, on which its requests follow each other in their
order. A request is sent when its time has come, or when the one before it was answered, if that is later. As
fast as possible means: as soon as all requests were answered that had ended when it began. So requests run
side by side that did so, and no others, and answers that did not depend on chance are the same again. Of all
requests only so many are under way or waiting at a time (`Plan.in_flight_max`); what is recorded after them
has to wait.

Without `Plan.operations` only operations on items are repeated: the others make and delete tables, or read
streams by identifiers that another server does not know. Tokens of transactions are renewed, because the
server that was recorded would remember them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from heapq import heappop, heappush
from time import perf_counter
from typing import Any, Final, NamedTuple

import orjson

from hashrange.operations import REGISTRY
from hashrange_lab.loads.latencies import Latencies
from hashrange_lab.loads.renaming import renamed
from hashrange_lab.loads.sending import NO_ANSWER, Answer, Connection, Endpoint, Unreachable
from hashrange_lab.recordings.digests import digest
from hashrange_lab.recordings.lines import KEPT, Entry
from hashrange_lab.recordings.reader import RecordingFile, in_order

IN_FLIGHT_MAX: Final = 1_000
IDLE_SECONDS: Final = 5.0
"""A connection that has nothing to send for this long is closed."""
EXAMPLES_MAX: Final = 10
_STREAMS: Final = frozenset({"DescribeStream", "GetRecords", "GetShardIterator", "ListStreams"})
ON_ITEMS: Final = frozenset(name for name, entry in REGISTRY.items() if entry.consumes) - _STREAMS
_POLL_SECONDS: Final = 0.1
_TABLE_SECONDS_MAX: Final = 60.0


@dataclass(frozen=True, slots=True)
class Plan:
    """What is repeated, and how. `speed`: how many times as fast as it was recorded; None: as fast as
    possible. `requests_max`: the maximum number; None: all. `operations`: only these; empty: those on items.
    `tables`: the new names of tables. `make_tables`: make those that the endpoint lacks. `token`: makes the
    tokens of transactions different from those of other runs."""

    speed: float | None = 1.0
    requests_max: int | None = None
    operations: frozenset[str] = frozenset()
    tables: Mapping[str, str] = field(default_factory=dict)
    make_tables: bool = False
    in_flight_max: int = IN_FLIGHT_MAX
    token: str = ""

    def takes(self, operation: str) -> bool:
        """Whether requests of an operation are repeated."""
        return operation in (self.operations or ON_ITEMS)


@dataclass(slots=True)
class Compared:
    """The requests of one operation: their latencies, errors by code, and how many ended otherwise: with
    another status or error, or with another answer."""

    recorded: Latencies = field(default_factory=Latencies)
    replayed: Latencies = field(default_factory=Latencies)
    recorded_errors: dict[str, int] = field(default_factory=dict)
    replayed_errors: dict[str, int] = field(default_factory=dict)
    other_outcomes: int = 0
    other_answers: int = 0
    compared_answers: int = 0


@dataclass(slots=True)
class Summary:
    """What a replay has found so far. `left_out`: requests that were not repeated, by operation; `examples`
    are the first differences, in words; `late_seconds`: how far the last request was behind its time."""

    operations: dict[str, Compared] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    examples: list[str] = field(default_factory=list)
    requests: int = 0
    recorded_seconds: float = 0.0
    seconds: float = 0.0
    late_seconds: float = 0.0

    @property
    def differences(self) -> int:
        """How many requests ended otherwise than they did when they were recorded."""
        return sum(of.other_outcomes + of.other_answers for of in self.operations.values())


class _Given(NamedTuple):
    """A request that its connection is to send; `answered` is set when it has its answer."""

    entry: Entry
    answered: asyncio.Future[None]


class CannotMake(Exception):
    """A table cannot be made; the text says why."""


class Replay:
    """One replay. `summary` grows while it runs."""

    def __init__(self, recording: RecordingFile, to: Endpoint, plan: Plan) -> None:
        self._recording = recording
        self._to = to
        self._plan = plan
        self._queues: dict[int, asyncio.Queue[_Given | None]] = {}
        self._under_way: list[tuple[float, int, asyncio.Future[None]]] = []
        self._room = asyncio.Semaphore(plan.in_flight_max)
        self._began = 0.0
        self._answered = 0.0
        self._made: set[str] = set()
        self._compares_answers = recording.head.values == KEPT
        self.summary = Summary()

    async def run(self) -> None:
        """Send all requests, and wait for their answers. Raises `NotARecording`, OSError for the file,
        `CannotMake`, and `Unreachable` for an endpoint that has become silent."""
        self._began = perf_counter()
        try:
            async with asyncio.TaskGroup() as workers:
                await self._send_all(workers)
                for queue in list(self._queues.values()):
                    queue.put_nowait(None)
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
        finally:
            self.summary.seconds = perf_counter() - self._began

    async def _send_all(self, workers: asyncio.TaskGroup) -> None:
        first: float | None = None
        for entry in in_order(self._taken(self._recording.entries())):
            if self.summary.requests == self._plan.requests_max:
                break
            first = entry.at if first is None else first
            await self._wait_for(entry, first)
            await self._make_tables(entry)
            await self._room.acquire()
            self.summary.requests += 1
            self.summary.recorded_seconds = entry.at - first
            queue = self._queues.get(entry.connection)
            if queue is None:
                queue = self._queues[entry.connection] = asyncio.Queue()
                workers.create_task(self._work(entry.connection, queue))
            answered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            if self._plan.speed is None:
                end = entry.at + entry.seconds
                heappush(self._under_way, (end, self.summary.requests, answered))
            queue.put_nowait(_Given(entry, answered))

    def _taken(self, entries: Iterable[Entry]) -> Iterable[Entry]:
        for entry in entries:
            if self._plan.takes(entry.operation):
                yield entry
            else:
                left_out = self.summary.left_out
                left_out[entry.operation] = left_out.get(entry.operation, 0) + 1

    async def _wait_for(self, entry: Entry, first: float) -> None:
        if self._plan.speed is None:
            # In the recording these had ended when this request began.
            while self._under_way and self._under_way[0][0] <= entry.at:
                await heappop(self._under_way)[2]
            return
        due = self._began + (entry.at - first) / self._plan.speed
        wait = due - perf_counter()
        self.summary.late_seconds = max(-wait, 0.0)
        await asyncio.sleep(max(wait, 0.0))

    async def _work(self, number: int, queue: asyncio.Queue[_Given | None]) -> None:
        """Send the requests of one connection, until there are no more (None) or none came for a while."""
        connection = Connection(self._to)
        try:
            while True:
                try:
                    given = await asyncio.wait_for(queue.get(), IDLE_SECONDS)
                except TimeoutError:
                    if not queue.empty():
                        continue
                    given = None
                if given is None:
                    del self._queues[number]
                    return
                entry = given.entry
                try:
                    answer = await connection.send(entry.operation, self._request(entry))
                finally:
                    self._room.release()
                self._check_silence(answer)
                self._compare(entry, answer)
                given.answered.set_result(None)
        finally:
            connection.close()

    def _check_silence(self, answer: Answer) -> None:
        """Raise `Unreachable` if the endpoint took a request, and has answered none since. Otherwise each
        request would wait as long."""
        now = perf_counter()
        if answer.error != NO_ANSWER:
            self._answered = now
        elif answer.is_overdue and self._answered < now - answer.seconds:
            raise Unreachable(
                f"{self._to.url} has answered none of the requests of the last {answer.seconds:,.0f} s. "
                "Check that the URL is a healthy endpoint of DynamoDB."
            )

    def _request(self, entry: Entry) -> Any:
        request = renamed(entry.request, self._plan.tables) if self._plan.tables else entry.request
        token = request.get("ClientRequestToken")
        if not isinstance(token, str):
            return request
        renewed = blake2b(f"{self._plan.token}/{token}".encode(), digest_size=16).hexdigest()
        return {**request, "ClientRequestToken": renewed}

    def _compare(self, entry: Entry, answer: Answer) -> None:
        of = self.summary.operations.setdefault(entry.operation, Compared())
        of.recorded.add(entry.seconds)
        of.replayed.add(answer.seconds)
        for errors, code in ((of.recorded_errors, entry.error), (of.replayed_errors, answer.error)):
            if code:
                errors[code] = errors.get(code, 0) + 1
        if entry.status == 0:
            return  # a fault lost its answer, so there is nothing to compare with
        if (entry.status, entry.error) != (answer.status, answer.error):
            of.other_outcomes += 1
            self._show(entry, f"was {_outcome(entry.status, entry.error)}, is {_text(answer)}")
        elif self._compares_answers and entry.digest and entry.operation in ON_ITEMS:
            of.compared_answers += 1
            if digest(answer.body) != entry.digest:
                of.other_answers += 1
                self._show(entry, "has another answer")

    def _show(self, entry: Entry, what: str) -> None:
        if len(self.summary.examples) < EXAMPLES_MAX:
            tables = ", ".join(entry.tables)
            self.summary.examples.append(f"{entry.operation} {tables} at {entry.at:.3f} s: {what}")

    async def _make_tables(self, entry: Entry) -> None:
        if not self._plan.make_tables:
            return
        for table in entry.tables:
            create = self._recording.tables.get(table)
            if table in self._made or create is None:
                continue
            self._made.add(table)
            name = self._plan.tables.get(table, table)
            await make_table(self._to, {**create, "TableName": name})


async def make_table(to: Endpoint, create: dict[str, Any]) -> bool:
    """Make a table, and wait until it can be used. Returns whether it was made: one that is there stays as it
    is. Raises `CannotMake`."""
    connection = Connection(to)
    try:
        answer = await connection.send("CreateTable", create)
        if answer.status != 200 and answer.error != "ResourceInUseException":
            raise CannotMake(f"The table {create['TableName']} cannot be made at {to.url}: {_text(answer)}")
        until = perf_counter() + _TABLE_SECONDS_MAX
        while perf_counter() < until:
            described = await connection.send("DescribeTable", {"TableName": create["TableName"]})
            if described.status == 200 and orjson.loads(described.body)["Table"]["TableStatus"] == "ACTIVE":
                return answer.status == 200
            await asyncio.sleep(_POLL_SECONDS)
        raise CannotMake(f"The table {create['TableName']} did not become ACTIVE at {to.url}.")
    finally:
        connection.close()


def _outcome(status: int, error: str) -> str:
    return error or str(status)


def _text(answer: Answer) -> str:
    message = answer.message if answer.error else ""
    return f"{_outcome(answer.status, answer.error)}{': ' if message else ''}{message[:200]}"
