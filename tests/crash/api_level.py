"""The crash test of the database through its API: the child's work, and what must hold afterwards.

Request number i of worker w is one transaction: put the item (w, i), put an old item again with another
group, add 1 to the counter item, and move 1 from account w to account (w + i) mod 4. Meanwhile an index by
the group is built, deleted, and built again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

import orjson

from hashrange.database import Database, Settings
from hashrange.errors import ResourceInUseException, ServiceError, TransactionConflictException
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.tables.inspection.check import check as problems
from worlds import create, new_index

Acknowledge = Callable[[str], None]

WORKERS = 4
ITEMS, AMOUNTS = "items", "amounts"
OLD, OLD_ITEMS = "old", 600


def create_tables(database: Database) -> None:
    """Create the tables that are missing: the previous child may have been killed between the two."""
    for name, key in ((ITEMS, "w, i:N"), (AMOUNTS, "name")):
        try:
            create(database, name, key)
        except ResourceInUseException:
            continue


def scan(database: Database, table: str) -> list[dict[str, Any]]:
    """All items of a table."""
    items: list[dict[str, Any]] = []
    request: dict[str, Any] = {"TableName": table, "ConsistentRead": True}
    while True:
        # Through bytes and back: an answer may hold stored bytes.
        page = orjson.loads(orjson.dumps(database.execute("Scan", dict(request))))
        items += page["Items"]
        if "LastEvaluatedKey" not in page:
            return items
        request["ExclusiveStartKey"] = page["LastEvaluatedKey"]


def add(name: str, amount: int) -> dict[str, Any]:
    """The action of a transaction that adds to an amount."""
    return {
        "Update": {
            "TableName": AMOUNTS,
            "Key": {"name": {"S": name}},
            "UpdateExpression": "ADD amount :amount",
            "ExpressionAttributeValues": {":amount": {"N": str(amount)}},
        }
    }


def item_of(worker: str, number: int, group: str) -> dict[str, Any]:
    return {"w": {"S": worker}, "i": {"N": str(number)}, "text": {"S": "x" * 300}, "group": {"S": group}}


def request_of(worker: int, number: int) -> dict[str, Any]:
    """The request of a worker's number."""
    group = f"group {number % 7}"
    items = [item_of(str(worker), number, group), item_of(OLD, (37 * number + worker) % OLD_ITEMS, group)]
    writes = [add("counter", 1), *({"Put": {"TableName": ITEMS, "Item": item}} for item in items)]
    target = (worker + number) % WORKERS
    if target != worker:
        writes += [add(f"account {worker}", -1), add(f"account {target}", 1)]
    return {"TransactItems": writes}


def tend_index(database: Database) -> None:
    """Build the index, or delete it where it is complete."""
    adding = new_index(ITEMS, "by-group", "group")
    delete = {"TableName": ITEMS, "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": "by-group"}}]}
    while True:
        if database.sweep() > 0:
            described = database.execute("DescribeTable", {"TableName": ITEMS})["Table"]
            with suppress(ServiceError):  # the table is being changed
                database.execute("UpdateTable", delete if "GlobalSecondaryIndexes" in described else adding)


def run(directory: str, acknowledge: Acknowledge) -> None:
    """Write and acknowledge until killed."""
    # A change of an index takes a moment, so that the background makes it, not the request.
    settings = Settings(update_seconds=0.01)
    engine = EmbeddedEngine(directory, write_buffer_bytes=256 * 1024)
    database = Database(engine, settings=settings)
    create_tables(database)
    done: dict[str, int] = defaultdict(int)
    for item in scan(database, ITEMS):
        done[item["w"]["S"]] += 1
    for number in range(done[OLD], OLD_ITEMS):
        database.execute("PutItem", {"TableName": ITEMS, "Item": item_of(OLD, number, "none")})

    def write(worker: int) -> None:
        number = done[str(worker)]
        while True:
            try:
                database.execute("TransactWriteItems", request_of(worker, number))
            except TransactionConflictException:
                continue
            acknowledge(f"{worker} {number}")
            number += 1

    threads = [Thread(target=write, args=(worker,)) for worker in range(WORKERS)]
    threads.append(Thread(target=tend_index, args=(database,)))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check(directory: str, acknowledged: list[str]) -> int:
    """Assert that every acknowledged request took effect, none in part, and that the index is right; return
    how many took effect."""
    database = Database(EmbeddedEngine(directory))
    try:
        create_tables(database)
        done: dict[int, set[int]] = defaultdict(set)
        for item in scan(database, ITEMS):
            if item["w"]["S"] != OLD:
                done[int(item["w"]["S"])].add(int(item["i"]["N"]))
        for _ in range(2):  # first with the index as the child left it, then with it complete
            found = [str(problem) for problem in problems(database.engine)]
            assert not found, found
            database.settle()
        amounts = {item["name"]["S"]: int(item["amount"]["N"]) for item in scan(database, AMOUNTS)}
    finally:
        database.close()
    for line in acknowledged:
        worker, number = (int(word) for word in line.split())
        assert number in done[worker], f"acknowledged, but not there: {line}"
    expected: dict[str, int] = defaultdict(int)
    for worker, numbers in done.items():
        assert numbers == set(range(len(numbers))), "a worker's requests are not in order"
        for number in numbers:
            expected["counter"] += 1
            target = (worker + number) % WORKERS
            if target != worker:
                expected[f"account {worker}"] -= 1
                expected[f"account {target}"] += 1
    assert amounts == dict(expected), "a transaction took effect in part"
    return sum(len(numbers) for numbers in done.values())
