"""A tour of the API: the life of one table with every kind of operation, each with its usual answer.

It runs over HTTP and in process, and against other implementations: it asks for nothing that is particular to
one of them. The finer points have tests of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from endpoints import OTHER_ENDPOINT

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

KEY: Any = {"artist": {"S": "Nina Simone"}, "song": {"S": "Feeling Good"}}
OTHER_KEY: Any = {"artist": {"S": "Nina Simone"}, "song": {"S": "Sinnerman"}}


@pytest.fixture
def table(client: DynamoDBClient, name_table: Callable[..., str]) -> str:
    name = name_table("music")
    created = client.create_table(
        TableName=name,
        AttributeDefinitions=[
            {"AttributeName": "artist", "AttributeType": "S"},
            {"AttributeName": "song", "AttributeType": "S"},
        ],
        KeySchema=[
            {"AttributeName": "artist", "KeyType": "HASH"},
            {"AttributeName": "song", "KeyType": "RANGE"},
        ],
        BillingMode="PAY_PER_REQUEST",
    )["TableDescription"]
    assert created["TableName"] == name
    assert created["TableStatus"] in {"CREATING", "ACTIVE"}
    client.get_waiter("table_exists").wait(TableName=name)
    return name


def test_tables(client: DynamoDBClient, table: str) -> None:
    described = client.describe_table(TableName=table)["Table"]
    assert described["TableStatus"] == "ACTIVE"
    assert described["KeySchema"] == [
        {"AttributeName": "artist", "KeyType": "HASH"},
        {"AttributeName": "song", "KeyType": "RANGE"},
    ]
    names = [name for page in client.get_paginator("list_tables").paginate() for name in page["TableNames"]]
    assert table in names
    assert names == sorted(names)

    throughput: Any = {"ReadCapacityUnits": 7, "WriteCapacityUnits": 3}
    client.update_table(TableName=table, BillingMode="PROVISIONED", ProvisionedThroughput=throughput)
    client.get_waiter("table_exists").wait(TableName=table)
    provisioned: Any = client.describe_table(TableName=table)["Table"]["ProvisionedThroughput"]
    assert {name: provisioned[name] for name in throughput} == throughput

    client.delete_table(TableName=table)
    client.get_waiter("table_not_exists").wait(TableName=table)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_table(TableName=table)


def test_one_item(client: DynamoDBClient, table: str) -> None:
    client.put_item(TableName=table, Item={**KEY, "year": {"N": "1965"}, "live": {"BOOL": False}})
    assert client.get_item(TableName=table, Key=KEY)["Item"] == {
        **KEY, "year": {"N": "1965"}, "live": {"BOOL": False},
    }
    updated = client.update_item(
        TableName=table,
        Key=KEY,
        UpdateExpression="SET plays = if_not_exists(plays, :zero) + :one REMOVE live",
        ConditionExpression="#year BETWEEN :low AND :high",
        ExpressionAttributeNames={"#year": "year"},
        ExpressionAttributeValues={
            ":zero": {"N": "0"}, ":one": {"N": "1"}, ":low": {"N": "1960"}, ":high": {"N": "1969"},
        },
        ReturnValues="ALL_NEW",
        ReturnConsumedCapacity="TOTAL",
    )
    assert updated["Attributes"] == {**KEY, "year": {"N": "1965"}, "plays": {"N": "1"}}
    assert updated["ConsumedCapacity"] == {"TableName": table, "CapacityUnits": 1.0}
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        client.delete_item(TableName=table, Key=KEY, ConditionExpression="attribute_exists(live)")
    deleted = client.delete_item(TableName=table, Key=KEY, ReturnValues="ALL_OLD")
    assert deleted["Attributes"]["plays"] == {"N": "1"}
    assert "Item" not in client.get_item(TableName=table, Key=KEY, ConsistentRead=True)


def test_many_items(client: DynamoDBClient, table: str) -> None:
    songs: list[Any] = [
        {"artist": {"S": "Nina Simone"}, "song": {"S": f"Song {number:02}"}, "number": {"N": str(number)}}
        for number in range(25)
    ]
    written = client.batch_write_item(
        RequestItems={table: [{"PutRequest": {"Item": song}} for song in songs]}
    )
    assert written["UnprocessedItems"] == {}
    keys = [{"artist": song["artist"], "song": song["song"]} for song in songs]
    got = client.batch_get_item(RequestItems={table: {"Keys": keys}})
    assert got["UnprocessedKeys"] == {}
    assert sorted(got["Responses"][table], key=lambda item: item["song"]["S"]) == songs

    queried = client.query(
        TableName=table,
        KeyConditionExpression="artist = :artist AND begins_with(song, :prefix)",
        FilterExpression="#number > :five",
        ProjectionExpression="song",
        ExpressionAttributeNames={"#number": "number"},
        ExpressionAttributeValues={
            ":artist": {"S": "Nina Simone"}, ":prefix": {"S": "Song 0"}, ":five": {"N": "5"},
        },
        ScanIndexForward=False,
    )
    assert [item["song"]["S"] for item in queried["Items"]] == ["Song 09", "Song 08", "Song 07", "Song 06"]
    assert queried["ScannedCount"] == 10

    in_segments = [
        item["song"]["S"]
        for segment in range(3)
        for item in client.scan(TableName=table, Segment=segment, TotalSegments=3)["Items"]
    ]
    assert sorted(in_segments) == [song["song"]["S"] for song in songs]


def test_transactions(client: DynamoDBClient, table: str) -> None:
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": table, "Item": {**KEY, "year": {"N": "1965"}}}},
            {"Put": {"TableName": table, "Item": {**OTHER_KEY, "year": {"N": "1965"}}}},
        ]
    )
    with pytest.raises(client.exceptions.TransactionCanceledException) as raised:
        client.transact_write_items(
            TransactItems=[
                {"Delete": {"TableName": table, "Key": KEY}},
                {
                    "ConditionCheck": {
                        "TableName": table,
                        "Key": OTHER_KEY,
                        "ConditionExpression": "attribute_not_exists(song)",
                    }
                },
            ]
        )
    reasons = raised.value.response["CancellationReasons"]
    assert [reason["Code"] for reason in reasons] == ["None", "ConditionalCheckFailed"]
    got = client.transact_get_items(
        TransactItems=[
            {"Get": {"TableName": table, "Key": KEY}}, {"Get": {"TableName": table, "Key": OTHER_KEY}},
        ]
    )
    assert [response["Item"]["song"] for response in got["Responses"]] == [KEY["song"], OTHER_KEY["song"]]


def test_time_to_live_and_tags(client: DynamoDBClient, table: str) -> None:
    off = client.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    assert off == {"TimeToLiveStatus": "DISABLED"}
    specification: Any = {"Enabled": True, "AttributeName": "expires"}
    answer = client.update_time_to_live(TableName=table, TimeToLiveSpecification=specification)
    assert answer["TimeToLiveSpecification"] == specification

    arn = client.describe_table(TableName=table)["Table"]["TableArn"]
    client.tag_resource(ResourceArn=arn, Tags=[{"Key": "team", "Value": "music"}, {"Key": "x", "Value": ""}])
    client.untag_resource(ResourceArn=arn, TagKeys=["x"])
    assert client.list_tags_of_resource(ResourceArn=arn)["Tags"] == [{"Key": "team", "Value": "music"}]


def test_the_service_describes_itself(client: DynamoDBClient) -> None:
    limits = client.describe_limits()
    assert limits["TableMaxReadCapacityUnits"] <= limits["AccountMaxReadCapacityUnits"]
    if OTHER_ENDPOINT is None:
        # DynamoDB Local has no DescribeEndpoints.
        (described,) = client.describe_endpoints()["Endpoints"]
        assert described["CachePeriodInMinutes"] > 0


def test_what_is_not_there_is_refused(client: DynamoDBClient, table: str) -> None:
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.put_item(TableName=f"{table}-not", Item=KEY)
    with pytest.raises(ClientError) as raised:
        client.get_item(TableName=table, Key={"artist": KEY["artist"]})
    assert raised.value.response["Error"]["Code"] == "ValidationException"
    assert raised.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
