"""A consumer of a table's stream: finds the stream, walks its shards, and rebuilds the table from records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from worlds import table_of

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodbstreams.client import DynamoDBStreamsClient


@pytest.fixture
def table(client: DynamoDBClient, name_table: Callable[..., str]) -> str:
    name = name_table("orders")
    client.create_table(**table_of(name, "id", stream="NEW_AND_OLD_IMAGES"))
    client.get_waiter("table_exists").wait(TableName=name)
    return name


def put(client: DynamoDBClient, table: str, order: str, state: str) -> None:
    client.put_item(TableName=table, Item={"id": {"S": order}, "state": {"S": state}})


def shards(streams: DynamoDBStreamsClient, arn: str) -> list[str]:
    described = streams.describe_stream(StreamArn=arn)["StreamDescription"]
    assert described["StreamStatus"] == "ENABLED"
    return [shard["ShardId"] for shard in described["Shards"]]


def read(streams: DynamoDBStreamsClient, iterator: str | None) -> tuple[list[Any], str | None]:
    """The records from an iterator on, until an answer has none, and the iterator to go on with."""
    records: list[Any] = []
    while iterator:
        answer = streams.get_records(ShardIterator=iterator, Limit=3)
        iterator = answer.get("NextShardIterator")
        if not answer["Records"]:
            break
        records += answer["Records"]
    return records, iterator


def read_all(streams: DynamoDBStreamsClient, arn: str) -> list[Any]:
    """All records of all shards, in the order of their sequence numbers."""
    records: list[Any] = []
    for shard in shards(streams, arn):
        start = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON")
        records += read(streams, start["ShardIterator"])[0]
    return sorted(records, key=lambda record: int(record["dynamodb"]["SequenceNumber"]))


def test_a_table_is_rebuilt_from_its_stream(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, table: str
) -> None:
    (stream,) = streams.list_streams(TableName=table)["Streams"]
    arn = stream["StreamArn"]
    assert arn == client.describe_table(TableName=table)["Table"]["LatestStreamArn"]

    put(client, table, "1", "new")
    put(client, table, "2", "new")
    put(client, table, "1", "paid")
    put(client, table, "1", "paid")  # changes nothing, so there is no record of it
    client.transact_write_items(
        TransactItems=[
            {"Put": {"TableName": table, "Item": {"id": {"S": "3"}, "state": {"S": "new"}}}},
            {"Delete": {"TableName": table, "Key": {"id": {"S": "2"}}}},
        ]
    )
    client.delete_item(TableName=table, Key={"id": {"S": "none"}})

    records = read_all(streams, arn)
    by_order: dict[str, list[str]] = {}
    rebuilt: dict[str, Any] = {}
    for record in records:
        change = record["dynamodb"]
        order = change["Keys"]["id"]["S"]
        by_order.setdefault(order, []).append(record["eventName"])
        assert change.get("OldImage") == rebuilt.get(order)
        rebuilt[order] = change.get("NewImage")
        assert change["StreamViewType"] == "NEW_AND_OLD_IMAGES"
        assert record["eventSource"] == "aws:dynamodb"
    assert by_order == {"1": ["INSERT", "MODIFY"], "2": ["INSERT", "REMOVE"], "3": ["INSERT"]}
    numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in records]
    assert numbers == sorted(set(numbers))

    items = client.scan(TableName=table)["Items"]
    kept = [image for image in rebuilt.values() if image is not None]
    assert sorted(kept, key=lambda item: item["id"]["S"]) == sorted(items, key=lambda item: item["id"]["S"])


def test_a_consumer_goes_on_where_it_was(
    client: DynamoDBClient, streams: DynamoDBStreamsClient, table: str
) -> None:
    arn = streams.list_streams(TableName=table)["Streams"][0]["StreamArn"]
    put(client, table, "1", "new")
    after_first: list[str | None] = []
    for shard in shards(streams, arn):
        latest = streams.get_shard_iterator(StreamArn=arn, ShardId=shard, ShardIteratorType="LATEST")
        records, following = read(streams, latest["ShardIterator"])
        assert records == []
        after_first.append(following)
    put(client, table, "1", "paid")
    new = [record for iterator in after_first for record in read(streams, iterator)[0]]
    assert [record["dynamodb"]["NewImage"]["state"]["S"] for record in new] == ["paid"]

    sequence_number = new[0]["dynamodb"]["SequenceNumber"]
    for kind, expected in (("AT_SEQUENCE_NUMBER", 1), ("AFTER_SEQUENCE_NUMBER", 0)):
        found = 0
        for shard in shards(streams, arn):
            start: Any = {"StreamArn": arn, "ShardId": shard, "ShardIteratorType": kind}
            answer = streams.get_shard_iterator(**start, SequenceNumber=sequence_number)
            found += len(read(streams, answer["ShardIterator"])[0])
        assert found == expected
