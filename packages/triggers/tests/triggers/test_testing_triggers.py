"""Triggers of a database of the process: delivered by `settle`, in order, until nothing is left to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hashrange.settings import Settings
from hashrange.testing import LocalDatabase, NoStream, NotSettling

Event = dict[str, Any]


@pytest.fixture
def database() -> Iterator[LocalDatabase]:
    with LocalDatabase(now=1_767_225_600) as database:
        database.create_table("orders", "pk", stream="NEW_AND_OLD_IMAGES")
        database.create_table("totals", "pk", stream="NEW_AND_OLD_IMAGES")
        yield database


def put(database: LocalDatabase, *keys: str, table: str = "orders") -> None:
    database.load(table, [{"pk": key} for key in keys])


def keys_of(event: Event) -> list[str]:
    return [record["dynamodb"]["Keys"]["pk"]["S"] for record in event["Records"]]


def test_changes_come_in_order_when_the_database_settles(database: LocalDatabase) -> None:
    seen: list[list[str]] = []
    put(database, "before")
    trigger = database.trigger("orders", lambda event: seen.append(keys_of(event)), batch_size=2)
    put(database, "a", "b", "c")
    assert seen == []
    database.settle()
    assert seen == [["a", "b"], ["c"]]
    database.settle()
    assert (trigger.calls, trigger.delivered, trigger.given_up) == (2, 3, [])


def test_the_event_has_the_shape_of_lambdas(database: LocalDatabase) -> None:
    seen: list[Any] = []
    database.trigger("orders", lambda event, context: seen.append((event, context)))
    database.execute(
        "PutItem", {"TableName": "orders", "Item": {"pk": {"S": "a"}, "b": {"B": "AA=="}, "n": {"N": "1"}}}
    )
    database.settle()
    ((event, context),) = seen
    (record,) = event["Records"]
    arn = database.execute("DescribeTable", {"TableName": "orders"})["Table"]["LatestStreamArn"]
    assert record.pop("eventID")
    assert record["dynamodb"].pop("SequenceNumber")
    assert record == {
        "eventName": "INSERT",
        "eventVersion": "1.1",
        "eventSource": "aws:dynamodb",
        "awsRegion": "us-east-1",
        "eventSourceARN": arn,
        "dynamodb": {
            "ApproximateCreationDateTime": 1_767_225_600,
            "Keys": {"pk": {"S": "a"}},
            "NewImage": {"pk": {"S": "a"}, "b": {"B": "AA=="}, "n": {"N": "1"}},
            "SizeBytes": record["dynamodb"]["SizeBytes"],
            "StreamViewType": "NEW_AND_OLD_IMAGES",
        },
    }
    assert context.attempt == 1


def test_expiry_is_marked_as_the_services_own(database: LocalDatabase) -> None:
    seen: list[Any] = []
    database.create_table("sessions", "pk", stream="KEYS_ONLY", ttl="until")
    database.load("sessions", [{"pk": "a", "until": 1_767_225_660}])
    database.trigger("sessions", lambda event: seen.extend(event["Records"]))
    database.clock.advance("2m")
    database.settle()
    assert [record["eventName"] for record in seen] == ["REMOVE"]
    assert seen[0]["userIdentity"] == {"type": "Service", "principalId": "dynamodb.amazonaws.com"}


def test_a_chain_of_triggers_settles_at_once(database: LocalDatabase) -> None:
    seen: list[str] = []

    def total(event: Event) -> None:
        put(database, *[f"total of {key}" for key in keys_of(event)], table="totals")
        database.settle()  # inside a function it delivers nothing

    database.trigger("totals", lambda event: seen.extend(keys_of(event)))
    database.trigger("orders", total)
    put(database, "a", "b")
    database.settle()
    assert seen == ["total of a", "total of b"]


def test_a_function_that_fails_is_seen_and_called_again_by_the_next_settle(database: LocalDatabase) -> None:
    calls: list[list[str]] = []

    def fail_once(event: Event) -> None:
        calls.append(keys_of(event))
        if len(calls) == 1:
            raise ZeroDivisionError("on purpose")

    trigger = database.trigger("orders", fail_once)
    put(database, "a", "b")
    with pytest.raises(ZeroDivisionError, match="on purpose"):
        database.settle()
    assert trigger.delivered == 0
    database.settle()
    assert calls == [["a", "b"], ["a", "b"]]


def test_retries_bisect_and_give_up_without_a_pause(database: LocalDatabase) -> None:
    def refuse_b(event: Event) -> None:
        if "b" in keys_of(event):
            raise ValueError("no b")

    trigger = database.trigger("orders", refuse_b, retries=2, bisect_on_error=True)
    put(database, "a", "b", "c")
    database.settle()
    assert keys_of({"Records": trigger.given_up}) == ["b"]
    assert trigger.delivered == 2


def test_partial_failures(database: LocalDatabase) -> None:
    seen: list[list[str]] = []

    def report(event: Event) -> Any:
        seen.append(keys_of(event))
        failed = [
            {"itemIdentifier": record["dynamodb"]["SequenceNumber"]}
            for record in event["Records"]
            if record["dynamodb"]["Keys"]["pk"]["S"] == "b" and len(seen) == 1
        ]
        return {"batchItemFailures": failed}

    database.trigger("orders", report, report_batch_item_failures=True, retries=5)
    put(database, "a", "b", "c")
    database.settle()
    assert seen == [["a", "b", "c"], ["b", "c"]]


def test_patterns_choose_the_records(database: LocalDatabase) -> None:
    seen: list[str] = []
    pattern = {"dynamodb": {"Keys": {"pk": {"S": [{"prefix": "x"}]}}}}
    database.trigger("orders", lambda event: seen.extend(keys_of(event)), patterns=[pattern])
    put(database, "x1", "y", "x2")
    database.settle()
    assert seen == ["x1", "x2"]


def test_all_that_the_stream_holds_from_the_horizon_on(database: LocalDatabase) -> None:
    seen: list[str] = []
    put(database, "before")
    database.trigger("orders", lambda event: seen.extend(keys_of(event)), starting_position="TRIM_HORIZON")
    database.settle()
    assert seen == ["before"]


def test_shards_that_end_and_their_children() -> None:
    settings = Settings(stream_shards=2, stream_shard_seconds=60)
    with LocalDatabase(now=0, settings=settings) as database:
        database.create_table("orders", "pk", stream="KEYS_ONLY")
        seen: list[str] = []
        database.trigger("orders", lambda event: seen.extend(keys_of(event)))
        for generation in range(4):
            put(database, *[f"{generation}-{n}" for n in range(8)])
            database.clock.advance("2m")
        database.settle()
        assert sorted(seen) == sorted(f"{generation}-{n}" for generation in range(4) for n in range(8))
        assert [key[0] for key in seen] == sorted(key[0] for key in seen)


def test_records_that_were_trimmed_are_passed_over(database: LocalDatabase) -> None:
    seen: list[str] = []
    database.trigger("orders", lambda event: seen.extend(keys_of(event)))
    put(database, "a")
    database.settle()
    put(database, "lost")
    database.clock.advance("2d")
    put(database, "b")
    database.settle()
    assert seen == ["a", "b"]


def test_a_trigger_that_calls_itself_without_end_is_named(database: LocalDatabase) -> None:
    called: list[list[str]] = []

    def again(event: Event) -> None:
        put(database, f"{len(called)}")
        called.append(keys_of(event))

    database.trigger("orders", again)
    put(database, "a")
    with pytest.raises(NotSettling, match="orders"):
        database.settle()


def test_restore_brings_triggers_back_to_where_they_were(database: LocalDatabase) -> None:
    seen: list[str] = []
    later: list[str] = []
    database.trigger("orders", lambda event: seen.extend(keys_of(event)))
    put(database, "a")
    snapshot = database.snapshot()
    for _ in range(2):
        database.trigger("orders", lambda event: later.extend(keys_of(event)))
        put(database, "b")
        database.settle()
        assert (seen, later) == (["a", "b"], ["b"])
        database.restore(snapshot)
        seen.clear()
        later.clear()
    database.settle()
    assert (seen, later) == (["a"], [])


def test_a_table_without_a_stream_is_refused(database: LocalDatabase) -> None:
    database.create_table("plain", "pk")
    with pytest.raises(NoStream, match=r"plain has no stream.*StreamSpecification"):
        database.trigger("plain", print)
