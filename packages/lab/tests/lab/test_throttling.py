"""Throttling as the service does it, by its documented numbers, on a clock that the tests move."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import count
from typing import Any

import pytest

from hashrange import encoding
from hashrange.clock import ManualClock
from hashrange.database import Database
from hashrange.errors import (
    ConditionalCheckFailedException,
    ProvisionedThroughputExceededException,
    RequestLimitExceeded,
    ServiceError,
    ThrottlingException,
    TransactionCanceledException,
)
from hashrange.settings import Settings
from worlds import index_on

Throttled = (ProvisionedThroughputExceededException, RequestLimitExceeded, ThrottlingException)

UNITS = 100
"""What each large write costs; a strongly consistent read of the same item costs a quarter."""
LARGE = "x" * (UNITS * 1024 - 200)
ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def database(clock: ManualClock) -> Iterator[Database]:
    settings = Settings(throttle=True, split_seconds=60)
    with Database.in_memory(settings=settings, clock=clock) as opened:
        yield opened


def key_in(part: int, parts: int) -> str:
    """A partition key in one of `parts` equal ranges of hashes."""
    for number in count():
        start = int.from_bytes(encoding.partition_of_one({"S": f"key{number}"})[:8])
        if start * parts >> 64 == part:
            return f"key{number}"
    raise AssertionError


def create(database: Database, **members: Any) -> None:
    database.execute(
        "CreateTable",
        {
            "TableName": "orders",
            "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
            **members,
        },
    )


def create_sorted(database: Database, **members: Any) -> None:
    create(
        database,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"}
            for name in ("pk", "sk", *(["lk"] if "LocalSecondaryIndexes" in members else []))
        ],
        **members,
    )


def provisioned(read: int, write: int) -> dict[str, Any]:
    return {"ProvisionedThroughput": {"ReadCapacityUnits": read, "WriteCapacityUnits": write}}


ON_DEMAND = {"BillingMode": "PAY_PER_REQUEST"}


def put(database: Database, pk: str, **attributes: str) -> dict[str, Any]:
    item = {name: {"S": value} for name, value in {"pk": pk, **attributes}.items()}
    request = {"TableName": "orders", "Item": item, "ReturnConsumedCapacity": "TOTAL"}
    return database.execute("PutItem", request)


def put_large(database: Database, pk: str, **attributes: str) -> None:
    answer = put(database, pk, x=LARGE, **attributes)
    assert answer["ConsumedCapacity"]["CapacityUnits"] == UNITS


def put_number(database: Database, pk: str, number: int) -> None:
    put_large(database, pk, number=str(number))


def get(database: Database, pk: str) -> None:
    database.execute("GetItem", {"TableName": "orders", "Key": {"pk": {"S": pk}}, "ConsistentRead": True})


def passing(wanted: int, request: Callable[[int], Any]) -> int:
    """How many of `wanted` requests, one after the other, pass before the first is throttled."""
    for number in range(wanted):
        try:
            request(number)
        except Throttled:
            return number
    return wanted


def reason_of(error: ServiceError) -> list[tuple[str, str]]:
    reasons = error.members.get("ThrottlingReasons") or error.members["throttlingReasons"]
    return [(reason["reason"], reason["resource"]) for reason in reasons]


def test_150_units_that_were_idle_for_5_minutes_bear_200_for_900_seconds(
    database: Database, clock: ManualClock
) -> None:
    create(database, **provisioned(150, 1_000))
    put_large(database, "a")  # a read of it costs 25
    clock.advance(300)
    seconds = []
    for _ in range(903):
        seconds.append(passing(8, lambda _: get(database, "a")))
        clock.advance(1)
    assert seconds == [8] * 900 + [6] * 3


def test_no_more_than_300_seconds_are_saved(database: Database, clock: ManualClock) -> None:
    create(database, **provisioned(150, 1_000))
    put_large(database, "a")
    clock.advance(9_000)
    assert passing(10_000, lambda _: get(database, "a")) == 3_000 // 25  # the partition's limit
    seconds = 1
    while True:
        clock.advance(1)
        if passing(8, lambda _: get(database, "a")) < 8:
            break
        seconds += 1
    # 301 seconds' units, less the first second's; the others each take 50 more than arrive
    assert seconds == 1 + (150 * 301 - 3_000 - 200 + 150) // 50 + 1


@pytest.mark.parametrize(("partitions", "rate", "lasts"), [(1, 1_000, 300), (2, 2_000, 100)])
def test_a_burst_of_500_units_is_limited_by_the_partitions(
    database: Database, clock: ManualClock, partitions: int, rate: int, lasts: int
) -> None:
    warm = {"WarmThroughput": {"ReadUnitsPerSecond": 500, "WriteUnitsPerSecond": 1_000 * partitions}}
    create(database, **provisioned(500, 500), **warm)
    keys = [key_in(part, partitions) for part in range(partitions)]
    clock.advance(300)
    seconds = []
    for _ in range(lasts + 2):
        seconds.append(passing(rate // UNITS, lambda n: put_large(database, keys[n % partitions])))
        clock.advance(1)
    assert seconds == [rate // UNITS] * lasts + [5, 5]


def test_a_new_table_has_saved_nothing(database: Database) -> None:
    create(database, **provisioned(5, 5))
    assert passing(10, lambda n: put(database, str(n))) == 5


def test_a_table_on_demand_begins_with_4000_writes_and_doubles_its_peak_after_30_minutes(
    database: Database, clock: ManualClock
) -> None:
    create(database, **ON_DEMAND)
    keys = [key_in(part, 8) for part in range(8)]

    def second() -> int:
        passed = passing(100, lambda n: put_large(database, keys[n % 8])) * UNITS
        clock.advance(1)
        return passed

    assert second() == 4_000
    clock.advance(1_790)
    assert second() == 4_000
    clock.advance(9)
    assert second() == 8_000
    clock.advance(1_700)
    assert second() == 8_000


def test_12000_reads_of_a_new_table_on_demand(database: Database) -> None:
    create(database, **ON_DEMAND)
    keys = [key_in(part, 4) for part in range(4)]
    for key in keys:
        put_large(database, key)
    assert passing(1_000, lambda n: get(database, keys[n % 4])) * 25 == 12_000


def test_a_table_that_was_provisioned_keeps_what_it_had(database: Database, clock: ManualClock) -> None:
    create(database, **provisioned(1, 10_000))
    database.execute("UpdateTable", {"TableName": "orders", **ON_DEMAND})
    keys = [key_in(part, 10) for part in range(10)]
    clock.advance(60)
    assert passing(200, lambda n: put_large(database, keys[n % 10])) * UNITS == 10_000


@pytest.mark.parametrize(
    ("throughput", "error"),
    [
        (ON_DEMAND, ThrottlingException),
        (provisioned(40_000, 40_000), ProvisionedThroughputExceededException),
    ],
)
def test_a_hot_key_ends_at_1000_whatever_the_table_has(
    database: Database, clock: ManualClock, throughput: dict[str, Any], error: type[ServiceError]
) -> None:
    create(database, **throughput)
    clock.advance(300)
    for _ in range(200):  # a partition that holds only this item is not split any further
        assert passing(20, lambda _: put_large(database, "hot")) == 10
        clock.advance(1)
    put_large(database, "hot")
    assert passing(20, lambda _: put_large(database, "hot")) == 9
    get(database, "hot")  # reads and writes have limits of their own
    with pytest.raises(error) as raised:
        put(database, "hot")
    assert reason_of(raised.value) == [("TableWriteKeyRangeThroughputExceeded", ARN)]
    text = "current capacity" if error is ThrottlingException else "configured provisioned throughput"
    assert text in str(raised.value)


def test_a_partition_that_stays_hot_splits_between_two_keys(database: Database, clock: ManualClock) -> None:
    create(database, **provisioned(1_000, 3_000))
    keys = [key_in(0, 6), key_in(1, 6)]  # both in the first of three partitions
    passed = []
    clock.advance(300)
    for _ in range(65):
        passed.append(sum([passing(10, partial(put_number, database, key)) for key in keys]))
        clock.advance(1)
    assert passed == [10] * 61 + [20] * 4


@pytest.mark.parametrize(
    ("indexes", "key", "at_last"),
    [
        ({}, lambda number: f"{number % 2}", 2_000),
        ({}, lambda number: f"{number:09}", 1_000),  # each key is above those before it
        (
            {
                "LocalSecondaryIndexes": [index_on("by-lk", "pk, lk")]
            },
            lambda number: f"{number % 2}",
            1_000,
        ),
    ],
    ids=["two items", "rising sort keys", "local index"],
)
def test_a_hot_item_collection_splits_unless_it_cannot(
    database: Database,
    clock: ManualClock,
    indexes: dict[str, Any],
    key: Callable[[int], str],
    at_last: int,
) -> None:
    create_sorted(database, **indexes)
    numbers = count()

    def second() -> int:
        units = 0
        for _ in range(30):
            try:
                put_large(database, "a", sk=key(next(numbers)))
                units += UNITS
            except ThrottlingException:
                pass
        clock.advance(1)
        return units

    assert second() == 1_000
    for _ in range(150):
        second()
    assert second() == at_last


def index(units: int | None = None, key: str = "status") -> dict[str, Any]:
    made: dict[str, Any] = {
        "IndexName": "by-status",
        "KeySchema": [{"AttributeName": key, "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    if units is not None:
        made |= provisioned(1, units)
    return {
        "GlobalSecondaryIndexes": [made],
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in ("pk", key)],
    }


def test_an_index_that_is_too_small_throttles_writes_of_its_table(database: Database) -> None:
    create(database, **provisioned(100, 100), **index(5))
    assert passing(10, lambda n: put(database, f"item{n}", status="open")) == 5
    with pytest.raises(ProvisionedThroughputExceededException) as raised:
        put(database, "another", status="open")
    assert reason_of(raised.value) == [
        ("IndexWriteProvisionedThroughputExceeded", f"{ARN}/index/by-status")
    ]
    assert "global secondary indexes" in str(raised.value)
    get(database, "another")
    scan = {"TableName": "orders", "Select": "COUNT"}
    assert database.execute("Scan", scan)["Count"] == 5  # nothing of a throttled write was made
    put(database, "without")  # it has no entry in the index


@pytest.mark.parametrize("delay", [0.0, 5.0])
def test_a_hot_partition_of_an_index_throttles_writes_that_are_spread_in_the_table(
    clock: ManualClock, delay: float
) -> None:
    settings = Settings(throttle=True, gsi_delay_seconds=delay)
    with Database.in_memory(settings=settings, clock=clock) as database:
        create(database, **ON_DEMAND, **index())
        passed = passing(50, lambda n: put(database, f"item{n}", x=LARGE, status="open"))
        assert passed == 10
        with pytest.raises(ThrottlingException) as raised:
            put(database, "another", status="open")
        assert ("IndexWriteKeyRangeThroughputExceeded", f"{ARN}/index/by-status") in reason_of(raised.value)
        put(database, "another", status="closed")


def test_reads_of_an_index_use_its_own_throughput(database: Database) -> None:
    create(database, **provisioned(100, 100), **index(100))
    put(database, "a", status="open")
    query = {
        "TableName": "orders",
        "IndexName": "by-status",
        "KeyConditionExpression": "#s = :s",
        "ExpressionAttributeNames": {"#s": "status"},
        "ExpressionAttributeValues": {":s": {"S": "open"}},
    }
    assert passing(10, lambda _: database.execute("Query", query)) == 2  # half a unit each
    with pytest.raises(ProvisionedThroughputExceededException) as raised:
        database.execute("Query", query)
    assert reason_of(raised.value) == [("IndexReadProvisionedThroughputExceeded", f"{ARN}/index/by-status")]
    get(database, "a")


def test_a_maximum_of_on_demand_throughput(database: Database, clock: ManualClock) -> None:
    create(database, **ON_DEMAND, OnDemandThroughput={"MaxReadRequestUnits": 2, "MaxWriteRequestUnits": 3})
    assert passing(10, lambda n: put(database, str(n))) == 3
    with pytest.raises(ThrottlingException) as raised:
        put(database, "4")
    text = "Throughput exceeds the maximum OnDemandThroughput configured on table or index"
    assert str(raised.value) == text
    assert reason_of(raised.value) == [("TableWriteMaxOnDemandThroughputExceeded", ARN)]
    clock.advance(10)
    assert passing(10, lambda n: put(database, str(n))) == 3
    assert passing(10, lambda n: get(database, str(n))) == 2


def test_the_limit_of_the_account(database: Database) -> None:
    create(
        database,
        **ON_DEMAND,
        WarmThroughput={"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 50_000},
    )
    keys = [key_in(part, 50) for part in range(50)]
    assert passing(500, lambda n: put_large(database, keys[n % 50])) * UNITS == 40_000
    with pytest.raises(RequestLimitExceeded) as raised:
        put(database, "a")
    assert reason_of(raised.value) == [("TableWriteAccountLimitExceeded", ARN)]


def test_a_large_request_passes_while_there_is_anything_and_leaves_a_debt(
    database: Database, clock: ManualClock
) -> None:
    create(database, **provisioned(5, 10))
    put_large(database, "a")
    for _ in range(9):
        clock.advance(1)
        assert passing(1, lambda _: put(database, "b")) == 0
    clock.advance(1)
    assert passing(20, lambda _: put(database, "b")) == 10


def test_transactions_cost_double_and_are_cancelled(database: Database, clock: ManualClock) -> None:
    create(database, **provisioned(10, 4))
    writes = [{"Put": {"TableName": "orders", "Item": {"pk": {"S": pk}}}} for pk in ("a", "b")]
    database.execute("TransactWriteItems", {"TransactItems": writes})
    with pytest.raises(TransactionCanceledException) as raised:
        database.execute("TransactWriteItems", {"TransactItems": writes})
    reasons = raised.value.members["CancellationReasons"]
    assert {reason["Code"] for reason in reasons} == {"ProvisionedThroughputExceeded"}
    clock.advance(1)
    database.execute("TransactWriteItems", {"TransactItems": writes})
    assert passing(10, lambda _: put(database, "c")) == 0

    gets = [{"Get": {"TableName": "orders", "Key": {"pk": {"S": pk}}}} for pk in ("a", "b")]
    for _ in range(5):  # 4 units each, of 10 a second in two seconds
        database.execute("TransactGetItems", {"TransactItems": gets})
    with pytest.raises(TransactionCanceledException):
        database.execute("TransactGetItems", {"TransactItems": gets})


def test_a_transaction_names_the_member_whose_key_is_hot(database: Database) -> None:
    create(database, **ON_DEMAND)
    hot, cold = key_in(0, 4), key_in(3, 4)
    assert passing(20, lambda _: put_large(database, hot)) == 10
    writes = [{"Put": {"TableName": "orders", "Item": {"pk": {"S": pk}}}} for pk in (cold, hot)]
    with pytest.raises(TransactionCanceledException) as raised:
        database.execute("TransactWriteItems", {"TransactItems": writes})
    codes = [reason["Code"] for reason in raised.value.members["CancellationReasons"]]
    assert codes == ["None", "ThrottlingError"]
    put(database, cold)


def test_a_batch_returns_what_was_not_done_and_fails_if_nothing_was(
    database: Database, clock: ManualClock
) -> None:
    create(database, **provisioned(2, 3))
    puts = [{"PutRequest": {"Item": {"pk": {"S": str(n)}}}} for n in range(5)]
    batch = {"RequestItems": {"orders": puts}}
    answer = database.execute("BatchWriteItem", batch)
    assert answer["UnprocessedItems"] == {"orders": puts[3:]}
    with pytest.raises(ProvisionedThroughputExceededException) as raised:
        database.execute("BatchWriteItem", batch)
    assert reason_of(raised.value) == [("TableWriteProvisionedThroughputExceeded", ARN)]
    clock.advance(1)
    answer = database.execute("BatchWriteItem", {"RequestItems": answer["UnprocessedItems"]})
    assert answer["UnprocessedItems"] == {}

    keys = [{"pk": {"S": str(n)}} for n in range(6)]
    answer = database.execute("BatchGetItem", {"RequestItems": {"orders": {"Keys": keys}}})
    assert answer["UnprocessedKeys"] == {}
    answer = database.execute("BatchGetItem", {"RequestItems": {"orders": {"Keys": keys}}})
    assert answer["UnprocessedKeys"]["orders"]["Keys"] == keys[2:]
    with pytest.raises(ProvisionedThroughputExceededException):
        database.execute("BatchGetItem", {"RequestItems": {"orders": {"Keys": keys}}})


def test_a_write_that_its_condition_refuses_is_charged_and_a_wrong_request_is_not(database: Database) -> None:
    create(database, **provisioned(5, 3))
    refused = {
        "TableName": "orders",
        "Item": {"pk": {"S": "a"}},
        "ConditionExpression": "attribute_exists(pk)",
    }
    with pytest.raises(ConditionalCheckFailedException):
        database.execute("PutItem", refused)
    for _ in range(5):
        with pytest.raises(ServiceError, match="Type mismatch"):
            database.execute("PutItem", {"TableName": "orders", "Item": {"pk": {"N": "1"}}})
    assert passing(10, lambda n: put(database, str(n))) == 2
    with pytest.raises(ProvisionedThroughputExceededException):
        database.execute("PutItem", refused)


def test_statements_and_scans_are_throttled_too(database: Database) -> None:
    create(database, **provisioned(1, 5))
    put(database, "a")
    statement = {"Statement": "SELECT * FROM orders WHERE pk = 'a'"}
    assert passing(10, lambda _: database.execute("ExecuteStatement", statement)) == 2
    with pytest.raises(ProvisionedThroughputExceededException):
        database.execute("Scan", {"TableName": "orders"})
    insert = "INSERT INTO orders VALUE {'pk': '%s'}"
    done = passing(10, lambda n: database.execute("ExecuteStatement", {"Statement": insert % n}))
    assert done == 4


def test_a_change_of_the_throughput_counts_at_once(database: Database, clock: ManualClock) -> None:
    create(database, **provisioned(5, 5))
    assert passing(50, lambda n: put(database, str(n))) == 5
    database.execute("UpdateTable", {"TableName": "orders", **provisioned(5, 20)})
    assert passing(50, lambda n: put(database, str(n))) == 15
    clock.advance(1)
    database.execute("UpdateTable", {"TableName": "orders", **provisioned(5, 2)})
    clock.advance(10_000)
    assert passing(5_000, lambda n: put(database, str(n))) == 2 * 301


def test_a_table_has_its_own_setting(clock: ManualClock) -> None:
    with Database.in_memory(clock=clock) as database:
        create(database, **provisioned(1, 1))
        assert database.observers.active is None
        database.lab.throttling.set(True, "orders")
        assert passing(10, lambda n: put(database, str(n))) == 1
        database.lab.throttling.set(False, "orders")
        assert database.observers.active is None
        database.lab.throttling.set(True)
        assert passing(10, lambda n: put(database, str(n))) == 10
        database.lab.throttling.set(None, "orders")
        assert passing(10, lambda n: put(database, str(n))) == 0


def test_an_empty_table_that_takes_the_place_of_a_deleted_one_begins_anew(database: Database) -> None:
    create(database, **provisioned(5, 5))
    assert passing(10, lambda n: put(database, str(n))) == 5
    database.execute("DeleteTable", {"TableName": "orders"})
    create(database, **provisioned(5, 5))
    assert passing(10, lambda n: put(database, str(n))) == 5
