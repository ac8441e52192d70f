"""The boto3 resource: Python values, condition builders, the batch writer."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary

if TYPE_CHECKING:
    from types_boto3_dynamodb.service_resource import Table

EVERYTHING: dict[str, Any] = {
    "pk": "everything",
    "sk": Decimal("1.5"),
    "text": "é𝄞\x00",
    "empty": "",
    "large": Decimal("99999999999999999999999999999999999999"),
    "tiny": Decimal("1E-130"),
    "negative": Decimal("-0.25"),
    "binary": Binary(b"\x00\xff"),
    "yes": True,
    "nothing": None,
    "texts": {"a", "b"},
    "numbers": {Decimal("1"), Decimal("-2.5")},
    "binaries": {Binary(b"\x00"), Binary(b"")},
    "list": [Decimal("1"), "two", [None], {"three": {"x"}}],
    "map": {"list": [], "map": {}},
}


def test_every_type_survives(table: Table) -> None:
    table.put_item(Item=EVERYTHING)
    key: dict[str, Any] = {"pk": "everything", "sk": Decimal("1.5")}
    assert table.get_item(Key=key, ConsistentRead=True)["Item"] == EVERYTHING


def test_the_batch_writer_sends_all_and_keeps_the_last_of_a_key(table: Table) -> None:
    with table.batch_writer(overwrite_by_pkeys=["pk", "sk"]) as batch:
        for number in range(60):
            batch.put_item(Item={"pk": "batch", "sk": number % 30, "round": number // 30})
        batch.delete_item(Key={"pk": "batch", "sk": 29})
    items = table.query(KeyConditionExpression=Key("pk").eq("batch"), ConsistentRead=True)["Items"]
    assert [(item["sk"], item["round"]) for item in items] == [(number, 1) for number in range(29)]


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (Key("sk").eq(3), [3]),
        (Key("sk").lt(2), [0, 1]),
        (Key("sk").lte(2), [0, 1, 2]),
        (Key("sk").gt(7), [8, 9]),
        (Key("sk").gte(7), [7, 8, 9]),
        (Key("sk").between(4, 5), [4, 5]),
    ],
)
def test_key_conditions(table: Table, condition: Any, found: list[int]) -> None:
    _fill(table, 10)
    answer = table.query(KeyConditionExpression=Key("pk").eq("p") & condition, ConsistentRead=True)
    assert [item["sk"] for item in answer["Items"]] == found


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        (Attr("even").eq(True), [0, 2, 4]),
        (Attr("even").ne(True), [1, 3]),
        (Attr("word").begins_with("w"), [0, 1, 2, 3, 4]),
        (Attr("word").contains("3"), [3]),
        (Attr("word").is_in(["w1", "w4"]), [1, 4]),
        (Attr("word").size().eq(2) & Attr("sk").between(1, 2), [1, 2]),
        (Attr("tags").contains("t2"), [2]),
        (Attr("nested.list[0]").gte(3), [3, 4]),
        (Attr("absent").not_exists() & ~Attr("word").attribute_type("N"), [0, 1, 2, 3, 4]),
        (Attr("absent").exists() | Attr("sk").eq(0), [0]),
    ],
)
def test_filters(table: Table, condition: Any, found: list[int]) -> None:
    _fill(table, 5)
    answer = table.scan(FilterExpression=condition, ConsistentRead=True)
    assert sorted(int(str(item["sk"])) for item in answer["Items"]) == found
    assert answer["ScannedCount"] == 5


def _fill(table: Table, count: int) -> None:
    with table.batch_writer() as batch:
        for number in range(count):
            batch.put_item(
                Item={
                    "pk": "p",
                    "sk": number,
                    "even": number % 2 == 0,
                    "word": f"w{number}",
                    "tags": {f"t{number}"},
                    "nested": {"list": [number]},
                }
            )


def test_an_update_counts_appends_and_removes(table: Table) -> None:
    key: dict[str, Any] = {"pk": "u", "sk": 0}
    for _ in range(3):
        answer = table.update_item(
            Key=key,
            UpdateExpression=(
                "SET visits = if_not_exists(visits, :zero) + :one, "
                "#log = list_append(if_not_exists(#log, :none), :entry) REMOVE stale ADD likes :one"
            ),
            ExpressionAttributeNames={"#log": "log"},
            ExpressionAttributeValues={":zero": 0, ":one": 1, ":none": [], ":entry": ["x"]},
            ReturnValues="ALL_NEW",
        )
    assert answer["Attributes"] == {**key, "visits": 3, "log": ["x", "x", "x"], "likes": 3}


def test_legacy_parameters(table: Table) -> None:
    _fill(table, 5)
    answer = table.query(
        KeyConditions={
            "pk": {"ComparisonOperator": "EQ", "AttributeValueList": ["p"]},
            "sk": {"ComparisonOperator": "GE", "AttributeValueList": [1]},
        },
        QueryFilter={"even": {"ComparisonOperator": "EQ", "AttributeValueList": [True]}},
        AttributesToGet=["sk"],
        ScanIndexForward=False,
    )
    assert answer["Items"] == [{"sk": 4}, {"sk": 2}]
    table.update_item(
        Key={"pk": "p", "sk": 0},
        AttributeUpdates={"n": {"Action": "ADD", "Value": 2}},
        Expected={"n": {"Exists": False}},
    )
    with pytest.raises(table.meta.client.exceptions.ConditionalCheckFailedException):
        table.delete_item(Key={"pk": "p", "sk": 0}, Expected={"n": {"Value": 3}})
