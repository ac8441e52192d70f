"""Time to live: when an item expires, and the queue that the sweep reads."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.limits import TTL_PAST_SECONDS_MAX
from hashrange.storage.api import Transaction
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.background import sweeps
from hashrange.tables.definitions.table import TimeToLive
from hashrange.tables.inspection import check
from hashrange.tables.writes import expiry
from hashrange.values import AttributeValue, Item
from interruptions import Interrupted, in_small_bites
from worlds import create

NOW = 1_700_000_000
TTL = TimeToLive("ttl", 0.0, 100)


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ({"N": "1700000000"}, NOW),
        ({"N": "1700000000.9"}, NOW),
        ({"N": "1"}, 1),
        ({"N": "0"}, None),
        ({"N": "-5"}, None),
        ({"N": "0.5"}, None),
        ({"N": "1" + "0" * 100}, None),
        ({"S": "1700000000"}, None),
        ({"NULL": True}, None),
        ({"NS": ["1700000000"]}, None),
        (None, None),
    ],
)
def test_when_an_item_expires(value: AttributeValue | None, seconds: int | None) -> None:
    assert expiry.expires_at("ttl", {"ttl": value} if value is not None else {}) == seconds
    assert expiry.expires_at("ttl", None) is None


def change(txn: Transaction, sort: bytes, before: Item | None, after: Item | None) -> None:
    expiry.requeue(txn, TTL, b"p" * 24, sort, before, after)


def expiring(seconds: int) -> Item:
    return {"ttl": {"N": str(seconds)}}


@given(st.lists(st.tuples(st.integers(0, 3), st.none() | st.integers(NOW - 3, NOW + 3)), max_size=12))
def test_the_queue_follows_the_items(changes: list[tuple[int, int | None]]) -> None:
    engine = MemoryEngine()
    items: dict[int, Item | None] = {}
    for number, seconds in changes:
        before, after = items.get(number), expiring(seconds) if seconds is not None else None
        sort = bytes([number])
        engine.write(partial(change, sort=sort, before=before, after=after))
        items[number] = after
    expected = sorted(
        (int(item["ttl"]["N"]), b"p" * 24, bytes([number])) for number, item in items.items() if item
    )
    assert engine.read(lambda reader: list(expiry.queued(reader, TTL))) == expected
    due = [place for place in expected if place[0] <= NOW]
    assert engine.read(lambda reader: list(expiry.due(reader, TTL, NOW + 0.5))) == due
    if expected:
        rest = engine.read(lambda reader: list(expiry.queued(reader, TTL, expected[0])))
        assert rest == expected[1:]


def database_with_items(seconds: list[int], engine: Any = None) -> tuple[Database, ManualClock]:
    clock = ManualClock(NOW)
    database = Database(engine or MemoryEngine(), clock=clock)
    create(database, "table", "p:N")
    for number, second in enumerate(seconds):
        item: Item = {"p": {"N": str(number)}, **expiring(second)}
        database.execute("PutItem", {"TableName": "table", "Item": item})
    return database, clock


def enable(database: Database, enabled: bool = True) -> None:
    specification = {"AttributeName": "ttl", "Enabled": enabled}
    database.execute("UpdateTimeToLive", {"TableName": "table", "TimeToLiveSpecification": specification})


def left(database: Database) -> set[int]:
    found = database.execute("Scan", {"TableName": "table", "ProjectionExpression": "p"})["Items"]
    return {int(item["p"]["N"]) for item in found}


def sweep_all(database: Database) -> None:
    while database.sweep() == 0.0:
        pass


def test_items_that_were_there_before_expire_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "BITE_ITEMS", 2)
    database, clock = database_with_items([NOW + number for number in range(7)])
    sweep_all(database)
    assert len(left(database)) == 7  # nothing expires without time to live
    enable(database)
    clock.advance(3)
    assert len(left(database)) == 7  # what has expired stays readable until it is deleted
    sweep_all(database)
    assert left(database) == {4, 5, 6}
    assert list(check.check(database.engine)) == []


def test_items_change_while_the_queue_is_built(monkeypatch: pytest.MonkeyPatch) -> None:
    in_small_bites(monkeypatch)
    engine = Interrupted()
    database, clock = database_with_items([NOW + 10] * 9, engine)
    enable(database)
    waiting = list(range(9))

    def change() -> None:
        """Move the time of an item, and delete another one, between the reads of each bite and its write."""
        if waiting:
            moved, removed, _ = (waiting.pop() for _ in range(3))
            request = {"TableName": "table", "Item": {"p": {"N": str(moved)}, **expiring(NOW + 20)}}
            database.execute("PutItem", request)
            database.execute("DeleteItem", {"TableName": "table", "Key": {"p": {"N": str(removed)}}})
            engine.before_write = change

    engine.before_write = change
    sweep_all(database)
    assert waiting == []
    assert list(check.check(database.engine)) == []
    clock.advance(10)
    sweep_all(database)
    assert left(database) == {2, 5, 8}
    assert list(check.check(database.engine)) == []


def test_an_item_whose_time_was_moved_does_not_expire() -> None:
    database, clock = database_with_items([NOW + 5, NOW + 5, NOW + 5])
    enable(database)
    for number, item in ((0, expiring(NOW + 50)), (1, {})):
        request = {"TableName": "table", "Item": {"p": {"N": str(number)}, **item}}
        database.execute("PutItem", request)
    clock.advance(10)
    sweep_all(database)
    assert left(database) == {0, 1}


def test_times_of_more_than_five_years_ago_never_expire() -> None:
    database, _ = database_with_items([NOW - TTL_PAST_SECONDS_MAX - 1, NOW - TTL_PAST_SECONDS_MAX, NOW - 1])
    enable(database)
    sweep_all(database)
    assert left(database) == {0}


def test_nothing_expires_once_it_is_switched_off() -> None:
    database, clock = database_with_items([NOW + 5])
    enable(database)
    enable(database, enabled=False)
    clock.advance(10)
    sweep_all(database)
    assert left(database) == {0}
    assert list(check.check(database.engine)) == []
    enable(database)
    sweep_all(database)
    assert left(database) == set()
