"""After any history, what is derived can be recomputed: index entries, totals, expiry queue, collections.

Recomputed here from the items alone, beside the integrity checker, under every setting that delays
something: new indexes filled in small bites between writes, global indexes that lag, the expiry queue built
late.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

import postgres
from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.errors import ServiceError
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.background import sweeps
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.inspection.check import check
from hashrange.tables.items import records
from hashrange.tables.writes import applying, expiry, lag
from hashrange.values import Item, item_size
from model import strategies
from model.expressions import plain_item
from model.reference import Table as ReferenceTable
from model.reference import TableDefinition

T = TypeVar("T")

_HISTORIES = settings(
    max_examples=int(os.environ.get("HASHRANGE_EXAMPLES", "5")),
    deadline=None,
    suppress_health_check=list(HealthCheck),
    report_multiple_bugs=False,
)
_STEPS = ("put", "delete", "update", "update", "index", "index", "expiry", "sweep", "sweep", "time")
_MEANWHILE = ("put", "delete", "update", "index", "no index", "drop")
_COMING_AND_GOING = ("put", "put", "delete", "update", "update", "index", "no index", "drop", "sweep", "time")
_LATE = {
    "GlobalSecondaryIndexUpdates": [{"Create": strategies.index_request(strategies.LATE_INDEX)}],
    "AttributeDefinitions": [
        {"AttributeName": "h", "AttributeType": "N"},
        {"AttributeName": "b", "AttributeType": "B"},
    ],
}
_NOT_LATE = {"GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": strategies.LATE_INDEX.name}}]}


class History:
    """A database under one of the settings, and what is done to it. `servers` are all that serve its store,
    under settings of their own; `database` is the one that the next step is for."""

    def __init__(self, delays: Settings, engine: Engine | None = None) -> None:
        self.clock = ManualClock(strategies.START)
        self.database = Database(engine or MemoryEngine(), settings=delays, clock=self.clock)
        self.servers = [self.database]
        self.definitions = strategies.definitions()
        self.keys: dict[str, list[Item]] = {definition.name: [] for definition in self.definitions}
        for definition in self.definitions:
            self.database.execute("CreateTable", strategies.create_request(definition))

    def fill(self, data: st.DataObject) -> None:
        """Enough items that what is built in the background takes several bites."""
        for definition in self.definitions:
            for item in data.draw(st.lists(strategies.items(definition), min_size=4, max_size=12)):
                self._put(definition, item)

    def _put(self, definition: TableDefinition, item: Item) -> None:
        with suppress(ServiceError):  # an item that is refused has no effect, and that is looked at too
            self.database.execute("PutItem", {"TableName": definition.name, "Item": item})
            self.keys[definition.name].append({a.name: item[a.name] for a in definition.key_attributes()})

    def settle(self) -> None:
        """Let time pass until nothing waits: what expires has to reach the indexes too."""
        waiting = True
        while waiting:
            self.clock.advance(10)
            for server in self.servers:
                server.settle()
            waiting = bool(self.database.engine.read(lag.waiting_spaces))

    def restart(self) -> None:
        """Go on with what the engine holds."""
        before = self.database
        self.database = Database(before.engine, settings=before.settings, clock=self.clock)
        self.servers[self.servers.index(before)] = self.database

    def step(self, data: st.DataObject, steps: tuple[str, ...] = _STEPS) -> None:
        definition = data.draw(st.sampled_from(self.definitions))
        step = data.draw(st.sampled_from(steps))
        with suppress(ServiceError):
            self._do(data, step, definition)

    def _do(self, data: st.DataObject, step: str, definition: TableDefinition) -> None:
        name = definition.name
        if step == "put":
            self._put(definition, data.draw(strategies.items(definition)))
        elif step in ("delete", "update"):
            known = self.keys[name]
            key = data.draw(st.sampled_from(known) if known else strategies.key_items(definition))
            request: dict[str, Any] = {"TableName": name, "Key": key}
            if step == "update":
                request["UpdateExpression"] = "SET g = :g, h = :h, b = if_not_exists(b, :b)"
                values = {":" + n: data.draw(strategies.keys(t)) for n, t in zip("ghb", "SNB", strict=True)}
                request["ExpressionAttributeValues"] = values
            self.database.execute(f"{step.title()}Item", request)
        elif step == "index":
            self.database.execute("UpdateTable", {"TableName": "global", **_LATE})
        elif step == "no index":
            self.database.execute("UpdateTable", {"TableName": "global", **_NOT_LATE})
        elif step == "drop":
            self.database.execute("DeleteTable", {"TableName": name})
            self.database.execute("CreateTable", strategies.create_request(definition))
        elif step == "expiry":
            specification = {"AttributeName": strategies.TTL_ATTRIBUTE, "Enabled": data.draw(st.booleans())}
            request = {"TableName": name, "TimeToLiveSpecification": specification}
            self.database.execute("UpdateTimeToLive", request)
        elif step == "sweep":
            self.database.sweep()
        else:
            self.clock.advance(data.draw(st.sampled_from([1, 30, 600])))


@pytest.mark.parametrize(
    "delays",
    [Settings(), Settings(update_seconds=1.0), Settings(update_seconds=1.0, gsi_delay_seconds=5.0)],
    ids=["no delay", "slow changes", "lagging indexes"],
)
@_HISTORIES
@given(data=st.data())
def test_derived_records_can_be_recomputed(delays: Settings, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "BITE_ITEMS", 3)
        history = History(delays)
        history.fill(data)
        for _ in range(data.draw(st.integers(1, 20))):
            history.step(data)
        # While things are under way, what the checker compares must hold as well.
        assert list(check(history.database.engine)) == []
        history.settle()
        assert list(check(history.database.engine)) == []
        history.database.engine.read(recompute)


def recompute(reader: Reader) -> None:
    """Fail unless everything derived is what the items say."""
    for table in catalog.definitions(reader):
        found = {(p, s): records.item_of(record) for p, s, record in reader.scan_space(table.space)}
        assert tuple(reader.totals(table.space)) == (len(found), sum(map(item_size, found.values())))
        model = _reference(table)
        model.items = dict(enumerate(found.values()))  # type: ignore[arg-type]
        local_bytes: Counter[bytes] = Counter()
        for (partition, _), item in found.items():
            local_bytes[partition] += item_size(item)
        for index in table.indexes:
            definition = model.definition.index(index.name)
            entries = [records.item_of(record) for _, _, record in reader.scan_space(index.space)]
            expected = model.entries(definition)
            assert Counter(map(plain_item, entries)) == Counter(map(plain_item, expected))
            assert tuple(reader.totals(index.space)) == (len(entries), sum(map(item_size, entries)))
            if not index.is_global:
                for (partition, _), item in found.items():
                    entry = model.projected(definition, item)
                    local_bytes[partition] += item_size(entry) if entry is not None else 0
        if table.has_local_indexes:
            sizes = {p: applying.collection_size(reader, table, p) for p in local_bytes}
            assert sizes == dict(local_bytes)
            assert len(list(reader.scan_space(table.collection_space))) == len(sizes)
        _recompute_queue(reader, table, found)


def _recompute_queue(reader: Reader, table: Table, found: dict[tuple[bytes, bytes], Item]) -> None:
    ttl = table.ttl
    if ttl is None:
        return
    assert ttl.built
    expected = [
        (seconds, *address)
        for address, item in found.items()
        if (seconds := expiry.expires_at(ttl.attribute, item)) is not None
    ]
    assert list(expiry.queued(reader, ttl)) == sorted(expected)


def _reference(table: Table) -> ReferenceTable:
    definition = next(one for one in strategies.definitions() if one.name == table.name)
    if table.index("late") is not None:
        definition.indexes.append(strategies.LATE_INDEX)
    return ReferenceTable(definition)


class Killed(BaseException):
    """The process ends here, between the reads of a bite and its write."""


class Interrupted:
    """An engine that does something before a bite of background work writes what follows from the records
    that the bite has read."""

    def __init__(self, engine: Any = None) -> None:
        self._engine = engine or MemoryEngine()
        self.before_write: Callable[[], None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def write(self, body: Callable[[Transaction], T]) -> T:
        before, self.before_write = self.before_write, None
        if before is not None:
            before()
        return self._engine.write(body)


@pytest.mark.parametrize("lag_seconds", [0.0, 5.0])
@_HISTORIES
@given(data=st.data())
def test_builds_take_in_what_happens_between_their_reads_and_writes(
    lag_seconds: float, data: st.DataObject
) -> None:
    """Items change while an index and an expiry queue are being built, also within a bite, and the process
    is killed between two bites or within one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeps, "BITE_ITEMS", 3)
        patch.setattr(sweeps, "_LOOK_ITEMS", 2)
        engine: Any = Interrupted()
        history = History(Settings(update_seconds=1.0, gsi_delay_seconds=lag_seconds), engine)
        history.fill(data)
        history.database.execute("UpdateTable", {"TableName": "global", **_LATE})
        for _ in range(data.draw(st.integers(1, 10))):
            changes = data.draw(st.integers(0, 3))
            killed = data.draw(st.booleans())

            def meanwhile(changes: int = changes, killed: bool = killed) -> None:
                for _ in range(changes):
                    history.step(data, ("put", "delete", "update"))
                if killed:
                    raise Killed

            engine.before_write = meanwhile
            try:
                history.database.sweep()
            except Killed:
                history.restart()
            engine.before_write = None
            assert list(check(engine)) == []
        history.settle()
        assert list(check(engine)) == []
        engine.read(recompute)


@pytest.fixture(params=["memory", "embedded", "postgres"])
def two_engines(request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Makes a context with two engines over one new store, or with one engine twice."""

    @contextmanager
    def opened() -> Iterator[list[Any]]:
        with ExitStack() as stack:
            engines: list[Any] = [MemoryEngine()] * 2
            if request.param == "embedded":
                engines = [EmbeddedEngine(stack.enter_context(TemporaryDirectory()))] * 2
            elif request.param == "postgres":
                url, schema = request.getfixturevalue("postgres_url"), postgres.new_schema()
                engines = [postgres.engine(url, schema=schema) for _ in range(2)]
            for engine in engines:
                stack.callback(engine.close)
            yield engines

    return opened


@_HISTORIES
@given(data=st.data())
def test_delays_that_differ_and_indexes_that_go_leave_nothing_behind(
    two_engines: Callable[[], Any], data: st.DataObject
) -> None:
    """Two servers, or one that is started again, of which only one delays global indexes; indexes and tables
    are deleted and made again, also while a bite of background work is under way."""
    with pytest.MonkeyPatch.context() as patch, two_engines() as engines:
        patch.setattr(sweeps, "BITE_ITEMS", 3)
        first, second = map(Interrupted, engines)
        history = History(Settings(gsi_delay_seconds=5.0), first)
        history.servers.append(Database(second, clock=history.clock))
        history.fill(data)
        for _ in range(data.draw(st.integers(1, 25))):
            history.database = data.draw(st.sampled_from(history.servers))
            interrupted: Any = history.database.engine
            if data.draw(st.booleans()):
                interrupted.before_write = partial(history.step, data, _MEANWHILE)
            history.step(data, _COMING_AND_GOING)
            interrupted.before_write = None
        assert list(check(first)) == []
        history.settle()
        assert list(check(first)) == []
        first.read(recompute)
