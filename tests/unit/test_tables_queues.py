"""Scans of queues begin at their marks: they miss no name, and do not walk over removed ones."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.clock import ManualClock
from hashrange.database import Database, Settings
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.bites import Limit
from hashrange.tables.definitions.table import Index, KeyAttribute, KeySchema
from hashrange.tables.items.indexes import Entry
from hashrange.tables.writes import holds, lag, queues, tokens
from rocks import Skips, counting_skips
from worlds import create, expiry_of

SPACE = 100
NOW = 1_700_000_000
DAY = 24 * 3600

steps = st.one_of(
    st.tuples(st.just("add"), st.integers(0, 20), st.integers(0, 3)),
    st.tuples(st.just("remove"), st.integers(0, 20), st.integers(0, 3)),
    st.tuples(st.just("take"), st.integers(0, 20), st.integers(1, 4)),
)


def take(txn: Transaction, now: int, limit: int) -> list[tuple[int, bytes]]:
    due = list(islice(queues.due(txn, SPACE, now), limit))
    for seconds, name in due:
        queues.remove(txn, SPACE, seconds, name)
    if due:
        queues.done(txn, SPACE, now, *due[-1])
    return due


@given(st.lists(steps, max_size=40))
def test_a_queue_gives_what_is_due_whatever_was_put_before_its_mark(
    done: list[tuple[str, int, int]],
) -> None:
    engine = MemoryEngine()
    model: set[tuple[int, bytes]] = set()
    for step, seconds, number in done:
        name = bytes([number])
        if step == "add":
            engine.write(partial(queues.add, space=SPACE, seconds=seconds, name=name))
            model.add((seconds, name))
        elif step == "remove":
            engine.write(partial(queues.remove, space=SPACE, seconds=seconds, name=name))
            model.discard((seconds, name))
        else:  # `seconds` is the clock, which goes wherever it likes
            expected = sorted(place for place in model if place[0] <= seconds)[:number]
            assert engine.write(partial(take, now=seconds, limit=number)) == expected
            model.difference_update(expected)
    assert engine.read(lambda reader: list(queues.walk(reader, SPACE))) == sorted(model)


def test_what_was_too_old_is_found_when_the_clock_goes_back() -> None:
    engine = MemoryEngine()
    for seconds in (10, 20):
        engine.write(partial(queues.add, space=SPACE, seconds=seconds, name=b"n"))

    def first(txn: Transaction, now: int) -> int:
        seconds, name = next(queues.due(txn, SPACE, now, oldest=now - 5))
        queues.remove(txn, SPACE, seconds, name)
        queues.done(txn, SPACE, now, seconds, name)
        return seconds

    assert engine.write(partial(first, now=24)) == 20
    assert engine.write(partial(first, now=14)) == 10


# -- What RocksDB walks over ------------------------------------------------------------------------------

RECORDS = 4_000
FEW = 150


@pytest.fixture
def skips(monkeypatch: pytest.MonkeyPatch) -> Skips:
    return counting_skips(monkeypatch)


@pytest.fixture
def engine(skips: Skips, tmp_path: Path) -> Iterator[EmbeddedEngine]:
    engine = EmbeddedEngine(tmp_path / "data")
    yield engine
    engine.close()


def test_expiry_begins_where_it_ended(engine: EmbeddedEngine, skips: Skips) -> None:
    clock = ManualClock(NOW)
    database = Database(engine, clock=clock)
    create(database, "table", "p:N")
    database.execute("UpdateTimeToLive", expiry_of("table"))
    fill(database, RECORDS)
    clock.advance(10)
    database.settle()
    skips()
    for _ in range(3):
        database.sweep()
    assert skips() < FEW
    # A time before the mark is found all the same.
    item = {"p": {"N": "1"}, "ttl": {"N": str(NOW - 10)}}
    database.execute("PutItem", {"TableName": "table", "Item": item})
    database.settle()
    assert "Item" not in database.execute("GetItem", {"TableName": "table", "Key": {"p": {"N": "1"}}})


def test_trimming_begins_where_it_ended(engine: EmbeddedEngine, skips: Skips) -> None:
    clock = ManualClock(NOW)
    database = Database(engine, clock=clock, settings=Settings(stream_shard_seconds=30 * DAY))
    create(database, "table", "p:N", stream="KEYS_ONLY")
    fill(database, RECORDS)
    clock.advance(DAY + 1)
    fill(database, 1)
    database.settle()
    skips()
    for _ in range(3):
        database.sweep()
    assert skips() < FEW


def test_the_other_queues_begin_where_they_ended(engine: EmbeddedEngine, skips: Skips) -> None:
    key = KeySchema((KeyAttribute("p", "S"),), ())
    index = Index("index", True, SPACE, key, "ALL")
    entry = Entry(b"p" * 24, b"", b"\x01\x00\x00\x00\x01{}", 1)

    def put(txn: Transaction, number: int) -> None:
        lag.enqueue(txn, "table", index, None, entry, NOW)
        tokens.claim(txn, "account", str(number), b"", NOW, 0)
        holds.hold(txn, SPACE, entry.partition, number.to_bytes(8), NOW + 1)

    def many(txn: Transaction) -> None:
        for number in range(RECORDS):
            put(txn, number)

    later = NOW + DAY
    engine.write(many)
    done = engine.write(partial(lag.arrive, names={}, now=later, delay_seconds=0, limit=Limit(RECORDS)))
    assert done.handled == RECORDS
    assert engine.write(partial(tokens.forget_expired, now=later, limit=RECORDS)) == RECORDS
    assert engine.write(partial(holds.forget_expired, now=later, hold_seconds=1, limit=RECORDS)) == RECORDS
    skips()

    def looks(reader: Reader) -> tuple[float | None, bool, bool]:
        return lag.next_due(reader), tokens.any_expired(reader, later), holds.any_due(reader, later, 1)

    assert engine.read(looks) == (None, False, False)
    assert skips() < FEW


def fill(database: Database, count: int) -> None:
    for start in range(0, count, 25):
        puts = [
            {"PutRequest": {"Item": {"p": {"N": str(number)}, "ttl": {"N": str(NOW + 1 + number % 5)}}}}
            for number in range(start, min(start + 25, count))
        ]
        database.execute("BatchWriteItem", {"RequestItems": {"table": puts}})
