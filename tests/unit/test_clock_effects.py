"""What follows the clock: every feature that depends on time, moved by the clock and by nothing else.

Each test runs in process and in memory, where the clock is an object and `Database.settle` does what is due,
and over HTTP on the durable engine, where the admin plane does both.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import boto3
import orjson
import pytest

from endpoints import connection
from hashrange.cli.admin import bind_admin
from hashrange.client import connect
from hashrange.clock import VirtualClock
from hashrange.database import Database, Settings
from hashrange.server import running
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from worlds import expiry_of, table_of

if TYPE_CHECKING:
    from types_boto3_dynamodb.client import DynamoDBClient
    from types_boto3_dynamodbstreams.client import DynamoDBStreamsClient

START = 1_767_225_600  # 2026-01-01
MINUTE, HOUR, DAY = 60, 3_600, 86_400


@dataclass(frozen=True, slots=True)
class World:
    """A database on a frozen clock, reached one way or the other."""

    client: DynamoDBClient
    streams: DynamoDBStreamsClient
    advance: Callable[[float], None]
    set_to: Callable[[float], None]
    database: Database


@pytest.fixture
def settings() -> Settings:
    """The settings of `world`'s database; some tests have their own."""
    # No sweep runs by itself, so every effect comes from the change of the clock.
    return Settings(sweep_seconds=HOUR)


@pytest.fixture(params=["in-process", "http"])
def world(request: pytest.FixtureRequest, settings: Settings, tmp_path: Path) -> Iterator[World]:
    clock = VirtualClock(START, frozen=True)
    in_process = request.param == "in-process"
    engine = MemoryEngine() if in_process else EmbeddedEngine(tmp_path / "data")
    database = Database(engine, settings=settings, clock=clock)
    if in_process:

        def advance(seconds: float) -> None:
            clock.advance(seconds)
            database.settle()

        def set_to(moment: float) -> None:
            clock.set(moment)
            database.settle()

        streams = connect(database, service="dynamodbstreams")
        yield World(connect(database), streams, advance, set_to, database)
    else:
        admin = bind_admin(0)

        def advance(seconds: float) -> None:
            post_clock(admin.url, {"advance": seconds})

        def set_to(moment: float) -> None:
            post_clock(admin.url, {"set": moment})

        with running(database, admin=admin) as endpoint:
            client = boto3.client("dynamodb", **connection(endpoint))
            streams = boto3.client("dynamodbstreams", **connection(endpoint))
            yield World(client, streams, advance, set_to, database)
            client.close()
            streams.close()
    database.close()


def post_clock(url: str, change: dict[str, Any]) -> None:
    http = HTTPConnection(urlsplit(url).netloc, timeout=30)
    http.request("POST", "/v1/clock", orjson.dumps(change), {"Content-Type": "application/json"})
    answer = http.getresponse()
    assert (answer.status, answer.read()[:1]) == (200, b"{")
    http.close()


def create(world: World, name: str, **more: Any) -> None:
    world.client.create_table(**table_of(name, "pk", **more))


def expire(world: World, name: str) -> None:
    world.client.update_time_to_live(**expiry_of(name, "until"))


def put_all(world: World, name: str, items: list[dict[str, Any]]) -> None:
    for start in range(0, len(items), 25):
        puts = [{"PutRequest": {"Item": item}} for item in items[start : start + 25]]
        world.database.execute("BatchWriteItem", {"RequestItems": {name: puts}})


def keys(world: World, name: str) -> list[str]:
    return sorted(item["pk"]["S"] for item in world.client.scan(TableName=name)["Items"])




def iterator(world: World, name: str, shard: int = 0, kind: Any = "TRIM_HORIZON") -> str:
    arn = world.client.describe_table(TableName=name)["Table"]["LatestStreamArn"]
    shards = world.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    return world.streams.get_shard_iterator(
        StreamArn=arn, ShardId=shards[shard]["ShardId"], ShardIteratorType=kind
    )["ShardIterator"]


def test_the_time_stands_still(world: World) -> None:
    for name in ("one", "two"):
        create(world, name)
        created = world.client.describe_table(TableName=name)["Table"]["CreationDateTime"]
        assert created.timestamp() == START


def test_items_expire(world: World) -> None:
    create(world, "table")
    expire(world, "table")
    expiries: Any = {"week": {"N": str(START + 7 * DAY)}, "text": {"S": "1"}, "never": {"NULL": True}}
    for key, until in expiries.items():
        world.client.put_item(TableName="table", Item={"pk": {"S": key}, "until": until})
    world.advance(7 * DAY - 1)
    assert keys(world, "table") == ["never", "text", "week"]
    world.advance(1)
    assert keys(world, "table") == ["never", "text"]


def test_however_many_expire_one_advance_is_enough(world: World) -> None:
    create(world, "table")
    expire(world, "table")
    put_all(world, "table", [{"pk": {"S": str(n)}, "until": {"N": str(START + n)}} for n in range(1_010)])
    world.advance(1_005)
    assert keys(world, "table") == ["1006", "1007", "1008", "1009"]


def test_the_stream_tells_of_expiry(world: World) -> None:
    create(world, "table", stream="NEW_AND_OLD_IMAGES")
    expire(world, "table")
    world.client.put_item(TableName="table", Item={"pk": {"S": "a"}, "until": {"N": str(START + HOUR)}})
    world.advance(HOUR)
    insert, remove = world.streams.get_records(ShardIterator=iterator(world, "table"))["Records"]
    assert insert["dynamodb"]["ApproximateCreationDateTime"].timestamp() == START
    assert remove["eventName"] == "REMOVE"
    assert remove["userIdentity"] == {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}
    assert remove["dynamodb"]["ApproximateCreationDateTime"].timestamp() == START + HOUR


def test_a_shard_iterator_expires(world: World) -> None:
    create(world, "table", stream="NEW_AND_OLD_IMAGES")
    issued = iterator(world, "table")
    world.advance(15 * MINUTE)
    assert world.streams.get_records(ShardIterator=issued)["Records"] == []
    world.advance(1)
    with pytest.raises(world.streams.exceptions.ExpiredIteratorException):
        world.streams.get_records(ShardIterator=issued)


def test_stream_records_are_trimmed_after_a_day(world: World) -> None:
    create(world, "table", stream="NEW_AND_OLD_IMAGES")
    for key, pause in (("old", HOUR), ("new", 23 * HOUR)):
        world.client.put_item(TableName="table", Item={"pk": {"S": key}})
        world.advance(pause)
    shown = world.streams.get_records(ShardIterator=iterator(world, "table"))["Records"]
    assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in shown] == ["old", "new"]
    world.advance(1)
    shown = world.streams.get_records(ShardIterator=iterator(world, "table"))["Records"]
    assert [record["dynamodb"]["Keys"]["pk"]["S"] for record in shown] == ["new"]


@pytest.mark.parametrize("settings", [Settings(), Settings(delete_seconds=HOUR)])
@pytest.mark.parametrize("steps", [1, 4])
def test_the_stream_of_a_deleted_table_stays_for_a_day(
    world: World, settings: Settings, steps: int
) -> None:
    create(world, "table", stream="NEW_AND_OLD_IMAGES")
    world.client.delete_table(TableName="table")
    for _ in range(steps):
        world.advance((settings.delete_seconds + DAY) / steps)
    assert len(world.streams.list_streams()["Streams"]) == 1
    world.advance(1)
    assert world.streams.list_streams()["Streams"] == []


def test_shards_roll_over(world: World) -> None:
    create(world, "table", stream="NEW_AND_OLD_IMAGES")
    world.advance(4 * HOUR)
    arn = world.client.describe_table(TableName="table")["Table"]["LatestStreamArn"]
    first, second = world.streams.describe_stream(StreamArn=arn)["StreamDescription"]["Shards"]
    assert "EndingSequenceNumber" in first["SequenceNumberRange"]
    assert second["ParentShardId"] == first["ShardId"]


def test_a_transaction_token_is_forgotten_after_ten_minutes(world: World) -> None:
    create(world, "table")

    def count() -> str:
        world.client.transact_write_items(
            TransactItems=[
                {
                    "Update": {
                        "TableName": "table",
                        "Key": {"pk": {"S": "a"}},
                        "UpdateExpression": "ADD n :one",
                        "ExpressionAttributeValues": {":one": {"N": "1"}},
                    }
                }
            ],
            ClientRequestToken="token",
        )
        return world.client.get_item(TableName="table", Key={"pk": {"S": "a"}})["Item"]["n"]["N"]

    assert [count(), count()] == ["1", "1"]
    world.advance(10 * MINUTE - 1)
    assert count() == "1"
    world.advance(1)
    assert [count(), count()] == ["2", "2"]


@pytest.mark.parametrize(
    "settings", [Settings(create_seconds=30, delete_seconds=20, update_seconds=10, sweep_seconds=HOUR)]
)
def test_table_states(world: World) -> None:
    def status() -> str:
        return world.client.describe_table(TableName="table")["Table"]["TableStatus"]

    create(world, "table")
    world.advance(29)
    assert status() == "CREATING"
    world.advance(1)
    assert status() == "ACTIVE"
    world.client.update_table(TableName="table", DeletionProtectionEnabled=False)
    assert status() == "ACTIVE"
    world.client.update_table(TableName="table", TableClass="STANDARD_INFREQUENT_ACCESS")
    assert status() == "UPDATING"
    world.advance(10)
    assert status() == "ACTIVE"
    world.client.delete_table(TableName="table")
    world.advance(19)
    assert status() == "DELETING"
    world.advance(1)
    assert world.client.list_tables()["TableNames"] == []
    create(world, "table")


@pytest.mark.parametrize("settings", [Settings(create_seconds=30, delete_seconds=20, sweep_seconds=HOUR)])
def test_a_clock_that_is_set_back_takes_no_table_away(world: World) -> None:
    world.set_to(START + DAY)
    create(world, "table")
    world.set_to(START)
    put_all(world, "table", [{"pk": {"S": "a"}}])
    world.set_to(START - 400 * DAY)
    assert world.client.describe_table(TableName="table")["Table"]["TableStatus"] == "ACTIVE"
    assert keys(world, "table") == ["a"]
    world.client.delete_table(TableName="table")
    world.set_to(START - 401 * DAY)
    assert world.client.list_tables()["TableNames"] == []


@pytest.mark.parametrize("settings", [Settings(gsi_delay_seconds=5, sweep_seconds=HOUR)])
def test_global_indexes_lag(world: World) -> None:
    create(world, "table", indexes={"by-owner": "owner"})
    put_all(world, "table", [{"pk": {"S": str(n)}, "owner": {"S": "ann"}} for n in range(300)])

    def count() -> int:
        return world.client.scan(TableName="table", IndexName="by-owner", Select="COUNT")["Count"]

    world.advance(4)
    assert count() == 0
    world.advance(1)
    assert count() == 300


@pytest.mark.parametrize("settings", [Settings(transaction_seconds=5, sweep_seconds=HOUR)])
def test_a_transaction_holds_its_items(world: World) -> None:
    create(world, "table")
    put: Any = {"Put": {"TableName": "table", "Item": {"pk": {"S": "a"}}}}
    world.client.transact_write_items(TransactItems=[put])
    world.advance(4)
    with pytest.raises(world.client.exceptions.TransactionConflictException):
        world.client.put_item(TableName="table", Item={"pk": {"S": "a"}})
    world.advance(1)
    world.client.put_item(TableName="table", Item={"pk": {"S": "a"}})


@pytest.mark.parametrize("settings", [Settings(ttl_changes_limited=True, sweep_seconds=HOUR)])
def test_time_to_live_changes_once_an_hour(world: World) -> None:
    create(world, "table")
    expire(world, "table")
    off: Any = {"AttributeName": "until", "Enabled": False}
    world.advance(HOUR - 1)
    with pytest.raises(world.client.exceptions.ClientError, match="modified multiple times"):
        world.client.update_time_to_live(TableName="table", TimeToLiveSpecification=off)
    world.advance(1)
    world.client.update_time_to_live(TableName="table", TimeToLiveSpecification=off)


def test_the_example_of_the_page_runs() -> None:
    page = Path(__file__).resolve().parents[2] / "docs" / "clock.md"
    (example,) = re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    names: dict[str, Any] = {}
    exec(compile(example, str(page), "exec"), names)
    assert names["clock"].now() == START + 7 * DAY
