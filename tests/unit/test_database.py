"""`Database`: execute and submit give the same, failed commits are server errors, sweeps do what is due."""

from __future__ import annotations

import copy
import logging
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from threading import Event
from typing import Any

import orjson
import pytest

import hashrange
from hashrange.clock import ManualClock
from hashrange.database import Caller, Database, Settings
from hashrange.errors import InternalServerError, ServiceError, UnknownOperationException, ValidationException
from hashrange.operations.execution import Asked
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.failures import Stopped, StoreClosed
from hashrange.storage.loops import Done
from hashrange.storage.memory import MemoryEngine
from hashrange_engine_tests import faults
from hashrange_engine_tests.reruns import Reruns
from worlds import table_of

CALLER = Caller(region="eu-west-1", account_id="123456789012")
CREATE: dict[str, Any] = table_of("table", "p")
ITEM = {"p": {"S": "a"}, "n": {"N": "1.0"}}
# Each with whether it is refused; the outcomes of one must not depend on how another one was asked.
REQUESTS: list[tuple[str, dict[str, Any], str | None]] = [
    ("PutItem", {"TableName": "table", "Item": ITEM}, None),
    ("GetItem", {"TableName": "table", "Key": {"p": {"S": "a"}}}, None),
    ("GetItem", {"TableName": "table", "Key": {"p": {"S": "b"}}}, None),
    ("GetItem", {"TableName": "table", "Key": {"p": {"N": "1"}}}, "ValidationException"),
    ("GetItem", {"TableName": "none!", "Key": {"p": {"S": "a"}}}, "ValidationException"),
    ("GetItem", {"TableName": "none", "Key": {"p": {"S": "a"}}}, "ResourceNotFoundException"),
    ("GetItem", {"TableName": 1}, "SerializationException"),
    # A member of the wrong type comes before every rule, also where the rule is found first.
    ("GetItem", {"TableName": "table", "Key": {"q": {}}, "ConsistentRead": "x"}, "SerializationException"),
    ("PutItem", {"TableName": "table", "Item": {"p": {"S": "a"}, "n": {"N": "x"}}}, "ValidationException"),
    ("PutItem", {"TableName": "table", "Item": {"p": {"S": "a"}, "n": {"N": 1}}}, "SerializationException"),
    (
        "PutItem",
        {"TableName": "table", "Item": ITEM, "ConditionExpression": "attribute_not_exists(p)"},
        "ConditionalCheckFailedException",
    ),
    ("Scan", {"TableName": "table", "Select": "COUNT"}, None),
    ("Nothing", {}, "UnknownOperationException"),
]


@pytest.fixture(params=["memory", "embedded"])
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Engine]:
    engine: Engine = MemoryEngine() if request.param == "memory" else EmbeddedEngine(tmp_path / "data")
    yield engine
    engine.close()


def submit(database: Database, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    """As `execute`, by way of `submit`."""
    outcomes: list[tuple[dict[str, Any] | None, Exception | None]] = []
    answered = Event()

    def done(answer: dict[str, Any] | None, error: Exception | None) -> None:
        outcomes.append((answer, error))
        answered.set()

    database.submit(Asked(operation, request, CALLER, done, lambda answer: answer))
    assert answered.wait(30)
    [(answer, error)] = outcomes
    if error is not None:
        assert answer is None
        raise error
    assert answer is not None
    return answer


def execute(database: Database, operation: str, request: dict[str, Any]) -> dict[str, Any]:
    return database.execute(operation, request, CALLER)


@pytest.mark.parametrize("ask", [execute, submit])
def test_both_ways_of_asking_give_the_same(engine: Engine, ask: Any) -> None:
    database = Database(engine)
    ask(database, "CreateTable", copy.deepcopy(CREATE))
    for operation, request, code in REQUESTS:
        if code is None:
            answer = orjson.loads(orjson.dumps(ask(database, operation, copy.deepcopy(request))))
            if operation == "Scan":
                assert answer["Count"] == 1
            if operation == "GetItem":
                found = request["Key"]["p"]["S"] == "a"
                assert answer == ({"Item": {"p": {"S": "a"}, "n": {"N": "1"}}} if found else {})
            continue
        with pytest.raises(ServiceError) as caught:
            ask(database, operation, copy.deepcopy(request))
        assert caught.value.code == code


def test_both_ways_give_the_same_errors() -> None:
    database = Database(MemoryEngine())
    execute(database, "CreateTable", copy.deepcopy(CREATE))
    execute(database, "PutItem", {"TableName": "table", "Item": copy.deepcopy(ITEM)})
    for operation, request, code in REQUESTS:
        if code is None:
            continue
        wires = []
        for ask in (execute, submit):
            with pytest.raises(ServiceError) as caught:
                ask(database, operation, copy.deepcopy(request))
            wires.append(orjson.dumps(caught.value.wire()))
        assert wires[0] == wires[1]


@pytest.mark.parametrize("ask", [execute, submit])
def test_a_failed_commit_is_a_server_error_and_leaves_nothing(
    engine: MemoryEngine | EmbeddedEngine, ask: Any, caplog: pytest.LogCaptureFixture
) -> None:
    database = Database(engine)
    execute(database, "CreateTable", copy.deepcopy(CREATE))

    with (
        faults.failing(engine, cause="no space left on device"),
        caplog.at_level(logging.ERROR, "hashrange"),
        pytest.raises(InternalServerError) as caught,
    ):
        ask(database, "PutItem", {"TableName": "table", "Item": copy.deepcopy(ITEM)})
    # [docs] the cause is for the operator's log only
    assert caught.value.message == "Internal server error"
    if engine.name == "embedded":  # which writes that log; memory fails in tests only
        assert "no space left on device" in caplog.text
    assert execute(database, "GetItem", {"TableName": "table", "Key": {"p": {"S": "a"}}}) == {}
    ask(database, "PutItem", {"TableName": "table", "Item": copy.deepcopy(ITEM)})
    assert "Item" in execute(database, "GetItem", {"TableName": "table", "Key": {"p": {"S": "a"}}})


def test_an_unknown_operation_is_refused() -> None:
    with pytest.raises(UnknownOperationException):
        Database(MemoryEngine()).execute("NoSuchThing", {})


def test_answers_name_the_callers_region_and_account() -> None:
    answer = execute(Database(MemoryEngine()), "CreateTable", copy.deepcopy(CREATE))
    arn = answer["TableDescription"]["TableArn"]
    assert arn == "arn:aws:dynamodb:eu-west-1:123456789012:table/table"


def test_a_table_can_be_named_by_its_arn() -> None:
    database = Database(MemoryEngine())
    arn = execute(database, "CreateTable", copy.deepcopy(CREATE))["TableDescription"]["TableArn"]
    execute(database, "PutItem", {"TableName": arn, "Item": copy.deepcopy(ITEM)})
    assert "Item" in execute(database, "GetItem", {"TableName": "table", "Key": {"p": {"S": "a"}}})


def test_sweeps_remove_tables_when_their_time_has_come() -> None:
    clock = ManualClock()
    engine = MemoryEngine()
    database = Database(engine, clock=clock, settings=Settings(delete_seconds=5, sweep_seconds=2))
    execute(database, "CreateTable", copy.deepcopy(CREATE))
    execute(database, "PutItem", {"TableName": "table", "Item": copy.deepcopy(ITEM)})
    execute(database, "DeleteTable", {"TableName": "table"})
    assert database.sweep() == 2
    assert execute(database, "DescribeTable", {"TableName": "table"})["Table"]["TableStatus"] == "DELETING"
    clock.advance(5)
    database.sweep()
    assert execute(database, "ListTables", {})["TableNames"] == []
    # A table of that name may be created again and is empty.
    execute(database, "CreateTable", copy.deepcopy(CREATE))
    database.sweep()
    assert execute(database, "Scan", {"TableName": "table"})["Count"] == 0


def test_the_name_of_a_deleted_table_is_taken_until_its_records_are_deleted() -> None:
    clock = ManualClock()
    database = Database(MemoryEngine(), clock=clock, settings=Settings(delete_seconds=5))
    execute(database, "CreateTable", copy.deepcopy(CREATE))
    execute(database, "DeleteTable", {"TableName": "table"})
    clock.advance(5)
    with pytest.raises(ServiceError, match="already exists"):
        execute(database, "CreateTable", copy.deepcopy(CREATE))
    database.sweep()
    execute(database, "CreateTable", copy.deepcopy(CREATE))
    execute(database, "PutItem", {"TableName": "table", "Item": copy.deepcopy(ITEM)})
    database.sweep()
    assert execute(database, "Scan", {"TableName": "table"})["Count"] == 1


@pytest.mark.parametrize("seconds", [0.0, 0.01, 30.0])
def test_no_state_waits_for_a_rare_sweep(seconds: float) -> None:
    clock = ManualClock()
    settings = Settings(create_seconds=seconds, sweep_seconds=3600)
    database = Database(MemoryEngine(), clock=clock, settings=settings)
    wait = database.sweep()
    assert wait == (seconds or 3600)
    execute(database, "CreateTable", copy.deepcopy(CREATE))
    clock.advance(wait)
    database.sweep()
    assert execute(database, "DescribeTable", {"TableName": "table"})["Table"]["TableStatus"] == "ACTIVE"


def test_lagging_indexes_catch_up_in_sweeps() -> None:
    clock = ManualClock()
    database = Database(MemoryEngine(), clock=clock, settings=Settings(gsi_delay_seconds=5))
    create = copy.deepcopy(CREATE)
    create["GlobalSecondaryIndexes"] = [
        {"IndexName": "again", "KeySchema": create["KeySchema"], "Projection": {"ProjectionType": "ALL"}}
    ]
    execute(database, "CreateTable", create)
    execute(database, "PutItem", {"TableName": "table", "Item": copy.deepcopy(ITEM)})
    database.settle()
    assert execute(database, "Scan", {"TableName": "table", "IndexName": "again"})["Count"] == 0
    clock.advance(5)
    database.settle()
    assert execute(database, "Scan", {"TableName": "table", "IndexName": "again"})["Count"] == 1


def test_closing_twice_does_no_harm() -> None:
    database = Database(MemoryEngine())
    database.close()
    database.close()


def test_a_database_in_a_directory_is_there_again_when_it_is_opened_again(tmp_path: Path) -> None:
    clock = ManualClock()
    settings = Settings(create_seconds=5)
    with hashrange.Database.open(str(tmp_path / "data"), settings=settings, clock=clock) as database:
        created = execute(database, "CreateTable", copy.deepcopy(CREATE))
        assert created["TableDescription"]["CreationDateTime"] == clock.now()
    with Database.open(tmp_path / "data") as database:
        assert execute(database, "ListTables", {})["TableNames"] == ["table"]


def test_a_database_in_memory_begins_empty_and_ends_with_its_block() -> None:
    with hashrange.Database.in_memory(settings=Settings(create_seconds=5)) as database:
        created = execute(database, "CreateTable", copy.deepcopy(CREATE))
        assert created["TableDescription"]["TableStatus"] == "CREATING"
    with Database.in_memory() as database:
        assert execute(database, "ListTables", {})["TableNames"] == []


def test_leaving_the_block_closes_the_database_also_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(KeyError), Database.open(tmp_path / "data") as database:
        raise KeyError
    with pytest.raises(StoreClosed):
        database.execute("ListTables", {})
    Database.open(tmp_path / "data").close()  # its lock was let go


CLOSED = (
    "The database is closed. Open it again with hashrange.Database.open(path), and make new clients with "
    "hashrange.client.connect; or close it later, after the last request."
)


@pytest.mark.parametrize("ask", [execute, submit])
def test_a_closed_database_says_how_to_go_on(engine: Engine, ask: Any) -> None:
    database = Database(engine)
    execute(database, "CreateTable", copy.deepcopy(CREATE))
    database.close()
    refused: tuple[type[Exception], str] = (StoreClosed, re.escape(CLOSED) + "$")
    if ask is submit:  # which tells the clients of a server, who cannot open it
        refused = (InternalServerError, "Internal server error")
    for operation, request in (
        ("GetItem", {"TableName": "table", "Key": {"p": {"S": "a"}}}),
        ("PutItem", {"TableName": "table", "Item": copy.deepcopy(ITEM)}),
    ):
        with pytest.raises(refused[0], match=refused[1]):
            ask(database, operation, request)


class Queueing(Reruns):
    """An engine that queues every submitted body; the test ends it."""

    def __init__(self) -> None:
        super().__init__(MemoryEngine(), interruptions_max=0)
        self.queued: list[Done] = []

    def submit(self, body: Any, done: Done) -> None:
        self.queued.append(done)


@pytest.mark.parametrize("had_long_work", [True, False])
def test_a_body_that_is_stopped_after_the_database_was_closed_ends_with_an_error(had_long_work: bool) -> None:
    engine = Queueing()
    database = Database(engine)
    database.turn_seconds = math.inf
    execute(database, "CreateTable", copy.deepcopy(CREATE))
    if had_long_work:
        database.start_aside(lambda: None)
    outcomes: list[tuple[Any, Exception | None]] = []
    put = {"TableName": "table", "Item": copy.deepcopy(ITEM)}
    database.submit(Asked("PutItem", put, CALLER, lambda *outcome: outcomes.append(outcome), orjson.dumps))
    database.close()
    [done] = engine.queued
    done(None, Stopped("by the test"))
    [(answer, error)] = outcomes
    assert answer is None
    assert isinstance(error, InternalServerError)


def test_importing_the_package_loads_only_what_is_used() -> None:
    """`import hashrange` loads the package alone; a database in process needs no part of the server."""
    script = """
import sys
import hashrange
def loaded(*names):
    return sorted(name for name in sys.modules if name.split(".")[0] in names)
print(loaded("hashrange", "orjson", "msgspec", "boto3", "botocore"))
with hashrange.Database.in_memory() as database:
    import hashrange.client
    hashrange.client.connect(database)
print([name for name in loaded("hashrange") if name.split(".")[1:2] in (["server"], ["cli"], ["triggers"])])
print(loaded("uvicorn", "starlette", "httptools", "uvloop", "click", "asyncio", "rocksdict"))
"""
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines() == ["['hashrange']", "[]", "[]"]
    with pytest.raises(AttributeError, match="no_such_name"):
        hashrange.no_such_name  # type: ignore[attr-defined]  # noqa: B018


def test_an_error_of_the_request_leaves_nothing_behind(engine: Engine) -> None:
    database = Database(engine)
    execute(database, "CreateTable", copy.deepcopy(CREATE))
    members = [
        {"Put": {"TableName": "table", "Item": copy.deepcopy(ITEM)}},
        {"Put": {"TableName": "table", "Item": {"q": {"S": "a"}}}},
    ]
    with pytest.raises(ServiceError):
        execute(database, "TransactWriteItems", {"TransactItems": members})
    with pytest.raises(ValidationException):
        execute(database, "BatchWriteItem", {"RequestItems": {"table": [{"PutRequest": {"Item": {}}}]}})
    assert execute(database, "Scan", {"TableName": "table"})["Count"] == 0
