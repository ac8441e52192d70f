"""Kinesis data streams as destinations, through boto3. Nothing is sent: the servers have no endpoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ClientError

from endpoints import OTHER_ENDPOINT, REGION

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient

pytestmark = pytest.mark.skipif(bool(OTHER_ENDPOINT), reason="it would need a data stream")

ARN = f"arn:aws:kinesis:{REGION}:000000000000:stream/changes"


def statuses(client: DynamoDBClient, table: str) -> list[tuple[str, str | None]]:
    shown = client.describe_kinesis_streaming_destination(TableName=table)
    return [
        (destination["DestinationStatus"], destination.get("ApproximateCreationDateTimePrecision"))
        for destination in shown["KinesisDataStreamDestinations"]
    ]


def test_a_destination_from_its_beginning_to_its_end(
    client: DynamoDBClient, create: Callable[..., str]
) -> None:
    table = create("music", pk="S", hash_only=True)
    assert statuses(client, table) == []
    enabled = client.enable_kinesis_streaming_destination(TableName=table, StreamArn=ARN)
    assert enabled["DestinationStatus"] == "ENABLING"
    assert statuses(client, table) == [("ACTIVE", None)]
    with pytest.raises(ClientError, match="must be DISABLED or ENABLE_FAILED to perform ENABLE operation"):
        client.enable_kinesis_streaming_destination(TableName=table, StreamArn=ARN)
    client.put_item(TableName=table, Item={"pk": {"S": "a"}})
    updated = client.update_kinesis_streaming_destination(
        TableName=table,
        StreamArn=ARN,
        UpdateKinesisStreamingConfiguration={"ApproximateCreationDateTimePrecision": "MICROSECOND"},
    )
    assert updated["DestinationStatus"] == "UPDATING"
    assert statuses(client, table) == [("ACTIVE", "MICROSECOND")]
    client.put_item(TableName=table, Item={"pk": {"S": "b"}})
    disabled = client.disable_kinesis_streaming_destination(TableName=table, StreamArn=ARN)
    assert disabled["DestinationStatus"] == "DISABLING"
    assert statuses(client, table) == [("DISABLED", None)]
    with pytest.raises(ClientError, match="must be ACTIVE to perform DISABLE operation"):
        client.disable_kinesis_streaming_destination(TableName=table, StreamArn=ARN)


def test_a_stream_in_another_region_fails_after_it_was_enabled(
    client: DynamoDBClient, create: Callable[..., str]
) -> None:
    table = create("music", pk="S", hash_only=True)
    elsewhere = ARN.replace(REGION, "eu-west-1")
    client.enable_kinesis_streaming_destination(TableName=table, StreamArn=elsewhere)
    [shown] = client.describe_kinesis_streaming_destination(TableName=table)["KinesisDataStreamDestinations"]
    assert shown["DestinationStatus"] == "ENABLE_FAILED"
    assert shown["DestinationStatusDescription"].endswith("which is not in the current region")


def test_a_table_that_does_not_exist_has_no_destinations(client: DynamoDBClient) -> None:
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.enable_kinesis_streaming_destination(TableName="absent", StreamArn=ARN)
    with pytest.raises(client.exceptions.ResourceNotFoundException):
        client.describe_kinesis_streaming_destination(TableName="absent")
