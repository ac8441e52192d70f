"""Hashed values: nothing of a value is left, equal values stay equal, and requests stay well-formed."""

from __future__ import annotations

import base64
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hashrange import partiql
from hashrange.values import admit_item, item_size
from hashrange_lab.recordings.hashing import Hashing

HASHING = Hashing(b"secret")


@given(st.text(min_size=1, max_size=300))
def test_a_text_keeps_its_size(text: str) -> None:
    hashed = HASHING.value({"S": text})["S"]
    assert len(hashed.encode()) == len(text.encode())
    assert HASHING.value({"S": text})["S"] == hashed
    if len(text) > 8:
        assert hashed != text
        assert Hashing(b"other").value({"S": text})["S"] != hashed


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=4))
def test_a_number_stays_a_number_of_its_magnitude(number: Decimal) -> None:
    hashed = Decimal(HASHING.value({"N": f"{number:f}"})["N"])
    assert hashed.is_signed() == number.is_signed()
    assert hashed.adjusted() == number.adjusted()
    shown, kept = number.normalize().as_tuple(), hashed.normalize().as_tuple()
    assert len(shown.digits) == len(kept.digits)
    assert shown.exponent == kept.exponent


@pytest.mark.parametrize("number", ["1e10", "-2.5E-7", "0", "-0.00", "0.001", "1200"])
def test_numbers_of_other_forms(number: str) -> None:
    hashed = HASHING.value({"N": number})["N"]
    assert Decimal(hashed).adjusted() == Decimal(number).adjusted()
    assert len(hashed) == len(number)


@given(st.binary(max_size=300))
def test_binary_data_keeps_its_length(data: bytes) -> None:
    hashed = HASHING.value({"B": base64.b64encode(data).decode()})["B"]
    assert len(base64.b64decode(hashed)) == len(data)


def test_an_item_stays_an_item_of_its_size() -> None:
    item: dict[str, Any] = {
        "pk": {"S": "ada lovelace"},
        "n": {"N": "1815.5"},
        "tags": {"SS": ["mathematics", "poetry"]},
        "primes": {"NS": ["1009", "1013"]},
        "raw": {"BS": ["AAEC", "AwQF"]},
        "nested": {"M": {"S": {"S": "a member called S"}, "list": {"L": [{"N": "12"}, {"BOOL": True}]}}},
        "nothing": {"NULL": True},
    }
    hashed = HASHING.request({"TableName": "people", "Item": item})["Item"]
    assert hashed.keys() == item.keys()
    assert hashed["nested"]["M"].keys() == {"S", "list"}
    assert hashed["nested"]["M"]["S"] != item["nested"]["M"]["S"]
    assert hashed["nested"]["M"]["list"]["L"][1] == {"BOOL": True}
    size = item_size(item)
    admit_item(hashed)
    assert item_size(hashed) == size
    assert "lovelace" not in str(hashed)
    assert "poetry" not in str(hashed)


@pytest.mark.parametrize(
    "request_",
    [
        {"Key": {"pk": {"S": "secret!!!"}}},
        {"Keys": [{"pk": {"S": "secret!!!"}}]},
        {"RequestItems": {"orders": {"Keys": [{"pk": {"S": "secret!!!"}}]}}},
        {"RequestItems": {"Item": [{"PutRequest": {"Item": {"pk": {"S": "secret!!!"}}}}]}},
        {"TransactItems": [{"Update": {"ExpressionAttributeValues": {":a": {"S": "secret!!!"}}}}]},
        {"Expected": {"a": {"Value": {"S": "secret!!!"}}}},
        {"Expected": {"Value": {"Value": {"S": "secret!!!"}}}},
        {"KeyConditions": {"pk": {"AttributeValueList": [{"S": "secret!!!"}]}}},
        {"ExclusiveStartKey": {"pk": {"S": "secret!!!"}}},
        {"Statement": "SELECT * FROM t WHERE pk = 'secret!!!' -- secret!!!"},
        {"Statement": "SELECT * FROM t WHERE pk = ?", "Parameters": [{"S": "secret!!!"}]},
        {"Statements": [{"Statement": "SELECT * FROM t WHERE pk = 'secret!!!'"}]},
        {"Statement": "this is 'no statement: secret!!!"},
        {"NextToken": "secret!!!"},
        {"Item": {"pk": "secret!!!"}},
        {"Item": {"pk": ["secret!!!"]}},
        {"Item": ["secret!!!"]},
        {"Key": {"pk": {"S": ["secret!!!"]}}},
        {"Key": {"pk": {"N": "secret!!!"}}},
        {"Key": {"pk": {"B": "secret!!!"}}},
        {"Key": {"pk": {"SS": "secret!!!"}}},
        {"Key": {"pk": {"other": {"S": "secret!!!"}}}},
    ],
    ids=str,
)
def test_no_value_is_left(request_: dict[str, Any]) -> None:
    assert "secret!!!" not in str(HASHING.request({"TableName": "orders", **request_}))


@pytest.mark.parametrize(
    "request_",
    [
        {"TableName": "orders", "IndexName": "by-date", "Limit": 7, "ConsistentRead": True},
        {"ExpressionAttributeNames": {"#a": "attribute"}, "UpdateExpression": "SET #a = :a"},
        {"ResourceArn": "arn:aws:dynamodb:us-east-1:000000000000:table/orders"},
        {"ExpressionAttributeValues": {":type": {"S": "SS"}}},
        {"Key": {"pk": {"BOOL": True}}},
    ],
    ids=str,
)
def test_what_is_no_value_stays(request_: dict[str, Any]) -> None:
    assert HASHING.request(request_) == request_


@pytest.mark.parametrize(
    "statement",
    [
        'SELECT a.b[0], "c" FROM "orders"."by-date" WHERE pk = \'ada\' AND sk BETWEEN 1 AND 20',
        "INSERT INTO orders VALUE {'pk': 'ada', 'list': [1, 22, 'three'], 'tags': <<'a', 'bcd'>>}",
        "UPDATE orders SET price = price + 100 REMOVE note WHERE pk = 'it''s' AND attribute_type(a, 'SS')",
        "DELETE FROM orders WHERE pk = ? AND sk = -12.50",
    ],
)
def test_a_statement_stays_a_statement(statement: str) -> None:
    hashed = HASHING.statement(statement)
    assert hashed != statement
    assert HASHING.statement(statement) == hashed
    before, after = partiql.prepare(statement).statement, partiql.prepare(hashed).statement
    assert type(before) is type(after)
    assert before.table == after.table
    for kept in ("'pk' :", "'tags' :", "'SS'", "[ 0 ]"):
        name = kept.strip(" :")
        if name.replace(" ", "") in statement.replace(" ", ""):
            assert name in hashed
    for gone in ("ada", "it''s", "three", "bcd", "12.50", "100"):
        assert gone not in hashed
