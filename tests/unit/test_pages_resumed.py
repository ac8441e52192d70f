"""A page of a table that outlives its turn goes on where it was; a page of an index begins again, because
items move there. Both show what a page that was read at once shows."""

from __future__ import annotations

from pathlib import Path
from threading import Event, get_ident
from typing import Any

import msgspec
import orjson
import pytest

import postgres
from hashrange.database import Caller, Database
from hashrange.operations.execution import Asked
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.definitions import catalog
from hashrange.tables.reads import ranges
from hashrange_engine_tests.loops import Loop
from interruptions import Between, Stopping
from worlds import table_of

CALLER = Caller()
ITEMS = 60
CREATE = table_of("table", "p, s", local_indexes={"by-i": "p, i | KEYS_ONLY"})
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
OF_INDEXES = ("query of an index", "query that fetches", "select of an index", "select that fetches")


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

    task = database.submit(Asked(operation, request, CALLER, done, orjson.dumps))
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
    if name not in OF_INDEXES:
        assert engine.records <= at_once + 1
    for database in (plain, stopped):
        database.close()


LONG = "x" * 2_500
"""Of records as long as this, each looks whether the turn is over."""
LOCAL = {"local": "p, i", "keys": "p, i | KEYS_ONLY"}
MOVES = table_of("table", "p, s", local_indexes=LOCAL, indexes={"global": "g, i"})
OF_G = {"KeyConditionExpression": "g = :g", "ExpressionAttributeValues": {":g": {"S": "g"}, ":n": {"S": "3"}}}
PLAIN_FILTER = {"FilterExpression": "n <> :n", "ExpressionAttributeValues": {":n": {"S": "3"}}}
OF_P = {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": {"S": "a"}, ":n": {"S": "3"}}}
REVERSE = {"ScanIndexForward": False}
MOVING: dict[str, tuple[str, dict[str, Any]]] = {
    "query of a table": ("Query", {**PLAIN_FILTER, **OF_P}),
    "query of a table in reverse": ("Query", {**PLAIN_FILTER, **OF_P, **REVERSE}),
    "scan of a table": ("Scan", PLAIN_FILTER),
    "select from a table": ("ExecuteStatement", selecting("p = 'a'")),
    **{
        f"{operation} of the {kind} index{way}": (
            operation,
            {"IndexName": kind, **PLAIN_FILTER, **members, "ConsistentRead": kind == "local"},
        )
        for kind, of_one in (("local", OF_P), ("global", OF_G))
        for operation, way, members in (
            ("Query", "", of_one),
            ("Query", " in reverse", {**of_one, **REVERSE}),
            ("Scan", "", {}),
        )
    },
    "Query of a local index that fetches": (
        "Query",
        {**OF_INDEX, "IndexName": "keys", "Select": "ALL_ATTRIBUTES", "ConsistentRead": True},
    ),
    "select from a local index": ("ExecuteStatement", selecting("p = 'a'", source='"table"."local"')),
    "select from a global index": ("ExecuteStatement", selecting("g = 'g'", source='"table"."global"')),
    "select from a global index, all": ("ExecuteStatement", selecting(source='"table"."global"')),
}


def moving_item(sort: str, place: str) -> dict[str, Any]:
    item = {"p": "a", "s": sort, "i": place, "g": "g", "n": place, "x": LONG}
    return {name: {"S": value} for name, value in item.items()}


def put_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"Put": {"TableName": "table", "Item": item}}


def removal_of(item: dict[str, Any]) -> dict[str, Any]:
    return {"Delete": {"TableName": "table", "Key": {name: item[name] for name in "ps"}}}


BEFORE = [moving_item(f"{number:02}", f"{number:02}") for number in range(8)]
# Two items change their places in the order of the index, one goes and one comes.
AFTER = [
    *(item for item in BEFORE if item["s"]["S"] not in ("01", "02", "05")),
    moving_item("02", "065"),
    moving_item("05", "015"),
    moving_item("068", "068"),
]


def to_state(items: list[dict[str, Any]]) -> dict[str, Any]:
    """The transaction that gives the table one of the two states."""
    sorts = {item["s"]["S"] for item in items}
    gone = [item for item in BEFORE + AFTER if item["s"]["S"] not in sorts]
    return {"TransactItems": [put_of(item) for item in items] + [removal_of(item) for item in gone]}


@pytest.fixture(params=["memory", "embedded", "postgres"])
def any_engine(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """An engine of each kind."""
    if request.param == "memory":
        return MemoryEngine()
    if request.param == "embedded":
        return EmbeddedEngine(tmp_path / "store")
    return postgres.engine(request.getfixturevalue("postgres_url"), schema=postgres.new_schema())


def answered_on(loop: Loop, database: Database, name: str) -> tuple[dict[str, Any], bool]:
    """The answer to a request of MOVING, and whether a worker thread gave it."""
    operation, members = MOVING[name]
    table = {} if operation == "ExecuteStatement" else {"TableName": "table"}
    request = orjson.loads(orjson.dumps({**table, **members}))
    outcomes: list[tuple[Any, Exception | None]] = []
    threads: list[int] = []

    def encode(answer: Any) -> bytes:
        threads.append(get_ident())
        return orjson.dumps(answer)

    database.submit(Asked(operation, request, CALLER, lambda *outcome: outcomes.append(outcome), encode))
    loop.run(lambda: bool(outcomes))
    [(answer, error)] = outcomes
    assert error is None, error
    return orjson.loads(answer), threads[-1] != get_ident()


def test_a_page_of_an_index_is_of_one_moment(any_engine: Any) -> None:
    engine = Stopping(10**9, any_engine)
    states = [BEFORE, AFTER]
    with Database(engine) as database:
        loop = Loop(engine)
        database.deliver_on(loop.deliver, loop.defer, watch=loop.watch)

        def next_state() -> None:
            states.reverse()
            request = orjson.loads(orjson.dumps(to_state(states[0])))
            database.execute("TransactWriteItems", request, CALLER)

        database.execute("CreateTable", orjson.loads(orjson.dumps(MOVES)), CALLER)
        database.execute("TransactWriteItems", to_state(BEFORE), CALLER)
        plain = database._workers
        for name in MOVING:
            aside = 0
            for after in range(1, len(BEFORE) + 1):
                database._workers = plain
                engine.after = 10**9
                moments = [answered_on(loop, database, name)[0]]
                next_state()
                moments.append(answered_on(loop, database, name)[0])
                next_state()
                assert moments[0] != moments[1]
                engine.records, engine.after = 0, after
                database._workers = Between(plain, next_state)  # type: ignore[assignment]
                answer, was_aside = answered_on(loop, database, name)
                aside += was_aside
                if name.endswith("table") or "table in" in name:
                    check_mixed(answer["Items"], *(moment["Items"] for moment in moments))
                else:
                    assert answer in moments, f"{name}, after {after} records"
                if states[0] is AFTER:
                    next_state()
            assert aside >= len(BEFORE) - 2, name
        database._workers = plain


def check_mixed(items: list[Any], *moments: list[Any]) -> None:
    """Each item of the page is as it was at one of the moments, none is there twice, and none is missing that
    was there at both."""
    names = [item["s"]["S"] for item in items]
    assert len(set(names)) == len(names)
    always = set.intersection(*({item["s"]["S"] for item in moment} for moment in moments))
    assert always <= set(names)
    assert all(any(item in moment for moment in moments) for item in items)


def test_a_page_of_a_table_that_was_made_anew_begins_again() -> None:
    database = filled(MemoryEngine())
    table = database.engine.read(lambda reader: catalog.open_active(reader, "table", ""))
    again = msgspec.structs.replace(table, space=table.space + 1)
    begun, page = ranges.Begun(), ranges.Page([b"old"], None, reached=b"old")
    begun.keep(ranges.ReadSource(table, None), page)
    assert begun.take(ranges.ReadSource(again, None)) is None
    begun.keep(ranges.ReadSource(table, None), page)
    assert begun.take(ranges.ReadSource(table, None)) is page
    assert begun.take(ranges.ReadSource(table, None)) is None  # only once
    database.close()
