"""Operations ignore members that they do not know: none looks at members that its shape lacks."""

from __future__ import annotations

import copy
from typing import Any

import orjson
import pytest

from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.operations import REGISTRY
from hashrange.shapes import OPERATIONS
from hashrange.shapes.vocabulary import List, Map, Shape, Structure
from hashrange.storage.memory import MemoryEngine
from worlds import recovery_of, table_of

_TABLE = table_of("music", "pk")
_KEY = {"pk": {"S": "a"}}
_ONE = {"TableName": "music", "Key": _KEY}
REQUESTS: dict[str, dict[str, Any]] = {
    "BatchExecuteStatement": {"Statements": [{"Statement": "SELECT * FROM music WHERE pk = 'a'"}]},
    "BatchGetItem": {"RequestItems": {"music": {"Keys": [_KEY]}}},
    "BatchWriteItem": {"RequestItems": {"music": [{"PutRequest": {"Item": _KEY}}]}},
    "CreateTable": _TABLE | {"TableName": "other"},
    "DeleteItem": _ONE,
    "DeleteTable": {"TableName": "music"},
    "DescribeContinuousBackups": {"TableName": "music"},
    "DescribeTable": {"TableName": "music"},
    "DescribeTimeToLive": {"TableName": "music"},
    "ExecuteStatement": {"Statement": "SELECT * FROM music WHERE pk = 'a'"},
    "ExecuteTransaction": {"TransactStatements": [{"Statement": "SELECT * FROM music WHERE pk = 'a'"}]},
    "GetItem": _ONE,
    "ListTables": {},
    "PutItem": {"TableName": "music", "Item": _KEY},
    "Query": {
        "TableName": "music",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "a"}},
    },
    "Scan": {"TableName": "music"},
    "UpdateContinuousBackups": recovery_of("music"),
    "TransactGetItems": {"TransactItems": [{"Get": _ONE}]},
    "TransactWriteItems": {"TransactItems": [{"Delete": _ONE}]},
    "UpdateItem": _ONE,
}
NAMES = sorted({name for shape in OPERATIONS.values() for name in shape.members})


def test_every_operation_on_items_is_tried() -> None:
    of_items = {name for name in REGISTRY if "Item" in name or "Statement" in name}
    assert of_items - {"StartBulkPutItems"} <= set(REQUESTS)


@pytest.mark.parametrize("garbage", [5, True, "x", [1], {":x": 1}], ids=repr)
@pytest.mark.parametrize("operation", sorted(REQUESTS))
def test_members_that_an_operation_does_not_know_are_ignored(operation: str, garbage: Any) -> None:
    wanted = _answer(operation, REQUESTS[operation])
    request = copy.deepcopy(REQUESTS[operation])
    _litter(OPERATIONS[operation], request, garbage)
    assert _answer(operation, request) == wanted


def _litter(shape: Shape, value: Any, garbage: Any) -> None:
    """Put garbage under all names that a structure does not know, but some other does, at every place."""
    match shape:
        case Structure():
            for name, member in shape.members.items():
                if name in value:
                    _litter(member, value[name], garbage)
            for name in NAMES:
                if name not in shape.members and name != "TableThroughputMode":
                    value[name] = copy.deepcopy(garbage)
        case List():
            for one in value:
                _litter(shape.member, one, garbage)
        case Map():
            for one in value.values():
                _litter(shape.value, one, garbage)


def _answer(operation: str, request: dict[str, Any]) -> bytes:
    database = Database(MemoryEngine(), clock=ManualClock())
    database.execute("CreateTable", copy.deepcopy(_TABLE))
    database.execute("PutItem", {"TableName": "music", "Item": copy.deepcopy(_KEY)})
    answer = database.execute(operation, copy.deepcopy(request))
    for name in ("Table", "TableDescription"):  # they have an identifier
        answer.pop(name, None)
    return orjson.dumps(answer)
