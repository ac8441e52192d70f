"""Counters by example: what each call returns, writes and refuses.

Histories of calls at once are in `test_counter_histories`.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import boto3
import pytest
from botocore.exceptions import ClientError

from endpoints import connection
from hashrange_patterns import (
    AsyncCounters,
    AsyncShardedCounters,
    AsyncUniqueVisitors,
    AsyncWindowedCounters,
    Bucket,
    Counters,
    Event,
    Runtime,
    ShardedCounters,
    StillUnprocessed,
    Table,
    TimedEvent,
    UniqueVisitors,
    WindowedCounters,
)
from hashrange_patterns.entities import Entities, key_of
from hashrange_patterns.flows import Call, RepeatsByItself
from patterns.asynchronous import asynchronous
from patterns.entity_classes import Photo
from patterns.faults import Intercepted, answer_of, noting
from patterns.steps import Fate, Outcome, Steps

NOW = datetime.now(UTC)
NOON = NOW.replace(hour=12, minute=0, second=0, microsecond=0)
IMPATIENT = Runtime(attempts_max=3, pause_seconds=0.0)


class Failing(Intercepted):
    """Raises the given errors, one for each request, and then passes requests on."""

    def __init__(self, client: Any, *errors: Exception) -> None:
        super().__init__(client)
        self.errors = list(errors)

    def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
        if self.errors:
            raise self.errors.pop(0)
        return super().perform(operation, parameters)


def test_an_add_gives_the_new_value(client: Any, table: Table) -> None:
    counters = Counters(client, table)
    assert counters.value("/") == 0
    assert [counters.add("/"), counters.add("/", 10), counters.add("/", -3)] == [1, 11, 8]
    assert counters.values(["/", "/never"], consistent=True) == {"/": 8, "/never": 0}


def test_an_event_counts_once(client: Any, table: Table) -> None:
    counters = Counters(client, table)
    assert [
        counters.once("/", event_id="e1"),
        counters.once("/", event_id="e1"),
        counters.once("/", 5, event_id="e2"),
    ] == [
        True,
        False,
        True,
    ]
    assert counters.value("/", consistent=True) == 6


def test_a_batch_says_for_each_event_whether_the_event_counted(client: Any, table: Table) -> None:
    counters = Counters(client, table)
    counters.once("/", event_id="b")
    batch = [Event("a", {"/": 1}), Event("b", {"/": 1}), Event("a", {"/": 1}), Event("c", {"/": 1, "/c": 2})]
    assert counters.count(batch) == [True, False, False, True]
    assert counters.count(iter(batch)) == [False] * 4
    assert counters.values(["/", "/c"], consistent=True) == {"/": 3, "/c": 2}
    assert counters.count([]) == []


@pytest.mark.parametrize("names_for_each_event", [1, 2, 40])
def test_a_batch_is_cut_to_what_transactions_take(
    client: Any, table: Table, names_for_each_event: int
) -> None:
    counters = Counters(client, table)
    events = [
        Event(f"e{number}", {f"/{number}/{name}": 1 for name in range(names_for_each_event)} | {"/": 1})
        for number in range(130)
    ]
    if names_for_each_event == 40:
        events = events[:7]
    assert all(counters.count(events))
    assert counters.value("/", consistent=True) == len(events)


def test_an_event_too_large_for_a_transaction_is_refused(client: Any, table: Table) -> None:
    counters = Counters(client, table)
    event = Event("e", {f"/{number}": 1 for number in range(100)})
    with pytest.raises(ClientError, match="Member must have length less than or equal to 100"):
        counters.count([event])
    assert counters.value("/1", consistent=True) == 0


def test_a_counter_may_be_an_attribute_of_an_existing_item(client: Any, table: Table) -> None:
    key = {"PK": {"S": "URL#myblog.com/article1"}, "SK": {"S": "STATISTICS"}}
    client.put_item(TableName=table.name, Item={**key, "title": {"S": "One"}, "views": {"N": "32"}})
    views = Counters(client, table, item=("URL#{name}", "STATISTICS"), attribute="views")
    likes = Counters(client, table, item=("URL#{name}", "STATISTICS"), attribute="likes")
    # The same event counts in both, once in each.
    assert views.once("myblog.com/article1", event_id="e1")
    assert likes.once("myblog.com/article1", event_id="e1")
    assert not likes.once("myblog.com/article1", event_id="e1")
    item = client.get_item(TableName=table.name, Key=key, ConsistentRead=True)["Item"]
    assert item == {**key, "title": {"S": "One"}, "views": {"N": "33"}, "likes": {"N": "1"}}


def test_every_kind_of_counter_counts_an_event(client: Any, table: Table) -> None:
    kinds: list[Counters | ShardedCounters] = [
        Counters(client, table),
        Counters(client, table, attribute="likes"),
        Counters(client, table, item=("URL#{name}", "STATISTICS")),
        Counters(client, table, item=("URL#{name}", "OTHER")),
        ShardedCounters(client, table, 3, item=("SHARDED#{name}", "ONE")),
        ShardedCounters(client, table, 3, item=("SHARDED#{name}", "TWO")),
    ]
    for kind in kinds:
        assert kind.once("/", event_id="e1")
        assert not kind.once("/", event_id="e1")
    windowed = WindowedCounters(client, table, prefix="count")
    assert windowed.once("/", NOW, event_id="e1")
    for kind in kinds:
        kind.once("/", event_id="e2")
        assert kind.value("/") == 2


def test_events_that_a_program_keeps_mark_what_was_counted(client: Any, table: Table) -> None:
    views = Counters(client, table, item=("URL#{name}", "STATISTICS"), attribute="views")

    def view(url: str, at: str, reader: str) -> Event:
        key = {"PK": {"S": f"URL#{url}"}, "SK": {"S": f"T#{at}#CID#{reader}"}}
        return Event("", {url: 1}, {**key, "agent": {"S": "curl"}})

    noon = "2022-03-28T13:17:23+00:00"
    events = [view("a", noon, "r1"), view("a", noon, "r2"), view("b", noon, "r1"), view("a", noon, "r1")]
    assert views.count(events) == [True, True, True, False]
    assert views.count(events) == [False] * 4
    assert views.values(["a", "b"], consistent=True) == {"a": 2, "b": 1}
    stored = client.get_item(
        TableName=table.name, Key=table.key(table.address(dict(events[0].item or {}))), ConsistentRead=True
    )["Item"]
    assert stored["agent"] == {"S": "curl"}
    assert "expires_at" in stored


def test_records_that_are_delivered_again_count_once(client: Any, table: Table) -> None:
    """As a stream delivers them after a function has failed: batches that overlap."""
    counters = Counters(client, table)
    for first, last in ((1, 3), (2, 4), (1, 4), (4, 9)):
        counters.count(Event(f"record{number}", {"/": 1}) for number in range(first, last + 1))
    assert counters.value("/", consistent=True) == 9


def test_ids_of_any_length_are_told_apart(client: Any, table: Table) -> None:
    counters = Counters(client, table)
    ids = ["x" * 1_024, "x" * 1_025, "x" * 5_000, "é" * 3_000, "#"]
    events = [Event(event_id, {"/": 1}) for event_id in ids]
    assert counters.count(events) == [True] * len(ids)
    assert counters.count(events) == [False] * len(ids)
    assert counters.value("/", consistent=True) == len(ids)


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_what_is_kept_for_no_time_is_refused(client: Any, table: Table, seconds: Any) -> None:
    with pytest.raises(ValueError, match="remember_seconds"):
        Counters(client, table, remember_seconds=seconds)
    with pytest.raises(ValueError, match="remember_seconds"):
        WindowedCounters(client, table, remember_seconds=seconds)
    with pytest.raises(ValueError, match="minutes_kept_seconds"):
        WindowedCounters(client, table, minutes_kept_seconds=seconds)
    with pytest.raises(ValueError, match="remember_seconds"):
        UniqueVisitors(client, table, remember_seconds=seconds)


def test_times_before_the_year_1000_are_counted_in_order(client: Any, table: Table) -> None:
    windows = WindowedCounters(client, table)
    moments = [datetime(year, 3, 1, 12, 30, tzinfo=UTC) for year in (1, 999, 1000, 2026, 9999)]
    for number, at in enumerate(moments):
        windows.once("/", at, event_id=f"e{number}")
    assert windows.total("/", moments[0], moments[-1], consistent=True) == 4
    assert windows.total("/", moments[1], moments[2], consistent=True) == 1


def test_a_table_may_be_named_by_its_arn(client: Any, table: Table) -> None:
    arn = client.describe_table(TableName=table.name)["Table"]["TableArn"]
    by_arn = Table(arn)
    counters = Counters(client, by_arn)
    counters.once("/", event_id="e1")
    assert counters.value("/", consistent=True) == 1
    store = Entities(client, by_arn)
    photos = [Photo("alice", NOW + timedelta(days=day)) for day in range(30)]
    store.put_all(photos)
    assert list(store.get_all([key_of(photo) for photo in photos], consistent=True).values()) == photos


def test_events_expire(client: Any, table: Table) -> None:
    runtime = Runtime(now=lambda: NOW.timestamp())
    Counters(client, table, remember_seconds=86_400, runtime=runtime).once("/", event_id="e1")
    Counters(client, table, remember_seconds=None).once("/", event_id="e2")
    items = client.scan(TableName=table.name, ConsistentRead=True)["Items"]
    expiries = {
        item["PK"]["S"].rpartition("#")[2]: item.get("expires_at")
        for item in items
        if item["SK"]["S"] == "EVENT"
    }
    assert expiries == {"e1": {"N": str(int(NOW.timestamp()) + 86_400)}, "e2": None}


@pytest.mark.parametrize("transport", ["http"])
def test_a_client_that_retries_by_itself_gets_a_warning(endpoint: str, table: Table) -> None:
    once = connection(endpoint)
    usual = {name: value for name, value in once.items() if name != "config"}
    with closing(boto3.client("dynamodb", **usual)) as client:
        for counters in (Counters(client, table), ShardedCounters(client, table, 1)):
            counters.once("/", event_id="e1")
            with pytest.warns(RepeatsByItself, match="total_max_attempts"):
                counters.add("/")
    with closing(boto3.client("dynamodb", **once)) as client:
        Counters(client, table).add("/")


def test_a_table_with_other_keys_is_explained(client: Any, name_table: Callable[..., str]) -> None:
    other = Table(name_table("others"), partition_key="id", sort_key="at")
    client.create_table(**other.definition())
    client.get_waiter("table_exists").wait(TableName=other.name, WaiterConfig={"Delay": 1})
    counters = Counters(client, Table(other.name))
    with pytest.raises(ClientError) as of_add:
        counters.add("/")
    with pytest.raises(ClientError) as of_value:
        counters.value("/")
    for refused in (of_add, of_value):
        assert "partition_key=" in refused.value.__notes__[0]
    assert Counters(client, other).add("/") == 1


def test_a_client_of_the_other_kind_is_refused_before_it_writes(client: Any, table: Table) -> None:
    with pytest.raises(TypeError, match="of the other kind"):
        AsyncCounters(client, table)


def test_the_table_may_name_its_attributes_otherwise(client: Any, name_table: Callable[[str], str]) -> None:
    table = Table(name_table("other"), partition_key="partition", sort_key="order", expires_at="gone")
    client.create_table(**table.definition())
    client.get_waiter("table_exists").wait(TableName=table.name, WaiterConfig={"Delay": 1})
    assert ShardedCounters(client, table, 2).once("/", event_id="e")
    assert WindowedCounters(client, table).once("/", NOW, event_id="e")
    assert UniqueVisitors(client, table).seen("/", "reader", NOW)
    assert ShardedCounters(client, table, 2).value("/") == 1
    assert UniqueVisitors(client, table).visitors("/", NOW.date()) == ["reader"]


@pytest.mark.parametrize(
    ("error", "repeated"),
    [
        (answer_of("ThrottlingException"), True),
        (answer_of("TransactionCanceledException", reasons=["TransactionConflict", "None"]), True),
        (answer_of("TransactionCanceledException", reasons=["None", "ThrottlingError"]), True),
        (answer_of("InternalServerError", status=500), True),
        (answer_of("TransactionCanceledException", reasons=["None", "ValidationError"]), False),
        (
            answer_of("TransactionCanceledException", reasons=["None", "ItemCollectionSizeLimitExceeded"]),
            False,
        ),
        (answer_of("AccessDeniedException"), False),
        (answer_of("ResourceNotFoundException"), False),
        (KeyError("a mistake"), False),
    ],
    ids=lambda value: str(value),
)
def test_a_failure_that_is_no_duplicate_is_retried_or_raised(
    client: Any, table: Table, error: Exception, repeated: bool
) -> None:
    counters = Counters(cast(Any, Failing(client, error)), table, runtime=IMPATIENT)
    if repeated:
        assert counters.once("/", event_id="e")
    else:
        with pytest.raises(type(error)):
            counters.once("/", event_id="e")
        assert counters.once("/", event_id="e")
    assert counters.value("/", consistent=True) == 1


def test_it_gives_up_at_last(client: Any, table: Table) -> None:
    conflict = answer_of("TransactionCanceledException", reasons=["None", "TransactionConflict"])
    counters = Counters(cast(Any, Failing(client, *[conflict] * 3)), table, runtime=IMPATIENT)
    with pytest.raises(ClientError, match="TransactionCanceledException"):
        counters.once("/", event_id="e")
    assert counters.once("/", event_id="e")


def test_an_add_whose_answer_is_lost_raises_and_is_not_repeated(client: Any, table: Table) -> None:
    counters = Counters(cast(Any, Failing(client, answer_of("InternalServerError", 500))), table)
    with pytest.raises(ClientError, match="InternalServerError"):
        counters.add("/")
    throttled = Counters(
        cast(Any, Failing(client, answer_of("ThrottlingException"))), table, runtime=IMPATIENT
    )
    assert throttled.add("/") == 1


def test_a_batch_read_gives_up_when_nothing_is_processed(client: Any, table: Table) -> None:
    class Unprocessed(Intercepted):
        def perform(self, operation: str, parameters: dict[str, Any]) -> Any:
            return {"Responses": {}, "UnprocessedKeys": parameters["RequestItems"]}

    with pytest.raises(StillUnprocessed, match="1 keys"):
        Counters(cast(Any, Unprocessed(client)), table, runtime=IMPATIENT).value("/")


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: Event("", {"/": 1}),
        lambda: Event("e", {}),
        lambda: TimedEvent("", NOW, {"/": 1}),
        lambda: TimedEvent("e", NOW, {}),
        lambda: Counters(cast(Any, None), "t", item=("COUNTERS", "{name}")),
        lambda: ShardedCounters(cast(Any, None), "t", 0),
        lambda: WindowedCounters(cast(Any, None), "t").total("/", NOON + timedelta(seconds=1), NOON),
        lambda: WindowedCounters(cast(Any, None), "t").series("/", NOON, NOON, "day"),
        lambda: WindowedCounters(cast(Any, None), "t").total("/", NOON, NOON - timedelta(hours=1)),
    ],
)
def test_mistakes_are_refused_before_anything_is_asked(mistake: Callable[[], object]) -> None:
    with pytest.raises(ValueError):
        mistake()


@pytest.mark.parametrize("amount", [1.5, "1", None])
def test_what_is_no_whole_number_is_refused_and_not_rounded(amount: Any) -> None:
    nobody = cast(Any, None)
    for count in (Counters(nobody, "t").add, WindowedCounters(nobody, "t").once, Counters(nobody, "t").once):
        given = {"event_id": "e"} if count.__name__ == "once" else {}
        at = [NOON] if "at" in count.__annotations__ else []
        with pytest.raises(TypeError, match="whole numbers"):
            cast(Any, count)("/", *at, amount, **given)


def test_a_sharded_counter_takes_over_from_an_unsharded_one(client: Any, table: Table) -> None:
    Counters(client, table).add("/", 40)
    sharded = ShardedCounters(client, table, 4)
    for number in range(20):
        sharded.add("/", 1)
        assert sharded.once("/", event_id=f"e{number}")
    assert sharded.value("/") == 80
    assert sharded.layout("/").shards == 4
    assert Counters(client, table).value("/", consistent=True) < 80
    sharded.reshard("/", 1)
    assert Counters(client, table).value("/", consistent=True) == 80


def test_many_shards(client: Any, table: Table) -> None:
    sharded = ShardedCounters(client, table, 120)
    assert sharded.count([Event(f"e{number}", {"/": 1}) for number in range(10)]) == [True] * 10
    assert sharded.value("/") == 10
    assert sharded.layout("/").shards == 120


def test_a_shard_that_was_removed_and_added_again_is_open(client: Any, table: Table) -> None:
    """A process that slept before it closed a shard must not close the shard that has its number now."""
    sharded = ShardedCounters(client, table, 3)
    sharded.add("/")
    steps = Steps(client)
    steps.start(sharded._flows.reshard("/", 1))
    [sleeper] = steps.running
    while not is_close(sleeper.step):
        steps.step(sleeper)
    sharded.reshard("/", 1)
    sharded.reshard("/", 3)
    steps.finish()
    fresh = ShardedCounters(client, table, 3)
    for _ in range(30):
        fresh.add("/")
    assert fresh.value("/") == 31
    assert fresh.layout("/").shards == 1  # the sleeper went on to do what it was asked for


def is_close(step: object) -> bool:
    return isinstance(step, Call) and "ConditionCheck" in step.parameters.get("TransactItems", [{}])[0]


def test_a_sum_that_is_read_while_amounts_move_is_read_again(client: Any, table: Table) -> None:
    sharded = ShardedCounters(client, table, 4)
    for _ in range(40):
        sharded.add("/")
    steps, outcomes = Steps(client), list[Outcome]()
    steps.start(sharded._flows.value("/"), outcomes.append)
    steps.step(steps.running[0])  # the layout
    steps.step(steps.running[0], Fate.PART, 1)  # shard 0, before it gets the amounts of the others
    sharded.reshard("/", 1)
    steps.finish()
    assert [outcome.result for outcome in outcomes] == [40]


def test_ranges_of_time(client: Any, table: Table) -> None:
    views = WindowedCounters(client, table)
    yesterday = NOON - timedelta(days=1)
    assert views.once("/", yesterday, event_id="e1")
    assert views.once("/", yesterday + timedelta(minutes=59, seconds=59), 10, event_id="e2")
    assert views.once("/", NOON, 100, event_id="e3")
    assert not views.once("/", NOON, 100, event_id="e3")
    midnight = NOON.replace(hour=0)
    assert views.total("/", midnight - timedelta(days=1), midnight + timedelta(days=1)) == 111
    assert views.total("/", yesterday, NOON) == 11
    assert views.total("/", yesterday + timedelta(minutes=1), NOON + timedelta(minutes=1)) == 110
    assert views.total("/", yesterday + timedelta(minutes=1), yesterday + timedelta(minutes=59)) == 0
    assert views.total("/", NOON, NOON) == 0
    assert views.series("/", yesterday, yesterday + timedelta(hours=2), "hour") == [
        Bucket(yesterday, 11),
        Bucket(yesterday + timedelta(hours=1), 0),
    ]
    assert [bucket.count for bucket in views.series("/", midnight, midnight + timedelta(days=1), "day")] == [
        100
    ]


def test_a_time_without_a_zone_is_refused(client: Any, table: Table) -> None:
    naive = NOON.replace(tzinfo=None)
    views = WindowedCounters(client, table)
    for mistake in (
        lambda: TimedEvent("e", naive, {"/": 1}),
        lambda: views.once("/", naive, event_id="e"),
        lambda: views.total("/", naive, NOON),
        lambda: UniqueVisitors(client, table).seen("/", "a", naive),
    ):
        with pytest.raises(ValueError, match="names no time zone"):
            mistake()


def test_a_long_range_costs_one_query(client: Any, table: Table) -> None:
    through, noted = noting(client)
    views = WindowedCounters(through, table)
    midnight = NOON.replace(hour=0)
    views.count([TimedEvent(f"e{day}", NOON - timedelta(days=day), {"/": 1}) for day in range(0, 400, 8)])
    noted.requests.clear()
    assert views.total("/", midnight - timedelta(days=400), midnight + timedelta(days=1)) == 50
    assert noted.requests == {"query": 1}


def test_expired_minutes_are_refused_not_counted_as_zero(client: Any, table: Table) -> None:
    runtime = Runtime(now=lambda: NOON.timestamp())
    views = WindowedCounters(client, table, minutes_kept_seconds=3600, runtime=runtime)
    past = NOON - timedelta(hours=3)
    views.once("/", past + timedelta(minutes=30), event_id="e1")
    key = {"PK": {"S": "WINDOWED#/"}, "SK": {"S": past.strftime("HOUR#%Y-%m-%dT%H")}}
    item = client.get_item(TableName=table.name, Key=key, ConsistentRead=True).get("Item")
    expires_at = int(past.timestamp()) + 3600 + 3600
    assert item is None or item["expires_at"] == {"N": str(expires_at)}
    with pytest.raises(ValueError, match="ask for whole hours"):
        views.total("/", past + timedelta(minutes=15), NOON)
    assert views.total("/", past, NOON) == 1


def test_visitors_of_a_day(client: Any, table: Table) -> None:
    visitors = UniqueVisitors(client, table)
    assert [visitors.seen("/", who, NOON) for who in ("b", "a", "b")] == [True, True, False]
    assert visitors.seen("/", "a", NOON + timedelta(days=1))
    assert visitors.count("/", NOON.date(), consistent=True) == 2
    assert visitors.visitors("/", NOON.date()) == ["a", "b"]


def test_a_visit_to_a_forgotten_day_is_refused(client: Any, table: Table) -> None:
    visitors = UniqueVisitors(client, table, runtime=Runtime(now=lambda: NOW.timestamp()))
    assert visitors.seen("/", "a", NOON - timedelta(days=6))
    with pytest.raises(ValueError, match="forgotten"):
        visitors.seen("/", "a", NOON - timedelta(days=9))
    assert visitors.count("/", NOON.date() - timedelta(days=9), consistent=True) == 0


def test_a_visitor_between_the_read_and_the_write_counts_once(client: Any, table: Table) -> None:
    visitors = UniqueVisitors(client, table)
    steps, outcomes = Steps(client), list[Outcome]()
    steps.start(visitors._flows.seen("/", "a", NOON), outcomes.append)
    steps.step(steps.running[0])  # nobody was there
    assert visitors.seen("/", "a", NOON)
    steps.finish()
    assert [outcome.result for outcome in outcomes] == [False]
    assert visitors.count("/", NOON.date(), consistent=True) == 1


def test_the_asynchronous_twins(client: Any, table: Table) -> None:
    async def tour() -> None:
        through = asynchronous(client)
        counters = AsyncCounters(through, table)
        assert [await counters.once("/", event_id="e"), await counters.once("/", event_id="e")] == [
            True,
            False,
        ]
        assert await counters.add("/", 2) == 3
        sharded = AsyncShardedCounters(through, table, 3, attribute="sharded")
        await asyncio.gather(*(sharded.once("/", event_id=f"e{number}") for number in range(8)))
        assert await sharded.value("/") == 8
        windowed = AsyncWindowedCounters(through, table)
        assert await windowed.once("/", NOON, event_id="e")
        assert await windowed.total("/", NOON, NOON + timedelta(hours=1)) == 1
        unique = AsyncUniqueVisitors(through, table)
        assert await unique.seen("/", "reader", NOON)
        slow = AsyncCounters(
            cast(Any, Failing(through, answer_of("ThrottlingException"))), table, runtime=IMPATIENT
        )
        assert await slow.value("/") == 3
        with pytest.raises(ClientError, match="ResourceNotFoundException"):
            await AsyncCounters(through, "no-such-table").add("/")

    asyncio.run(tour())


def test_each_class_has_a_twin_with_the_same_methods() -> None:
    import hashrange_patterns as patterns

    twins = [name for name in patterns.__all__ if name.startswith("Async")]
    assert twins
    for name in twins:
        ours, twin = (getattr(patterns, one).__bases__[0] for one in (name.removeprefix("Async"), name))
        assert ours is twin, name


def test_an_asynchronous_client_is_refused_where_nobody_awaits(client: Any, table: Table) -> None:
    with pytest.raises(TypeError, match="of the other kind"):
        Counters(cast(Any, asynchronous(client)), table).add("/")


def test_it_needs_nothing_but_botocore() -> None:
    program = (
        "import sys, hashrange_patterns\n"
        "print(*sorted(n for n in sys.modules if n.startswith('hashrange.') and 'patterns' not in n))\n"
        "print(*sorted({'boto3', 'orjson', 'msgspec', 'numpy'} & set(sys.modules)))"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []
