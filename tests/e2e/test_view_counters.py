"""Counting a blog's views: naively, with `if_not_exists`, in a transaction, and with expiring events."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodb.service_resource import DynamoDBServiceResource

A_WEEK_SECONDS = 7 * 24 * 3600

EVENT = {
    "url": "myblog.com/article1",
    "time": "2022-03-28T13:17:23+00:00",
    "clientId": "adidOIkenODSksi92LHd6",
}


@pytest.fixture
def table(http_client: DynamoDBClient, name_table: Callable[..., str]) -> str:
    name = name_table("blog_data", http_client)
    http_client.create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": "PK", "AttributeType": "S"},
            {"AttributeName": "SK", "AttributeType": "S"},
        ],
        KeySchema=[
            {"AttributeName": "PK", "KeyType": "HASH"},
            {"AttributeName": "SK", "KeyType": "RANGE"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )
    http_client.get_waiter("table_exists").wait(TableName=name)
    return name


def naive(resource: DynamoDBServiceResource, table: str, event: dict[str, str]) -> None:
    resource.Table(table).update_item(
        Key={"PK": f"URL#{event['url']}", "SK": "STATISTICS"},
        UpdateExpression="SET #views = #views + :increment",
        ExpressionAttributeNames={"#views": "views"},
        ExpressionAttributeValues={":increment": 1},
    )


def less_naive(resource: DynamoDBServiceResource, table: str, event: dict[str, str]) -> None:
    resource.Table(table).update_item(
        Key={"PK": f"URL#{event['url']}", "SK": "STATISTICS"},
        UpdateExpression="SET #views = if_not_exists(#views, :init) + :inc",
        ExpressionAttributeNames={"#views": "views"},
        ExpressionAttributeValues={":inc": 1, ":init": 0},
    )


def accurate(
    client: DynamoDBClient, table: str, event: dict[str, str], expires_at: int | None = None
) -> bool:
    """Whether the event is new, and was counted."""
    partition_key = {"S": f"URL#{event['url']}"}
    seen: dict[str, Any] = {
        "PK": partition_key,
        "SK": {"S": f"T#{event['time']}#CID#{event['clientId']}"},
    }
    if expires_at is not None:
        seen["ttl"] = {"N": str(expires_at)}
    try:
        client.transact_write_items(
            TransactItems=[
                {
                    "Put": {
                        "TableName": table,
                        "Item": seen,
                        "ConditionExpression": "attribute_not_exists(PK) and attribute_not_exists(SK)",
                    }
                },
                {
                    "Update": {
                        "TableName": table,
                        "Key": {"PK": partition_key, "SK": {"S": "STATISTICS"}},
                        "UpdateExpression": "SET #views = if_not_exists(#views, :init) + :inc",
                        "ExpressionAttributeNames": {"#views": "views"},
                        "ExpressionAttributeValues": {":init": {"N": "0"}, ":inc": {"N": "1"}},
                    }
                },
            ]
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "TransactionCanceledException":
            raise
        # Word for word. [docs]
        assert error.response["Error"]["Message"] == (
            "Transaction cancelled, please refer cancellation reasons for specific reasons "
            "[ConditionalCheckFailed, None]"
        )
        reasons = error.response["CancellationReasons"]
        assert [reason["Code"] for reason in reasons] == ["ConditionalCheckFailed", "None"]
        return False
    return True


def views(resource: DynamoDBServiceResource, table: str) -> Any:
    found = resource.Table(table).get_item(Key={"PK": f"URL#{EVENT['url']}", "SK": "STATISTICS"})
    return found["Item"]["views"]


def test_the_very_first_naive_update_fails(http_resource: DynamoDBServiceResource, table: str) -> None:
    with pytest.raises(ClientError) as raised:
        naive(http_resource, table, EVENT)
    assert raised.value.response["Error"] == {
        "Code": "ValidationException",
        # Word for word. [docs]
        "Message": "The provided expression refers to an attribute that does not exist in the item",
    }
    key = {"PK": f"URL#{EVENT['url']}", "SK": "STATISTICS"}
    assert "Item" not in http_resource.Table(table).get_item(Key=key)

    less_naive(http_resource, table, EVENT)
    naive(http_resource, table, EVENT)
    assert views(http_resource, table) == 2


def test_if_not_exists_counts_from_the_first(http_resource: DynamoDBServiceResource, table: str) -> None:
    for _ in range(32):
        less_naive(http_resource, table, EVENT)
    assert views(http_resource, table) == 32


def test_a_transaction_counts_each_event_once(
    http_client: DynamoDBClient, http_resource: DynamoDBServiceResource, table: str
) -> None:
    events = [EVENT, {**EVENT, "time": "2022-03-28T13:17:38+00:00"}, {**EVENT, "clientId": "adsdfgIke"}]
    delivered = [events[number] for number in (0, 1, 0, 2, 2, 1, 0)]
    counted = [accurate(http_client, table, event) for event in delivered]
    assert counted == [True, True, False, True, False, False, False]
    assert views(http_resource, table) == 3
    events_seen = http_resource.Table(table).query(
        KeyConditionExpression="PK = :pk AND begins_with(SK, :event)",
        ExpressionAttributeValues={":pk": f"URL#{EVENT['url']}", ":event": "T#2022-03-28T13:17:23"},
    )
    assert events_seen["Count"] == 2


def test_counted_events_expire(
    http_client: DynamoDBClient, http_resource: DynamoDBServiceResource, table: str
) -> None:
    http_client.update_time_to_live(
        TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": "ttl"}
    )
    described = http_client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert described["TimeToLiveStatus"] in {"ENABLING", "ENABLED"}
    assert described["AttributeName"] == "ttl"

    expires_at = int(time.time()) + A_WEEK_SECONDS
    assert accurate(http_client, table, EVENT, expires_at)
    assert not accurate(http_client, table, EVENT, expires_at)
    assert views(http_resource, table) == 1
    seen = http_resource.Table(table).get_item(
        Key={"PK": f"URL#{EVENT['url']}", "SK": f"T#{EVENT['time']}#CID#{EVENT['clientId']}"}
    )
    assert seen["Item"]["ttl"] == expires_at
