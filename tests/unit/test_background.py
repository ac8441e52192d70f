"""The background work: one bad record, table or callback stops nothing else, and bites are bounded."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any, TypeVar, cast

import pytest

import worlds
from hashrange.database import Background, Database
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.storage.memory import MemoryEngine
from hashrange.tables import bites, streams
from hashrange.tables.background import sweeps, units
from hashrange.tables.background.units import Unit
from hashrange.tables.bites import Limit
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.inspection import check
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.spaces import CATALOG_SPACE, LAG_SPACE
from hashrange.tables.writes import applying, expiry, lag
from hashrange.values import Item
from worlds import create, expiry_of, new_index

T = TypeVar("T")

NOW = 1_700_000_000
DAY = 24 * 3600


class World(worlds.World):
    """A database in memory with clocks that stand still."""

    def __init__(self, **settings: float) -> None:
        self.steady = 0.0
        self.engine = MemoryEngine()
        super().__init__(lambda: self.engine, now=NOW, **settings)
        self.background = self.database.background = Background(lambda: self.steady)

    def create(self, name: str, *, stream: bool = False) -> None:
        create(self.database, name, "p:N", stream="NEW_IMAGE" if stream else None)

    def put(self, name: str, number: int, **attributes: Any) -> None:
        item: Item = {"p": {"N": str(number)}, "g": {"S": f"g{number}"}, **attributes}
        self("PutItem", TableName=name, Item=item)

    def index(self, name: str) -> None:
        self("UpdateTable", **new_index(name, "by-g", "g"))

    def expire(self, name: str) -> None:
        self("UpdateTimeToLive", **expiry_of(name))

    def table(self, name: str) -> Table:
        return self.engine.read(partial(catalog.open_any, name=name, scope=""))

    def count(self, name: str, index: str | None = None) -> int:
        request = {"IndexName": index} if index else {}
        return int(self("Scan", TableName=name, Select="COUNT", **request)["Count"])

    def problems(self) -> list[str]:
        return [str(problem) for problem in check.check(self.engine)]


def spoil(world: World, space: int, number: int = 0, value: bytes = b"\x01\x00\x00\x00\x09{spoiled") -> str:
    """Damage one record of a space; its address."""

    def body(txn: Transaction) -> str:
        partition, sort, _ = list(txn.scan_space(space))[number]
        txn.put(space, partition, sort, value)
        return f"{partition.hex()}/{sort.hex()}"

    return world.engine.write(body)


def records_of(reader: Reader, space: int) -> list[tuple[bytes, bytes, bytes]]:
    return list(reader.scan_space(space))


def expiring(seconds: int) -> dict[str, Any]:
    return {"ttl": {"N": str(seconds)}}


@pytest.fixture
def world() -> World:
    return World()


def test_an_index_is_filled_in_spite_of_a_damaged_record(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.create("table")
    for number in range(10):
        world.put("table", number)
    address = spoil(world, world.table("table").space, 3)
    world.index("table")
    assert world.table("table").indexes[0].backfilling  # not at once: a request reports no damage
    world.database.settle()
    assert world.table("table").indexes[0].status == "ACTIVE"
    assert world.count("table", "by-g") == 9
    # It was not left out in silence.
    assert world.background.damages == 1
    [record] = [one for one in caplog.records if "damaged record" in one.message]
    assert record.fields["record"] == address  # type: ignore[attr-defined]
    assert record.fields["unit"] == "index table/by-g"  # type: ignore[attr-defined]
    assert any(address in problem for problem in world.problems())


def test_items_expire_in_spite_of_a_damaged_record(world: World) -> None:
    for name in ("first", "second"):
        world.create(name)
        for number in range(10):
            world.put(name, number, **expiring(NOW + number))
    spoil(world, world.table("first").space, 2)
    world.expire("first")  # found while the queue is built
    world.expire("second")
    spoil(world, world.table("second").space, 4)  # found while items expire
    world.clock.advance(20)
    world.database.settle()
    for name in ("first", "second"):
        # What is left is the damaged record, which a scan cannot show.
        space = world.table(name).space
        assert len(world.engine.read(partial(records_of, space=space))) == 1
    assert world.background.damages == 2
    assert world.background.failing == {}


def test_an_item_that_cannot_be_deleted_does_not_hold_up_the_others(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.create("table")
    for number in range(10):
        world.put("table", number, **expiring(NOW + number))
    world.expire("table")
    applied = applying.apply

    def failing(txn: Transaction, change: ItemChange, occasion: Occasion) -> None:
        if change.old is not None and b'"p":{"N":"4"}' in change.old:
            raise KeyError("a shape that nobody thought of")
        applied(txn, change, occasion)

    monkeypatch.setattr(applying, "apply", failing)
    world.clock.advance(20)
    world.database.settle()
    assert world.count("table") == 1
    assert world.background.damages == 1


def test_a_stream_is_trimmed_in_spite_of_a_damaged_record(world: World) -> None:
    world.create("table", stream=True)
    for number in range(10):
        world.put("table", number)
    stream = world.table("table").stream
    assert stream is not None
    for number in (0, 4, 9):
        spoil(world, stream.space, number, b"\xc1")
    world.clock.advance(DAY + 1)
    world.database.settle()
    left = world.engine.read(lambda reader: len(list(reader.scan_space(stream.space))))
    assert left == 1  # nothing behind the last one tells how old it is
    assert world.background.damages == 2
    world.clock.advance(2 * DAY)
    world.database.settle()
    assert world.engine.read(lambda reader: list(reader.scan_space(stream.space))) == []


def test_changes_reach_lagging_indexes_in_spite_of_a_damaged_one() -> None:
    world = World(gsi_delay_seconds=5.0)
    world.create("table")
    world.index("table")
    world.database.settle()
    for number in range(10):
        world.put("table", number)
    spoil(world, LAG_SPACE, 4, b"\xc1")
    world.clock.advance(10)
    world.database.settle()
    assert world.count("table", "by-g") == 9
    assert world.background.damages == 1
    assert any("no entry in the index" in problem for problem in world.problems())


def test_no_change_is_lost_of_an_index_that_is_younger_than_the_list_of_units() -> None:
    """The list is made once in a while only, as long as something else has more to do."""
    world = World(gsi_delay_seconds=5.0, update_seconds=1.0)
    for name in ("table", "other"):
        world.create(name)
    world.index("other")
    world.clock.advance(10)
    world.database.settle()
    for number in range(300):
        world.put("other", number)
    world.clock.advance(10)
    assert world.database.sweep() == 0.0  # more changes are due than fit into a bite
    world.index("table")
    world.put("table", 1)
    world.clock.advance(10)
    world.database.settle()
    assert world.count("table", "by-g") == 1
    assert world.problems() == []


@pytest.mark.parametrize("restarts", [True, False])
def test_a_change_that_waits_is_not_made_after_a_newer_one(restarts: bool) -> None:
    """Neither by the server that is started again without the delay, nor beside a server without one."""
    world = World(gsi_delay_seconds=30.0)
    world.create("table")
    world.index("table")
    for value in ("a", "b"):
        world.put("table", 1, g={"S": value})
    assert world.table("table").indexes[0].lags
    delaying, world.database = world.database, Database(world.engine, clock=world.clock)
    world.put("table", 1, g={"S": "c"})
    if not restarts:
        world.clock.advance(40)
        delaying.settle()
    world.database.settle()
    assert world.count("table", "by-g") == 1
    assert world.problems() == []  # so it is the entry of c
    assert not world.table("table").indexes[0].lags
    world("DeleteItem", TableName="table", Key={"p": {"N": "1"}})
    assert world.engine.read(lag.next_due) is None  # at once: nothing waits any more
    assert world.count("table", "by-g") == 0
    assert world.problems() == []


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("drops", ["index", "table"])
def test_changes_of_an_index_that_has_gone_are_dropped(drops: str, again: bool) -> None:
    world = World(gsi_delay_seconds=5.0)
    world.create("table")
    world.index("table")
    world.put("table", 1)
    names = lag.lagging([world.table("table")])  # as a sweep lists them, before it comes to the queue
    if drops == "table":
        world("DeleteTable", TableName="table")
    else:
        delete = {"Delete": {"IndexName": "by-g"}}
        world("UpdateTable", TableName="table", GlobalSecondaryIndexUpdates=[delete])
    if again:
        if drops == "table":
            world.create("table")
        world.index("table")
    arrive = partial(lag.arrive, names=names, now=NOW + 10, delay_seconds=5.0, limit=Limit(10))
    assert world.engine.write(arrive).handled == 1
    assert world.problems() == []


@pytest.mark.parametrize(
    ("partition", "sort", "unit"),
    [(b"table", b"/bad", "table bad"), (streams.STREAM, b"/bad\x00label", "stream bad/label")],
)
def test_a_damaged_definition_stops_nothing_else(
    world: World, partition: bytes, sort: bytes, unit: str
) -> None:
    world.create("bad")
    world.create("good", stream=True)
    world.put("good", 1, **expiring(NOW + 1))
    world.expire("good")
    world.engine.write(lambda txn: txn.put(CATALOG_SPACE, partition, sort, b"{spoiled"))
    world.clock.advance(2)
    world.database.settle()
    assert world.count("good") == 0
    assert list(world.background.failing) == [unit]
    assert world("ListTables")["TableNames"] == ["bad", "good"]
    assert "good" in [row["name"] for row in world.database.overview()]
    assert any("cannot be decoded" in problem for problem in world.problems())


def test_a_unit_that_fails_is_logged_once_and_tried_again_ever_more_rarely(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    tries: list[float] = []
    works = False

    def step(bite: units.Bite) -> bool:
        tries.append(world.steady)
        if not works:
            raise RuntimeError("no luck")
        return False

    run = partial(
        world.background.tables.run,
        lambda: [Unit("luck", step), Unit("other", lambda _: False)],
        Occasion(NOW, world.database.settings),
        10,
    )
    for _ in range(2_000):
        run()
        world.steady += 0.5
    waits = [after - before for before, after in pairwise(tries)]
    assert waits == [1, 2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert world.background.failing == {"luck": "RuntimeError: no luck"}
    assert len([one for one in caplog.records if one.levelno == logging.ERROR]) == 1
    works = True
    world.steady += 1_000
    run()
    assert world.background.failing == {}
    assert world.background.failures == len(tries) - 1


def test_a_clock_that_stands_or_jumps_delays_no_retry(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create("table")
    world.put("table", 1, **expiring(NOW + 1))
    world.expire("table")
    with monkeypatch.context() as patch:
        patch.setattr(expiry, "due", lambda *_: 1 / 0)
        world.clock.advance(5)
        world.database.settle()
        assert world.background.failing == {"time to live of table": "ZeroDivisionError: division by zero"}
        world.clock.advance(-3)
    world.database.settle()
    assert world.count("table") == 1  # it has to wait yet, by the steady clock
    world.steady += 1.5
    world.database.settle()
    assert world.count("table") == 0
    assert world.background.failing == {}


def test_a_table_that_was_deleted_no_longer_fails(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    world.create("table")
    world.expire("table")
    monkeypatch.setattr(expiry, "due", lambda *_: 1 / 0)
    world.database.settle()
    assert world.background.failing
    world("DeleteTable", TableName="table")
    world.database.settle()
    assert world.background.failing == {}


class Weighing:
    """A transaction that adds up the bytes put through it."""

    def __init__(self, txn: Transaction) -> None:
        self._txn = txn
        self.bytes = 0

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        self.bytes += len(value)
        self._txn.put(space, partition, sort, value)

    def append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None = None) -> Any:
        self.bytes += len(value)
        return self._txn.append(space, partition, value, stamp_at)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._txn, name)


class Weighed:
    """An engine in memory that notes the most bytes that one body put."""

    def __init__(self) -> None:
        self._engine = MemoryEngine()
        self.most = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def write(self, body: Callable[[Transaction], T]) -> T:
        def weighed(txn: Transaction) -> T:
            weighing = Weighing(txn)
            result = body(weighing)
            self.most = max(self.most, weighing.bytes)
            return result

        return self._engine.write(weighed)


@pytest.mark.parametrize("delay", [0.0, 5.0])
def test_bites_of_large_items_are_bounded_by_bytes(delay: float) -> None:
    world = World(gsi_delay_seconds=delay)
    engine: Any = Weighed()
    world.engine = world.database.engine = engine
    world.create("table", stream=True)
    for number in range(40):
        world.put("table", number, v={"S": "x" * 300_000}, **expiring(NOW + 2))
    engine.most = 0
    world.index("table")
    world.expire("table")
    world.database.settle()
    assert world.count("table", "by-g") > 0
    assert not world.table("table").indexes[0].backfilling
    assert 300_000 < engine.most < bites.BYTES_MAX + 400_000
    for number in range(40):
        world.put("table", number, v={"S": "y" * 300_000}, **expiring(NOW + 2))
    engine.most = 0
    world.clock.advance(10)
    world.database.settle()
    world.clock.advance(2 * DAY)
    world.database.settle()
    assert world.count("table") == 0
    assert engine.most < bites.BYTES_MAX + 400_000
    assert world.problems() == []


def test_what_a_bite_of_a_queue_reads_is_bounded_by_bytes(world: World) -> None:
    world.create("table", stream=True)
    for number in range(20):
        world.put("table", number, v={"S": "x" * 300_000})
    stream = world.table("table").stream
    assert stream is not None
    done = world.engine.write(lambda txn: streams.trim(txn, stream, NOW + 2 * DAY, Limit(1_000)))
    assert done.handled < 5
    assert done.more
    assert world.engine.read(lag.next_due) is None


@pytest.mark.parametrize(
    ("seconds", "items"), [(units.BITE_SECONDS * 10, 20), (units.BITE_SECONDS / 10, 400)]
)
def test_the_size_of_a_bite_follows_its_time(seconds: float, items: int) -> None:
    assert units._next_items(200, seconds, 1_000) == items
    assert units._next_items(200, seconds, 3) == 3


def test_tables_are_looked_through_in_pages_and_once_for_many_bites(world: World) -> None:
    """Otherwise requests wait for the interpreter while ten thousand definitions are read, again and
    again."""
    for number in range(250):
        world.create(f"table{number:03d}", stream=True)
    for number in range(3000):
        world.put("table000", number)
    world.index("table000")
    pauses: list[int] = []
    engine = CountingEngine(world.engine)
    found = sweeps.definitions(cast(Engine, engine), lambda: pauses.append(1))
    assert [name for name, _ in found] == [f"table{number:03d}" for number in range(250)]
    assert max(engine.records) == 100
    assert len(pauses) == 3

    world.background.pause = lambda: pauses.append(1)
    pauses.clear()
    assert world.database.sweep() == 0.0
    assert len(pauses) > 6  # the tables, their streams, and the parts of the bite
    pauses.clear()
    assert world.database.sweep() == 0.0
    assert len(pauses) < 6
    world.database.settle()
    assert world.count("table000", "by-g") == 3000


class CountingEngine:
    """An engine that counts the records which each of its read bodies scans."""

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self.records: list[int] = []

    def read(self, body: Callable[[Reader], T]) -> T:
        def counted(reader: Reader) -> T:
            self.records.append(0)
            return body(cast(Reader, CountingReader(reader, self.records)))

        return self._engine.read(counted)


class CountingReader:
    """A reader that adds the records of its scans to the last of `counts`."""

    def __init__(self, reader: Reader, counts: list[int]) -> None:
        self._reader = reader
        self._counts = counts

    def scan(self, *arguments: Any, **options: Any) -> Iterator[tuple[bytes, bytes]]:
        for record in self._reader.scan(*arguments, **options):
            self._counts[-1] += 1
            yield record
