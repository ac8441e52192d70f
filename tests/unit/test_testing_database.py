"""The database of a block: its clock, its snapshots, its clients."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import boto3
import freezegun
import pytest
import time_machine

import hashrange
from hashrange.clock import ManualClock
from hashrange.errors import ResourceInUseException
from hashrange.settings import Settings
from hashrange.storage.memory import MemoryEngine
from hashrange.testing import LocalDatabase
from worlds import expiry_of, table_of

NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def create(client: Any, **more: Any) -> None:
    client.create_table(**table_of("things", "pk", **more))


def expire(client: Any) -> None:
    client.update_time_to_live(**expiry_of("things"))


def put(client: Any, key: str, **more: Any) -> None:
    client.put_item(TableName="things", Item={"pk": {"S": key}, **more})


def keys(client: Any) -> list[str]:
    return sorted(item["pk"]["S"] for item in client.scan(TableName="things")["Items"])


@pytest.fixture
def client() -> Any:
    return boto3.client(
        "dynamodb", region_name="us-east-1", aws_access_key_id="any", aws_secret_access_key="any"
    )


def test_each_test_starts_from_what_a_module_seeded(client: Any) -> None:
    with hashrange.local() as database:
        create(client, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"})
        for n in range(50):
            put(client, f"{n:03}")
        snapshot = database.snapshot()
        before = keys(client), client.describe_table(TableName="things")["Table"]
        for _ in range(3):
            client.delete_item(TableName="things", Key={"pk": {"S": "007"}})
            put(client, "new")
            client.delete_table(TableName="things")
            create(client)
            put(client, "other")
            database.restore(snapshot)
            assert (keys(client), client.describe_table(TableName="things")["Table"]) == before
        put(client, "written-after-restore")
        assert len(keys(client)) == 51


def test_a_snapshot_of_another_database(client: Any) -> None:
    with hashrange.local() as first:
        create(client)
        put(client, "a")
        snapshot = first.snapshot()
    for _ in range(2):
        with hashrange.local() as database:
            database.restore(snapshot)
            assert keys(client) == ["a"]
            put(client, "b")


def test_restore_brings_a_frozen_clock_back_and_what_had_expired(client: Any) -> None:
    with hashrange.local(now=NEW_YEAR) as database:
        create(client)
        expire(client)
        put(client, "a", ttl={"N": str(int(NEW_YEAR.timestamp()) + 60)})
        snapshot = database.snapshot()
        for _ in range(2):
            database.clock.advance("1d")
            assert keys(client) == []
            database.restore(snapshot)
            assert database.clock.datetime() == NEW_YEAR
            assert keys(client) == ["a"]


def test_the_clock_freezes_advances_and_resumes(client: Any) -> None:
    with hashrange.local(now="2026-01-01T00:00:00Z", settings=Settings(create_seconds=10)) as database:
        clock = database.clock
        assert clock.datetime() == NEW_YEAR
        create(client)
        described = client.describe_table(TableName="things")["Table"]
        assert described["CreationDateTime"] == NEW_YEAR
        assert described["TableStatus"] == "CREATING"
        clock.advance(timedelta(seconds=11))
        assert client.describe_table(TableName="things")["Table"]["TableStatus"] == "ACTIVE"
        clock.set(datetime(2027, 1, 1))  # in UTC, as it names no zone
        assert clock.datetime() == datetime(2027, 1, 1, tzinfo=UTC)
        clock.freeze("2028-01-01")
        assert clock.frozen
        assert clock.now() == datetime(2028, 1, 1, tzinfo=UTC).timestamp()
        clock.resume()
        assert clock.now() > datetime(2028, 1, 1, tzinfo=UTC).timestamp()
        with pytest.raises(ValueError, match="not a duration"):
            clock.advance("soon")


def test_all_that_expired_is_gone_when_the_clock_has_moved(client: Any) -> None:
    with hashrange.local(now=NEW_YEAR) as database:
        create(client)
        expire(client)
        for n in range(300):  # more than one bite of the sweep
            put(client, f"{n}", ttl={"N": str(int(NEW_YEAR.timestamp()) + 60)})
        database.clock.advance(61)
        assert keys(client) == []


def test_freezegun_freezes_the_database_as_well(client: Any) -> None:
    with hashrange.local() as database, freezegun.freeze_time("2026-01-01") as frozen:
        create(client)
        assert client.describe_table(TableName="things")["Table"]["CreationDateTime"] == NEW_YEAR
        expire(client)
        put(client, "a", ttl={"N": str(int(NEW_YEAR.timestamp()) + 60)})
        frozen.tick(timedelta(hours=2))
        assert keys(client) == []
        assert database.clock.datetime() == NEW_YEAR + timedelta(hours=2)


def test_time_machine_moves_the_database_as_well(client: Any) -> None:
    with hashrange.local(), time_machine.travel(NEW_YEAR, tick=False) as traveller:
        create(client)
        assert client.describe_table(TableName="things")["Table"]["CreationDateTime"] == NEW_YEAR
        expire(client)
        put(client, "a", ttl={"N": str(int(NEW_YEAR.timestamp()) + 60)})
        traveller.shift(timedelta(hours=2))
        assert keys(client) == []


def test_stream_iterators_and_tokens_follow_the_clock(client: Any) -> None:
    with hashrange.local(now=NEW_YEAR) as database:
        create(client, StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
        streams = database.client("dynamodbstreams")
        arn = client.describe_table(TableName="things")["Table"]["LatestStreamArn"]
        shard = streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"][0]["ShardId"]
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard, ShardIteratorType="TRIM_HORIZON"
        )["ShardIterator"]
        put(client, "a")
        assert len(streams.get_records(ShardIterator=iterator)["Records"]) == 1
        database.clock.advance("16m")
        with pytest.raises(streams.exceptions.ExpiredIteratorException):
            streams.get_records(ShardIterator=iterator)

        write = {"Put": {"TableName": "things", "Item": {"pk": {"S": "b"}, "n": {"N": "1"}}}}
        token = {"ClientRequestToken": "one"}
        client.transact_write_items(TransactItems=[write], **token)
        other = {"Put": {"TableName": "things", "Item": {"pk": {"S": "b"}, "n": {"N": "2"}}}}
        with pytest.raises(client.exceptions.IdempotentParameterMismatchException):
            client.transact_write_items(TransactItems=[other], **token)
        database.clock.advance("11m")
        client.transact_write_items(TransactItems=[other], **token)


def test_a_database_that_is_given_keeps_its_clock() -> None:
    clock = ManualClock(1_000_000.0)
    with hashrange.Database(MemoryEngine(), clock=clock) as given, hashrange.local(given) as database:
        assert database.clock.now() == 1_000_000.0
        clock.advance(5)
        assert database.clock.now() == 1_000_005.0
        database.clock.advance(5)
        assert given.clock.now() == 1_000_010.0


def test_a_local_database_stands_alone() -> None:
    with LocalDatabase(now=0, region="eu-north-1", account_id="123456789012") as database:
        client = database.client()
        create(client)
        assert client is database.client()
        table = database.execute("DescribeTable", {"TableName": "things"})["Table"]
        assert table["TableArn"] == "arn:aws:dynamodb:eu-north-1:123456789012:table/things"
        assert table["CreationDateTime"] == 0
        assert [one.name for one in database.resource().tables.all()] == ["things"]
        assert database.client(region="us-east-1").list_tables()["TableNames"] == []
        with pytest.raises(ResourceInUseException):
            database.execute("CreateTable", table_of("things", "pk"))
