"""Makes the load of a mix: fills a table, sends requests from a number of connections, verifies the answers.

Each connection sends its next request when the last one was answered. With a rate, requests have times: one
that waits for a connection is late, and its latency counts from its time, because its user would wait too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from random import Random
from time import perf_counter
from typing import Any, Final

import orjson

from hashrange.limits import BATCH_WRITE_ITEMS_MAX
from hashrange_lab.loads import items, mixes
from hashrange_lab.loads.items import COLLECTION_ITEMS, Known
from hashrange_lab.loads.latencies import Latencies
from hashrange_lab.loads.running import together
from hashrange_lab.loads.sending import Answer, Connection, Endpoint

EXAMPLES_MAX: Final = 10
_CONDITION_FAILED: Final = "ConditionalCheckFailedException"
_TRANSIENT: Final = frozenset(
    {
        "InternalServerError",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingException",
    }
)
_TRIES_MAX: Final = 100
_TRY_SECONDS: Final = 0.1


class CannotFill(Exception):
    """The table cannot be filled; the text says why."""


@dataclass(frozen=True, slots=True)
class LoadSettings:
    """What load to make. It ends after `seconds` or `requests_max`, whichever comes first. `rate`:
    requests a second; None: as many as there can be. `verifies`: answers are verified."""

    table: str
    mix: mixes.Mix
    distribution: str
    items: int
    item_bytes: int
    connections: int
    seconds: float | None
    requests_max: int | None
    rate: float | None
    seed: int
    consistent: bool
    verifies: bool


@dataclass(slots=True)
class Kind:
    """The requests of one kind: latencies, errors by code, and updates that others came before."""

    latencies: Latencies = field(default_factory=Latencies)
    errors: dict[str, int] = field(default_factory=dict)
    conflicts: int = 0


@dataclass(slots=True)
class LoadCounts:
    """The load so far, by kinds of requests. `wrong`: answers that cannot be true; `examples` are the first
    of these, in words. `second`: the latencies since somebody looked."""

    kinds: dict[str, Kind] = field(default_factory=dict)
    seconds: float = 0.0
    requests: int = 0
    read_units: float = 0.0
    write_units: float = 0.0
    verified: int = 0
    wrong: int = 0
    examples: list[str] = field(default_factory=list)
    second: Latencies = field(default_factory=Latencies)

    @property
    def errors(self) -> int:
        """How many requests failed."""
        return sum([sum(kind.errors.values()) for kind in self.kinds.values()])


class Load:
    """One load. `made` grows while it runs."""

    def __init__(self, to: Endpoint, settings: LoadSettings) -> None:
        self._to = to
        self._settings = settings
        self._random = Random(settings.seed)
        self._choose = mixes.chooser(settings.distribution, settings.items, self._random)
        self._known = Known(settings.item_bytes)
        self._items = settings.items
        self._inserting = 0
        self._early: set[int] = set()
        self._failed: list[int] = []
        self._sent = 0
        self._began = 0.0
        self.filled = 0
        self.made = LoadCounts()

    async def fill(self) -> None:
        """Put all items, in batches. Raises `CannotFill`."""
        batches = iter(range(0, self._settings.items, BATCH_WRITE_ITEMS_MAX))
        await together([self._fill(batches) for _ in range(self._settings.connections)])

    async def _fill(self, batches: Any) -> None:
        connection = Connection(self._to)
        table, size = self._settings.table, self._settings.item_bytes
        try:
            for first in batches:
                numbers = range(first, min(first + BATCH_WRITE_ITEMS_MAX, self._settings.items))
                left = [{"PutRequest": {"Item": items.item(number, 0, size)}} for number in numbers]
                for attempt in range(1, _TRIES_MAX + 1):
                    answer = await connection.send("BatchWriteItem", {"RequestItems": {table: left}})
                    if answer.status == 200:
                        left = orjson.loads(answer.body)["UnprocessedItems"].get(table, [])
                    elif attempt == _TRIES_MAX or answer.error not in _TRANSIENT:
                        why = f"{answer.error} {answer.message}"
                        raise CannotFill(f"The table {table} cannot be filled: {why}")
                    if not left:
                        break
                    await asyncio.sleep(_TRY_SECONDS)
                else:
                    raise CannotFill(
                        f"The table {table} cannot be filled: {len(left)} items were left unprocessed "
                        f"{_TRIES_MAX} times; give it more throughput."
                    )
                self.filled += len(numbers)
        finally:
            connection.close()

    async def run(self) -> None:
        """Send requests until it has been enough."""
        self._began = perf_counter()
        try:
            await together([self._work() for _ in range(self._settings.connections)])
        finally:
            self.made.seconds = perf_counter() - self._began

    async def _work(self) -> None:
        settings = self._settings
        connection = Connection(self._to)
        try:
            while settings.requests_max is None or self._sent < settings.requests_max:
                due = perf_counter()
                if settings.rate is not None:
                    due = self._began + self._sent / settings.rate
                if settings.seconds is not None and due - self._began >= settings.seconds:
                    return
                self._sent += 1
                wait = due - perf_counter()
                if wait > 0:
                    await asyncio.sleep(wait)
                kind = settings.mix.draw(self._random)
                await self._make(kind, connection)
                self._count(kind, perf_counter() - due)
        finally:
            connection.close()

    async def _make(self, kind: str, connection: Connection) -> None:
        work = {
            mixes.READ: self._read,
            mixes.UPDATE: self._update,
            mixes.INSERT: self._insert,
            mixes.QUERY: self._query,
            mixes.CHANGE: self._change,
        }[kind]
        await work(connection, kind)

    def _count(self, kind: str, seconds: float) -> None:
        self._kind(kind).latencies.add(seconds)
        self.made.second.add(seconds)
        self.made.requests += 1

    def _kind(self, kind: str) -> Kind:
        return self.made.kinds.setdefault(kind, Kind())

    async def _send(
        self, connection: Connection, kind: str, operation: str, request: dict[str, Any]
    ) -> Answer:
        """The answer to a request on the table; an error is counted."""
        named = {"TableName": self._settings.table, "ReturnConsumedCapacity": "TOTAL", **request}
        answer = await connection.send(operation, named)
        if answer.error and answer.error != _CONDITION_FAILED:
            errors = self._kind(kind).errors
            errors[answer.error] = errors.get(answer.error, 0) + 1
        return answer

    def _said(self, answer: Answer, *, is_write: bool = False) -> dict[str, Any]:
        """The answer, whose units are counted."""
        said: dict[str, Any] = orjson.loads(answer.body)
        units = said.get("ConsumedCapacity", {}).get("CapacityUnits", 0.0)
        if is_write:
            self.made.write_units += units
        else:
            self.made.read_units += units
        return said

    async def _read(self, connection: Connection, kind: str) -> None:
        await self._read_item(connection, kind, self._settings.consistent)

    async def _read_item(
        self, connection: Connection, kind: str, consistent: bool
    ) -> tuple[int, dict[str, Any] | None]:
        number = self._choose(self._items)
        least = self._known.sure(number) if consistent else 0
        request = {"Key": items.key(number), "ConsistentRead": consistent}
        answer = await self._send(connection, kind, "GetItem", request)
        if answer.error:
            return number, None
        item = self._said(answer).get("Item")
        # An item that is read eventually may not be there yet.
        if item is not None or consistent:
            self._verify(lambda: self._known.wrong(number, item, least))
        return number, item

    async def _update(self, connection: Connection, kind: str) -> None:
        await self._write_version(connection, kind, self._choose(self._items), None)

    async def _change(self, connection: Connection, kind: str) -> None:
        number, item = await self._read_item(connection, kind, consistent=True)
        if item is not None:
            await self._write_version(connection, kind, number, item["version"])

    async def _write_version(
        self, connection: Connection, kind: str, number: int, expected: dict[str, Any] | None
    ) -> None:
        """Update an item; with an expected version, only if it has that version."""
        version = self._known.begin(number)
        values = {
            ":version": {"N": str(version)},
            ":content": {"S": items.content(number, version, self._settings.item_bytes)},
        }
        request: dict[str, Any] = {
            "Key": items.key(number),
            "UpdateExpression": "SET version = :version, content = :content",
            "ExpressionAttributeValues": values,
        }
        if expected is not None:
            values[":expected"] = expected
            request["ConditionExpression"] = "version = :expected"
        answer = await self._send(connection, kind, "UpdateItem", request)
        if not answer.error:
            self._said(answer, is_write=True)
        if answer.error == _CONDITION_FAILED:
            self._kind(kind).conflicts += 1
        if answer.status == 0 or answer.status >= 500:
            self._known.lost(number)
        self._known.end(number, version, is_made=not answer.error)

    async def _insert(self, connection: Connection, kind: str) -> None:
        if self._failed:
            number = self._failed.pop()
        else:
            number = self._settings.items + self._inserting
            self._inserting += 1
        item = items.item(number, 0, self._settings.item_bytes)
        answer = await self._send(connection, kind, "PutItem", {"Item": item})
        if answer.error:
            self._failed.append(number)
            return
        self._said(answer, is_write=True)
        # An item is read once all before it are there.
        self._early.add(number)
        while self._items in self._early:
            self._early.discard(self._items)
            self._items += 1

    async def _query(self, connection: Connection, kind: str) -> None:
        number = self._choose(self._items)
        key = items.key(number)
        asked = self._random.randint(1, COLLECTION_ITEMS)
        request = {
            "KeyConditionExpression": "pk = :pk AND sk >= :sk",
            "ExpressionAttributeValues": {":pk": key["pk"], ":sk": key["sk"]},
            "Limit": asked,
            "ConsistentRead": self._settings.consistent,
        }
        answer = await self._send(connection, kind, "Query", request)
        if answer.error:
            return
        came = self._said(answer)["Items"]
        if self._settings.consistent:
            self._verify(lambda: "" if came else f"the query from item {number} found nothing")
        for item in came:
            self._verify(partial(self._known.wrong_in_query, item, number))

    def _verify(self, wrong: Callable[[], str]) -> None:
        if not self._settings.verifies:
            return
        self.made.verified += 1
        why = wrong()
        if why:
            self.made.wrong += 1
            if len(self.made.examples) < EXAMPLES_MAX:
                self.made.examples.append(why)
