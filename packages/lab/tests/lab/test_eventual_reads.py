"""Reads without ConsistentRead show the tables as they were some time ago, on all engines alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

import postgres
from hashrange.clock import ManualClock
from hashrange.database import Caller, Database
from hashrange.operations import REGISTRY
from hashrange.server import running
from hashrange.settings import Settings
from hashrange.tables.definitions import catalog
from hashrange_postgres import PostgresEngine
from worlds import table_of

FIXED = Settings(eventual_reads="2")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture(params=["memory", "disk", "postgres"])
def database(request: pytest.FixtureRequest, clock: ManualClock, tmp_path: Path) -> Iterator[Database]:
    if request.param == "memory":
        opened = Database.in_memory(settings=FIXED, clock=clock)
    elif request.param == "disk":
        opened = Database.open(tmp_path / "data", settings=FIXED, clock=clock)
    else:
        url = request.getfixturevalue("postgres_url")
        opened = Database(PostgresEngine(url, schema=postgres.new_schema()), settings=FIXED, clock=clock)
    with opened:
        create(opened)
        yield opened


def create(database: Database, name: str = "orders") -> None:
    database.execute("CreateTable", table_of(name, "pk, sk", indexes={"by-status": "status"}))


def key(sk: str = "a") -> dict[str, Any]:
    return {"pk": {"S": "p"}, "sk": {"S": sk}}


def put(database: Database, sk: str = "a", status: str = "open", table: str = "orders") -> None:
    database.execute("PutItem", {"TableName": table, "Item": {**key(sk), "status": {"S": status}}})


def query(
    database: Database, *, consistent: bool = False, reverse: bool = False, **members: Any
) -> list[tuple[str, str]]:
    request = {
        "TableName": "orders",
        "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "p"}},
        "ScanIndexForward": not reverse,
        "ConsistentRead": consistent,
    }
    return seen(database.execute("Query", request | members))


def seen(answer: dict[str, Any]) -> list[tuple[str, str]]:
    items = orjson.loads(orjson.dumps(answer))["Items"]
    return [(item["sk"]["S"], item["status"]["S"]) for item in items]


def by_status(database: Database, status: str) -> list[tuple[str, str]]:
    return query(
        database,
        IndexName="by-status",
        KeyConditionExpression="#s = :p",
        ExpressionAttributeNames={"#s": "status"},
        ExpressionAttributeValues={":p": {"S": status}},
    )


READS: dict[str, Callable[[Database], list[tuple[str, str]]]] = {
    "Query": query,
    "Scan": lambda database: seen(database.execute("Scan", {"TableName": "orders"})),
    "index": lambda database: by_status(database, "open") + by_status(database, "closed"),
    "ExecuteStatement": lambda database: seen(
        database.execute("ExecuteStatement", {"Statement": "SELECT * FROM orders WHERE pk = 'p'"})
    ),
    "BatchGetItem": lambda database: seen(
        {
            "Items": database.execute(
                "BatchGetItem", {"RequestItems": {"orders": {"Keys": [key("a"), key("b")]}}}
            )["Responses"]["orders"]
        }
    ),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS.keys())
def test_a_read_shows_what_was_two_seconds_ago(
    database: Database, clock: ManualClock, read: Callable[[Database], list[tuple[str, str]]]
) -> None:
    put(database, "a")
    assert read(database) == []
    assert query(database, consistent=True) == [("a", "open")]
    clock.advance(1)
    put(database, "a", "closed")
    put(database, "b")
    assert read(database) == []
    clock.advance(1)
    assert read(database) == [("a", "open")]
    clock.advance(1)
    assert sorted(read(database)) == [("a", "closed"), ("b", "open")]
    database.execute("DeleteItem", {"TableName": "orders", "Key": key("a")})
    assert sorted(read(database)) == [("a", "closed"), ("b", "open")]
    clock.advance(2)
    assert read(database) == [("b", "open")]


def test_what_must_be_consistent_is(database: Database) -> None:
    put(database)
    get = {"TableName": "orders", "Key": key()}
    assert "Item" not in database.execute("GetItem", get)
    assert "Item" in database.execute("GetItem", get | {"ConsistentRead": True})
    assert database.execute("TransactGetItems", {"TransactItems": [{"Get": get}]})["Responses"] != [{}]
    count = {"UpdateExpression": "ADD n :one", "ExpressionAttributeValues": {":one": {"N": "1"}}}
    for expected in ("1", "2"):
        answer = database.execute("UpdateItem", get | count | {"ReturnValues": "UPDATED_NEW"})
        assert answer["Attributes"] == {"n": {"N": expected}}
    assert "Item" not in database.execute("GetItem", get)


def test_a_batch_asks_for_the_present_of_some_tables(database: Database) -> None:
    create(database, "others")
    put(database)
    put(database, table="others")
    wanted = {"orders": {"Keys": [key()]}, "others": {"Keys": [key()], "ConsistentRead": True}}
    answer = database.execute("BatchGetItem", {"RequestItems": wanted})
    assert {name: len(items) for name, items in answer["Responses"].items()} == {"orders": 0, "others": 1}


def test_a_transaction_is_seen_as_a_whole(database: Database, clock: ManualClock) -> None:
    puts = [
        {"Put": {"TableName": "orders", "Item": {**key(sk), "status": {"S": "open"}}}} for sk in ("a", "b")
    ]
    database.execute("TransactWriteItems", {"TransactItems": puts})
    clock.advance(1.999)
    assert query(database) == []
    clock.advance(0.002)
    assert query(database) == [("a", "open"), ("b", "open")]
    assert query(database, reverse=True) == [("b", "open"), ("a", "open")]


def test_a_read_that_takes_long_shows_one_moment(database: Database, clock: ManualClock) -> None:
    table = database.engine.read(lambda reader: catalog.open_active(reader, "orders", ""))
    active = database.observers.active
    assert active is not None
    body = database.lab.eventual.body(
        active.begin("Scan", {"TableName": "orders"}, Caller()),
        lambda reader: [record for _, _, record in reader.scan_space(table.space)],
        REGISTRY["Scan"],
    )
    clock.advance(1)
    put(database)
    assert database.engine.read(body) == []
    clock.advance(5)
    put(database, "b")
    assert database.engine.read(body) == []


def test_a_write_that_fails_changes_nothing_that_is_seen(database: Database, clock: ManualClock) -> None:
    put(database)
    clock.advance(2)
    refused = {"TableName": "orders", "Item": key(), "ConditionExpression": "attribute_not_exists(pk)"}
    with pytest.raises(Exception, match="conditional request failed"):
        database.execute("PutItem", refused)
    assert query(database) == [("a", "open")]


def test_pages_and_limits_count_what_is_seen(database: Database, clock: ManualClock) -> None:
    for sk in "abcdef":
        put(database, sk)
    clock.advance(2)
    for sk in "ace":
        database.execute("DeleteItem", {"TableName": "orders", "Key": key(sk)})
    put(database, "g")
    found = []
    start: dict[str, Any] = {}
    while True:
        request = {"TableName": "orders", "Limit": 2, **start}
        answer = database.execute("Scan", request)
        found += [sk for sk, _ in seen(answer)]
        if "LastEvaluatedKey" not in answer:
            break
        start = {"ExclusiveStartKey": answer["LastEvaluatedKey"]}
    assert found == list("abcdef")


def lags(settings: Settings, reads: int = 60, *, step: float = 0.25) -> list[float]:
    """How old the states are that a caller sees, one read after the other, while writes go on."""
    clock = ManualClock(1_000_000)
    with Database.in_memory(settings=settings, clock=clock) as database:
        create(database)
        found = []
        for number in range(reads):
            put(database, "a", str(number))
            caller = Caller(access_key="a")
            request = {"TableName": "orders", "Key": key()}
            item = database.execute("GetItem", request, caller).get("Item")
            if item is not None:
                status = orjson.loads(orjson.dumps(item))["status"]["S"]
                found.append((number - int(status)) * step)
            clock.advance(step)
        return found


def test_lags_are_drawn_from_a_seed() -> None:
    drawn = lags(Settings(eventual_reads="2 seed=7"))
    assert drawn == lags(Settings(eventual_reads="2 seed=7"))
    assert drawn != lags(Settings(eventual_reads="2 seed=8"))
    assert drawn == lags(Settings(eventual_reads="2s seed=7"))
    assert len(set(drawn)) > 4
    assert max(drawn) <= 2
    grown = [later - earlier for earlier, later in pairwise(drawn)]
    assert max(grown) > 0.25  # a state was seen that is older than one that was seen before


@given(seed=st.integers(0, 1_000))
def test_no_client_goes_back_if_reads_are_monotonic(seed: int) -> None:
    settings = Settings(eventual_reads=f"2 seed={seed} monotonic")
    drawn = lags(settings, 30)
    grown = [later - earlier for earlier, later in pairwise(drawn)]
    assert max(grown) <= 0.25


def test_fixed_lags_are_those_of_the_setting() -> None:
    assert set(lags(FIXED)) == {2.0}


def test_reads_are_of_the_present_again_when_it_ends(database: Database) -> None:
    put(database)
    assert query(database) == []
    database.lab.eventual.set(0)
    assert database.observers.active is None
    assert query(database) == [("a", "open")]
    with pytest.raises(ValueError, match="0 seconds or more"):
        database.lab.eventual.set(-1)


def test_a_clock_that_is_set_back_hides_nothing_for_long(database: Database, clock: ManualClock) -> None:
    put(database)
    clock.advance(-3_600)
    assert query(database) == [("a", "open")]
    put(database, "b")
    assert query(database) == [("a", "open")]
    clock.advance(2)
    assert query(database) == [("a", "open"), ("b", "open")]


def test_it_works_beside_throttling_and_a_delay_of_indexes(clock: ManualClock) -> None:
    settings = Settings(eventual_reads="2", gsi_delay_seconds=5, throttle=True)
    with Database.in_memory(settings=settings, clock=clock) as database:
        create(database)
        put(database)
        clock.advance(3)
        database.settle()
        assert query(database) == [("a", "open")]
        assert by_status(database, "open") == []
        clock.advance(2)
        database.settle()
        assert by_status(database, "open") == [("a", "open")]


@pytest.mark.parametrize("text", ["-1", "2 monoton", "seed=7", "2 seed=", "two"])
def test_a_lag_of_another_form_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a lag of reads"):
        Settings(eventual_reads=text)


def test_a_server_shows_the_past_as_well(database: Database, clock: ManualClock) -> None:
    # (on PostgreSQL the bodies of a server run again when records are missing, which those in process do not)
    with running(database) as endpoint:
        client = boto3.client("dynamodb", endpoint_url=endpoint, region_name="us-east-1",
                              aws_access_key_id="any", aws_secret_access_key="any")  # fmt: skip
        put(database)
        clock.advance(10)
        for status in ("paid", "sent"):
            client.update_item(
                TableName="orders",
                Key=key(),
                UpdateExpression="SET #s = :s",
                ExpressionAttributeNames={"#s": "status"},
                ExpressionAttributeValues={":s": {"S": status}},
            )
            clock.advance(0.75)

        def statuses() -> list[str]:
            got = [
                client.get_item(TableName="orders", Key=key(), ConsistentRead=consistent)["Item"]
                for consistent in (False, True)
            ]
            got += client.scan(TableName="orders")["Items"]
            got += client.scan(TableName="orders", IndexName="by-status")["Items"]
            return [item["status"]["S"] for item in got]

        assert statuses() == ["open", "sent", "open", "open"]
        clock.advance(0.75)
        assert statuses() == ["paid", "sent", "paid", "paid"]
        clock.advance(2)
        assert statuses() == ["sent"] * 4
        client.close()
