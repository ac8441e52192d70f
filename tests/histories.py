"""Helpers for the tests of histories and of restores: a table with a past, and all states it ever had."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

import worlds
from hashrange.database import Caller, Settings
from hashrange.operations.writes import single_write
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import recording, versions
from hashrange.tables.history.past import Past
from hashrange.tables.inspection import check
from hashrange.tables.items import records
from hashrange.tables.items.item_change import Occasion
from hashrange.tables.writes import read_modify_write
from hashrange_engine_tests.reruns import Reruns
from worlds import expiry_of, index_on, table_of

NOW = 1_700_000_000.0
DAY = 24 * 3600.0

# Sort keys that are close to each other, also after 00 is escaped.
SORTS = [b"\x00", b"\x00\x00", b"\x00\x01", b"\x00\xff", b"\x01", b"a", b"a\x00", b"a\x00\x01", b"a\xff"]
SORTS += [b"\xff"]
PARTITIONS = ["p", "q"]

TABLE: dict[str, Any] = table_of("table", "p, s:B")
INDEX = index_on("index", "v | KEYS_ONLY")

Contents = dict[tuple[bytes, bytes], bytes]
"""The records of a table by their addresses."""


def key_of(number: int) -> dict[str, Any]:
    """One of twenty keys."""
    sort = SORTS[number % len(SORTS)]
    return {"p": {"S": PARTITIONS[number // len(SORTS)]}, "s": {"B": base64.b64encode(sort).decode()}}


class World(worlds.World):
    """A database with one table whose history is kept, and all states that the table ever had."""

    caller = Caller(access_key="tester")

    def __init__(self, opener: Callable[[], Any]) -> None:
        super().__init__(opener)
        self("CreateTable", **TABLE)
        self("UpdateTimeToLive", **expiry_of("table"))
        self.hold("test")
        self.known: dict[int, Contents] = {}
        self.note()

    @property
    def table(self) -> Table:
        found = self.database.engine.read(lambda reader: catalog.find_full(reader, "table"))
        assert found is not None
        return found

    def change(self, body: Callable[[Transaction, Table], Table]) -> None:
        def run(txn: Transaction) -> None:
            table = catalog.find_full(txn, "table")
            assert table is not None
            catalog.save(txn, body(txn, table))

        self.database.engine.write(run)

    def hold(self, name: str, seconds: float | None = None) -> None:
        now = self.clock.now()
        self.change(lambda txn, table: recording.hold(txn, table, name, now, seconds))

    def release(self, name: str) -> None:
        self.change(lambda txn, table: recording.release(txn, table, name))

    def rows(self, space: int) -> list[tuple[bytes, bytes, bytes]]:
        return self.database.engine.read(lambda reader: list(reader.scan_space(space)))

    def present(self) -> Contents:
        return {(partition, sort): record for partition, sort, record in self.rows(self.table.space)}

    def note(self) -> None:
        """Note the present state, under the stamp of the last change, and under a stamp of its own."""
        stamp = self.database.engine.write(lambda txn: txn.stamp(0))
        self.known[stamp - 1] = self.known[stamp] = self.present()

    def reopen(self) -> None:
        if isinstance(self.database.engine, EmbeddedEngine):
            super().reopen()

    def compare(self) -> None:
        """Assert that every read of each noted moment returns the state of that moment."""
        history = self.table.history
        assert history is not None
        for stamp, contents in self.known.items():
            if stamp >= history.after:
                self.database.engine.read(partial(same, table=self.table, stamp=stamp, contents=contents))
        stamps = [stamp for stamp in self.known if stamp >= history.after]
        for low in stamps[::3]:
            for high in stamps[1::4]:
                if low < high:
                    self.differ(low, high)
        assert list(check.check(self.database.engine)) == []

    def differ(self, low: int, high: int) -> None:
        """Assert that the items that changed between two noted moments turn the first state into the
        second."""
        table = self.table
        changes = self.database.engine.read(lambda reader: list(versions.changed(reader, table, low, high)))
        state = dict(self.known[low])
        addresses = [(change.partition, change.sort) for change in changes]
        assert addresses == sorted(set(addresses))
        for change in changes:
            address = change.partition, change.sort
            assert change.before == state.get(address)
            assert low < change.stamp <= high
            if change.after is None:
                state.pop(address, None)
            else:
                state[address] = change.after
        assert state == self.known[high]


def same(reader: Reader, table: Table, stamp: int, contents: Contents) -> None:
    """Compare everything that a `Past` shows with the contents that were noted."""
    past = Past(reader, table, stamp)
    rows = sorted((*address, record) for address, record in contents.items())
    assert list(past.scan_space(table.space)) == rows
    for partition in {row[0] for row in rows}:
        of_partition = [row[1:] for row in rows if row[0] == partition]
        assert list(past.scan(table.space, partition)) == of_partition
        assert list(past.scan(table.space, partition, reverse=True)) == of_partition[::-1]
        for low, high in ((SORTS[2], SORTS[7]), (SORTS[0], SORTS[5]), (SORTS[6], None), (b"a", b"b")):
            part = [row for row in of_partition if low <= row[0] and (high is None or row[0] < high)]
            assert list(past.scan(table.space, partition, low, high)) == part
            assert list(past.scan(table.space, partition, low, high, reverse=True)) == part[::-1]
        every = [(table.space, partition, sort) for sort in SORTS]
        assert past.get_many(every) == [contents.get((partition, sort)) for sort in SORTS]
    for start in rows[:3]:  # a scan that continues
        assert list(past.scan_space(table.space, start[:2])) == [row for row in rows if row >= start]
        before = [row for row in rows if row < start]
        assert list(past.scan_space(table.space, (b"", b""), start[:2])) == before


@contextmanager
def opener_of(engine: str) -> Iterator[Callable[[], Any]]:
    if engine == "memory":
        yield MemoryEngine
    elif engine == "reruns":
        yield lambda: Reruns(MemoryEngine())
    else:
        with tempfile.TemporaryDirectory() as directory:
            yield lambda: EmbeddedEngine(Path(directory) / "store")


keys = st.sampled_from((0, 1, 2, 3, 6, 7, 8, 9, 12, 17))
steps = st.one_of(
    st.tuples(st.just("put"), keys, st.integers(0, 9)),
    st.tuples(st.just("put"), keys, st.integers(0, 9)),
    st.tuples(st.just("delete"), keys),
    st.tuples(st.just("update"), keys),
    st.tuples(st.just("hammer"), keys, st.integers(5, 30)),
    st.tuples(st.just("expiring"), keys, st.integers(1, 5)),
    st.tuples(st.just("transact"), st.sets(keys, min_size=2, max_size=4), st.integers(0, 9)),
    st.tuples(st.just("batch"), st.sets(keys, min_size=2, max_size=6), st.integers(0, 9)),
    st.tuples(st.just("twice"), keys, st.integers(0, 9)),
    st.tuples(st.just("advance"), st.sampled_from((0.001, 3.0, DAY / 3, DAY, 2 * DAY))),
    # The same items change on several days.
    st.tuples(st.just("days"), st.sets(keys, min_size=1, max_size=3), st.integers(1, 3)),
    st.tuples(st.just("set back"), st.sampled_from((0.5, 3600.0, 3 * DAY))),
    st.tuples(st.just("index")),
    st.tuples(st.just("short hold")),
    st.tuples(st.just("reopen")),
    st.tuples(st.just("compare")),
)


def put_all(txn: Transaction, items: list[dict[str, Any]], now: float) -> None:
    table = catalog.find_full(txn, "table")
    assert table is not None
    for item in items:
        write = single_write.put({"TableName": "table", "Item": item}, "")
        read_modify_write.perform(txn, table, write, Occasion(now, Settings()))


def take(world: World, step: tuple[Any, ...]) -> None:
    match step:
        case "put", number, value:
            world("PutItem", TableName="table", Item=key_of(number) | {"v": {"N": str(value)}})
        case "delete", number:
            world("DeleteItem", TableName="table", Key=key_of(number))
        case "update", number:
            world("UpdateItem", TableName="table", Key=key_of(number), UpdateExpression="ADD v :one",
                  ExpressionAttributeValues={":one": {"N": "1"}})
        case "hammer", number, times:
            for value in range(times):
                world("PutItem", TableName="table", Item=key_of(number) | {"v": {"N": str(100 + value)}})
        case "expiring", number, seconds:
            ttl = str(int(world.clock.now()) + seconds)
            world("PutItem", TableName="table", Item=key_of(number) | {"ttl": {"N": ttl}})
        case "transact", numbers, value:
            items = [key_of(number) | {"v": {"N": str(value)}} for number in numbers]
            puts = [{"Put": {"TableName": "table", "Item": item}} for item in items]
            world("TransactWriteItems", TransactItems=puts)
        case "batch", numbers, value:
            puts = [{"PutRequest": {"Item": key_of(n) | {"v": {"N": str(value)}}}} for n in numbers]
            world("BatchWriteItem", RequestItems={"table": puts})
        case "twice", number, value:
            # One transaction of the store changes an item several times.
            items = [key_of(number) | {"v": {"N": str(value + at)}} for at in range(3)]
            world.database.engine.write(partial(put_all, items=items, now=world.clock.now()))
        case "days", numbers, count:
            for day in range(count):
                take(world, ("batch", numbers, day))
                world.note()
                take(world, ("advance", DAY))
        case "advance", seconds:
            world.clock.advance(seconds)
            world.database.settle()
        case "set back", seconds:
            world.clock.set(world.clock.now() - seconds)
            world.database.settle()
        case ("index",):
            types = TABLE["AttributeDefinitions"]
            if world.table.indexes:
                update: Any = {"Delete": {"IndexName": "index"}}
            else:
                update = {"Create": INDEX}
                types = [*types, {"AttributeName": "v", "AttributeType": "N"}]
            world("UpdateTable", TableName="table", GlobalSecondaryIndexUpdates=[update],
                  AttributeDefinitions=types)
            world.database.settle()
        case ("short hold",):
            # From here on only the last two days are needed.
            world.hold("short", 2 * DAY)
            world.release("test")
        case ("recovery of two days",):
            world("UpdateContinuousBackups", TableName="table", PointInTimeRecoverySpecification={
                "PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 2})
        case ("reopen",):
            world.reopen()
        case ("compare",):
            world.compare()


def put(world: World, number: int, value: int) -> None:
    world("PutItem", TableName="table", Item=key_of(number) | {"v": {"N": str(value)}})


def values_at(world: World, stamp: int) -> list[str]:
    """The values of all items at a stamp."""
    table = world.table

    def body(reader: Reader) -> list[str]:
        rows = Past(reader, table, stamp).scan_space(table.space)
        return sorted(records.item_of(record)["v"]["N"] for _, _, record in rows)

    return world.database.engine.read(body)
