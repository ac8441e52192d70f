"""`like_aws`: a program that is right on a plain database and wrong on AWS fails."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any
from unittest import mock

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import ClientError

import hashrange
from hashrange.database import Settings
from hashrange.errors import LimitExceededException
from hashrange.operations.tables import account_limits
from hashrange.settings import LIKE_AWS, like_aws
from hashrange.testing.database import LocalDatabase
from worlds import new_index, table_of


def a_client() -> Any:
    return boto3.client("dynamodb", region_name="us-east-1", config=Config(retries={"total_max_attempts": 1}))


def create(client: Any, wait: bool = True, **members: Any) -> None:
    client.create_table(**table_of("orders", "pk", **members))
    if wait:
        client.get_waiter("table_exists").wait(TableName="orders")


def provisioned(reads: int, writes: int) -> dict[str, Any]:
    throughput = {"ReadCapacityUnits": reads, "WriteCapacityUnits": writes}
    return {"BillingMode": "PROVISIONED", "ProvisionedThroughput": throughput}


def item(pk: str, **more: str) -> dict[str, Any]:
    return {name: {"S": value} for name, value in {"pk": pk, **more}.items()}


def uses_a_table_at_once(client: Any) -> None:
    create(client, wait=False)
    client.put_item(TableName="orders", Item=item("a"))


def reads_its_own_write(client: Any) -> None:
    create(client)
    client.put_item(TableName="orders", Item=item("a"))
    assert "Item" in client.get_item(TableName="orders", Key=item("a"))


def reads_an_index_at_once(client: Any) -> None:
    create(client, indexes={"by-kind": "kind"})
    client.put_item(TableName="orders", Item=item("a", kind="book"))
    found = client.query(
        TableName="orders",
        IndexName="by-kind",
        KeyConditionExpression="kind = :kind",
        ExpressionAttributeValues={":kind": {"S": "book"}},
    )
    assert found["Count"] == 1


def uses_a_new_index_at_once(client: Any) -> None:
    create(client)
    client.update_table(**new_index("orders", "by-kind", "kind"))
    client.scan(TableName="orders", IndexName="by-kind")


def writes_one_key_too_often(client: Any) -> None:
    create(client)
    for _ in range(1_100):
        client.update_item(
            TableName="orders",
            Key=item("hot"),
            UpdateExpression="ADD n :one",
            ExpressionAttributeValues={":one": {"N": "1"}},
        )


def ignores_unprocessed_items(client: Any) -> None:
    create(client, **provisioned(reads=9, writes=9))
    for batch in range(200):
        puts = [{"PutRequest": {"Item": item(f"{batch}-{number}")}} for number in range(25)]
        client.batch_write_item(RequestItems={"orders": puts})
    pages = client.get_paginator("scan").paginate(TableName="orders", ConsistentRead=True, Select="COUNT")
    assert sum(page["Count"] for page in pages) == 5_000


def writes_while_a_transaction_does(client: Any) -> None:
    create(client)
    put = {"Put": {"TableName": "orders", "Item": item("a")}}
    client.transact_write_items(TransactItems=[put])
    client.put_item(TableName="orders", Item=item("a", kind="book"))


def scans_in_a_loop(client: Any) -> None:
    create(client, **provisioned(reads=1, writes=400))
    for number in range(200):
        client.put_item(TableName="orders", Item=item(f"{number}", kind="k" * 1_000))
    for _ in range(20):
        client.scan(TableName="orders", ConsistentRead=True)


def reads_a_stream_at_once(client: Any) -> None:
    create(client, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    client.put_item(TableName="orders", Item=item("a"))
    streams = boto3.client("dynamodbstreams", region_name="us-east-1")
    arn = client.describe_table(TableName="orders")["Table"]["LatestStreamArn"]
    [shard] = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    place = {"StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
    iterator = streams.get_shard_iterator(**place)["ShardIterator"]
    first = streams.get_records(ShardIterator=iterator)
    hashrange.testing.current().clock.advance(2)
    second = streams.get_records(ShardIterator=first["NextShardIterator"])
    assert [len(first["Records"]), len(second["Records"])] == [1, 0]


def reads_a_policy_at_once(client: Any) -> None:
    create(client)
    arn = client.describe_table(TableName="orders")["Table"]["TableArn"]
    statement = {"Effect": "Allow", "Principal": {"AWS": "123456789012"}, "Resource": arn}
    statement["Action"] = "dynamodb:GetItem"
    document = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    client.put_resource_policy(ResourceArn=arn, Policy=document)
    client.get_resource_policy(ResourceArn=arn)


MISTAKES = (
    uses_a_table_at_once,
    reads_its_own_write,
    reads_an_index_at_once,
    uses_a_new_index_at_once,
    writes_one_key_too_often,
    ignores_unprocessed_items,
    writes_while_a_transaction_does,
    scans_in_a_loop,
    reads_a_stream_at_once,
    reads_a_policy_at_once,
)


@pytest.mark.parametrize("program", MISTAKES, ids=lambda program: program.__name__)
def test_a_mistake_is_found(program: Callable[[Any], None]) -> None:
    with hashrange.local():
        program(a_client())
    with (
        hashrange.local(like_aws="fast", now="2026-01-01"),
        pytest.raises((ClientError, AssertionError)),
    ):
        program(a_client())


def test_a_program_that_waits_and_retries_works_in_no_time() -> None:
    with hashrange.local(like_aws="fast") as database:
        before = database.clock.now()
        client = boto3.client("dynamodb", region_name="us-east-1")
        create(client, indexes={"by-kind": "kind"})
        assert database.clock.now() - before >= LIKE_AWS["create_seconds"]
        client.put_item(TableName="orders", Item=item("a", kind="book"))
        assert "Item" in client.get_item(TableName="orders", Key=item("a"), ConsistentRead=True)
        database.clock.advance(3)
        assert client.scan(TableName="orders", IndexName="by-kind")["Count"] == 1


def test_sleeping_takes_its_time_again_after_the_block() -> None:
    real = time.sleep
    with hashrange.local(like_aws="fast"):
        assert time.sleep is not real
        with hashrange.local(like_aws="fast") as database:
            before = database.clock.now()
            asyncio.run(asyncio.sleep(60))
            assert database.clock.now() - before >= 60
    assert time.sleep is real


def test_settings_that_were_given_stay() -> None:
    assert like_aws(Settings(create_seconds=1.5)).create_seconds == 1.5
    assert like_aws(Settings(), given=["create_seconds"]).create_seconds == 0.0
    assert {name: getattr(like_aws(Settings()), name) for name in LIKE_AWS} == LIKE_AWS


def test_the_tables_of_an_account_are_limited() -> None:
    settings = Settings(account_limits=True, create_seconds=10, separate_regions=True)
    with (
        mock.patch.object(account_limits, "CHANGING_TABLES_MAX", 20),
        mock.patch.object(account_limits, "TABLES_MAX", 60),
        LocalDatabase(settings=settings, now="2026-01-01") as database,
    ):
        for batch in range(3):
            for number in range(20):
                database.execute("CreateTable", table_of(f"table-{batch}-{number}", "pk"))
            with pytest.raises(LimitExceededException, match="Only 20 tables"):
                database.execute("CreateTable", table_of("one-more", "pk"))
            database.clock.advance(11)
        with pytest.raises(LimitExceededException, match="a limit of 60 tables"):
            database.execute("CreateTable", table_of("one-more", "pk"))
