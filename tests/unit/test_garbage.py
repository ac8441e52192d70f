"""Requests and jobs leave no reference cycles: only the garbage collector could free them, and it stops all.

Its pauses were the 99th percentile of BatchGetItem: 12 ms, where half of the requests took 0.25. Which code
makes a cycle differs between the interpreted and the compiled form: the test has something to find in both.
"""

from __future__ import annotations

import copy
import gc
import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from threading import Event
from typing import Any

import orjson
import pytest

from collecting import young_objects_only
from hashrange import operations
from hashrange.database import Caller, Database
from hashrange.operations import REGISTRY
from hashrange.operations.execution import Asked
from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from worlds import table_of

pytestmark = pytest.mark.once

KEYS = [{"p": {"S": f"{n}"}} for n in range(5)]
ITEMS: list[dict[str, Any]] = [
    key | {"n": {"N": "1"}, "m": {"M": {"x": {"L": [{"S": "y"}]}}}} for key in KEYS
]
ONE = {"N": "1"}
VALUES = {":one": ONE}
EXISTS = {"ConditionExpression": "attribute_exists(p)"}
ABSENT = {"ConditionExpression": "attribute_not_exists(p)"}
TABLE = {"TableName": "table"}
CREATE: dict[str, Any] = table_of("table", "p")
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("PutItem", TABLE | {"Item": ITEMS[0]}),
    ("PutItem", TABLE | {"Item": ITEMS[0], "ReturnValues": "ALL_OLD"} | EXISTS),
    ("PutItem", TABLE | {"Item": ITEMS[0]} | ABSENT),
    ("PutItem", TABLE | {"Item": {"p": {"N": "1"}}}),
    ("PutItem", TABLE | {"Item": {"q": {}}}),
    ("GetItem", TABLE | {"Key": KEYS[0]}),
    ("GetItem", TABLE | {"Key": KEYS[0], "ProjectionExpression": "m.x[0], n"}),
    ("GetItem", {"TableName": "nowhere", "Key": KEYS[0]}),
    ("GetItem", {"TableName": 1}),
    (
        "UpdateItem",
        TABLE
        | {"Key": KEYS[1], "UpdateExpression": "SET n = n + :one, m.x = list_append(m.x, m.x) REMOVE m.x[1]"}
        | {"ExpressionAttributeValues": VALUES, "ReturnValues": "UPDATED_NEW"},
    ),
    ("UpdateItem", TABLE | {"Key": KEYS[1], "AttributeUpdates": {"n": {"Value": ONE, "Action": "ADD"}}}),
    ("DeleteItem", TABLE | {"Key": {"p": {"S": "none"}}}),
    ("BatchGetItem", {"RequestItems": {"table": {"Keys": KEYS, "ProjectionExpression": "n"}}}),
    ("BatchWriteItem", {"RequestItems": {"table": [{"PutRequest": {"Item": item}} for item in ITEMS]}}),
    ("TransactGetItems", {"TransactItems": [{"Get": TABLE | {"Key": key}} for key in KEYS]}),
    ("TransactWriteItems", {"TransactItems": [{"Put": TABLE | {"Item": item}} for item in ITEMS]}),
    (
        "TransactWriteItems",
        {
            "TransactItems": [
                {"ConditionCheck": TABLE | {"Key": KEYS[0]} | ABSENT},
                {"Put": TABLE | {"Item": ITEMS[1]}},
            ]
        },
    ),
    (
        "Query",
        TABLE
        | {"KeyConditionExpression": "p = :p", "FilterExpression": "n >= :one AND size(m.x) IN (:one, n)"}
        | {"ExpressionAttributeValues": VALUES | {":p": {"S": "0"}}},
    ),
    ("Scan", TABLE | {"FilterExpression": "n < :one", "ExpressionAttributeValues": VALUES, "Limit": 3}),
    ("Scan", TABLE | {"Segment": 1, "TotalSegments": 2, "ProjectionExpression": "m"}),
    ("ExecuteStatement", {"Statement": "SELECT n FROM \"table\" WHERE p = '0' OR p IN ['1', '2']"}),
    ("ExecuteStatement", {"Statement": "UPDATE \"table\" SET n = n + 1 WHERE p = '0'"}),
    ("ExecuteStatement", {"Statement": "SELECT FROM"}),
    ("BatchExecuteStatement", {"Statements": [{"Statement": "SELECT * FROM \"table\" WHERE p = '0'"}]}),
    ("ExecuteTransaction", {"TransactStatements": [{"Statement": "DELETE FROM \"table\" WHERE p = 'none'"}]}),
    ("DescribeTable", TABLE),
    ("ListTables", {}),
    ("ListStreams", {}),
    ("DescribeTimeToLive", TABLE),
    ("Nothing", {}),
]  # fmt: skip
ROUNDS = 3


@pytest.fixture(scope="module", params=["memory", "embedded"])
def database(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Database]:
    directory = tmp_path_factory.mktemp("data")
    operations.load()  # a first request that imports its operation might use up its turn
    engine: Engine = MemoryEngine() if request.param == "memory" else EmbeddedEngine(directory)
    database = Database(engine)
    database.execute("CreateTable", copy.deepcopy(CREATE))
    for item in ITEMS:
        database.execute("PutItem", TABLE | {"Item": copy.deepcopy(item)})
    with young_objects_only():
        yield database
    database.close()


class Outcome:
    """Waits for the answer of a request and keeps nothing of it."""

    def __init__(self) -> None:
        self.answered = Event()

    def done(self, answer: dict[str, Any] | None, error: Exception | None) -> None:
        self.answered.set()


def submit(database: Database, operation: str, request: bytes) -> None:
    outcome = Outcome()
    database.submit(Asked(operation, orjson.loads(request), Caller(), outcome.done, orjson.dumps))
    assert outcome.answered.wait(30)


def test_every_operation_on_items_is_asked() -> None:
    asked = {operation for operation, _ in REQUESTS}
    of_items = {name for name in REGISTRY if name.endswith(("Item", "Items", "Statement", "Query", "Scan"))}
    of_items.remove("StartBulkPutItems")
    assert of_items <= asked


@pytest.mark.parametrize(
    ("operation", "request_"), REQUESTS, ids=lambda value: value if isinstance(value, str) else ""
)
def test_a_request_leaves_no_cycles(database: Database, operation: str, request_: dict[str, Any]) -> None:
    body = orjson.dumps(request_)
    for _ in range(ROUNDS):
        submit(database, operation, body)  # what the first time fills caches
    assert not cycles(lambda: submit(database, operation, body))


def cycles(play: Callable[[], None]) -> Counter[str]:
    """The objects that only the collector can free when `play` has run a few times, by their type."""
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            play()
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        return Counter(type(one).__name__ for one in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_a_job_that_fails_leaves_no_cycles(tmp_path: Path) -> None:
    """The tables of jobs come and go: their garbage was 20,000 objects before the collector came by."""
    rows = tmp_path / "bucket" / "items.json"
    rows.parent.mkdir()
    rows.write_text('{"Item": {"p": {"S": "a"}}}\n')
    read = {"S3Bucket": "bucket", "S3KeyPrefix": "items", "InputFormat": "DYNAMODB_JSON"}
    written = {"S3Bucket": "bucket", "S3KeyPrefix": "out/", "OutputType": ["ERROR"]}
    job = TABLE | {"InputS3Configuration": read, "OutputS3Configuration": written}
    with Database.in_memory(settings=Settings(s3_dir=str(tmp_path))) as database:

        def play() -> None:
            database.execute("CreateTable", copy.deepcopy(CREATE))
            database.execute("StartBulkPutItems", copy.deepcopy(job))
            database.execute("DeleteTable", TABLE | {})
            database.settle()

        play()
        [shown] = database.execute("ListBulkOperations", {})["BulkOperationsSummaryList"]
        assert shown["BulkOperationStatus"] == "FAILED"
        with young_objects_only():
            assert not cycles(play)


@pytest.mark.parametrize("engine", ["memory", "embedded"])
def test_a_request_is_freed_before_its_write_is_durable(engine: str, tmp_path: Path) -> None:
    """Freed only after the commit, the requests of a batch have left the processor's cache."""
    database = Database.in_memory() if engine == "memory" else Database.open(tmp_path)
    with database:
        database.execute("CreateTable", copy.deepcopy(CREATE))
        rounds: list[Callable[[], None]] = []
        came: Queue[Callable[[], None]] = Queue()
        database.deliver_on(came.put, rounds.append)
        database.turn_seconds = math.inf
        outcomes: list[Any] = []
        item = {"p": {"S": "a"}, "n": ONE}
        requests = (
            ("PutItem", TABLE | {"Item": item}),
            ("UpdateItem", TABLE | {"Key": {"p": {"S": "b"}}, "AttributeUpdates": {"n": {"Value": ONE}}}),
            ("DeleteItem", TABLE | {"Key": {"p": {"S": "a"}}}),
            ("TransactWriteItems", {"TransactItems": [{"Put": TABLE | {"Item": item}}]}),
        )
        for operation, request in requests:
            references = sys.getrefcount(request)
            asked = Asked(
                operation, request, Caller(), lambda answer, error: outcomes.append(error), lambda answer: b""
            )
            database.submit(asked)
            if engine == "embedded":
                assert not outcomes  # the commit has not begun
            assert sys.getrefcount(request) == references, operation
        while len(outcomes) < len(requests):
            while rounds:
                rounds.pop()()
            came.get(timeout=60)()
        assert outcomes == [None] * len(requests)
