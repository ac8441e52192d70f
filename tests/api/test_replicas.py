"""A table in two regions: made a global one, written here, read and followed there, and left again.

Not for other endpoints: one endpoint answers for all regions here, and on AWS a replica takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from endpoints import OTHER_ENDPOINT, REGION, connection
from hashrange.client import connect

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodb.type_defs import TableDescriptionTypeDef

pytestmark = pytest.mark.skipif(OTHER_ENDPOINT is not None, reason="one endpoint for all regions is ours")

FAR_REGION = "eu-west-1"


@pytest.fixture
def far_service(request: pytest.FixtureRequest, transport_endpoint: str | None) -> Callable[..., Any]:
    """`far_service("dynamodb")` gives a client in the other region, of the same database as `client`."""

    def far_service(service: str) -> Any:
        if transport_endpoint is not None:
            reach = {**connection(transport_endpoint), "region_name": FAR_REGION}
            client = boto3.client(service, **reach)  # type: ignore[call-overload]
            request.addfinalizer(client.close)
            return client
        database = request.getfixturevalue("in_process_database")
        return connect(database, region=FAR_REGION, service=service)

    return far_service


@pytest.fixture
def far(far_service: Callable[..., Any]) -> DynamoDBClient:
    """A client in the other region."""
    client: DynamoDBClient = far_service("dynamodb")
    return client


@pytest.fixture
def name(client: DynamoDBClient, far: DynamoDBClient, create: Callable[..., str]) -> Iterator[str]:
    """A table that has a replica in the other region."""
    name = create("global", id="S", hash_only=True)
    update(client, name, Create={"RegionName": FAR_REGION})
    yield name
    if describe(client, name).get("Replicas"):
        far.update_table(TableName=name, DeletionProtectionEnabled=False)
        update(client, name, Delete={"RegionName": FAR_REGION})


def update(client: DynamoDBClient, name: str, **action: Any) -> TableDescriptionTypeDef:
    updates: Any = [action]
    return client.update_table(TableName=name, ReplicaUpdates=updates)["TableDescription"]


def describe(client: DynamoDBClient, name: str) -> TableDescriptionTypeDef:
    return client.describe_table(TableName=name)["Table"]


@contextmanager
def refused(text: str) -> Iterator[None]:
    with pytest.raises(ClientError) as refusal:
        yield
    assert refusal.value.response["Error"]["Code"] == "ValidationException"
    assert text in refusal.value.response["Error"]["Message"]


def test_what_is_written_in_one_region_is_read_in_the_other(
    client: DynamoDBClient, far: DynamoDBClient, name: str
) -> None:
    client.put_item(TableName=name, Item={"id": {"S": "x"}, "n": {"N": "1"}})
    far.update_item(
        TableName=name,
        Key={"id": {"S": "x"}},
        UpdateExpression="ADD n :one",
        ExpressionAttributeValues={":one": {"N": "1"}},
    )
    found = client.get_item(TableName=name, Key={"id": {"S": "x"}}, ConsistentRead=True)
    assert found["Item"] == {"id": {"S": "x"}, "n": {"N": "2"}}
    assert far.scan(TableName=name)["Count"] == 1


def test_each_region_lists_the_other(client: DynamoDBClient, far: DynamoDBClient, name: str) -> None:
    here, there = describe(client, name), describe(far, name)
    assert [one["RegionName"] for one in here["Replicas"]] == [FAR_REGION]
    assert [one["RegionName"] for one in there["Replicas"]] == [REGION]
    assert {one["ReplicaStatus"] for one in here["Replicas"] + there["Replicas"]} == {"ACTIVE"}
    assert here["GlobalTableVersion"] == there["GlobalTableVersion"] == "2019.11.21"
    assert here["TableId"] != there["TableId"]
    assert f":{REGION}:" in here["TableArn"]
    assert f":{FAR_REGION}:" in there["TableArn"]


def test_a_stream_is_on_and_read_in_both_regions(
    client: DynamoDBClient, far: DynamoDBClient, far_service: Callable[..., Any], name: str
) -> None:
    assert describe(client, name)["StreamSpecification"]["StreamViewType"] == "NEW_AND_OLD_IMAGES"
    client.put_item(TableName=name, Item={"id": {"S": "x"}})
    arn = describe(far, name)["LatestStreamArn"]
    assert f":{FAR_REGION}:" in arn
    streams = far_service("dynamodbstreams")
    assert arn in [one["StreamArn"] for one in streams.list_streams(TableName=name)["Streams"]]
    (shard,) = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    iterator = streams.get_shard_iterator(
        StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON"
    )
    (record,) = streams.get_records(ShardIterator=iterator["ShardIterator"])["Records"]
    assert record["dynamodb"]["NewImage"] == {"id": {"S": "x"}}
    # [report] terraform-provider-aws issue 20019
    with refused("Disabling Stream is not allowed for a Global Table replica."):
        far.update_table(TableName=name, StreamSpecification={"StreamEnabled": False})


def test_protection_is_each_region_s_own(client: DynamoDBClient, far: DynamoDBClient, name: str) -> None:
    far.update_table(TableName=name, DeletionProtectionEnabled=True)
    assert describe(far, name)["DeletionProtectionEnabled"]
    assert not describe(client, name)["DeletionProtectionEnabled"]
    # [report] ack-api-quirks DDB-TABLE-297
    with refused(f"Cannot delete table {name} in region {FAR_REGION} because it has deletion protection"):
        update(client, name, Delete={"RegionName": FAR_REGION})
    # [report] ack-api-quirks DDB-TABLE-266
    with refused("Replica cannot be deleted because it has acted as a source region"):
        client.delete_table(TableName=name)


def test_a_deleted_replica_is_gone_there_and_the_table_stays_here(
    client: DynamoDBClient, far: DynamoDBClient, name: str
) -> None:
    client.put_item(TableName=name, Item={"id": {"S": "x"}})
    update(client, name, Delete={"RegionName": FAR_REGION})
    far.get_waiter("table_not_exists").wait(TableName=name)
    assert name not in far.list_tables(Limit=100)["TableNames"]
    assert "Replicas" not in describe(client, name)
    assert client.scan(TableName=name)["Count"] == 1
    update(client, name, Create={"RegionName": FAR_REGION})
    far.get_waiter("table_exists").wait(TableName=name)


def test_delete_table_in_one_region_deletes_the_replica(
    client: DynamoDBClient, far: DynamoDBClient, name: str
) -> None:
    deleted = far.delete_table(TableName=name)["TableDescription"]
    assert deleted["TableStatus"] == "DELETING"
    assert [one["RegionName"] for one in deleted["Replicas"]] == [REGION]
    far.get_waiter("table_not_exists").wait(TableName=name)
    assert "GlobalTableVersion" not in describe(client, name)
