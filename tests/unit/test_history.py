"""The history of a table: at every moment, what is read as of it is what was there."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from doses import examples
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.spans import moment_of, stamp_at, stamp_through
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import images, versions
from hashrange.tables.history.past import Past, PastLost, settle
from hashrange.tables.inspection import check
from hashrange.tables.items import records
from histories import DAY, NOW, SORTS, World, key_of, opener_of, put, put_all, steps, take, values_at


@pytest.mark.parametrize("engine", ["memory", "embedded"])
@settings(max_examples=examples(60), deadline=None)
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


def test_all_changes_while_the_clock_stands_belong_to_its_moment(world: World) -> None:
    for value in range(50):
        put(world, value % 5, value)
    world.clock.advance(0.001)
    put(world, 0, 99)
    assert values_at(world, stamp_through(NOW)) == ["45", "46", "47", "48", "49"]
    assert values_at(world, stamp_through(NOW + 0.001)) == ["46", "47", "48", "49", "99"]
    with pytest.raises(PastLost):
        values_at(world, stamp_through(NOW - 0.001))


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


@pytest.mark.once
def test_pages_of_the_past_walk_over_the_images_once(world: World) -> None:
    """Also where no item has changed since, so that there is no image to be found."""
    for number in range(600):
        item = {"p": {"S": "p"}, "s": {"B": base64.b64encode(b"%04d" % number).decode()}}
        world("PutItem", TableName="table", Item=item | {"v": {"N": "1"}})
    stamp = world.database.engine.write(lambda txn: txn.stamp(0))
    table = world.table

    partition = min(address[0] for address in world.present())

    def from_bottom(past: Past, last: Any) -> Iterator[Any]:
        return past.scan_space(table.space, (last[0], last[1] + b"\x00") if last else (b"", b""))

    def of_partition(past: Past, last: Any) -> Iterator[Any]:
        low = last[1] + b"\x00" if last else b""
        return ((partition, *row) for row in past.scan(table.space, partition, low))

    def from_top(past: Past, last: Any) -> Iterator[Any]:
        rows = past.scan(table.space, partition, b"", last[1] if last else None, reverse=True)
        return ((partition, *row) for row in rows)

    def body(reader: Reader) -> None:
        every = list(reader.scan_space(table.space))
        for rows_after, wanted in ((from_bottom, every), (of_partition, every), (from_top, every[::-1])):
            counting = Counting(reader)
            past = Past(counting, table, stamp)
            rows: list[Any] = []
            while page := list(islice(rows_after(past, rows[-1] if rows else None), 50)):
                rows += page
            assert rows == wanted
            assert counting.count < 4 * len(every), (rows_after.__name__, counting.count)

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

    assert found_after(sort, b"") == ["this is not an image of an item"]
    assert found_after(b"x", image) == ["this is not an image of an item"]
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
