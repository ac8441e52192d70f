"""The crash test of point-in-time restores: the process is killed at any moment while it restores and writes.

Each transaction moves an amount from one account to another and adds 1 to a counter, so the sum of the
amounts never changes. Meanwhile the table of the accounts is restored again and again, in small bites. After
a kill a restored table is ACTIVE with all items and that sum, or CREATING, and then its restore goes on.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

import orjson
import pytest

from hashrange.database import Database
from hashrange.errors import ServiceError, TransactionConflictException
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.tables.bites import Limit
from hashrange.tables.inspection.check import check as problems
from hashrange.tables.writes import builds
from worlds import create, recovery_of

Acknowledge = Callable[[str], None]

ACCOUNTS, COUNT, AMOUNT = "accounts", 300, 100
RESTORED = "restored-"
KEPT = 3


def key(number: int) -> dict[str, Any]:
    return {"name": {"S": f"account {number}"}}


def prepare(database: Database) -> None:
    """Make and fill the table, as far as the previous child had not done it."""
    with suppress(ServiceError):
        create(database, ACCOUNTS, "name", indexes={"by-amount": "amount:N | KEYS_ONLY"})
    if len(scan(database, ACCOUNTS)) < COUNT:
        for number in range(COUNT):
            item = {**key(number), "amount": {"N": str(AMOUNT)}}
            database.execute("PutItem", {"TableName": ACCOUNTS, "Item": item})
    database.execute("UpdateContinuousBackups", recovery_of(ACCOUNTS))


def scan(database: Database, table: str) -> list[dict[str, Any]]:
    """The accounts in a table."""
    items: list[dict[str, Any]] = []
    request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
    while True:
        # Through bytes and back: an answer may hold stored bytes.
        page = orjson.loads(orjson.dumps(database.execute("Scan", dict(request))))
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def tables(database: Database) -> dict[str, str]:
    """The restored tables, the oldest first, with their states."""
    names = [
        name
        for name in database.execute("ListTables", {})["TableNames"]
        if name.startswith(RESTORED)
    ]
    described = {
        name: database.execute("DescribeTable", {"TableName": name})["Table"]["TableStatus"] for name in names
    }
    return dict(sorted(described.items(), key=lambda pair: int(pair[0].removeprefix(RESTORED))))


def restore(database: Database, acknowledge: Acknowledge) -> None:
    """Restore the table again and again, and delete old restored tables, some of them half restored."""
    known = tables(database)
    number = int(next(reversed(known)).removeprefix(RESTORED)) if known else 0
    chance = random.Random(number)
    while True:
        number += 1
        request = {
            "SourceTableName": ACCOUNTS,
            "TargetTableName": f"{RESTORED}{number}",
            "UseLatestRestorableTime": True,
        }
        database.execute("RestoreTableToPointInTime", request)
        for _ in range(chance.randrange(8)):
            database.sweep()
        for name in list(tables(database))[:-KEPT]:
            database.execute("DeleteTable", {"TableName": name})
        acknowledge(f"restored {number}")


def move(database: Database) -> None:
    """Move amounts between accounts, until killed."""
    chance = random.Random()
    while True:
        source, target = chance.sample(range(COUNT), 2)
        updates = [
            {
                "Update": {
                    "TableName": ACCOUNTS,
                    "Key": key(number),
                    "UpdateExpression": "ADD amount :change",
                    "ExpressionAttributeValues": {":change": {"N": str(change)}},
                }
            }
            for number, change in ((source, -1), (target, 1))
        ]
        with suppress(TransactionConflictException):
            database.execute("TransactWriteItems", {"TransactItems": updates})


def run(directory: str, acknowledge: Acknowledge) -> None:
    """Write and restore until killed."""
    pytest.MonkeyPatch().setattr(builds, "AT_ONCE", Limit(0))  # until it is killed
    database = Database(EmbeddedEngine(directory, write_buffer_bytes=256 * 1024))
    prepare(database)

    threads = [Thread(target=move, args=(database,)) for _ in range(2)]
    threads.append(Thread(target=restore, args=(database, acknowledge)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check(directory: str, acknowledged: list[str]) -> int:
    """Assert that the store is sound, and that each restored table becomes complete; return how many there
    are."""
    database = Database(EmbeddedEngine(directory))
    try:
        found = [str(problem) for problem in problems(database.engine)]
        assert not found, found
        before = tables(database)
        active = [name for name, status in before.items() if status == "ACTIVE"]
        for name in [ACCOUNTS, *active] if before else []:
            check_whole(database, name)
        database.settle()
        after = tables(database)
        assert after.keys() == before.keys()
        assert set(after.values()) <= {"ACTIVE"}, after
        for name in after:
            check_whole(database, name)
        found = [str(problem) for problem in problems(database.engine)]
        assert not found, found
        numbers = [int(line.split()[1]) for line in acknowledged]
        newest = max((int(name.removeprefix(RESTORED)) for name in after), default=0)
        assert newest >= max(numbers, default=0), "an acknowledged restore is missing"
    finally:
        database.close()
    return len(after)


def check_whole(database: Database, table: str) -> None:
    items = scan(database, table)
    assert len(items) == COUNT, f"{table} has {len(items)} items"
    total = sum(int(item["amount"]["N"]) for item in items)
    assert total == COUNT * AMOUNT, f"the amounts in {table} are {total} together"
