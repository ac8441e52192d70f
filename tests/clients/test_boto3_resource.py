"""boto3's resource, as its guide uses it: native types, `Key` and `Attr`, the batch writer, collections."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from boto3.dynamodb.conditions import Attr, Key
from boto3.dynamodb.types import Binary

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodb.service_resource import DynamoDBServiceResource, Table


@pytest.fixture
def users(
    http_resource: DynamoDBServiceResource, http_client: DynamoDBClient, name_table: Callable[..., str]
) -> Table:
    """The table of boto3's guide: users by username and last name; with an index by age within a username."""
    table = http_resource.create_table(
        TableName=name_table("users", http_client),
        KeySchema=[
            {"AttributeName": "username", "KeyType": "HASH"},
            {"AttributeName": "last_name", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "username", "AttributeType": "S"},
            {"AttributeName": "last_name", "AttributeType": "S"},
            {"AttributeName": "age", "AttributeType": "N"},
        ],
        LocalSecondaryIndexes=[
            {
                "IndexName": "by-age",
                "KeySchema": [
                    {"AttributeName": "username", "KeyType": "HASH"},
                    {"AttributeName": "age", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
        ],
        ProvisionedThroughput={"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
    )
    table.wait_until_exists()
    table.reload()
    return table


def test_attributes_of_a_table(http_resource: DynamoDBServiceResource, users: Table) -> None:
    assert users.item_count == 0
    assert users.table_status == "ACTIVE"
    assert users.creation_date_time.tzinfo is not None
    assert users.provisioned_throughput["ReadCapacityUnits"] == 5
    assert users.name in [table.name for table in http_resource.tables.all()]


def test_every_type_comes_back(users: Table) -> None:
    item: dict[str, Any] = {
        "username": "janedoe",
        "last_name": "Doe",
        "age": 25,
        "height": Decimal("1.7300000000000000000000000000000000001"),
        "picture": Binary(b"\x00\xff"),
        "married": False,
        "nickname": None,
        "empty": "",
        "tags": {"a", "b"},
        "scores": {Decimal(1), Decimal("2.5")},
        "keys": {Binary(b"x")},
        "address": {"road": "1 Jefferson Street", "numbers": [1, "two", {"three": 3}]},
    }
    users.put_item(Item=item)
    assert users.get_item(Key={"username": "janedoe", "last_name": "Doe"})["Item"] == item


def test_update_and_delete(users: Table) -> None:
    key = {"username": "janedoe", "last_name": "Doe"}
    users.put_item(Item={**key, "age": 25, "account_type": "standard_user"})
    users.update_item(Key=key, UpdateExpression="SET age = :val1", ExpressionAttributeValues={":val1": 26})
    assert users.get_item(Key=key)["Item"]["age"] == 26
    with pytest.raises(users.meta.client.exceptions.ConditionalCheckFailedException):
        users.update_item(
            Key=key,
            UpdateExpression="ADD age :one",
            ExpressionAttributeValues={":one": 1},
            ConditionExpression="age < :one",
        )
    users.delete_item(Key=key, ConditionExpression=Attr("age").eq(26))
    assert "Item" not in users.get_item(Key=key)


def test_batch_writer(users: Table) -> None:
    with users.batch_writer(overwrite_by_pkeys=["username", "last_name"]) as batch:
        for number in range(60):
            batch.put_item(Item={"username": f"user{number % 50}", "last_name": "unknown", "age": number})
        batch.delete_item(Key={"username": "user0", "last_name": "unknown"})
    assert users.scan(Select="COUNT")["Count"] == 49
    assert users.get_item(Key={"username": "user1", "last_name": "unknown"})["Item"]["age"] == 51


def test_query_and_scan(users: Table) -> None:
    with users.batch_writer() as batch:
        for age, last_name in enumerate(("Doe", "Dorian", "Smith", "Zorro")):
            batch.put_item(
                Item={"username": "john", "last_name": last_name, "age": 40 - age, "address": {"state": "CA"}}
            )
    found = users.query(
        KeyConditionExpression=Key("username").eq("john") & Key("last_name").begins_with("Do")
    )
    assert [item["last_name"] for item in found["Items"]] == ["Doe", "Dorian"]
    aged = users.query(
        IndexName="by-age", KeyConditionExpression=Key("username").eq("john") & Key("age").between(37, 38)
    )
    assert aged["Items"] == [
        {"username": "john", "last_name": "Zorro", "age": 37},
        {"username": "john", "last_name": "Smith", "age": 38},
    ]
    filtered = users.scan(
        FilterExpression=Attr("address.state").eq("CA")
        & (Attr("age").lt(39) | ~Attr("last_name").contains("o"))
    )
    assert sorted(str(item["last_name"]) for item in filtered["Items"]) == ["Smith", "Zorro"]


def test_batch_get(http_resource: DynamoDBServiceResource, users: Table) -> None:
    keys = [{"username": name, "last_name": "x"} for name in ("a", "b")]
    for key in keys:
        users.put_item(Item=key)
    got = http_resource.batch_get_item(RequestItems={users.name: {"Keys": keys}})
    assert sorted(str(item["username"]) for item in got["Responses"][users.name]) == ["a", "b"]
