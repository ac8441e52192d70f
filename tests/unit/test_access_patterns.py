"""The access patterns of requests, which may have any form."""

from __future__ import annotations

from typing import Any

import pytest

from hashrange.observing.patterns import expressions_of, key_of
from hashrange.operations.targets import Target, targets_of_any

KEY = {"sk": {"N": "1"}, "pk": {"S": "USER"}}
QUERY = {
    "KeyConditionExpression": "#p = :p AND\n begins_with(sk, :s)",
    "ExpressionAttributeNames": {"#p": "a:pk"},
    "ExpressionAttributeValues": {":p": {"S": "USER"}, ":s": {"S": "ORDER"}},
}


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({}, ""),
        ({"KeyConditionExpression": "#p =  :p", "ExpressionAttributeNames": {"#p": "pk"}}, "pk = :p"),
        ({"FilterExpression": "a = :a", "KeyConditionExpression": "p = :p"}, "p = :p; filter a = :a"),
        ({"UpdateExpression": "SET a = :a", "ConditionExpression": "b = :b"}, "SET a = :a; if b = :b"),
        ({"ScanFilter": {"a": {}, "b": {}}}, "filter a, b"),
        ({"Statement": "SELECT * FROM \"t1\" WHERE a = 'it''s' AND b > -1.5e3"}, None),
        ({"Statement": 7, "FilterExpression": 7, "ExpressionAttributeNames": 7}, ""),
        ({"FilterExpression": "#a = :a", "ExpressionAttributeNames": {"#a": 1}}, "filter #a = :a"),
        ({"FilterExpression": "x" * 400}, "filter " + "x" * 292 + "…"),
    ],
)
def test_the_expressions_of_a_request(request_: Any, expected: str | None) -> None:
    wanted = 'SELECT * FROM "t1" WHERE a = ? AND b > ?' if expected is None else expected
    assert expressions_of(request_) == wanted


@pytest.mark.parametrize(
    ("operation", "request_", "names", "expected"),
    [
        ("Query", QUERY, (), "a:pk = USER AND begins_with(sk, ORDER)"),
        ("Query", {"KeyConditionExpression": "p = :p", "ExpressionAttributeValues": []}, (), "p = *"),
        ("GetItem", {"Key": KEY}, (), "pk = USER AND sk = 1"),
        ("GetItem", {"Key": KEY}, ("sk", "pk"), "sk = 1 AND pk = USER"),
        ("PutItem", {"Item": KEY}, (), ""),
        ("PutItem", {"Item": KEY}, ("pk",), "pk = USER"),
        ("GetItem", {"Key": 5}, ("pk",), ""),
        ("Scan", {}, ("pk",), ""),
    ],
)
def test_the_key_of_a_request(
    operation: str, request_: dict[str, Any], names: tuple[str, ...], expected: str
) -> None:
    (target,) = targets_of_any(operation, {"TableName": "orders"} | request_) or (Target("orders"),)
    assert key_of(operation, request_, target, names, shown) == expected


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ({"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "a"}]}, "pk = a"),
        ({"ComparisonOperator": "BEGINS_WITH", "AttributeValueList": [{"S": "a"}]}, "begins_with(pk, a)"),
        (
            {"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"N": "1"}, {"N": "2"}]},
            "pk BETWEEN 1 AND 2",
        ),
        ({"ComparisonOperator": "BETWEEN", "AttributeValueList": [{"N": "1"}]}, ""),
        ({"ComparisonOperator": "NE"}, ""),
        ({"ComparisonOperator": "EQ", "AttributeValueList": 7}, ""),
        (7, ""),
    ],
)
def test_the_key_of_a_query_with_legacy_conditions(condition: Any, expected: str) -> None:
    request = {"KeyConditions": {"pk": condition}}
    assert key_of("Query", request, Target("orders"), (), shown) == expected
    assert key_of("Query", {"KeyConditions": [condition]}, Target("orders"), (), shown) == ""


def shown(value: Any) -> str:
    """An attribute value as its text."""
    return str(next(iter(value.values()))) if isinstance(value, dict) else "*"
