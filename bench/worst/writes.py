"""The writes that cost most: long conditions, copies of lists, full batches, many indexes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bench.worst.reads import contains_filter
from bench.worst.registry import shape
from bench.worst.stage import INDEXED, LISTS, TINY, WRITTEN, Stage, keys_of, long_list, many_attributes

Json = dict[str, Any]

COPIES = 400


def nested(levels: int) -> Json:
    """A value of `levels` levels of maps, as deep as an item may be at 31."""
    value: Json = {"S": "x"}
    for _ in range(levels):
        value = {"M": {"a": value}}
    return value


def _list_key(number: int) -> Json:
    return {"pk": {"S": "l"}, "sk": {"N": str(number)}}


@shape("TransactWriteItems of 40 KB: 7 checks of 150 contains on lists of 400 KB")
def transact_contains(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    found = contains_filter()
    checks = [
        {
            "ConditionCheck": {
                "TableName": LISTS,
                "Key": _list_key(n),
                "ConditionExpression": f"NOT ({found['expression']})",
                "ExpressionAttributeValues": found["values"],
            }
        }
        for n in range(7)
    ]
    return [stage.request("TransactWriteItems", {"TransactItems": checks})]


@shape("UpdateItem that copies a list of 400 KB 400 times")
def update_copies(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    update = "SET " + ",".join(f"a{n}=l" for n in range(COPIES))
    return [
        stage.request("UpdateItem", {"TableName": LISTS, "Key": _list_key(0), "UpdateExpression": update})
    ]


@shape("UpdateItem that appends a list of 400 KB to itself 150 times")
def update_appends(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    update = "SET " + ",".join(f"a{n}=list_append(l,l)" for n in range(150))
    return [
        stage.request("UpdateItem", {"TableName": LISTS, "Key": _list_key(0), "UpdateExpression": update})
    ]


@shape("UpdateItem that removes 250 elements of a list of 400 KB, and gives all of it back")
def update_removes(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    update = "REMOVE " + ",".join(f"l[{200_000 + n}]" for n in range(250)) + " SET l[5] = :one"
    body = {"TableName": LISTS, "Key": _list_key(1), "UpdateExpression": update, "ReturnValues": "ALL_NEW"}
    return [stage.request("UpdateItem", {**body, "ExpressionAttributeValues": {":one": {"N": "1"}}})]


@shape("PutItem with a legacy Expected that compares lists of 400 KB")
def put_expected(stage: Stage) -> Sequence[bytes]:
    stage.need(LISTS)
    expected = {"l": {"ComparisonOperator": "EQ", "AttributeValueList": [long_list()]}}
    item = {**_list_key(2), "l": long_list()}
    return [stage.request("PutItem", {"TableName": LISTS, "Item": item, "Expected": expected})]


@shape("PutItem of 400 KB: 130,000 attributes, into a table without indexes")
def put_attributes(stage: Stage) -> Sequence[bytes]:
    stage.need(WRITTEN)
    item = {**many_attributes(130_000), "pk": {"S": "wide"}}
    return [stage.request("PutItem", {"TableName": WRITTEN, "Item": item, "ReturnValues": "ALL_OLD"})]


@shape("the same into a table with 20 global indexes")
def put_indexed(stage: Stage) -> Sequence[bytes]:
    stage.need(INDEXED)
    item = {**many_attributes(130_000), "pk": {"S": "wide"}}
    return [
        stage.request("PutItem", {"TableName": INDEXED, "Item": {**item, "g": {"S": group}}})
        for group in ("one", "other")
    ]


@shape("PutItem of an item nested as deep as it may be, 400 KB")
def put_deep(stage: Stage) -> Sequence[bytes]:
    stage.need(WRITTEN)
    item = {f"d{n}": nested(31) for n in range(2_300)}
    return [stage.request("PutItem", {"TableName": WRITTEN, "Item": {**item, "pk": {"S": "deep"}}})]


def _batch(stage: Stage, items: list[Json]) -> Sequence[bytes]:
    stage.need(WRITTEN)
    puts = [{"PutRequest": {"Item": item}} for item in items]
    return [stage.request("BatchWriteItem", {"RequestItems": {WRITTEN: puts}})]


@shape("BatchWriteItem of 25 items of 400 KB, 10 MB of text")
def batch_write_text(stage: Stage) -> Sequence[bytes]:
    return _batch(stage, [{"pk": {"S": f"b{n}"}, "note": {"S": "x" * 409_000}} for n in range(25)])


@shape("BatchWriteItem of 25 items, 16 MB of tiny attributes")
def batch_write_attributes(stage: Stage) -> Sequence[bytes]:
    attributes = many_attributes(41_000)
    return _batch(stage, [{**attributes, "pk": {"S": f"a{n}"}} for n in range(25)])


@shape("TransactWriteItems of 100 puts, 4 MB of text")
def transact_put_text(stage: Stage) -> Sequence[bytes]:
    stage.need(WRITTEN)
    items = [{"pk": {"S": f"t{n}"}, "note": {"S": "x" * 41_000}} for n in range(100)]
    return [_transaction(stage, items)]


@shape("TransactWriteItems of 100 puts, 4 MB of tiny attributes")
def transact_put_attributes(stage: Stage) -> Sequence[bytes]:
    stage.need(WRITTEN)
    attributes = many_attributes(10_000)
    return [_transaction(stage, [{**attributes, "pk": {"S": f"s{n}"}} for n in range(100)])]


def _transaction(stage: Stage, items: list[Json]) -> bytes:
    puts = [{"Put": {"TableName": WRITTEN, "Item": item}} for item in items]
    return stage.request("TransactWriteItems", {"TransactItems": puts})


@shape("ExecuteTransaction of 100 updates of 10 KB")
def execute_transaction(stage: Stage) -> Sequence[bytes]:
    stage.need(WRITTEN)
    statements = [
        {
            "Statement": f"UPDATE {WRITTEN} SET extra = ? WHERE pk = 'u{n}'",
            "Parameters": [{"L": [{"N": "1"}] * 3_000}],
        }
        for n in range(100)
    ]
    return [stage.request("ExecuteTransaction", {"TransactStatements": statements})]


@shape("UpdateTable that adds an index to 110,000 items, and takes it away", ways=("single",))
def add_index(stage: Stage) -> Sequence[bytes]:
    stage.need(TINY)
    create = {
        "IndexName": "added",
        "KeySchema": keys_of("g", "p"),
        "Projection": {"ProjectionType": "ALL"},
    }
    definitions = [{"AttributeName": name, "AttributeType": "S"} for name in "gp"]
    body: Json = {"TableName": TINY, "AttributeDefinitions": definitions}
    delete = {"Delete": {"IndexName": "added"}}
    return [
        stage.request("UpdateTable", {**body, "GlobalSecondaryIndexUpdates": [{"Create": create}]}),
        *[stage.request("DescribeTable", {"TableName": TINY})] * 2_000,
        stage.request("UpdateTable", {"TableName": TINY, "GlobalSecondaryIndexUpdates": [delete]}),
    ]
