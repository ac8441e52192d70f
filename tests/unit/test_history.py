"""The history of a table: at every moment, what is read as of it is what was there."""

from __future__ import annotations

import base64
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hashrange.clock import ManualClock
from hashrange.database import Caller, Database, Settings
from hashrange.operations.writes import single_write
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.contract.reruns import Reruns
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.data import records, writes
from hashrange.tables.data.item_change import Occasion
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import images, recording, versions
from hashrange.tables.history.past import Past, settle
from hashrange.tables.history.spans import moment_of, stamp_at, stamp_through
from hashrange.tables.inspection import check

NOW = 1_700_000_000.0
DAY = 24 * 3600.0

# Sort keys that lie close to each other, also when 00 is escaped.
SORTS = [b"\x00", b"\x00\x00", b"\x00\x01", b"\x00\xff", b"\x01", b"a", b"a\x00", b"a\x00\x01", b"a\xff"]
SORTS += [b"\xff"]
PARTITIONS = ["p", "q"]

TABLE: dict[str, Any] = {
    "TableName": "table",
    "BillingMode": "PAY_PER_REQUEST",
    "AttributeDefinitions": [
        {"AttributeName": "p", "AttributeType": "S"},
        {"AttributeName": "s", "AttributeType": "B"},
    ],
    "KeySchema": [
        {"AttributeName": "p", "KeyType": "HASH"},
        {"AttributeName": "s", "KeyType": "RANGE"},
    ],
}
INDEX = {
    "IndexName": "index",
    "KeySchema": [{"AttributeName": "v", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}

Contents = dict[tuple[bytes, bytes], bytes]
"""The records of a table by their addresses."""


def key_of(number: int) -> dict[str, Any]:
    """One of twenty keys."""
    sort = SORTS[number % len(SORTS)]
    return {"p": {"S": PARTITIONS[number // len(SORTS)]}, "s": {"B": base64.b64encode(sort).decode()}}


class World:
    """A database with one table whose history is held, and all that the table ever was."""

    def __init__(self, opener: Callable[[], Any]) -> None:
        self.opener = opener
        self.clock = ManualClock(NOW)
        self.database = Database(opener(), clock=self.clock)
        self("CreateTable", **TABLE)
        self("UpdateTimeToLive", TableName="table",
             TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": True})
        self.hold("test")
        self.known: dict[int, Contents] = {}
        self.note()

    def __call__(self, operation: str, **request: Any) -> Any:
        return self.database.execute(operation, request, Caller(access_key="tester"))

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
        now = self.clock.now()
        self.change(lambda txn, table: recording.release(txn, table, name, now))

    def rows(self, space: int) -> list[tuple[bytes, bytes, bytes]]:
        return self.database.engine.read(lambda reader: list(reader.scan_space(space)))

    def present(self) -> Contents:
        return {(partition, sort): record for partition, sort, record in self.rows(self.table.space)}

    def note(self) -> None:
        """Note the present state, under the stamp of the last change, and under one of its own."""
        stamp = self.database.engine.write(lambda txn: txn.stamp(0))
        self.known[stamp - 1] = self.known[stamp] = self.present()

    def reopen(self) -> None:
        if isinstance(self.database.engine, EmbeddedEngine):
            self.database.close()
            self.database = Database(self.opener(), clock=self.clock)

    def compare(self) -> None:
        """Everything that can be read of each noted moment is what it was."""
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
        """The items that changed between two noted moments turn the one state into the other."""
        table = self.table
        found = self.database.engine.read(lambda reader: list(versions.changed(reader, table, low, high)))
        state = dict(self.known[low])
        addresses = [(one.partition, one.sort) for one in found]
        assert addresses == sorted(set(addresses))
        for one in found:
            address = one.partition, one.sort
            assert one.before == state.get(address)
            assert low < one.stamp <= high
            if one.after is None:
                state.pop(address, None)
            else:
                state[address] = one.after
        assert state == self.known[high]


def same(reader: Reader, table: Table, stamp: int, contents: Contents) -> None:
    """Compare all that a `Past` shows with what was there."""
    past = Past(reader, table, stamp)
    rows = sorted((*address, record) for address, record in contents.items())
    assert list(past.scan_space(table.space)) == rows
    for partition in {row[0] for row in rows}:
        mine = [row[1:] for row in rows if row[0] == partition]
        assert list(past.scan(table.space, partition)) == mine
        assert list(past.scan(table.space, partition, reverse=True)) == mine[::-1]
        for low, high in ((SORTS[2], SORTS[7]), (SORTS[0], SORTS[5]), (SORTS[6], None), (b"a", b"b")):
            part = [row for row in mine if low <= row[0] and (high is None or row[0] < high)]
            assert list(past.scan(table.space, partition, low, high)) == part
            assert list(past.scan(table.space, partition, low, high, reverse=True)) == part[::-1]
        every = [(table.space, partition, sort) for sort in SORTS]
        assert past.get_many(every) == [contents.get((partition, sort)) for sort in SORTS]
    for start in rows[:3]:  # a scan that goes on
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
        writes.perform(txn, table, write, Occasion(now, Settings()))


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
        case ("reopen",):
            world.reopen()
        case ("compare",):
            world.compare()


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@settings(max_examples=60, deadline=None)
@given(history=st.lists(steps, max_size=30))
def test_every_moment_is_what_it_was(engine: str, history: list[tuple[Any, ...]]) -> None:
    with opener_of(engine) as opener:
        world = World(opener)
        try:
            for step in history:
                take(world, step)
                world.note()
            world.compare()
            world.reopen()
            world.compare()
        finally:
            world.database.close()


@pytest.fixture(params=["memory", "embedded", "reruns"])
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    with opener_of(request.param) as opener:
        world = World(opener)
        yield world
        world.database.close()


def put(world: World, number: int, value: int) -> None:
    world("PutItem", TableName="table", Item=key_of(number) | {"v": {"N": str(value)}})


def values_at(world: World, stamp: int) -> list[str]:
    """The values of all items at a stamp."""
    table = world.table

    def body(reader: Reader) -> list[str]:
        rows = Past(reader, table, stamp).scan_space(table.space)
        return sorted(records.item_of(record)["v"]["N"] for _, _, record in rows)

    return world.database.engine.read(body)


def test_all_changes_while_the_clock_stands_belong_to_its_moment(world: World) -> None:
    for value in range(50):
        put(world, value % 5, value)
    world.clock.advance(0.001)
    put(world, 0, 99)
    assert values_at(world, stamp_through(NOW)) == ["45", "46", "47", "48", "49"]
    assert values_at(world, stamp_through(NOW + 0.001)) == ["46", "47", "48", "49", "99"]
    assert values_at(world, stamp_through(NOW - 0.001)) == []


def test_what_is_settled_never_changes(world: World) -> None:
    """A request that began before the moment, and commits after it was settled, comes after it."""
    put(world, 0, 1)
    world.clock.advance(1)
    stamp = stamp_through(NOW + 0.5)
    settle(world.database.engine, stamp)
    before = values_at(world, stamp)
    item = key_of(1) | {"v": {"N": "2"}}
    world.database.engine.write(partial(put_all, items=[item], now=NOW + 0.25))
    assert values_at(world, stamp) == before == ["1"]
    assert values_at(world, stamp_through(NOW + 1)) == ["1", "2"]


def test_moments_and_stamps() -> None:
    for moment in (0.0, 0.001, NOW, NOW + 0.123, 253_402_300_799.999):
        assert moment_of(stamp_at(moment)) == pytest.approx(moment, abs=1e-9)
        assert moment_of(stamp_through(moment)) == moment_of(stamp_at(moment))
        assert stamp_through(moment) + 1 == stamp_at(moment + 0.001)
        assert 0 <= stamp_through(moment) < 2**64


class Counting:
    """A reader that counts the records that scans give."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.count = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def scan(self, *arguments: Any, **given: Any) -> Iterator[Any]:
        return self._counted(self._reader.scan(*arguments, **given))

    def scan_space(self, *arguments: Any, **given: Any) -> Iterator[Any]:
        return self._counted(self._reader.scan_space(*arguments, **given))

    def _counted(self, found: Iterator[Any]) -> Iterator[Any]:
        for one in found:
            self.count += 1
            yield one


@pytest.mark.once
def test_an_item_that_changed_very_often_is_not_walked_over(world: World) -> None:
    for number in range(6):
        put(world, number, 0)
    start = world.database.engine.write(lambda txn: txn.stamp(0))
    stamps = [start]
    for turn in range(1_000):
        put(world, 3, turn)
        if turn in (400, 990):
            stamps.append(world.database.engine.write(lambda txn: txn.stamp(0)))
    stamps.append(world.database.engine.write(lambda txn: txn.stamp(0)))
    table = world.table
    partition = min(address[0] for address in world.present())

    def body(reader: Reader) -> None:
        for stamp in stamps:
            for look in (
                lambda past: past.scan_space(table.space),
                lambda past: past.scan(table.space, partition),
                lambda past: past.scan(table.space, partition, reverse=True),
                lambda past: iter([past.get(table.space, partition, SORTS[3])]),
            ):
                counting = Counting(reader)
                found = list(look(Past(counting, table, stamp)))
                assert len(found) in (1, 6)
                assert counting.count < 40, (stamps.index(stamp), counting.count)

    world.database.engine.read(body)


def test_spans_come_and_go_by_the_day(world: World) -> None:
    world.hold("week", 7 * DAY)
    world.release("test")
    first = world.table.history
    assert first is not None
    assert len(first.spans) == 1
    for day in range(20):
        put(world, 0, day)
        world.clock.advance(DAY)
        world.database.settle()
    history = world.table.history
    assert history is not None
    # Seven that hold images of the last week, and the one that was begun last.
    assert len(history.spans) == 8
    assert history.spans[0].after <= stamp_at(world.clock.now() - 7 * DAY)
    assert history.spans[1].after > stamp_at(world.clock.now() - 7 * DAY)
    assert world.rows(first.space) == []
    for ago in range(7):
        stamp = stamp_through(world.clock.now() - ago * DAY - 1)
        assert values_at(world, stamp) == [str(19 - ago)]
    assert list(check.check(world.database.engine)) == []


def test_a_hold_keeps_what_others_let_go(world: World) -> None:
    world.hold("days", 2 * DAY)
    world.release("test")
    put(world, 0, 1)
    world.hold("export:1")
    since = world.table.history.hold("export:1").since  # type: ignore[union-attr]
    put(world, 0, 2)
    for _ in range(10):
        world.clock.advance(DAY)
        world.database.settle()
    assert values_at(world, since) == ["1"]
    world.release("days")
    assert values_at(world, since) == ["1"]
    spans = world.table.history.spans  # type: ignore[union-attr]
    world.release("export:1")
    assert world.table.history is None
    for span in spans:
        assert world.rows(span.space) == []
    put(world, 0, 3)
    assert list(check.check(world.database.engine)) == []


def test_a_clock_that_is_set_back_keeps_no_span_for_ever(world: World) -> None:
    world.hold("days", 2 * DAY)
    world.release("test")
    world.clock.advance(1000 * DAY)
    world.database.settle()
    put(world, 0, 1)
    world.clock.set(NOW)
    world.database.settle()
    put(world, 0, 2)
    stamp = world.database.engine.write(lambda txn: txn.stamp(0))
    put(world, 0, 3)
    assert values_at(world, stamp) == ["2"]
    for _ in range(5):
        world.clock.advance(DAY)
        world.database.settle()
    history = world.table.history
    assert history is not None
    assert len(history.spans) <= 4


def newest(
    reader: Reader, table: Table, place: tuple[bytes, bytes], high: int
) -> list[versions.Version]:
    return list(islice(versions.versions(reader, table, *place, high=high), 1))


def test_the_versions_of_an_item(world: World) -> None:
    put(world, 0, 1)
    world.clock.advance(10)
    ttl = str(int(NOW) + 20)
    world("PutItem", TableName="table", Item=key_of(0) | {"v": {"N": "2"}, "ttl": {"N": ttl}})
    put(world, 1, 7)
    world.clock.advance(DAY + 20)
    world.database.settle()
    put(world, 0, 3)
    put(world, 0, 3)  # changes nothing
    table = world.table
    place = next(address for address in world.present() if address[1] == SORTS[0])

    def body(reader: Reader) -> list[Any]:
        found = []
        for version in versions.versions(reader, table, *place):
            item = records.item_of(version.record) if version.record is not None else None
            value = item["v"]["N"] if item is not None else None
            found.append((value, version.caller, version.by_expiry, round(moment_of(version.stamp) - NOW)))
        return found

    late = round(DAY + 30)
    expected = [
        ("3", "tester", False, late),
        (None, "", True, late),
        ("2", "tester", False, 10),
        ("1", "tester", False, 0),
    ]
    assert world.database.engine.read(body) == expected

    whole = world.database.engine.read(lambda reader: list(versions.versions(reader, table, *place)))
    pages: list[Any] = []
    high = world.database.engine.write(lambda txn: txn.stamp(0))
    while found := world.database.engine.read(partial(newest, table=table, place=place, high=high)):
        pages += found
        high = found[0].stamp - 1
    assert pages == whole


def test_the_checker_finds_wrong_images(world: World) -> None:
    put(world, 0, 1)
    put(world, 0, 2)
    table = world.table
    assert table.history is not None
    span = table.history.spans[0]
    partition, sort, image = world.rows(span.space)[-1]
    place, stamp = images.split(sort) or (b"", 0)

    def found_after(where: bytes, value: bytes) -> list[str]:
        world.database.engine.write(lambda txn: txn.put(span.space, partition, where, value))
        messages = [problem.message for problem in check.check(world.database.engine)]
        world.database.engine.write(lambda txn: txn.delete(span.space, partition, where))
        world.database.engine.write(lambda txn: txn.put(span.space, partition, sort, image))
        assert list(check.check(world.database.engine)) == []
        return messages

    assert found_after(sort, b"") == ["this is no image of an item"]
    assert found_after(b"x", image) == ["this is no image of an item"]
    early = images.stamped(place, span.after)
    assert found_after(early, image)[0].startswith("the image has the stamp")
    [message] = found_after(sort, image[:-3])
    assert "cannot be decoded" in message
    other = images.stamped(images.place_of(b"other"), stamp + 1)
    assert found_after(other, image) == ["the key of the image belongs to another address"]


def test_a_table_without_history_keeps_nothing(world: World) -> None:
    world.release("test")
    assert world.table.history is None
    before = world.database.engine.read(catalog.spaces_end)
    put(world, 0, 1)
    put(world, 0, 2)
    world.clock.advance(3 * DAY)
    world.database.settle()
    assert world.database.engine.read(catalog.spaces_end) == before
    assert list(check.check(world.database.engine)) == []
