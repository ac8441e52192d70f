"""A worker over a real database: events, checkpoints, restarts, shards, failures, time."""

from __future__ import annotations

import logging
import threading
from pathlib import Path
from typing import Any

import orjson
import pytest

import hashrange_triggers as triggers
from hashrange.database import Settings
from hashrange_triggers import filters
from triggers.world import TABLE, World, keys_of
from worlds import expiry_of


def test_the_function_gets_events_in_lambdas_shape(world: World) -> None:
    worker = world.worker()
    world.put("1", data={"B": b"\x00\xff"}, tags={"BS": [b"a"]}, deep={"M": {"list": {"L": [{"B": b"b"}]}}})
    world.put("1", state={"S": "paid"})
    world.clients.dynamodb.delete_item(TableName=TABLE, Key={"id": {"S": "1"}})
    world.work(worker)

    insert, modify, remove = world.seen
    arn = world.clients.dynamodb.describe_table(TableName=TABLE)["Table"]["LatestStreamArn"]
    assert insert == {
        "eventID": insert["eventID"],
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "eventSourceARN": arn,
        "dynamodb": {
            "ApproximateCreationDateTime": world.clock.now(),
            "Keys": {"id": {"S": "1"}},
            "NewImage": {
                "id": {"S": "1"},
                "data": {"B": "AP8="},
                "tags": {"BS": ["YQ=="]},
                "deep": {"M": {"list": {"L": [{"B": "Yg=="}]}}},
            },
            "SequenceNumber": insert["dynamodb"]["SequenceNumber"],
            "SizeBytes": insert["dynamodb"]["SizeBytes"],
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }
    assert (modify["eventName"], remove["eventName"]) == ("MODIFY", "REMOVE")
    assert modify["dynamodb"]["OldImage"] == insert["dynamodb"]["NewImage"]
    assert "NewImage" not in remove["dynamodb"]
    orjson.dumps(world.seen)  # is JSON through and through


def test_a_restart_goes_on_where_it_was(world: World) -> None:
    world.put("1", "2")
    worker = world.worker()
    world.work(worker)
    world.put("3")
    world.work(world.worker())
    assert world.keys == ["1", "2", "3"]
    # Another trigger of the same table begins at the beginning.
    world.seen.clear()
    world.work(world.worker(name="other"))
    assert world.keys == ["1", "2", "3"]


def test_latest_skips_what_was_there_and_nothing_later(world: World) -> None:
    world.put("before")
    worker = world.worker(starting_position="LATEST")
    world.put("between")  # after the start, before the first read
    world.work(worker)
    assert world.keys == ["between"]


def test_latest_misses_nothing_if_it_is_stopped_before_its_first_record(world: World) -> None:
    world.put("before")
    world.clock.advance(10)
    world.worker(starting_position="LATEST")
    world.clock.advance(10)
    world.put("meanwhile")
    world.work(world.worker(starting_position="LATEST"))
    assert world.keys == ["meanwhile"]


def test_batches_are_cut_to_size_and_wait_for_the_window(world: World) -> None:
    sizes: list[int] = []
    batching = triggers.Batching(batch_size=4, batch_window=10.0, poll_interval=1.0)
    worker = world.worker(lambda event, _: sizes.append(len(event["Records"])), batching=batching)
    world.put(*map(str, range(6)))
    world.work(worker)
    assert sizes == [4]  # the other two wait
    world.pass_time(worker, 8)
    assert sizes == [4]
    world.pass_time(worker, 3)
    assert sizes == [4, 2]


def test_a_filter_drops_records_and_the_checkpoint_passes_them(world: World) -> None:
    matches = filters.compile([{"dynamodb": {"NewImage": {"state": {"S": ["paid"]}}}}])
    world.put("1", "2", state={"S": "new"})
    worker = world.worker(matches=matches)
    world.work(worker)
    world.put("3", state={"S": "paid"})
    world.pass_time(worker, 1)
    assert world.keys == ["3"]
    # Without the filter the same trigger does not see what was dropped.
    world.work(world.worker())
    assert world.keys == ["3"]


def test_a_failing_batch_is_tried_again_and_holds_up_the_rest(world: World) -> None:
    attempts: list[tuple[int, list[str]]] = []

    def fail_twice(event: triggers.Event, context: triggers.Context) -> None:
        attempts.append((context.attempt, keys_of(event)))
        if len(attempts) < 3:
            raise RuntimeError("not yet")

    worker = world.worker(fail_twice, batching=triggers.Batching(batch_size=1, poll_interval=1.0))
    world.put("1", "2")
    world.work(worker)
    assert attempts == [(1, ["1"])]
    world.pass_time(worker, 5)
    assert attempts == [(1, ["1"]), (2, ["1"]), (3, ["1"]), (1, ["2"])]
    assert worker.totals.errors == 2
    assert worker.totals.delivered == 2


@pytest.mark.parametrize("where", ["file", "table"])
def test_what_is_given_up_goes_to_the_on_failure_destination(
    world: World, tmp_path: Path, where: str
) -> None:
    def fail_for_2(event: triggers.Event, context: triggers.Context) -> None:
        if any(record["dynamodb"]["Keys"]["id"]["S"] == "2" for record in event["Records"]):
            raise ValueError("poison")
        world.keep(event, context)

    worker = world.worker(
        fail_for_2,
        policy=triggers.Policy(retries=1, bisect_on_error=True),
        on_failure="table:given-up" if where == "table" else str(tmp_path / "failures.jsonl"),
    )
    world.put("1", "2", "3", "4")
    world.work(worker)
    world.pass_time(worker, 20)
    assert world.keys == ["1", "3", "4"]
    if where == "table":
        (item,) = world.clients.dynamodb.scan(TableName="given-up")["Items"]
        failure = orjson.loads(item["failure"]["S"])
    else:
        (line,) = (tmp_path / "failures.jsonl").read_bytes().splitlines()
        failure = orjson.loads(line)
    assert failure["requestContext"]["condition"] == "RetryAttemptsExhausted"
    assert failure["requestContext"]["approximateInvokeCount"] == 2
    assert failure["DDBStreamBatchInfo"]["batchSize"] == 1
    assert [record["dynamodb"]["Keys"]["id"]["S"] for record in failure["Records"]] == ["2"]
    assert worker.totals.discarded == 1
    # It is done with, so a restart does not meet it again.
    world.work(world.worker())
    assert world.keys == ["1", "3", "4"]


def test_records_that_are_too_old_are_given_up(world: World) -> None:
    world.put("old")
    world.clock.advance(100)
    world.put("new")
    worker = world.worker(policy=triggers.Policy(max_record_age=60.0))
    world.work(worker)
    assert world.keys == ["new"]
    assert worker.totals.discarded == 1


def test_reported_failures_are_tried_again_from_the_first(world: World) -> None:
    calls: list[list[str]] = []

    def fail_3_once(event: triggers.Event, context: triggers.Context) -> Any:
        keys = keys_of(event)
        calls.append(keys)
        if len(calls) == 1:
            failed = event["Records"][keys.index("3")]["dynamodb"]["SequenceNumber"]
            return {"batchItemFailures": [{"itemIdentifier": failed}]}
        return None

    worker = world.worker(fail_3_once, policy=triggers.Policy(report_batch_item_failures=True))
    world.put("1", "2", "3", "4")
    world.work(worker)
    # Stopped between the two calls, a restart goes on behind what was reported as done.
    world.work(world.worker(name="test"))
    assert calls == [["1", "2", "3", "4"]]
    assert world.keys == ["3", "4"]
    world.pass_time(worker, 2)
    assert calls == [["1", "2", "3", "4"], ["3", "4"]]


def test_items_stay_in_order_over_parallel_lanes(world: World) -> None:
    seen: dict[str, list[int]] = {}
    lock = threading.Lock()

    def note(event: triggers.Event, context: triggers.Context) -> None:
        with lock:
            for record in event["Records"]:
                change = record["dynamodb"]
                seen.setdefault(change["Keys"]["id"]["S"], []).append(int(change["NewImage"]["n"]["N"]))

    batching = triggers.Batching(batch_size=3, parallelization_factor=4, poll_interval=1.0)
    worker = world.worker(note, batching=batching)
    for number in range(20):
        for key in "abcdef":
            world.put(key, n={"N": str(number)})
    world.work(worker)
    assert seen == {key: list(range(20)) for key in "abcdef"}


def test_the_checkpoint_waits_for_the_slowest_lane(world: World) -> None:
    def fail_for_a(event: triggers.Event, context: triggers.Context) -> None:
        if event["Records"][0]["dynamodb"]["Keys"]["id"]["S"] == "a":
            raise RuntimeError("stuck")

    batching = triggers.Batching(batch_size=1, parallelization_factor=8, poll_interval=1.0)
    worker = world.worker(fail_for_a, batching=batching)
    world.put("x", "a", "b", "c")
    world.work(worker)
    assert worker.totals.delivered >= 1
    world.work(world.worker())
    assert world.keys == ["a", "b", "c"]


class TestShards:
    @pytest.fixture
    def settings(self) -> Settings:
        return Settings(stream_shards=3, stream_shard_seconds=3600.0)

    def test_parents_come_before_children(self, world: World) -> None:
        expected: list[tuple[str, str]] = []
        for generation in range(4):
            for number in range(10):
                world.put(f"k{number}", generation={"N": str(generation)})
                expected.append((f"k{number}", str(generation)))
            world.clock.advance(3601)
            world.sweep()
        worker = world.worker()
        world.work(worker)
        by_key: dict[str, list[str]] = {}
        for record in world.seen:
            change = record["dynamodb"]
            by_key.setdefault(change["Keys"]["id"]["S"], []).append(change["NewImage"]["generation"]["N"])
        assert by_key == {f"k{number}": ["0", "1", "2", "3"] for number in range(10)}

    def test_a_shard_that_rolls_over_is_followed_by_its_child(self, world: World) -> None:
        worker = world.worker()
        for generation in range(3):
            world.put(*map(str, range(9)), generation={"N": str(generation)})
            world.work(worker)
            world.clock.advance(3601)
            world.sweep()
            world.pass_time(worker, 6)
        assert len(world.seen) == 27
        # A restart reads nothing again.
        world.seen.clear()
        world.work(world.worker())
        assert world.seen == []

    def test_checkpoints_of_forgotten_shards_are_removed(self, world: World) -> None:
        worker = world.worker()
        for _ in range(30):
            world.put("1", time={"N": str(int(world.clock.now()))})
            world.clock.advance(3601)
            world.sweep()
            world.pass_time(worker, 6)
        marks = world.clients.dynamodb.scan(TableName=triggers.DEFAULT_TABLE)["Items"]
        # The last 24 hours' shards, and the stream itself; without removal there would be 90.
        assert len(marks) < 80


def test_a_stream_switched_on_again_is_followed_after_the_one_before(world: World) -> None:
    worker = world.worker()
    world.put("1")
    world.work(worker)
    dynamodb = world.clients.dynamodb
    world.put("2")
    dynamodb.update_table(TableName=TABLE, StreamSpecification={"StreamEnabled": False})
    world.put("unseen")
    world.clock.advance(1)
    dynamodb.update_table(
        TableName=TABLE, StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    )
    world.put("3")
    world.pass_time(worker, 10)
    assert world.keys == ["1", "2", "3"]
    # A worker that starts only now does the same.
    world.seen.clear()
    world.work(world.worker())
    assert world.seen == []


def test_an_iterator_that_expired_is_replaced(world: World) -> None:
    worker = world.worker()
    world.put("1")
    world.work(worker)
    world.put("2")
    world.clock.advance(3600)
    world.work(worker)
    assert world.keys == ["1", "2"]


def test_records_that_were_trimmed_are_lost_and_said_to_be(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    worker = world.worker()
    world.put("1")
    world.work(worker)
    world.put("2")
    world.clock.advance(25 * 3600)
    world.put("3")
    world.sweep()
    with caplog.at_level(logging.WARNING):
        world.pass_time(worker, 10)
    assert world.keys == ["1", "3"]
    assert "records were lost" in caplog.text


def test_deletes_by_expiry_carry_the_services_identity(world: World) -> None:
    world.clients.dynamodb.update_time_to_live(**expiry_of(TABLE))
    a_week = 7 * 24 * 3600
    world.put("1", ttl={"N": str(int(world.clock.now()) + a_week)})
    world.put("2")
    worker = world.worker()
    world.work(worker)
    world.clock.advance(a_week + 1)
    world.sweep()
    world.pass_time(worker, 10)
    removed = world.seen[-1]
    assert removed["eventName"] == "REMOVE"
    assert removed["dynamodb"]["Keys"] == {"id": {"S": "1"}}
    # [docs] Developer Guide, "DynamoDB Streams and Time to Live"
    assert removed["userIdentity"] == {"type": "Service", "principalId": "dynamodb.amazonaws.com"}
    assert len(world.seen) == 3


def test_a_table_without_a_stream_is_refused(world: World) -> None:
    world.clients.dynamodb.update_table(TableName=TABLE, StreamSpecification={"StreamEnabled": False})
    with pytest.raises(triggers.TriggerError, match="no stream that is on"):
        world.worker()
    with pytest.raises(triggers.TriggerError, match="There is no table nowhere"):
        triggers.Worker(world.clients, "nowhere", world.keep, triggers.Options("test"), clock=world.clock)


def test_run_stops_on_request(world: World) -> None:
    stop = threading.Event()
    world.put(*map(str, range(50)))

    def note(event: triggers.Event) -> None:
        world.seen.extend(event["Records"])
        if len(world.seen) == 50:
            stop.set()

    batching = triggers.Batching(batch_size=10, poll_interval=0.01)
    options = triggers.Options("run", batching)
    totals = triggers.run(TABLE, note, clients=world.clients, options=options, stop=stop)
    assert totals.delivered == 50
    assert totals.calls == 5
    world.work(world.worker(name="run"))
    assert len(world.seen) == 50


def test_run_names_the_trigger_after_the_function(world: World) -> None:
    stop = threading.Event()
    stop.set()
    triggers.run(TABLE, world.keep, clients=world.clients, stop=stop)
    marks = world.clients.dynamodb.scan(TableName=triggers.DEFAULT_TABLE)["Items"]
    assert {item["trigger"]["S"] for item in marks} == {f"triggers.world:World.keep@{TABLE}"}
