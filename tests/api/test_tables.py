"""The life of a table: waiters, descriptions, indexes that come and go, time to live, tags."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from endpoints import SOON

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient



def test_create_describe_delete(client: DynamoDBClient, name_table: Callable[..., str]) -> None:
    name = name_table("life")
    made = client.create_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        ProvisionedThroughput={"ReadCapacityUnits": 2, "WriteCapacityUnits": 1},
    )["TableDescription"]
    assert made["TableStatus"] == "CREATING"
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=SOON)
    shown = client.describe_table(TableName=name)["Table"]
    assert shown["TableStatus"] == "ACTIVE"
    assert shown["TableId"] == made["TableId"]
    assert shown["TableArn"].endswith(f":table/{name}")
    assert shown["KeySchema"] == [{"AttributeName": "id", "KeyType": "HASH"}]
    assert shown["ProvisionedThroughput"]["ReadCapacityUnits"] == 2
    assert shown["ItemCount"] == 0
    with pytest.raises(client.exceptions.ResourceInUseException, match=f"Table already exists: {name}"):
        client.create_table(
            TableName=name,
            AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
            KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
            BillingMode="PAY_PER_REQUEST",
        )
    assert client.delete_table(TableName=name)["TableDescription"]["TableStatus"] == "DELETING"
    client.get_waiter("table_not_exists").wait(TableName=name, WaiterConfig=SOON)


def test_a_table_by_its_arn(client: DynamoDBClient, create: Callable[..., str]) -> None:
    name = create("arn", id="S", hash_only=True)
    arn = client.describe_table(TableName=name)["Table"]["TableArn"]
    client.put_item(TableName=arn, Item={"id": {"S": "x"}})
    assert client.get_item(TableName=name, Key={"id": {"S": "x"}}, ConsistentRead=True)["Item"]


def test_list_tables_by_pages(client: DynamoDBClient, create: Callable[..., str]) -> None:
    names = {create(f"list{number}", id="S", hash_only=True) for number in range(3)}
    pages = list(client.get_paginator("list_tables").paginate(PaginationConfig={"PageSize": 1}))
    listed = [name for page in pages for name in page["TableNames"]]
    assert names <= set(listed)
    assert len(listed) == len(set(listed))


def test_an_index_is_added_and_filled_and_deleted(client: DynamoDBClient, create: Callable[..., str]) -> None:
    name = create("index", id="S", hash_only=True)
    for number in range(5):
        client.put_item(TableName=name, Item={"id": {"S": str(number)}, "n": {"N": str(number % 2)}})
    client.put_item(TableName=name, Item={"id": {"S": "other type"}, "n": {"S": "1"}})
    client.update_table(
        TableName=name,
        AttributeDefinitions=[{"AttributeName": "n", "AttributeType": "N"}],
        GlobalSecondaryIndexUpdates=[
            {
                "Create": {
                    "IndexName": "by-n",
                    "KeySchema": [{"AttributeName": "n", "KeyType": "HASH"}],
                    "Projection": {"ProjectionType": "ALL"},
                }
            }
        ],
    )
    _wait_for_indexes(client, name, ["ACTIVE"])
    found = client.query(
        TableName=name,
        IndexName="by-n",
        KeyConditionExpression="n = :n",
        ExpressionAttributeValues={":n": {"N": "1"}},
    )
    assert sorted(item["id"]["S"] for item in found["Items"]) == ["1", "3"]
    client.update_table(TableName=name, GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-n"}}])
    _wait_for_indexes(client, name, [])


def _wait_for_indexes(client: DynamoDBClient, name: str, statuses: list[str]) -> None:
    """Until the table is ACTIVE and its indexes have these states; the waiter polls, not the test."""
    for _ in range(60):
        client.get_waiter("table_exists").wait(TableName=name, WaiterConfig=SOON)
        shown = client.describe_table(TableName=name)["Table"]
        now = [index["IndexStatus"] for index in shown.get("GlobalSecondaryIndexes", [])]
        if now == statuses and shown["TableStatus"] == "ACTIVE":
            return
    pytest.fail(f"the indexes are {now}, not {statuses}")


def test_deletion_protection(client: DynamoDBClient, create: Callable[..., str]) -> None:
    name = create("protected", id="S", hash_only=True, DeletionProtectionEnabled=True)
    with pytest.raises(client.exceptions.ClientError) as refused:
        client.delete_table(TableName=name)
    # [report] dynoxide pull 49
    assert refused.value.response["Error"] == {
        "Code": "ValidationException",
        "Message": "Resource cannot be deleted as it is currently protected against deletion. "
        "Disable deletion protection first.",
    }
    client.update_table(TableName=name, DeletionProtectionEnabled=False)


def test_time_to_live(client: DynamoDBClient, create: Callable[..., str]) -> None:
    name = create("ttl", id="S", hash_only=True)
    assert client.describe_time_to_live(TableName=name)["TimeToLiveDescription"] == {
        "TimeToLiveStatus": "DISABLED"
    }
    specification = {"Enabled": True, "AttributeName": "expires"}
    answer = client.update_time_to_live(TableName=name, TimeToLiveSpecification=specification)  # type: ignore[arg-type]
    assert answer["TimeToLiveSpecification"] == specification
    shown = client.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
    assert shown["AttributeName"] == "expires"
    assert shown["TimeToLiveStatus"] in ("ENABLING", "ENABLED")


def test_tags(client: DynamoDBClient, create: Callable[..., str]) -> None:
    name = create("tags", id="S", hash_only=True, Tags=[{"Key": "team", "Value": "a"}])
    arn = client.describe_table(TableName=name)["Table"]["TableArn"]
    client.tag_resource(
        ResourceArn=arn, Tags=[{"Key": f"k{number:02}", "Value": str(number)} for number in range(20)]
    )
    client.untag_resource(ResourceArn=arn, TagKeys=["k00"])
    pages = client.get_paginator("list_tags_of_resource").paginate(ResourceArn=arn)
    tags = {tag["Key"]: tag["Value"] for page in pages for tag in page["Tags"]}
    assert tags == {"team": "a", **{f"k{number:02}": str(number) for number in range(1, 20)}}


def test_the_service_describes_itself(client: DynamoDBClient) -> None:
    assert client.describe_limits()["TableMaxWriteCapacityUnits"] >= 40_000
    assert client.describe_endpoints()["Endpoints"][0]["CachePeriodInMinutes"] > 0
