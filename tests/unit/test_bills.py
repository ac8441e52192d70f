"""The bill of each request that consumes capacity: it is what ReturnConsumedCapacity=INDEXES shows."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from hashrange.database import Caller, Database
from hashrange.errors import ServiceError
from hashrange.operations import REGISTRY
from hashrange.storage.api import CommitUnknown
from hashrange.storage.contract import faults
from hashrange.storage.contract.reruns import Reruns
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.data.capacity import Bill

CALLER = Caller(account_id="123456789012")
KEY = {"p": {"S": "a"}, "s": {"N": "1"}}
ITEM = KEY | {"l": {"S": "local"}, "g": {"S": "global"}, "v": {"S": "x" * 3_000}}
T = {"TableName": "table"}
LOCAL = {
    "IndexName": "local",
    "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}, {"AttributeName": "l", "KeyType": "RANGE"}],
    "Projection": {"ProjectionType": "KEYS_ONLY"},
}
GLOBAL = {
    "IndexName": "global",
    "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}
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


def made(engine: Any) -> Database:
    database = Database(engine)
    types = {"p": "S", "s": "N", "l": "S", "g": "S"}
    sort = {"AttributeName": "s", "KeyType": "RANGE"}
    hashed = {"AttributeName": "p", "KeyType": "HASH"}
    table: dict[str, Any] = {"LocalSecondaryIndexes": [LOCAL], "GlobalSecondaryIndexes": [GLOBAL]}
    for name, key, used, further in (("table", [hashed, sort], "pslg", table), ("other", [hashed], "p", {})):
        definitions = [{"AttributeName": one, "AttributeType": types[one]} for one in used]
        request = {"TableName": name, "BillingMode": "PAY_PER_REQUEST", "KeySchema": key, **further}
        database.execute("CreateTable", request | {"AttributeDefinitions": definitions})
    return database


def asked(database: Database, operation: str, request: dict[str, Any], how: str) -> dict[str, Any]:
    request = copy.deepcopy(request)
    if how == "execute":
        return orjson.loads(orjson.dumps(database.execute(operation, request, CALLER)))  # type: ignore[no-any-return]
    outcomes: list[tuple[Any, Exception | None]] = []

    def done(answer: Any, error: Exception | None) -> None:
        outcomes.append((answer, error))

    if how == "submit":
        database.submit(operation, request, CALLER, done, orjson.dumps)
    else:
        database.run_aside(operation, request, CALLER, done, orjson.dumps)
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
    billed.charge = lambda *charged: bills.append(charged)
    for operation, request in REQUESTS:
        answer = asked(billed, operation, request, how)
        wanted = request | {"ReturnConsumedCapacity": "INDEXES"}
        other = asked(showing, operation, wanted, how)
        [(name, caller, bill)] = bills
        bills.clear()
        assert (name, caller) == (operation, CALLER)
        splits = operation in ("TransactGetItems", "TransactWriteItems", "ExecuteTransaction")
        assert [part.wire("INDEXES", splits=splits) for part in bill] == shown(other)
        # The bill is made, but not shown; and nobody has to pay for a bill that nobody wants.
        assert answer == other == asked(alone, operation, request, how)
        asked(billed, operation, wanted, how) if operation in ("GetItem", "Query", "Scan") else None
        bills.clear()


def test_every_operation_that_consumes_has_a_bill() -> None:
    consuming = {name for name, entry in REGISTRY.items() if entry.consumes}
    assert {operation for operation, _ in REQUESTS} == consuming
    assert consuming & {"CreateTable", "ListTables", "GetRecords"} == set()


def test_a_repeated_transaction_pays_for_reading() -> None:
    database = made(MemoryEngine())
    bills: list[Bill] = []
    database.charge = lambda operation, caller, bill: bills.append(bill)
    for _ in range(2):
        database.execute("TransactWriteItems", copy.deepcopy(TOKEN))
    assert [[part.writes for part in bill] for bill in bills] == [[True], [False]]


def test_nobody_pays_for_what_has_no_outcome() -> None:
    database = made(MemoryEngine())
    bills: list[Bill] = []
    database.charge = lambda operation, caller, bill: bills.append(bill)
    with faults.failing(database.engine, "after", unknown=True), pytest.raises(ServiceError) as caught:
        database.execute("PutItem", T | {"Item": copy.deepcopy(ITEM)})
    assert isinstance(caught.value.__cause__, CommitUnknown)
    assert bills == []
