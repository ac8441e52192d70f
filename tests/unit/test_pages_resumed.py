"""A page that outlives its turn goes on where it was, and shows what a page that was read at once shows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event
from typing import Any

import msgspec
import orjson
import pytest

from hashrange import pace
from hashrange.database import Caller, Database
from hashrange.pace import turns
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.data import ranges
from hashrange.tables.definitions import catalog

CALLER = Caller()
ITEMS = 60
CREATE = {
    "TableName": "table",
    "KeySchema": [
        {"AttributeName": "p", "KeyType": "HASH"},
        {"AttributeName": "s", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in "psi"],
    "LocalSecondaryIndexes": [
        {
            "IndexName": "by-i",
            "KeySchema": [
                {"AttributeName": "p", "KeyType": "HASH"},
                {"AttributeName": "i", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "KEYS_ONLY"},
        }
    ],
    "BillingMode": "PAY_PER_REQUEST",
}
FILTER = {
    "FilterExpression": "n <> :n",
    "ExpressionAttributeValues": {":n": {"S": "3"}},
    "ReturnConsumedCapacity": "TOTAL",
}
OF_ONE = {
    "KeyConditionExpression": "p = :p",
    "ExpressionAttributeValues": {":p": {"S": "a"}, ":n": {"S": "3"}},
}
OF_INDEX = {
    "IndexName": "by-i",
    "KeyConditionExpression": "p = :p",
    "ExpressionAttributeValues": {":p": {"S": "a"}},
    "ReturnConsumedCapacity": "INDEXES",
}


def selecting(
    where: str = "", order: str = "", *, source: str = '"table"', columns: str = "*", filtered: bool = True
) -> dict[str, Any]:
    """A SELECT, which compares an attribute that is in no key if it is `filtered`."""
    conditions = " AND ".join([*([where] if where else []), *(["n <> '3'"] if filtered else [])])
    text = f"SELECT {columns} FROM {source} WHERE {conditions}{order}"
    return {"Statement": text, "ReturnConsumedCapacity": "TOTAL"}


REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "scan": ("Scan", FILTER),
    "scan of a segment": ("Scan", {**FILTER, "Segment": 1, "TotalSegments": 2}),
    "scan with a limit": ("Scan", {**FILTER, "Limit": 50}),
    "scan after a key": ("Scan", {**FILTER, "ExclusiveStartKey": {"p": {"S": "a"}, "s": {"S": "03"}}}),
    "scan with a projection": ("Scan", {**FILTER, "ProjectionExpression": "n"}),
    "scan of all": ("Scan", {}),
    "count": ("Scan", {**FILTER, "Select": "COUNT"}),
    "query": ("Query", {**FILTER, **OF_ONE}),
    "query in reverse": ("Query", {**FILTER, **OF_ONE, "ScanIndexForward": False}),
    "query with a limit": ("Query", {**FILTER, **OF_ONE, "Limit": 25}),
    "query of an index": ("Query", {**OF_INDEX, "ProjectionExpression": "i"}),
    "query that fetches": ("Query", {**OF_INDEX, "ProjectionExpression": "n"}),
    "select of all": ("ExecuteStatement", selecting()),
    "select with a limit": ("ExecuteStatement", {**selecting(), "Limit": 50}),
    "select of one": ("ExecuteStatement", selecting("p = 'a'")),
    "select of several": ("ExecuteStatement", selecting("(p = 'a' OR p = 'b')")),
    "select of several, some empty": (
        "ExecuteStatement",
        selecting("(p = '0' OR p = 'a' OR p = 'aa' OR p = 'b' OR p = 'c')"),
    ),
    "select in several": ("ExecuteStatement", selecting("p IN ['0', 'a', 'aa', 'b']")),
    "select in reverse": (
        "ExecuteStatement",
        selecting("(p = 'a' OR p = 'b')", " ORDER BY p DESC, s DESC"),
    ),
    "select of an index": ("ExecuteStatement", selecting("p = 'a'", source='"table"."by-i"', filtered=False)),
    "select that fetches": (
        "ExecuteStatement",
        selecting("p = 'a'", source='"table"."by-i"', columns="n", filtered=False),
    ),
}
FETCH = ("query that fetches", "select that fetches")


class Stopping:
    """A memory engine whose event loop's turn is over after some records; `read` counts records, `between`
    runs when the turn is over."""

    def __init__(self, after: int) -> None:
        self.inner = MemoryEngine()
        self.after = after
        self.records = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def read(self, body: Callable[[Any], Any]) -> Any:
        return self.inner.read(lambda reader: body(_Reader(self, reader)))

    def submit_read(self, body: Callable[[Any], Any], done: Callable[[Any, Any], None]) -> None:
        self.inner.submit_read(lambda reader: body(_Reader(self, reader)), done)

    def counted(self, rows: Iterator[Any]) -> Iterator[Any]:
        for row in rows:
            self.records += 1
            yield row
            if self.records >= self.after and pace.turn().is_limited():
                pace.turn().left = -1.0
                turns._watch.due = 0.0


class _Reader:
    def __init__(self, engine: Stopping, reader: Any) -> None:
        self._engine = engine
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def scan(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        return self._engine.counted(self._reader.scan(*arguments, **options))

    def scan_space(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        return self._engine.counted(self._reader.scan_space(*arguments, **options))


def filled(engine: Any) -> Database:
    database = Database(engine)
    database.deliver_on(lambda callback: callback())
    database.execute("CreateTable", orjson.loads(orjson.dumps(CREATE)), CALLER)
    for number in range(ITEMS):
        item = {
            "p": "ab"[number % 2],
            "s": f"{number:02}",
            "i": f"{number * 7 % 60:02}",
            "n": f"{number % 5}",
        }
        values = {name: {"S": value} for name, value in item.items()}
        database.execute("PutItem", {"TableName": "table", "Item": values}, CALLER)
    return database


def asked(database: Database, name: str) -> tuple[dict[str, Any], bool]:
    """The answer to a request, and whether a thread gave it."""
    operation, members = REQUESTS[name]
    table = {} if operation == "ExecuteStatement" else {"TableName": "table"}
    request = orjson.loads(orjson.dumps({**table, **members}))
    outcomes: list[tuple[Any, Exception | None]] = []
    answered = Event()

    def done(answer: Any, error: Exception | None) -> None:
        outcomes.append((answer, error))
        answered.set()

    task = database.submit(operation, request, CALLER, done, orjson.dumps)
    assert answered.wait(30)
    [(answer, error)] = outcomes
    assert error is None, error
    return orjson.loads(answer), task is not None


@pytest.mark.parametrize("after", [1, 2, 20])
@pytest.mark.parametrize("name", REQUESTS)
def test_a_page_goes_on_where_its_turn_was_over(name: str, after: int) -> None:
    plain = filled(MemoryEngine())
    engine = Stopping(10**9)
    stopped = filled(engine)
    expected, _ = asked(plain, name)
    engine.records, engine.after = 0, 10**9
    asked(stopped, name)
    at_once = engine.records
    engine.records, engine.after = 0, after
    answer, aside = asked(stopped, name)
    assert answer == expected
    assert aside or at_once < after
    if name not in FETCH:  # which begin again
        assert engine.records <= at_once + 1
    for database in (plain, stopped):
        database.close()


def test_a_page_of_a_table_that_was_made_anew_begins_again() -> None:
    database = filled(MemoryEngine())
    table = database.engine.read(lambda reader: catalog.open_active(reader, "table", ""))
    anew = msgspec.structs.replace(table, space=table.space + 1)
    begun, page = ranges.Begun(), ranges.Page([b"old"], None, reached=b"old")
    begun.keep(ranges.Source(table, None), page)
    assert begun.take(ranges.Source(anew, None)) is None
    begun.keep(ranges.Source(table, None), page)
    assert begun.take(ranges.Source(table, None)) is page
    assert begun.take(ranges.Source(table, None)) is None  # only once
    database.close()
