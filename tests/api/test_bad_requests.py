"""Bad requests of any size and depth get a small answer, over HTTP and in process.

The threads that answer have stacks of 512 KB, as a program that embeds Hashrange may have them: a walk of a
request that recurses too deeply ends the process where the modules are compiled.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import orjson
import pytest

from doors import Door, in_process, outcome, over_http
from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.limits import (
    EXPRESSION_OPERATORS_MAX,
    NESTING_LEVELS_MAX,
    READABLE_LEVELS_MAX,
)
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine

STACK_BYTES = 512 * 1024
TABLE = {
    "TableName": "music",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "BillingMode": "PAY_PER_REQUEST",
}


@pytest.fixture(scope="module", params=["http", "in process"])
def door(request: pytest.FixtureRequest) -> Iterator[Door]:
    """Sends a body to an operation: `(status, answer)`."""
    database = Database(MemoryEngine(), clock=ManualClock())
    database.execute("CreateTable", orjson.loads(orjson.dumps(TABLE)))
    database.execute("PutItem", {"TableName": "music", "Item": {"pk": {"S": "a"}}})
    before = threading.stack_size(STACK_BYTES)
    try:
        if request.param == "http":
            with running(database) as endpoint:
                yield over_http(endpoint)
        else:
            yield in_process(database)
    finally:
        threading.stack_size(before)
        database.close()


def lists(levels: int) -> bytes:
    """An attribute value of this many levels."""
    return b'{"L":[' * (levels - 1) + b'{"S":"x"}' + b"]}" * (levels - 1)


def maps(levels: int) -> bytes:
    return b'{"M":{"m":' * (levels - 1) + b'{"S":"x"}' + b"}}" * (levels - 1)


UNREADABLE = "SerializationException: None"

KEY = {"pk": {"S": "a"}}


def put(value: bytes) -> tuple[str, Any]:
    return "PutItem", {"TableName": "music", "Item": {**KEY, "a": value}}


def compared(value: bytes) -> tuple[str, Any]:
    condition = {"ConditionExpression": "a = :v", "ExpressionAttributeValues": {":v": value}}
    return "PutItem", {"TableName": "music", "Item": KEY, **condition}


def batch(value: bytes) -> tuple[str, Any]:
    item = {**KEY, "a": value}
    return "BatchWriteItem", {"RequestItems": {"music": [{"PutRequest": {"Item": item}}]}}


def transaction(value: bytes) -> tuple[str, Any]:
    member = {"Put": {"TableName": "music", "Item": {**KEY, "a": value}}}
    return "TransactWriteItems", {"TransactItems": [member], "ClientRequestToken": str(len(value))}


def transacted_condition(value: bytes) -> tuple[str, Any]:
    condition = {"ConditionExpression": "a <> :v", "ExpressionAttributeValues": {":v": value}}
    member = {"Put": {"TableName": "music", "Item": KEY, **condition}}
    return "TransactWriteItems", {"TransactItems": [member], "ClientRequestToken": f"c{len(value)}"}


def parameter(value: bytes) -> tuple[str, Any]:
    return "ExecuteStatement", {"Statement": "SELECT * FROM music WHERE a = ?", "Parameters": [value]}


def legacy(value: bytes) -> tuple[str, Any]:
    return "UpdateItem", {"TableName": "music", "Key": KEY, "AttributeUpdates": {"a": {"Value": value}}}


@pytest.mark.parametrize("make", [put, compared, batch, transaction, parameter, legacy])
@pytest.mark.parametrize("nest", [lists, maps])
def test_depth_of_values(
    door: Door, make: Callable[[bytes], tuple[str, Any]], nest: Callable[[int], bytes]
) -> None:
    assert "Nesting" not in outcome(door, *make(nest(NESTING_LEVELS_MAX)))
    for levels in (NESTING_LEVELS_MAX + 1, 100, READABLE_LEVELS_MAX):
        assert "Nesting Levels have exceeded supported limits" in outcome(door, *make(nest(levels)))
    for levels in (READABLE_LEVELS_MAX + 1, 165, 330, 510, 600, 5_000):
        assert outcome(door, *make(nest(levels))) == UNREADABLE  # [assumed]


@pytest.mark.parametrize("nest", [lists, maps])
def test_a_value_that_a_transaction_only_compares_may_be_a_level_deeper(
    door: Door, nest: Callable[[int], bytes]
) -> None:
    # [report] dynamodb-conformance pull request 178 of 33 levels, paritysuite of 40
    assert outcome(door, *transacted_condition(nest(NESTING_LEVELS_MAX + 1))) == "OK"
    for levels in (40, READABLE_LEVELS_MAX):
        assert "Nesting Levels have exceeded" in outcome(door, *transacted_condition(nest(levels)))
    for levels in (READABLE_LEVELS_MAX + 1, 330, 5_000):
        assert outcome(door, *transacted_condition(nest(levels))) == UNREADABLE  # [assumed]


@pytest.mark.parametrize("levels", [200, 250, 330, 1_000])
def test_depth_of_what_is_unknown(door: Door, levels: int) -> None:
    """DynamoDB ignores members that it does not know, wherever they stand."""
    deep = b"[" * levels + b"]" * levels
    requests: list[tuple[str, Any]] = [
        ("PutItem", {"TableName": "music", "Item": KEY, "Unknown": deep}),
        ("PutItem", {"TableName": "music", "Item": {"pk": {"S": "a", "X": deep}}}),
        ("PutItem", {"TableName": "m", "Item": {"pk": {"S": "a", "X": deep}}, "Unknown": deep}),
        (
            "BatchWriteItem",
            {"RequestItems": {"music": [{"DeleteRequest": {"Key": {"pk": {"X": deep}}}}] * 26}},
        ),
        (
            "TransactWriteItems",
            {
                "TransactItems": [{"Delete": {"TableName": "music", "Key": KEY, "Unknown": deep}}],
                "ClientRequestToken": f"u{levels}",
            },
        ),
    ]
    for operation, request in requests:
        outcome(door, operation, request)


def connectives(count: int) -> Iterator[str]:
    for number in range(count):
        yield "AND" if number % 2 else "OR"


MANY = EXPRESSION_OPERATORS_MAX
HALF = MANY // 2 - 1
CONDITIONS = [
    "NOT " * (MANY - 1) + "a = pk",
    "NOT " * MANY + "a = pk",
    "(" * HALF + "a=pk" + "".join(f" {word} b=c)" for word in connectives(HALF)),
    "".join(f"a=b {word} (" for word in connectives(HALF)) + "a=b" + ")" * HALF,
    "".join(f"a=b {word} (" for word in connectives(350)) + "a=b" + ")" * 350,
    "NOT (" * (MANY - 2) + "a=pk" + ")" * (MANY - 2),
    "NOT (" * 450 + "a=pk" + ")" * 450,
    "a = " + "size(" * 650 + "a" + ")" * 650,
    "a = " + "(" * 2_000 + "b" + ")" * 2_000,
    "(" * 2_000 + "a" + ")" * 2_000 + " = b",
    "(" * 4_000,
    "size(" * 800,
    "a" + ".a" * 2_000 + " = b",
    "a" + "[0]" * 1_300 + " = b",
]


@pytest.mark.parametrize("text", CONDITIONS)
def test_depth_of_conditions(door: Door, text: str) -> None:
    assert len(text) <= 4_096
    keyed = {"TableName": "music", "Key": KEY}
    outcome(door, "DeleteItem", {**keyed, "ConditionExpression": text})
    outcome(door, "Scan", {"TableName": "music", "FilterExpression": text})
    outcome(door, "Query", {"TableName": "music", "KeyConditionExpression": text})
    outcome(door, "UpdateItem", {**keyed, "UpdateExpression": "SET a = " + text})
    outcome(door, "UpdateItem", {**keyed, "UpdateExpression": "REMOVE " + text})
    outcome(door, "GetItem", {**keyed, "ProjectionExpression": text})
    for head in (
        "SELECT * FROM music WHERE ",
        "DELETE FROM music WHERE pk='a' AND ",
        "UPDATE music SET x = ",
    ):
        tail = " WHERE pk='a'" if head.startswith("UPDATE") else ""
        outcome(door, "ExecuteStatement", {"Statement": head + text + tail})


def test_conditions_at_the_limit_are_tested(door: Door) -> None:
    item = {"TableName": "music", "Item": KEY}
    for text, tells in (
        (CONDITIONS[0], "OK"),
        (CONDITIONS[1], "too many operators; operator count: 301"),
        (CONDITIONS[2], "ConditionalCheckFailed"),
        (CONDITIONS[3], "ConditionalCheckFailed"),
        (CONDITIONS[4], "too many operators; operator count: 301"),
        (CONDITIONS[5], "ConditionalCheckFailed"),
        (CONDITIONS[6], "too many operators; operator count: 301"),
    ):
        assert tells in outcome(door, "PutItem", {**item, "ConditionExpression": text}), text[:20]


@pytest.mark.parametrize(
    "text",
    [
        "UPDATE music SET x = b" + " + 1" * (MANY - 2) + " WHERE pk='a'",
        "UPDATE music SET x = " + "list_append(a, " * 74 + "a" + ")" * 74 + " WHERE pk='a'",
        "SELECT * FROM music WHERE a=" + "[" * 8_000,
        "SELECT * FROM music WHERE a=" + "{'a':" * 1_500,
        "SELECT * FROM music WHERE a=" + "<<" * 4_000,
        "SELECT * FROM music WHERE pk='a'" + " AND a=1" * HALF,
        "SELECT * FROM music WHERE pk='a'" + " OR a=1" * HALF,
        "SELECT * FROM " + "(" * 8_000,
        "INSERT INTO music VALUE " + "{'pk':" * 1_300,
        "EXISTS(SELECT * FROM music WHERE pk=" + "(" * 8_000,
    ],
)
def test_depth_of_statements(door: Door, text: str) -> None:
    assert len(text) <= 8_192
    outcome(door, "ExecuteStatement", {"Statement": text})
    outcome(door, "BatchExecuteStatement", {"Statements": [{"Statement": text}] * 2})
    outcome(door, "ExecuteTransaction", {"TransactStatements": [{"Statement": text}]})


LONG = 30_000


@pytest.mark.parametrize(
    ("operation", "request_"),
    [
        ("TransactWriteItems", {"TransactItems": [{}] * LONG}),
        ("TransactWriteItems", {"TransactItems": [{"Put": {}}] * 101}),
        ("TransactGetItems", {"TransactItems": [{"Get": {"Key": {}, "TableName": "m" * 2_000}}] * 200}),
        ("BatchGetItem", {"RequestItems": {"t" * LONG: {"Keys": [{}] * LONG}}}),
        ("BatchGetItem", {"RequestItems": {str(n): {"Keys": [None] * 10} for n in range(LONG // 10)}}),
        ("BatchWriteItem", {"RequestItems": {"t" * LONG + str(n): [{}] * 26 for n in range(3)}}),
        ("BatchWriteItem", {"RequestItems": {"music": [{}] * LONG}}),
        ("BatchExecuteStatement", {"Statements": [{}] * LONG}),
        ("ExecuteTransaction", {"TransactStatements": [{"Statement": ""}] * LONG}),
        ("CreateTable", {**TABLE, "KeySchema": [{}] * LONG}),
        (
            "CreateTable",
            {**TABLE, "AttributeDefinitions": [{"AttributeName": "x", "AttributeType": "S"}] * 9_999},
        ),
        ("CreateTable", {**TABLE, "GlobalSecondaryIndexes": [{"KeySchema": []}] * LONG}),
        ("UpdateTable", {"TableName": "music", "ReplicaUpdates": [{}] * LONG}),
        ("PutItem", {"TableName": "m" * LONG, "Item": KEY}),
        ("PutItem", {"TableName": "arn:" + "m" * 1_000, "Item": KEY}),
        ("PutItem", {"TableName": "music", "Item": {"pk": {"N": "x" * LONG}}}),
        ("PutItem", {"TableName": "music", "Item": {"pk": {"SS": ["x"] * LONG}}}),
        ("PutItem", {"TableName": "music", "Item": KEY, "ReturnValues": "x" * LONG}),
        ("PutItem", {"TableName": "music", "Item": KEY, "Expected": {"x" * LONG: {"Exists": True}}}),
        (
            "PutItem",
            {
                "TableName": "music",
                "Item": KEY,
                "ConditionExpression": "a = b",
                "ExpressionAttributeNames": {f"#{n}": "x" for n in range(LONG // 10)},
            },
        ),
        (
            "UpdateItem",
            {
                "TableName": "music",
                "Key": KEY,
                "UpdateExpression": f"REMOVE {'.'.join(['#a'] * 32)}, {'.'.join(['#a'] * 32)}",
                "ExpressionAttributeNames": {"#a": "x" * 60_000},
            },
        ),
        (
            "Scan",
            {
                "TableName": "music",
                "FilterExpression": f"{'.'.join(['#a'] * 32)} = {'.'.join(['#a'] * 32)}",
                "ExpressionAttributeNames": {"#a": "x" * 60_000},
            },
        ),
        (
            "Scan",
            {
                "TableName": "music",
                "FilterExpression": "a BETWEEN :a AND :b",
                "ExpressionAttributeValues": {":a": {"S": "y" * LONG}, ":b": {"S": "x" * LONG}},
            },
        ),
        ("TagResource", {"ResourceArn": "x", "Tags": [{}] * LONG}),
        ("TagResource", {"ResourceArn": "x" * LONG, "Tags": [{"Key": "x" * LONG, "Value": "x" * LONG}]}),
        ("ExecuteStatement", {"Statement": "x" * LONG}),
        ("ExecuteStatement", {"Statement": "SELECT * FROM music", "NextToken": "x" * 30_000}),
    ],
)
def test_errors_are_small(door: Door, operation: str, request_: Any) -> None:
    assert outcome(door, operation, request_) != "OK"
