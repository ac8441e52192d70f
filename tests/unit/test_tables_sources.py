"""A read that fetches items for the entries of a local index: its pages end at 1 MB of entries and items,
each item rounded up to 4 KB, and cost what they read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

import postgres
from hashrange.database import Database
from hashrange.storage.memory import MemoryEngine
from worlds import create

KB = 1024
PAGE_UNITS = 256
SIZES = [8 * KB, 100, 4 * KB, 4 * KB + 1, 30 * KB, 200 * KB, 390 * KB, 12 * KB]


@pytest.fixture(params=["memory", "postgres"])
def database(request: pytest.FixtureRequest) -> Iterator[Database]:
    engine: Any = MemoryEngine()
    if request.param == "postgres":
        engine = postgres.engine(request.getfixturevalue("postgres_url"), schema=postgres.new_schema())
    with Database(engine) as opened:
        create(opened, "table", "p, s", local_indexes={"by-i": "p, i | even"})
        yield opened


def size_of(item: dict[str, Any]) -> int:
    return sum(len(name) + len(value["S"]) for name, value in item.items())


def fill(database: Database, sizes: list[int], partitions: str = "a") -> list[dict[str, Any]]:
    """Items of these sizes in the order of the index, in each partition."""
    filled = []
    for partition in partitions:
        for number, size in enumerate(sizes):
            key = {"p": partition, "s": f"{7 * number % 1_000:03}", "i": f"{number:03}"}
            members = {**key, "even": "yn"[number % 2], "x": ""}
            item = {name: {"S": value} for name, value in members.items()}
            item["x"]["S"] = "x" * (size - size_of(item))
            assert size_of(item) == size
            database.execute("PutItem", {"TableName": "table", "Item": item})
            filled.append(item)
    return filled


def units_of(size: int) -> int:
    return max(1, -(-size // (4 * KB)))


def entry_of(item: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name != "x"}


def pages_of(items: list[dict[str, Any]]) -> Iterator[tuple[list[dict[str, Any]], float, float]]:
    """The items of each page, and its units on the index and on the table."""
    page: list[dict[str, Any]] = []
    entries = fetched = 0
    for item in [*items, None]:
        more = [*page, item] if item is not None else page
        of_entries = units_of(sum(size_of(entry_of(one)) for one in more))
        units = of_entries, sum(units_of(size_of(one)) for one in more)
        if item is None or sum(units) > PAGE_UNITS:
            yield page, float(entries), float(fetched)
            more = [item] if item is not None else []
            units = units_of(15), units_of(size_of(item)) if item is not None else 0
        page = more
        entries, fetched = units


def asked(database: Database, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    answer: dict[str, Any] = orjson.loads(orjson.dumps(database.execute(operation, request)))
    return answer


OF_A = {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}
EVEN = {"FilterExpression": "even = :e", "ExpressionAttributeValues": {":p": {"S": "a"}, ":e": {"S": "y"}}}


@pytest.mark.parametrize("consistent", [True, False])
@pytest.mark.parametrize(
    ("operation", "more"),
    [
        ("Query", {**OF_A, "Select": "ALL_ATTRIBUTES"}),
        ("Query", {**OF_A, "Select": "ALL_ATTRIBUTES", "ScanIndexForward": False}),
        ("Query", {**OF_A, "ProjectionExpression": "s, x"}),
        ("Query", {**OF_A, **EVEN, "Select": "ALL_ATTRIBUTES"}),
        ("Scan", {"Select": "ALL_ATTRIBUTES"}),
    ],
)
def test_pages_end_at_a_megabyte_of_entries_and_items(
    database: Database, operation: str, more: dict[str, Any], consistent: bool
) -> None:
    items = fill(database, SIZES * 6)
    if more.get("ScanIndexForward") is False:
        items.reverse()
    request = {"TableName": "table", "IndexName": "by-i", "ReturnConsumedCapacity": "INDEXES", **more}
    request["ConsistentRead"] = consistent
    share = 1.0 if consistent else 0.5
    for page, entries, fetched in pages_of(items):
        answer = asked(database, operation, dict(request))
        shown = [item for item in page if "FilterExpression" not in more or item["even"]["S"] == "y"]
        assert [item["s"] for item in answer["Items"]] == [item["s"] for item in shown]
        assert all(item["x"] for item in answer["Items"])
        assert (answer["Count"], answer["ScannedCount"]) == (len(shown), len(page))
        consumed = answer["ConsumedCapacity"]
        assert consumed["LocalSecondaryIndexes"]["by-i"]["CapacityUnits"] == entries * share
        assert consumed["Table"]["CapacityUnits"] == fetched * share
        request["ExclusiveStartKey"] = answer.get("LastEvaluatedKey")
    assert request["ExclusiveStartKey"] is None


def test_pages_of_a_select_end_there_too(database: Database) -> None:
    items = fill(database, [390 * KB, 12 * KB], "abcd")
    statement = 'SELECT s, x FROM "table"."by-i" WHERE p IN [\'a\', \'b\', \'c\', \'d\']'
    request = {"Statement": statement, "ReturnConsumedCapacity": "INDEXES", "ConsistentRead": True}
    begins_in: set[str] = set()
    for page, _, fetched in pages_of(items):
        answer = asked(database, "ExecuteStatement", dict(request))
        assert [item["s"] for item in answer["Items"]] == [item["s"] for item in page]
        assert ("LastEvaluatedKey" in answer) == (page[-1] is not items[-1])
        consumed = answer["ConsumedCapacity"]
        assert consumed["Table"]["CapacityUnits"] == fetched
        # Each partition is read on its own, also the rest of that in which the page before ended.
        partitions = begins_in | {item["p"]["S"] for item in page}
        begins_in = {page[-1]["p"]["S"]}
        assert consumed["LocalSecondaryIndexes"]["by-i"]["CapacityUnits"] == len(partitions)
        request["NextToken"] = answer.get("NextToken")
    assert request["NextToken"] is None


@pytest.mark.parametrize(("number", "size", "shown"), [(300, 8 * KB, 127), (60, 399 * KB, 2), (300, 90, 255)])
def test_how_many_items_of_a_size_a_page_fetches(
    database: Database, number: int, size: int, shown: int
) -> None:
    fill(database, [size] * number)
    request = {"TableName": "table", "IndexName": "by-i", **OF_A, "Select": "ALL_ATTRIBUTES"}
    assert asked(database, "Query", dict(request))["Count"] == shown
    for limit in (1, shown - 1, shown, shown + 1):
        answer = asked(database, "Query", {**request, "Limit": limit})
        assert answer["Count"] == min(limit, shown)
    found = 0
    while True:
        answer = asked(database, "Query", dict(request))
        found += answer["Count"]
        if "LastEvaluatedKey" not in answer:
            break
        request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    assert found == number
