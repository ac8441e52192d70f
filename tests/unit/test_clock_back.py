"""A clock that steps: what happened stays so, and nothing waits longer than it ever may."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pytest

from hashrange.clock import BEHIND_SECONDS_MAX, VirtualClock, has_come
from hashrange.database import Database, Settings
from hashrange.errors import LimitExceededException, ServiceError
from hashrange.limits import CLIENT_REQUEST_TOKEN_SECONDS as TOKEN_SECONDS
from hashrange.limits import DECREASES_FREELY_MAX
from hashrange.operations.tables.throughput import changed
from hashrange.storage.api import Engine
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.memory import MemoryEngine
from hashrange.tables import streams
from hashrange.tables.definitions.table import Throughput
from hashrange.tables.spaces import HOLD_SPACE
from hashrange.tables.streams import Stream
from worlds import table_of

START = 1_767_225_600.0
HOUR, DAY = 3_600.0, 86_400.0
KEY = {"pk": {"S": "a"}}


def test_a_moment_has_come_when_it_is_past_or_lies_too_far_ahead() -> None:
    assert [has_come(100.0, now, 10.0) for now in (100.0, 101.0, 1e9)] == [True] * 3
    assert [has_come(100.0, now, 10.0) for now in (90.0, 99.9)] == [False] * 2
    assert [has_come(100.0, now, 10.0) for now in (89.9, 0.0)] == [True] * 2
    assert has_come(100.0, 100.0, 0.0)
    assert has_come(100.0, 99.0, 0.0)


class Stepping:
    """A database on a clock that the test sets; it sweeps when asked to, as the server does by itself."""

    def __init__(self, engine: Engine | None = None, **settings: Any) -> None:
        self.clock = VirtualClock(START, frozen=True)
        self.engine = engine or MemoryEngine()
        self.database = Database(self.engine, settings=Settings(**settings), clock=self.clock)

    def ask(self, operation: str, **request: Any) -> dict[str, Any]:
        return self.database.execute(operation, request)

    def create(self, name: str = "table", **more: Any) -> None:
        self.ask("CreateTable", **table_of(name, "pk", **more))

    def step(self, seconds: float, *, sweep: bool = True) -> None:
        self.clock.set(self.clock.now() + seconds)
        if sweep:
            self.database.settle()

    def state(self, name: str = "table") -> str:
        """The state of a table, MISSING where there is none."""
        try:
            shown: str = self.ask("DescribeTable", TableName=name)["Table"]["TableStatus"]
        except ServiceError as error:
            assert error.code == "ResourceNotFoundException"
            return "MISSING"
        return shown


@pytest.mark.parametrize("create_seconds", [0.0, 5.0])
@pytest.mark.parametrize("sweep", [True, False])
def test_a_table_in_use_stays_so_when_the_clock_is_set_back(create_seconds: float, *, sweep: bool) -> None:
    world = Stepping(create_seconds=create_seconds)
    world.create()
    world.step(create_seconds)
    for seconds in (-2.0, -DAY, -400 * DAY):
        world.step(seconds, sweep=sweep)
        assert world.state() == "ACTIVE"
        world.ask("PutItem", TableName="table", Item=dict(KEY))
        assert "Item" in world.ask("GetItem", TableName="table", Key=dict(KEY))
    world.ask("DeleteTable", TableName="table")
    assert world.state() == "MISSING"


@pytest.mark.parametrize("ahead", [1.0, DAY, 400 * DAY])
def test_what_was_made_while_the_clock_was_ahead_takes_its_seconds_and_no_day(ahead: float) -> None:
    world = Stepping(create_seconds=5.0, update_seconds=5.0, delete_seconds=5.0)
    world.step(ahead)
    world.create()
    world.step(-ahead)
    world.step(5.0)
    assert world.state() == "ACTIVE"
    world.step(ahead)
    world.ask("UpdateTable", TableName="table", TableClass="STANDARD_INFREQUENT_ACCESS")
    assert world.state() == "UPDATING"
    world.step(-ahead)
    world.step(5.0)
    assert world.state() == "ACTIVE"
    world.step(ahead)
    world.ask("DeleteTable", TableName="table")
    assert world.state() == "DELETING"
    world.step(-ahead)
    world.step(5.0)
    assert world.state() == "MISSING"
    world.step(-DAY)
    assert world.state() == "MISSING"


def test_replicas_and_witnesses_come_and_go_once() -> None:
    world = Stepping(update_seconds=5.0)
    world.create()
    world.step(DAY)
    world.ask(
        "UpdateTable",
        TableName="table",
        ReplicaUpdates=[{"Create": {"RegionName": "us-east-2"}}],
        GlobalTableWitnessUpdates=[{"Create": {"RegionName": "us-west-2"}}],
        MultiRegionConsistency="STRONG",
    )

    def shown() -> list[str]:
        table = world.ask("DescribeTable", TableName="table")["Table"]
        return [
            table["TableStatus"],
            *(one["ReplicaStatus"] for one in table.get("Replicas", ())),
            *(one["WitnessStatus"] for one in table.get("GlobalTableWitnesses", ())),
        ]

    assert shown() == ["UPDATING", "CREATING", "CREATING"]
    world.step(-DAY)
    assert shown() == ["ACTIVE"] * 3
    world.step(-DAY)
    assert shown() == ["ACTIVE"] * 3
    world.ask(
        "UpdateTable",
        TableName="table",
        ReplicaUpdates=[{"Delete": {"RegionName": "us-east-2"}}],
        GlobalTableWitnessUpdates=[{"Delete": {"RegionName": "us-west-2"}}],
    )
    assert shown() == ["UPDATING", "DELETING", "DELETING"]
    world.step(-2.0)
    assert shown() == ["ACTIVE"]


def test_states_are_what_they_were_after_a_restart_at_an_earlier_time(tmp_path: Path) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    world = Stepping(engine, create_seconds=5.0)
    world.create()
    world.step(5.0)
    world.create("young")
    engine.close()
    engine = EmbeddedEngine(tmp_path / "data")
    world = Stepping(engine, create_seconds=5.0)
    world.clock.set(START - DAY)
    assert (world.state(), world.state("young")) == ("ACTIVE", "CREATING")
    world.database.settle()
    assert (world.state(), world.state("young")) == ("ACTIVE", "ACTIVE")
    engine.close()


def put_once(world: Stepping, token: str = "token") -> str:
    """Add 1 to an item in a transaction with a token; what the item holds then."""
    update = {
        "TableName": "table",
        "Key": dict(KEY),
        "UpdateExpression": "ADD n :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
    world.ask("TransactWriteItems", TransactItems=[{"Update": update}], ClientRequestToken=token)
    item = orjson.loads(orjson.dumps(world.ask("GetItem", TableName="table", Key=dict(KEY))))["Item"]
    shown: str = item["n"]["N"]
    return shown


@pytest.mark.parametrize("back", [0.5, 2.0, 500.0, 700.0, DAY, 400 * DAY])
@pytest.mark.parametrize("sweep", [True, False])
def test_a_token_counts_once_whatever_the_clock_does_and_not_for_ever(back: float, *, sweep: bool) -> None:
    world = Stepping()
    world.create()
    assert put_once(world) == "1"
    world.step(-back, sweep=sweep)
    assert put_once(world) == "1"
    world.database.settle()
    world.step(540.0)
    assert put_once(world) == "1"
    world.step(TOKEN_SECONDS - 540.0 + 2 * BEHIND_SECONDS_MAX)
    assert put_once(world) == "2"


def test_a_transaction_of_another_time_holds_nothing() -> None:
    world = Stepping(transaction_seconds=5.0)
    world.create()
    assert put_once(world, "a") == "1"
    with pytest.raises(ServiceError, match="Transaction is ongoing"):
        world.ask("PutItem", TableName="table", Item=dict(KEY))
    world.step(-DAY, sweep=False)
    world.ask("PutItem", TableName="table", Item=dict(KEY))
    world.step(0.0)
    assert world.engine.read(lambda reader: list(reader.scan_space(HOLD_SPACE))) == []


@pytest.mark.parametrize("ahead", [BEHIND_SECONDS_MAX + 10.0, DAY, 400 * DAY])
def test_no_change_on_its_way_to_an_index_holds_up_those_behind_it(ahead: float) -> None:
    world = Stepping(gsi_delay_seconds=5.0)
    keys = [{"AttributeName": "pk", "KeyType": "HASH"}]
    index = {"IndexName": "again", "KeySchema": keys, "Projection": {"ProjectionType": "ALL"}}
    world.create(GlobalSecondaryIndexes=[index])
    world.step(ahead)
    world.ask("PutItem", TableName="table", Item=dict(KEY))
    world.step(-ahead, sweep=False)
    world.ask("PutItem", TableName="table", Item={"pk": {"S": "b"}})
    world.step(5.0)
    assert world.ask("Scan", TableName="table", IndexName="again", Select="COUNT")["Count"] == 2


def test_limits_by_the_hour_and_the_day_do_not_last_longer() -> None:
    world = Stepping(ttl_changes_limited=True)
    world.create()
    world.step(DAY)
    specification = {"AttributeName": "until", "Enabled": True}
    world.ask("UpdateTimeToLive", TableName="table", TimeToLiveSpecification=dict(specification))
    specification["Enabled"] = False
    with pytest.raises(ServiceError, match="multiple times"):
        world.ask("UpdateTimeToLive", TableName="table", TimeToLiveSpecification=dict(specification))
    world.step(-DAY)
    world.ask("UpdateTimeToLive", TableName="table", TimeToLiveSpecification=dict(specification))

    noon = START + DAY / 2
    fallen = Throughput(5, 5, decreases=DECREASES_FREELY_MAX, last_decrease=noon + 2 * HOUR)
    for now in (noon, noon + 3 * HOUR):
        assert changed(fallen, {"ReadCapacityUnits": 4, "WriteCapacityUnits": 5}, now).read_units == 4
    with pytest.raises(LimitExceededException):
        changed(fallen, {"ReadCapacityUnits": 4, "WriteCapacityUnits": 5}, noon + 2.5 * HOUR)


# -- Streams ----------------------------------------------------------------------------------------------


STREAM = {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"}


def stream_of(world: Stepping) -> Stream:
    found: list[Stream] = world.engine.read(lambda reader: list(streams.all_streams(reader)))
    return found[-1]


def records_of(world: Stepping) -> list[float]:
    """The times of all records, shard by shard."""

    def read(reader: Any) -> list[float]:
        stream = stream_of(world)
        return [
            change.time
            for shard in stream.shards
            for _, change in streams.read(reader, stream, shard.id, 0, 1_000)
        ]

    return world.engine.read(read)


def switch(world: Stepping, *, on: bool) -> str:
    specification = dict(STREAM) if on else {"StreamEnabled": False}
    world.ask("UpdateTable", TableName="table", StreamSpecification=specification)
    label: str = world.ask("DescribeTable", TableName="table")["Table"]["LatestStreamLabel"]
    return label


@pytest.mark.parametrize("back", [0.0, 0.001, 2.0, DAY, 400 * DAY])
def test_a_later_stream_has_a_later_label(back: float) -> None:
    world = Stepping()
    world.create(StreamSpecification=dict(STREAM))
    labels = [world.ask("DescribeTable", TableName="table")["Table"]["LatestStreamLabel"]]
    for _ in range(3):
        switch(world, on=False)
        world.step(-back)
        labels.append(switch(world, on=True))
    world.ask("DeleteTable", TableName="table")
    world.step(-back)
    world.create(StreamSpecification=dict(STREAM))
    labels.append(world.ask("DescribeTable", TableName="table")["Table"]["LatestStreamLabel"])
    assert labels == sorted(set(labels))


def test_labels_count_on_across_a_second() -> None:
    world = Stepping()
    world.clock.set(START + 0.999)
    world.create(StreamSpecification=dict(STREAM))
    switch(world, on=False)
    assert switch(world, on=True) == "2026-01-01T00:00:01.000"


@pytest.mark.parametrize("back", [2.0, 61.0, DAY, 400 * DAY])
def test_children_are_listed_behind_their_parents(back: float) -> None:
    world = Stepping(stream_shards=3, stream_shard_seconds=HOUR)
    world.create(StreamSpecification=dict(STREAM))
    for _ in range(3):
        world.step(HOUR)
        world.step(-back)
    shards = sorted(stream_of(world).shards, key=lambda shard: shard.id)
    known: set[str] = set()
    for shard in shards:
        assert shard.parent is None or shard.parent in known
        known.add(shard.id)
    assert len(shards) > 3


@pytest.mark.parametrize("ahead", [2 * HOUR, DAY, 400 * DAY])
def test_a_stream_goes_on_at_the_right_time_when_the_clock_was_ahead(ahead: float) -> None:
    world = Stepping()
    world.step(ahead)
    world.create(StreamSpecification=dict(STREAM))
    world.ask("PutItem", TableName="table", Item=dict(KEY))
    world.step(-ahead)
    for number in range(3):
        world.step(1.0)
        world.ask("PutItem", TableName="table", Item={"pk": {"S": str(number)}})
    shards = stream_of(world).shards
    # One step back is one roll-over, however often the sweep looks.
    assert [shard.closed for shard in shards] == [START, None]
    assert records_of(world) == [START + ahead, START + 1.0, START + 2.0, START + 3.0]
    world.step(DAY - 3.0)
    assert len(records_of(world)) == 4
    world.step(1.0)
    assert records_of(world) == [START + 1.0, START + 2.0, START + 3.0]
    world.step(DAY)
    assert records_of(world) == []


@pytest.mark.parametrize("ahead", [2 * HOUR, DAY, 400 * DAY])
def test_a_stream_that_ended_ahead_of_time_is_kept_for_a_day_and_no_longer(ahead: float) -> None:
    world = Stepping()
    world.create(StreamSpecification=dict(STREAM))
    world.step(ahead)
    world.ask("DeleteTable", TableName="table")
    world.step(-ahead)
    world.step(DAY)
    assert stream_of(world).closed == START
    world.step(1.0)
    assert world.engine.read(lambda reader: list(streams.all_streams(reader))) == []


@pytest.mark.parametrize("ahead", [2 * HOUR, DAY, 400 * DAY])
def test_a_shard_in_which_the_clock_was_ahead_for_a_while_is_closed(ahead: float) -> None:
    world = Stepping(stream_shard_seconds=500 * DAY)
    world.create(StreamSpecification=dict(STREAM))
    keys = iter("abcdef")

    def put() -> None:
        world.ask("PutItem", TableName="table", Item={"pk": {"S": next(keys)}})

    put()
    world.clock.advance(ahead)
    put()
    world.clock.set(START)
    put()  # before a sweep could close the shard
    assert records_of(world) == [START, START + ahead, START + ahead]
    world.step(1.0)
    put()
    assert [shard.closed for shard in stream_of(world).shards] == [START + 1.0, None]
    assert records_of(world) == [START, START + ahead, START + ahead, START + 1.0]
    world.step(1.0)
    assert len(stream_of(world).shards) == 2


def test_times_stand_still_after_a_small_step_back() -> None:
    world = Stepping()
    world.create(StreamSpecification=dict(STREAM))
    for number, seconds in enumerate([0.0, -30.0, 29.0, 2.0]):
        world.step(seconds)
        world.ask("PutItem", TableName="table", Item={"pk": {"S": str(number)}})
    assert records_of(world) == [START, START, START, START + 1.0]


def test_a_small_step_back_changes_nothing_in_a_stream() -> None:
    world = Stepping()
    world.create(StreamSpecification=dict(STREAM))
    world.ask("PutItem", TableName="table", Item=dict(KEY))
    before = stream_of(world)
    world.step(-2.0)
    assert stream_of(world) == before
