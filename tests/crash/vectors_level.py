"""The crash test of vector indexes: what is searched after a kill is what the items say.

Request number i of worker w puts the item (w, i), gives an old item a vector of that number, and takes the
vector from another old item, in one transaction; each third request deletes an old item. Meanwhile searches
run, and an index over the items that are there is made and deleted. After a kill each index has the entries
of its items, and each search finds what a look at all items finds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import Any

import pytest

from crash.api_level import scan
from hashrange.database import Database, Settings
from hashrange.errors import ServiceError, TransactionConflictException
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.tables.inspection.check import check as problems
from vector_tables import condition, expected, index_of, listed

Acknowledge = Callable[[str], None]

WORKERS = 3
TABLE, OLD, OLD_ITEMS = "items", "old", 200
SCOPED = index_of("scoped", SearchSchema=[{"AttributeName": "area", "SearchSchemaElementType": "HASH"}])
LATE = index_of("late", distance="EUCLIDEAN")
QUERIES = ((1, 0), (-1, 2))


def create(database: Database) -> None:
    with suppress(ServiceError):  # the previous child has made it
        database.execute("CreateTable", {
            "TableName": TABLE,
            "BillingMode": "PAY_PER_REQUEST",
            "AttributeDefinitions": [
                {"AttributeName": name, "AttributeType": type_}
                for name, type_ in (("p", "S"), ("s", "N"), ("area", "S"))
            ],
            "KeySchema": [
                {"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "s", "KeyType": "RANGE"}
            ],
            "VectorIndexes": [SCOPED],
        })  # fmt: skip


def key_of(worker: str, number: int) -> dict[str, Any]:
    return {"p": {"S": worker}, "s": {"N": str(number)}}


def item_of(worker: str, number: int) -> dict[str, Any]:
    vector = listed((number % 17 - 8, number % 5 - 2))
    return {**key_of(worker, number), "area": {"S": f"area {number % 3}"}, "v": vector}


def request_of(worker: int, number: int) -> dict[str, Any]:
    """The request of a worker's number. The old items of two workers are not the same."""
    old = [(number * step) % (OLD_ITEMS // WORKERS) * WORKERS + worker for step in (7, 11, 13)]
    writes: dict[int, dict[str, Any]] = {
        old[0]: {"Put": {"TableName": TABLE, "Item": {**item_of(OLD, number), **key_of(OLD, old[0])}}}
    }
    writes.setdefault(old[1], {
        "Update": {"TableName": TABLE, "Key": key_of(OLD, old[1]), "UpdateExpression": "REMOVE v"}
    })  # fmt: skip
    if number % 3 == 0:
        writes.setdefault(old[2], {"Delete": {"TableName": TABLE, "Key": key_of(OLD, old[2])}})
    own = {"Put": {"TableName": TABLE, "Item": item_of(str(worker), number)}}
    return {"TransactItems": [own, *writes.values()]}


def search(database: Database, index: str, vector: Any, **given: Any) -> list[float]:
    """The scores that a search shows."""
    request = {"TableName": TABLE, "IndexName": index, "SearchVector": listed(vector)["L"], **given}
    return [result["Score"] for result in database.execute("SearchVectors", request)["SearchResults"]]


def search_on(database: Database) -> None:
    """Search until killed, so that matrices follow the writes."""
    while True:
        search(database, "scoped", (1, 1), TopK=5, **condition({"area": "area 1"}))


def tend_index(database: Database) -> None:
    """Make the index, or delete it where it is complete."""
    while True:
        if database.sweep() > 0:
            described = database.execute("DescribeTable", {"TableName": TABLE})["Table"]
            has = any(index["IndexName"] == "late" for index in described["VectorIndexes"])
            change = {"Delete": {"IndexName": "late"}} if has else {"Create": LATE}
            with suppress(ServiceError):  # the table is being changed
                database.execute("UpdateTable", {"TableName": TABLE, "VectorIndexUpdates": [change]})


def run(directory: str, acknowledge: Acknowledge) -> None:
    """Write, search and acknowledge until killed."""
    # A change of an index takes a moment, so that the background makes it, not the request.
    settings = Settings(update_seconds=0.01)
    database = Database(EmbeddedEngine(directory, write_buffer_bytes=256 * 1024), settings=settings)
    create(database)
    done: dict[str, int] = defaultdict(int)
    for item in scan(database, TABLE):
        done[item["p"]["S"]] += item["p"]["S"] != OLD

    def write(worker: int) -> None:
        number = done[str(worker)]
        while True:
            with suppress(TransactionConflictException):
                database.execute("TransactWriteItems", request_of(worker, number))
                acknowledge(f"{worker} {number}")
                number += 1

    threads = [Thread(target=write, args=(worker,)) for worker in range(WORKERS)]
    threads += [Thread(target=work, args=(database,)) for work in (tend_index, search_on)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def check(directory: str, acknowledged: list[str]) -> int:
    """Assert that every acknowledged request took effect, and that the indexes agree with the items; return
    how many requests took effect."""
    database = Database(EmbeddedEngine(directory))
    try:
        create(database)
        items = scan(database, TABLE)
        for _ in range(2):  # first with the new index as the child left it, then with it complete
            wrong = [str(problem) for problem in problems(database.engine)]
            assert not wrong, wrong
            check_searches(database, items, "scoped")
            database.settle()
        described = database.execute("DescribeTable", {"TableName": TABLE})["Table"]
        for index in described["VectorIndexes"]:
            assert index["ItemCount"] == sum("v" in item for item in items)
            check_searches(database, items, index["IndexName"])
    finally:
        database.close()
    done = {(item["p"]["S"], int(item["s"]["N"])) for item in items if item["p"]["S"] != OLD}
    for line in acknowledged:
        worker, number = line.split()
        assert (worker, int(number)) in done, f"acknowledged, but not there: {line}"
    return len(done)


def check_searches(database: Database, items: list[dict[str, Any]], index: str) -> None:
    """Assert that searches find what a look at all items finds."""
    distance = "COSINE" if index == "scoped" else "EUCLIDEAN"
    for area in ("area 0", "area 1", "area 2") if index == "scoped" else ("",):
        wanted = {"area": area} if area else {}
        for query in QUERIES:
            given = condition(wanted) if wanted else {}
            shown = search(database, index, query, TopK=50, **given)
            truth = [score for score, _ in expected(items, distance, query, 50, wanted)]
            assert shown == pytest.approx(truth, abs=1e-6), (index, area, query)
