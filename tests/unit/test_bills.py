"""The bill of each request that consumes capacity: it is what ReturnConsumedCapacity=INDEXES shows."""

from __future__ import annotations

import copy
import math
from typing import Any

import orjson
import pytest

from hashrange.database import Caller, Database
from hashrange.errors import ServiceError
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.operations import REGISTRY
from hashrange.operations.execution import Asked
from hashrange.storage.failures import CommitUnknown
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.items.capacity import Bill
from hashrange_engine_tests import faults
from hashrange_engine_tests.reruns import Reruns
from worlds import create

CALLER = Caller(account_id="123456789012")
KEY = {"p": {"S": "a"}, "s": {"N": "1"}}
ITEM = KEY | {"l": {"S": "local"}, "g": {"S": "global"}, "v": {"S": "x" * 3_000}}
T = {"TableName": "table"}
QUERY = T | {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": {":p": {"S": "a"}}}
BY_LOCAL = QUERY | {"IndexName": "local", "Select": "ALL_ATTRIBUTES"}
SELECT = 'SELECT * FROM "table" WHERE p = \'a\' AND s = 1'
INSERT = "INSERT INTO \"table\" VALUE {'p': 'b', 's': 2, 'g': 'x'}"
UPDATE = T | {"Key": KEY, "UpdateExpression": "SET g = :g", "ExpressionAttributeValues": {":g": {"S": "n"}}}
TOKEN = {"TransactItems": [{"Update": UPDATE}], "ClientRequestToken": "again"}

# In their order: each finds what those before it left.
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("PutItem", T | {"Item": ITEM}),
    ("UpdateItem", UPDATE),
    ("GetItem", T | {"Key": KEY, "ConsistentRead": True}),
    ("GetItem", T | {"Key": KEY | {"s": {"N": "9"}}}),
    ("BatchGetItem", {"RequestItems": {"table": {"Keys": [KEY]}, "other": {"Keys": [{"p": {"S": "a"}}]}}}),
    ("Query", QUERY),
    ("Query", BY_LOCAL),
    ("Scan", T | {"IndexName": "global"}),
    ("TransactGetItems", {"TransactItems": [{"Get": T | {"Key": KEY}}]}),
    ("TransactWriteItems", TOKEN),
    ("TransactWriteItems", TOKEN),
    ("ExecuteStatement", {"Statement": SELECT}),
    ("ExecuteStatement", {"Statement": INSERT}),
    ("BatchExecuteStatement", {"Statements": [{"Statement": SELECT}]}),
    ("BatchExecuteStatement", {"Statements": [{"Statement": INSERT.replace("'b'", "'c'")}]}),
    ("ExecuteTransaction", {"TransactStatements": [{"Statement": SELECT}]}),
    ("ExecuteTransaction", {"TransactStatements": [{"Statement": INSERT.replace("'b'", "'d'")}]}),
    (
        "BatchWriteItem",
        {
            "RequestItems": {
                "table": [{"DeleteRequest": {"Key": KEY}}],
                "other": [{"PutRequest": {"Item": {"p": {"S": "z" * 1_500}}}}],
            }
        },
    ),
    ("DeleteItem", T | {"Key": KEY | {"p": {"S": "d"}, "s": {"N": "2"}}}),
]


class Bills(Observer):
    """Adds the operation, the caller and the bill of each request that consumes to a list."""

    def __init__(self, bills: list[tuple[str, Caller, Bill]]) -> None:
        self._bills = bills

    def ended(self, seen: ObservedRequest) -> None:
        if seen.bill:
            self._bills.append((seen.operation, seen.caller, seen.bill))


def made(engine: Any) -> Database:
    database = Database(engine)
    # On a busy machine a turn would end in the middle of a request, which then runs on a thread.
    database.turn_seconds = math.inf
    create(database, "table", "p, s:N", local_indexes={"local": "p, l | KEYS_ONLY"}, indexes={"global": "g"})
    create(database, "other", "p")
    return database


def asked(database: Database, operation: str, request: dict[str, Any], how: str) -> dict[str, Any]:
    request = copy.deepcopy(request)
    if how == "execute":
        return orjson.loads(orjson.dumps(database.execute(operation, request, CALLER)))  # type: ignore[no-any-return]
    outcomes: list[tuple[Any, Exception | None]] = []

    def done(answer: Any, error: Exception | None) -> None:
        outcomes.append((answer, error))

    if how == "submit":
        database.submit(Asked(operation, request, CALLER, done, orjson.dumps))
    else:
        database.run_aside(Asked(operation, request, CALLER, done, orjson.dumps))
    [(answer, error)] = outcomes
    if error is not None:
        raise error
    return orjson.loads(answer)  # type: ignore[no-any-return]


def shown(answer: dict[str, Any]) -> list[dict[str, Any]]:
    consumed = answer.pop("ConsumedCapacity")
    return consumed if isinstance(consumed, list) else [consumed]


@pytest.mark.parametrize("how", ["execute", "submit", "run_aside"])
@pytest.mark.parametrize("reruns", [False, True])
def test_the_bill_is_what_the_answer_shows(how: str, reruns: bool) -> None:
    def engine() -> Any:
        return Reruns(MemoryEngine()) if reruns else MemoryEngine()

    billed, showing, alone = made(engine()), made(engine()), made(MemoryEngine())
    bills: list[tuple[str, Caller, Bill]] = []
    billed.observers.observe(Bills(bills))
    for operation, request in REQUESTS:
        answer = asked(billed, operation, request, how)
        wanted = request | {"ReturnConsumedCapacity": "INDEXES"}
        other = asked(showing, operation, wanted, how)
        [(name, caller, bill)] = bills
        bills.clear()
        assert (name, caller) == (operation, CALLER)
        splits = operation in ("TransactGetItems", "TransactWriteItems", "ExecuteTransaction")
        assert [part.wire("INDEXES", splits=splits) for part in bill] == shown(other)
        # The bill is made, but not shown; a database without an observer makes none.
        assert answer == other == asked(alone, operation, request, how)
        asked(billed, operation, wanted, how) if operation in ("GetItem", "Query", "Scan") else None
        bills.clear()


def test_every_operation_that_consumes_has_a_bill() -> None:
    consuming = {name for name, entry in REGISTRY.items() if entry.consumes}
    assert {operation for operation, _ in REQUESTS} | {"GetRecords", "SearchVectors"} == consuming
    assert consuming & {"CreateTable", "ListTables", "GetShardIterator"} == set()


ABSENT = {"ConditionExpression": "attribute_not_exists(p)"}
PRESENT = {"ConditionExpression": "attribute_exists(p)"}
LARGER = ITEM | {"v": {"S": "x" * 4_500}}
NOWHERE = {"p": {"S": "nowhere"}, "s": {"N": "1"}}
INSERT_AGAIN = "INSERT INTO \"table\" VALUE {'p': 'a', 's': 1}"
UPDATE_OTHER = "UPDATE \"table\" SET v = 'y' WHERE p = 'a' AND s = 1 AND v = 'other'"
INSERT_OTHER = "INSERT INTO other VALUE {'p': 'z'}"
PUT_OTHER = {"Put": {"TableName": "other", "Item": {"p": {"S": "z" * 1_500}}}}
CHECKED = {"ConditionCheck": T | {"Key": KEY} | ABSENT}
# With what they consume, while the table holds ITEM, of 3 KB, and the other one nothing.
REFUSED: list[tuple[str, dict[str, Any], dict[str, float]]] = [
    ("PutItem", T | {"Item": ITEM} | ABSENT, {"table": 3}),
    ("PutItem", T | {"Item": KEY} | ABSENT, {"table": 3}),
    ("PutItem", T | {"Item": LARGER} | ABSENT, {"table": 5}),
    ("PutItem", T | {"Item": ITEM | NOWHERE} | PRESENT, {"table": 1}),
    ("UpdateItem", UPDATE | {"Key": NOWHERE} | PRESENT, {"table": 1}),
    ("UpdateItem", UPDATE | ABSENT, {"table": 3}),
    ("DeleteItem", T | {"Key": KEY} | ABSENT, {"table": 3}),
    ("DeleteItem", T | {"Key": NOWHERE} | PRESENT, {"table": 1}),
    ("TransactWriteItems", {"TransactItems": [PUT_OTHER, CHECKED]}, {"other": 4, "table": 6}),
    ("ExecuteStatement", {"Statement": INSERT_AGAIN}, {"table": 3}),
    ("ExecuteStatement", {"Statement": UPDATE_OTHER}, {"table": 3}),
    (
        "ExecuteTransaction",
        {"TransactStatements": [{"Statement": INSERT_OTHER}, {"Statement": INSERT_AGAIN}]},
        {"other": 2, "table": 6},
    ),
    # Refused for another reason than a condition.
    ("PutItem", T | {"Item": {"p": {"S": "a"}}}, {}),
    ("GetItem", {"TableName": "none", "Key": KEY}, {}),
    ("TransactWriteItems", {"TransactItems": [PUT_OTHER, {"Put": T | {"Item": {"p": {"S": "a"}}}}]}, {}),
]


@pytest.mark.parametrize("how", ["execute", "submit", "run_aside"])
@pytest.mark.parametrize("reruns", [False, True])
def test_a_write_whose_condition_fails_is_paid_for(how: str, reruns: bool) -> None:
    database = made(Reruns(MemoryEngine()) if reruns else MemoryEngine())
    asked(database, "PutItem", T | {"Item": ITEM}, how)
    bills: list[tuple[str, Caller, Bill]] = []
    database.observers.observe(Bills(bills))
    for operation, request, units in REFUSED:
        with pytest.raises(ServiceError):
            asked(database, operation, request, how)
        charged = [(CALLER, part.table_name, part.wire("INDEXES")) for _, _, bill in bills for part in bill]
        shown = {name: {"CapacityUnits": float(one)} for name, one in units.items()}
        assert charged == [
            (CALLER, name, {"TableName": name, **one, "Table": one}) for name, one in shown.items()
        ]
        assert all(part.writes for _, _, bill in bills for part in bill)
        assert len(bills) == bool(units)
        bills.clear()


def test_a_refused_member_of_a_batch_is_paid_for_and_not_shown() -> None:
    database = made(MemoryEngine())
    database.execute("PutItem", T | {"Item": copy.deepcopy(ITEM)})
    bills: list[tuple[str, Caller, Bill]] = []
    database.observers.observe(Bills(bills))
    statements = [{"Statement": one} for one in (UPDATE_OTHER, INSERT_OTHER)]
    request = {"Statements": statements, "ReturnConsumedCapacity": "TOTAL"}
    answer = asked(database, "BatchExecuteStatement", request, "execute")
    assert answer["ConsumedCapacity"] == [{"TableName": "other", "CapacityUnits": 1.0}]
    [(_, _, bill)] = bills
    assert {part.table_name: part.table for part in bill} == {"other": 1.0, "table": 3.0}


@pytest.mark.parametrize("how", ["execute", "submit", "run_aside"])
def test_reading_a_stream_costs_a_unit_of_streams_for_each_get_records(how: str) -> None:
    database = made(MemoryEngine())
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    table = database.execute("UpdateTable", {"TableName": "other", "StreamSpecification": stream})
    arn = table["TableDescription"]["LatestStreamArn"]
    for number in range(3):
        database.execute("PutItem", {"TableName": "other", "Item": {"p": {"S": f"{number}" * 2_000}}})
    bills: list[tuple[str, Caller, Bill]] = []
    database.observers.observe(Bills(bills))
    described = asked(database, "DescribeStream", {"StreamArn": arn}, how)
    [shard] = described["StreamDescription"]["Shards"]
    place = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    iterator = asked(database, "GetShardIterator", place, how)["ShardIterator"]
    assert bills == []
    for records in (3, 0):
        answer = asked(database, "GetRecords", {"ShardIterator": iterator}, how)
        assert len(answer["Records"]) == records
        iterator = answer["NextShardIterator"]
        [(_, _, [part])] = bills
        assert (part.table_name, part.stream, part.table) == ("other", 1, 0.0)
        bills.clear()


def test_a_search_of_vectors_pays_for_bytes() -> None:
    database, bills = made(MemoryEngine()), list[tuple[str, Caller, Bill]]()
    index = {
        "IndexName": "near",
        "VectorAttribute": {"AttributeName": "v"},
        "Projection": {"ProjectionType": "ALL"},
        "Dimensions": 64,
        "DistanceFunction": "COSINE",
    }
    database.execute("UpdateTable", {"TableName": "other", "VectorIndexUpdates": [{"Create": index}]})
    database.observers.observe(Bills(bills))
    vector = [{"N": "1"}] * 64
    database.execute("PutItem", {"TableName": "other", "Item": {"p": {"S": "a"}, "v": {"L": vector}}})
    search = {"TableName": "other", "IndexName": "near", "SearchVector": vector, "TopK": 1}
    answer = database.execute("SearchVectors", search | {"ReturnConsumedCapacity": "TOTAL"})
    database.execute("SearchVectors", copy.deepcopy(search))
    [[written], *searched] = [bill for _, _, bill in bills]
    assert written.vectors == {"near": 1_024}
    assert [part.vectors for [part] in searched] == [
        {"near": answer["ConsumedCapacity"]["VectorSearchRequestBytes"]}
    ] * 2
    assert all(part.table == 0 for [part] in searched)


def test_a_repeated_transaction_pays_for_reading() -> None:
    database = made(MemoryEngine())
    bills: list[tuple[str, Caller, Bill]] = []
    database.observers.observe(Bills(bills))
    for _ in range(2):
        database.execute("TransactWriteItems", copy.deepcopy(TOKEN))
    assert [[part.writes for part in bill] for _, _, bill in bills] == [[True], [False]]


def test_nobody_pays_for_what_has_no_outcome() -> None:
    database = made(MemoryEngine())
    bills: list[tuple[str, Caller, Bill]] = []
    database.observers.observe(Bills(bills))
    with faults.failing(database.engine, "after", unknown=True), pytest.raises(ServiceError) as caught:
        database.execute("PutItem", T | {"Item": copy.deepcopy(ITEM)})
    assert isinstance(caught.value.__cause__, CommitUnknown)
    assert bills == []
