"""Counted view events expire after a week: the transactional counter of test_view_counters.py, and the time.

Time to live works by the clock, so this one runs in process, on a clock that the test moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.errors import TransactionCanceledException
from hashrange.storage.memory import MemoryEngine
from worlds import create, expiry_of

A_WEEK_SECONDS = 7 * 24 * 3600
URL = {"S": "URL#myblog.com/article1"}
EVENT = {"S": "T#2022-03-28T13:17:23+00:00#CID#adidOIkenODSksi92LHd6"}


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def database(clock: ManualClock) -> Iterator[Database]:
    database = Database(MemoryEngine(), clock=clock)
    create(database, "blog_data", "PK, SK")
    yield database
    database.close()


def enable_expiry(database: Database) -> None:
    database.execute("UpdateTimeToLive", expiry_of("blog_data"))


def count_view(database: Database, expires_at: float) -> bool:
    """Whether the event is new, and was counted."""
    seen = {"PK": URL, "SK": EVENT, "ttl": {"N": str(int(expires_at))}}
    request: dict[str, Any] = {
        "TransactItems": [
            {
                "Put": {
                    "TableName": "blog_data",
                    "Item": seen,
                    "ConditionExpression": "attribute_not_exists(PK) and attribute_not_exists(SK)",
                }
            },
            {
                "Update": {
                    "TableName": "blog_data",
                    "Key": {"PK": URL, "SK": {"S": "STATISTICS"}},
                    "UpdateExpression": "SET #views = if_not_exists(#views, :init) + :inc",
                    "ExpressionAttributeNames": {"#views": "views"},
                    "ExpressionAttributeValues": {":init": {"N": "0"}, ":inc": {"N": "1"}},
                }
            },
        ]
    }
    try:
        database.execute("TransactWriteItems", request)
    except TransactionCanceledException:
        return False
    return True


def item_count(database: Database) -> int:
    count: int = database.execute("Scan", {"TableName": "blog_data", "Select": "COUNT"})["Count"]
    return count


def sweep(database: Database) -> None:
    """Run the background work until nothing is due."""
    while database.sweep() == 0.0:
        pass


def test_an_event_is_forgotten_after_a_week_and_the_count_is_not(
    database: Database, clock: ManualClock
) -> None:
    enable_expiry(database)
    assert count_view(database, clock.now() + A_WEEK_SECONDS)
    clock.advance(A_WEEK_SECONDS - 1)
    sweep(database)
    assert not count_view(database, clock.now() + A_WEEK_SECONDS)
    assert item_count(database) == 2

    clock.advance(2)
    # Expired items stay readable until they are swept away. [docs]
    assert item_count(database) == 2
    sweep(database)
    assert item_count(database) == 1
    assert count_view(database, clock.now() + A_WEEK_SECONDS)
    answer = database.execute(
        "Query",
        {
            "TableName": "blog_data",
            "KeyConditionExpression": "PK = :pk AND SK = :sk",
            "FilterExpression": "#views = :two",
            "ExpressionAttributeNames": {"#views": "views"},
            "ExpressionAttributeValues": {":pk": URL, ":sk": {"S": "STATISTICS"}, ":two": {"N": "2"}},
        },
    )
    assert answer["Count"] == 1


def test_events_from_before_expiry_was_enabled_expire_too(database: Database, clock: ManualClock) -> None:
    assert count_view(database, clock.now() + A_WEEK_SECONDS)
    enable_expiry(database)
    sweep(database)
    assert item_count(database) == 2
    clock.advance(A_WEEK_SECONDS + 1)
    sweep(database)
    assert item_count(database) == 1
