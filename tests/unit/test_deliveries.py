"""The delivery of changes to Kinesis data streams: at least once, in each item's order, whatever fails."""

from __future__ import annotations

import logging
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

import postgres
from deliveries import ARN, DAY, ENDPOINT, NOW, World
from hashrange import kinesis
from hashrange.tables.definitions import catalog
from hashrange.tables.jobs.deliveries import delivery_runner, messages, outboxes
from hashrange.tables.spaces import DELIVERY_SPACE
from worlds import expiry_of, recovery_of


@pytest.fixture(params=["memory", "disk", "postgresql"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[World]:
    if request.param == "postgresql":
        url = request.getfixturevalue("postgres_url")
        world = World(engine=postgres.engine(url, schema=postgres.new_schema()))
    else:
        world = World(tmp_path / "data" if request.param == "disk" else None)
    yield world
    world.database.close()


def test_a_change_arrives_in_the_form_that_the_service_sends(world: World) -> None:
    world.enable()
    world.put("a", 1)
    world.put("a", 2)
    world.delete("a")
    world.settle()
    first, second, third = (record for _, record in world.streams.records)
    assert first == {
        "awsRegion": "us-east-1",
        "eventID": first["eventID"],
        "eventName": "INSERT",
        "userIdentity": None,
        "recordFormat": "application/json",
        "tableName": "music",
        "dynamodb": {
            "ApproximateCreationDateTime": 1_790_000_000_123,
            "Keys": {"pk": {"S": "a"}},
            "NewImage": {"pk": {"S": "a"}, "v": {"N": "1"}},
            "SizeBytes": 9,
        },
        "eventSource": "aws:dynamodb",
    }
    assert (second["eventName"], second["dynamodb"]["OldImage"]["v"]) == ("MODIFY", {"N": "1"})
    assert (third["eventName"], "NewImage" in third["dynamodb"]) == ("REMOVE", False)
    assert len({UUID(record["eventID"]) for _, record in world.streams.records}) == 3
    assert len({key for key, _ in world.streams.records}) == 1
    assert world.waiting() == 0
    assert world.is_sound()


def test_the_precision_may_be_chosen_and_changed(world: World) -> None:
    world.enable(EnableKinesisStreamingConfiguration={"ApproximateCreationDateTimePrecision": "MICROSECOND"})
    world.put("a", 1)
    world.settle()
    changed = {"ApproximateCreationDateTimePrecision": "MILLISECOND"}
    world(
        "UpdateKinesisStreamingDestination",
        TableName="music",
        StreamArn=ARN,
        UpdateKinesisStreamingConfiguration=changed,
    )
    world.put("a", 2)
    world.settle()
    times = [record["dynamodb"]["ApproximateCreationDateTime"] for _, record in world.streams.records]
    assert times == [1_790_000_000_123_456, 1_790_000_000_123]
    precisions = [
        record["dynamodb"]["ApproximateCreationDateTimePrecision"] for _, record in world.streams.records
    ]
    assert precisions == ["MICROSECOND", "MILLISECOND"]


def test_an_expired_item_names_the_service(world: World) -> None:
    world("UpdateTimeToLive", **expiry_of("music", "v"))
    world.enable()
    world.put("a", int(NOW) + 5)
    world.settle()
    world.clock.advance(10)
    world.settle()
    world.settle()
    record = world.streams.records[-1][1]
    assert record["eventName"] == "REMOVE"
    assert record["userIdentity"] == {"principalId": "dynamodb.amazonaws.com", "type": "Service"}


@pytest.mark.parametrize("seed", range(5))
def test_each_change_arrives_in_the_order_of_its_item_whatever_fails(tmp_path: Path, seed: int) -> None:
    world = World(tmp_path / "data")
    world.enable()
    chance = world.streams.chance = random.Random(seed)
    world.streams.refusals, world.streams.lost_answers = 0.3, 0.2
    written: dict[str, list[str]] = {}
    for number in range(300):
        key = f"k{chance.randrange(6)}"
        if written.get(key, ["gone"])[-1] != "gone" and chance.random() < 0.2:
            world.delete(key)
            written[key].append("gone")
        else:
            world.put(key, number)
            written.setdefault(key, []).append(str(number))
        if chance.random() < 0.05:
            world.settle(seconds=chance.choice([0.0, 400.0]))
        if chance.random() < 0.02:
            world.reopen()
    world.streams.refusals = world.streams.lost_answers = 0.0
    for _ in range(3):
        world.settle(seconds=400)
    assert world.waiting() == 0
    identifiers: dict[str, dict[str, Any]] = {}
    for _, record in world.streams.records:
        assert identifiers.setdefault(record["eventID"], record) == record  # a repetition is equal
    for key, values in written.items():
        arrived = world.streams.values(key)
        assert in_order(values, arrived), (key, values, arrived)
    assert world.is_sound()
    world.database.close()


def counts(world: World) -> tuple[int, int]:
    """How many changes were delivered, and how many were given up."""
    runner = world.database.jobs.deliveries.runner
    return runner.delivered, runner.dropped


def in_order(written: list[str], arrived: list[str]) -> bool:
    """Whether the changes arrived in their order, if the deliverer may at any time begin again at an earlier
    change: each change that arrived is the next one or one before it, and all arrived."""
    possible = {0}
    for value in arrived:
        following = set()
        for reached in possible:
            for place in range(min(reached + 1, len(written))):
                if written[place] == value:
                    following.add(max(reached, place + 1))
        possible = following
    return len(written) in possible


def test_an_endpoint_that_is_down_delays_nothing_else(world: World) -> None:
    world("UpdateTimeToLive", **expiry_of("music", "v"))
    world.enable()
    world.streams.down = True
    world.put("a", int(NOW) + 5)
    world.settle()
    failing = world.database.background.failing
    assert failing == {"Kinesis data stream of music": "Undelivered: nobody answers"}
    world.clock.advance(10)
    world.settle(seconds=5)
    assert world("Scan", TableName="music")["Count"] == 0  # it has expired meanwhile
    assert world.waiting() == 2
    assert world.shown() == [("ACTIVE", None)]
    assert world.is_sound()
    world.streams.down = False
    world.settle(seconds=600)
    assert [record["eventName"] for _, record in world.streams.records] == ["INSERT", "REMOVE"]
    assert world.database.background.failing == {}
    assert counts(world) == (2, 0)


def test_deliveries_continue_after_a_restart_where_they_were(tmp_path: Path) -> None:
    world = World(tmp_path / "data")
    world.enable()
    world.put("a", 1)
    world.settle()
    world.streams.down = True
    world.put("a", 2)
    world.put("b", 3)
    world.settle()
    world.reopen()
    world.streams.down = False
    world.settle()
    assert [record["eventName"] for _, record in world.streams.records] == ["INSERT", "MODIFY", "INSERT"]
    world.put("a", 4)
    world.settle()
    assert world.streams.values("a") == ["1", "2", "4"]
    world.database.close()


def test_many_changes_go_in_few_requests_and_those_of_one_item_one_by_one(world: World) -> None:
    world.enable()
    world.fill(1_200)
    world.settle()
    assert len(world.streams.records) == 1_200
    assert len(world.streams.requests) <= 4
    world.streams.requests.clear()
    for number in range(5):
        world.put("hot", number)
    world.settle()
    assert world.streams.requests == [1] * 5
    assert world.streams.values("hot") == ["0", "1", "2", "3", "4"]


def test_large_changes_go_in_requests_of_bounded_size(world: World) -> None:
    world.enable()
    for number in range(6):
        item = {"pk": {"S": f"k{number}"}, "v": {"N": "1"}, "s": {"S": "x" * 390_000}}
        world("PutItem", TableName="music", Item=item)
    world.settle()
    assert world.streams.requests == [2, 2, 2]


def test_a_change_that_no_stream_takes_is_dropped_and_counted(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.enable()
    world.streams.bad = b'"13"'
    for number in range(20):
        world.put(f"k{number}", number)
    world.settle()
    assert len(world.streams.records) == 19
    assert counts(world) == (19, 1)
    assert "changes are not sent to Kinesis" in caplog.messages
    assert world.waiting() == 0
    assert world.database.background.failing == {}


def test_changes_older_than_a_day_are_dropped(world: World) -> None:
    world.enable()
    world.streams.down = True
    world.fill(delivery_runner.WINDOW_RECORDS + 200)
    world.settle()
    world.clock.advance(DAY / 2)
    world.put("young", 1)
    world.clock.advance(DAY / 2 + 60)
    world.settle(seconds=600)
    assert world.waiting() == 1
    world.streams.down = False
    world.settle(seconds=600)
    assert world.streams.values("young") == ["1"]
    assert len(world.streams.records) == 1
    assert counts(world)[1] == delivery_runner.WINDOW_RECORDS + 200


def test_a_change_that_cannot_be_decoded_is_skipped(world: World) -> None:
    world.enable()
    world.put("a", 1)

    def damage(txn: Any) -> None:
        table = catalog.find_full(txn, "music")
        assert table is not None
        assert table.outbox is not None
        [(partition, sort, _)] = txn.scan_space(table.outbox.space)
        txn.put(table.outbox.space, partition, sort, b"\xc1")

    world.database.engine.write(damage)
    world.put("a", 2)
    world.settle()
    assert world.streams.values("a") == ["2"]
    assert world.database.background.damages == 1
    assert world.waiting() == 0


def test_a_change_that_no_message_can_be_made_of_is_skipped(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    message = messages.message

    def at_fault(table: str, space: int, sequence: int, change: Any, *more: Any) -> bytes:
        if b"fault" in change.new:
            raise ValueError("digits")
        return message(table, space, sequence, change, *more)

    monkeypatch.setattr(messages, "message", at_fault)
    world.enable()
    world.put("fault", 1)
    world.put("a", 2)
    world.settle()
    assert world.streams.values("a") == ["2"]
    assert (world.database.background.damages, world.waiting()) == (1, 0)


def test_what_was_written_before_a_destination_was_disabled_still_arrives(world: World) -> None:
    world.enable()
    world.streams.down = True
    world.put("a", 1)
    world.disable()
    world.put("a", 2)
    world.settle()
    assert world.shown() == [("DISABLING", None)]
    world.streams.down = False
    world.settle(seconds=600)
    assert world.shown() == [("DISABLED", None)]
    assert world.streams.values("a") == ["1"]
    assert world.database.engine.read(lambda reader: list(reader.scan_space(DELIVERY_SPACE))) == []
    assert world.is_sound()
    world.put("a", 3)
    world.enable()
    world.put("a", 4)
    world.settle()
    assert world.streams.values("a") == ["1", "4"]


def test_an_endpoint_that_stays_down_does_not_keep_a_destination_from_being_disabled(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.enable()
    world.streams.down = True
    world.put("a", 1)
    world.disable()
    world.settle()
    world.clock.advance(delivery_runner.DRAIN_SECONDS + 1)
    world.settle(seconds=600)
    assert world.shown() == [("DISABLED", None)]
    assert "changes that a disabled Kinesis data stream did not take are dropped" in caplog.messages
    assert world.waiting() == 0
    assert world.is_sound()


@pytest.mark.parametrize(
    ("status", "reason"),
    [(None, kinesis.NO_STREAM), ("CREATING", kinesis.NOT_ACTIVE), ("DELETING", kinesis.NOT_ACTIVE)],
)
def test_a_stream_is_looked_at_after_it_was_enabled(
    world: World, status: str | None, reason: str
) -> None:
    world.streams.statuses = {} if status is None else {"changes": status}
    world("EnableKinesisStreamingDestination", TableName="music", StreamArn=ARN)
    assert world.shown() == [("ENABLING", None)]
    world.put("a", 1)
    world.settle()
    assert world.shown() == [("ENABLE_FAILED", reason)]
    assert world.waiting() == 0
    world.streams.statuses = {"changes": "ACTIVE"}
    world.enable()
    world.put("a", 2)
    world.settle()
    assert world.shown() == [("ACTIVE", None)]
    assert world.streams.values("a") == ["2"]


def test_a_stream_is_enabling_until_kinesis_answers(world: World) -> None:
    world.streams.down = True
    world.enable()
    world.put("a", 1)
    assert world.shown() == [("ENABLING", None)]
    world.streams.down = False
    world.settle(seconds=600)
    assert world.shown() == [("ACTIVE", None)]
    assert world.streams.values("a") == ["1"]


def test_a_stream_that_is_deleted_leaves_its_destination_active(world: World) -> None:
    world.enable()
    world.streams.statuses.clear()
    world.streams.down = True
    world.put("a", 1)
    world.settle()
    assert world.shown() == [("ACTIVE", None)]


def test_without_an_endpoint_there_are_states_and_one_line_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    world = World(tmp_path / "data", kinesis_endpoint="")
    with caplog.at_level(logging.WARNING):
        world.enable()
        for number in range(3):
            world.put("a", number)
            world.settle()
    assert world.shown() == [("ACTIVE", None)]
    assert world.waiting() == 0
    told = "changes are not sent to Kinesis, because --kinesis-endpoint is not set"
    assert caplog.messages == [told]
    assert world.streams.records == []
    # With an endpoint, changes are sent from then on.
    world.reopen(kinesis_endpoint=ENDPOINT)
    world.settle()
    world.put("a", 7)
    world.settle()
    assert world.streams.values("a") == ["7"]
    # Without it again, they wait for a day.
    world.reopen(kinesis_endpoint="")
    world.put("a", 8)
    world.settle()
    assert world.waiting() == 1
    world.clock.advance(DAY + 1)
    world.settle()
    assert world.waiting() == 0
    world.disable()
    world.settle()
    assert world.shown() == [("DISABLED", None)]
    world.database.close()


def test_streams_know_nothing_of_it(world: World) -> None:
    world.enable()
    assert world("ListStreams") == {"Streams": []}
    world(
        "UpdateTable",
        TableName="music",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
    )
    world.put("a", 1)
    world("UpdateTable", TableName="music", StreamSpecification={"StreamEnabled": False})
    world.put("a", 2)
    world.settle()
    assert world.streams.values("a") == ["1", "2"]
    assert len(world("ListStreams")["Streams"]) == 1
    assert world.is_sound()


def test_a_write_that_changes_nothing_sends_nothing(world: World) -> None:
    world.enable()
    world.put("a", 1)
    world.put("a", 1)
    world.settle()
    assert world.streams.values("a") == ["1"]


def test_a_table_that_is_deleted_takes_its_outbox_along(world: World) -> None:
    world.enable()
    world.streams.down = True
    world.put("a", 1)
    world("DeleteTable", TableName="music")
    world.settle(seconds=600)
    assert world.database.engine.read(outboxes.tables) == []
    assert world.is_sound()
    world.streams.down = False
    world.create()
    world.settle(seconds=600)
    assert world.shown() == []
    assert world.streams.records == []


def test_a_recoverable_table_that_is_deleted_keeps_no_outbox(world: World) -> None:
    world("UpdateContinuousBackups", **recovery_of("music"))
    world.enable()
    world.streams.down = True
    world.put("a", 1)
    world("DeleteTable", TableName="music")
    world.settle(seconds=600)
    assert world.is_sound()


@pytest.mark.once
def test_a_snapshot_is_restored_with_what_waited() -> None:
    world = World()
    world.enable()
    world.streams.down = True
    world.put("a", 1)
    snapshot = world.database.snapshot()
    world.streams.down = False
    world.put("a", 2)
    world.settle(seconds=600)
    assert world.streams.values("a") == ["1", "2"]
    world.database.restore(snapshot)
    world.settle(seconds=600)
    assert world.streams.values("a") == ["1", "2", "1"]


def test_failed_destinations_do_not_pile_up(world: World) -> None:
    for number in range(30):
        world.enable(ARN.replace("us-east-1", "eu-west-1") + str(number))
    assert len(world.shown()) == 21
