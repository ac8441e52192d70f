"""What a meter counts, in process and over HTTP; what it costs; and the advice that follows from it."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import boto3
import pytest
from botocore.config import Config

from endpoints import REGION
from hashrange import client as in_process
from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.faults import throttle
from hashrange.prices import published
from hashrange.server import running
from hashrange_lab.money import meter
from hashrange_lab.money.advice import advise, filtered_attribute
from hashrange_lab.money.agents import tag
from hashrange_lab.money.counts import Counted, Usage
from hashrange_lab.money.statement import Statement
from hashrange_lab.money.stored import stored
from watched import Clients, create
from worlds import recovery_of, table_of

KEY: Any = {"pk": {"S": "a"}, "sk": {"N": "1"}}
ITEM: Any = KEY | {"date": {"S": "2026-01-01"}, "text": {"S": "x" * 1_500}}
US_EAST = published().region("us-east-1")


@pytest.fixture
def counting(database: Database) -> meter.Meter:
    return meter.begin(database, published())


def rows(counted: Counted) -> dict[tuple[str, str], tuple[int, float, float]]:
    """Requests, read and write units, by operation and index."""
    return {
        (row.operation, row.index): (row.requests, row.read_units, row.write_units) for row in counted.rows
    }


def fill(client: Any, number: int) -> None:
    for place in range(number):
        item = ITEM | {"sk": {"N": str(place)}, "status": {"S": "open" if place % 20 == 0 else "done"}}
        client.put_item(TableName="orders", Item=item)


def test_nothing_is_watched_without_a_meter(database: Database) -> None:
    assert meter.running(database) is None
    begun = meter.begin(database, published())
    assert meter.running(database) is begun is meter.begin(database, published())
    assert database.observers.active is not None
    meter.end(database)
    meter.end(database)
    assert meter.running(database) is None
    assert database.observers.active is None


def test_rows_by_operation_and_index(client: Any, counting: meter.Meter) -> None:
    client.put_item(TableName="orders", Item=ITEM)
    client.get_item(TableName="orders", Key=KEY)
    client.get_item(TableName="orders", Key=KEY, ConsistentRead=True)
    values: Any = {":d": {"S": "2026-01-01"}}
    client.query(
        TableName="orders",
        IndexName="by-date",
        KeyConditionExpression="#d = :d",
        ExpressionAttributeNames={"#d": "date"},
        ExpressionAttributeValues=values,
    )
    client.execute_statement(Statement="SELECT * FROM orders WHERE pk = 'a' AND sk = 1")
    client.list_tables()
    counted = counting.counted("us-east-1")
    assert rows(counted) == {
        ("PutItem", ""): (1, 0, 2),
        ("PutItem", "by-date"): (0, 0, 2),
        ("GetItem", ""): (2, 1.5, 0),
        ("Query", "by-date"): (1, 0.5, 0),
        ("ExecuteStatement", ""): (1, 0.5, 0),
    }
    assert {pattern.text for pattern in counted.patterns} == {
        "", "date = :d", "SELECT * FROM orders WHERE pk = ? AND sk = ?",
    }  # fmt: skip


def test_transactions_batches_and_conditions_that_fail(client: Any, counting: meter.Meter) -> None:
    client.transact_write_items(TransactItems=[{"Put": {"TableName": "orders", "Item": KEY}}])
    client.batch_get_item(RequestItems={"orders": {"Keys": [KEY], "ConsistentRead": True}})
    with pytest.raises(client.exceptions.ConditionalCheckFailedException):
        client.put_item(TableName="orders", Item=KEY, ConditionExpression="attribute_not_exists(pk)")
    counted = counting.counted("us-east-1")
    assert rows(counted) == {
        ("TransactWriteItems", ""): (1, 0, 2),
        ("BatchGetItem", ""): (1, 1, 0),
        ("PutItem", ""): (1, 0, 1),
    }
    by_operation = {pattern.operation: pattern for pattern in counted.patterns}
    assert by_operation["TransactWriteItems"].members == 1
    assert by_operation["BatchGetItem"].consistent == 1
    assert by_operation["PutItem"].text == "if attribute_not_exists(pk)"


def test_programs_are_told_apart_by_their_app_ids(database: Database, counting: meter.Meter) -> None:
    table = in_process.connect(database, region=REGION)
    create(table, "orders")
    ask(database, "checkout")
    ask(database, None)
    callers = {row.caller: row.requests for row in counting.counted("us-east-1").rows}
    assert callers == {"checkout": 1, "Boto3": 1}


def ask(database: Database, app: str | None) -> None:
    named: Any = {} if app is None else {"user_agent_appid": app}
    config = Config(retries={"total_max_attempts": 1, "mode": "standard"}, **named)
    with running(database) as endpoint:
        client = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id="any",
            aws_secret_access_key="any",
            config=config,
        )
        client.get_item(TableName="orders", Key=KEY)
        client.close()


@pytest.mark.parametrize(
    ("agent", "expected"),
    [
        ("Boto3/1.40.1 md/Botocore#1.40.1 ua/2.1 os/linux app/checkout", "checkout"),
        ("app/x aws-sdk-js/3.1", "x"),
        ("aws-sdk-java/2.20.1 Linux/5.10", "aws-sdk-java"),
        ("aws-cli/2.1 md/app/x", "aws-cli"),
        ("", "unknown"),
        ("/ ;", "unknown"),
        ("app/" + "x" * 200, "x" * 60),
    ],
)
def test_the_tag_of_a_user_agent(agent: str, expected: str) -> None:
    assert tag(agent) == expected


def test_the_attribute_of_a_filter() -> None:
    assert filtered_attribute("p = :p; filter status = :s AND b = :b") == "status"
    assert filtered_attribute("filter contains(a, :a)") == ""
    assert filtered_attribute("p = :p") == ""


def test_minutes_and_throttled_requests(client: Any, database: Database, counting: meter.Meter) -> None:
    clock = database.clock
    assert isinstance(clock, VirtualClock)
    client.put_item(TableName="orders", Item=ITEM)
    clock.advance(60)
    client.get_item(TableName="orders", Key=KEY)
    database.faults.add(throttle("GetItem"))
    with pytest.raises(client.exceptions.ProvisionedThroughputExceededException):
        client.get_item(TableName="orders", Key=KEY)
    database.faults.add("BatchGetItem unprocessed")
    keys: Any = [KEY, KEY | {"sk": {"N": "2"}}]
    assert client.batch_get_item(RequestItems={"orders": {"Keys": keys}})["UnprocessedKeys"]
    series = {part.index: part.minutes for part in counting.counted("us-east-1").series}
    shown = [(minute.at, minute.reads, minute.writes, minute.throttled) for minute in series[""]]
    assert shown == [(1_767_225_600, 0, 2, 0), (1_767_225_660, 1, 0, 2)]
    assert [minute.writes for minute in series["by-date"]] == [2]


def test_the_memory_is_bounded(
    client: Any, database: Database, counting: meter.Meter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meter, "PATTERNS_MAX", 3)
    monkeypatch.setattr(meter, "ROWS_MAX", 1)
    monkeypatch.setattr(meter, "PLACES_MAX", 1)
    for number in range(10):
        client.scan(TableName="orders", FilterExpression=f"attribute_exists(attribute{number})")
        client.put_item(TableName="orders", Item=ITEM)
    counted = counting.counted("us-east-1")
    assert len(counted.patterns) <= 3 + 2
    assert counted.folded == 8
    assert len(counted.rows) <= 3
    assert len(counted.series) == 1
    # Nothing is lost but its name.
    # (the entry of the index changes with the first put only)
    assert sum(row.write_units for row in counted.rows) == 22
    assert sum(pattern.requests for pattern in counted.patterns) == 20
    counting.reset()
    assert counting.counted("us-east-1").rows == []


def test_a_statement_prices_what_was_counted(client: Any, counting: meter.Meter) -> None:
    fill(client, 10)
    client.get_item(TableName="orders", Key=KEY, ConsistentRead=True)
    statement = Statement(counting.counted("us-east-1"), US_EAST)
    table, index = statement.lines(("index",))
    assert {table.names, index.names} == {("",), ("by-date",)}
    total = statement.total
    assert (total.requests, total.read_units, total.write_units) == (11, 1, 40)
    assert total.total.amount == Decimal("0.000000125") + 40 * Decimal("0.000000625")
    assert [line.names for line in statement.lines()] == [("orders", "PutItem"), ("orders", "GetItem")]
    [storage] = statement.monthly()
    assert storage.what == "storage"
    # 10 items and 10 entries, each with 100 bytes more than its own
    assert 20 * 1_600 < storage.cost.amount / Decimal("0.25") * 1024**3 < 20 * 1_700


def test_a_price_that_is_missing_is_named(client: Any, counting: meter.Meter) -> None:
    fill(client, 1)
    statement = Statement(counting.counted("us-east-1"), published().region("eu-west-3"))
    assert statement.total.total.missing == {"write_requests"}
    assert str(statement.total.total) == "no price"


def test_recovery_is_billed_without_global_indexes_and_replicas_cost_storage(
    client: Any, database: Database
) -> None:
    """Source: docs/load.md. Each item here has 20 bytes, and so has each of its entries."""
    local, everywhere = {"local": "pk, l"}, {"global": "l"}
    of_both: Any = {"local_indexes": local, "indexes": everywhere}
    client.create_table(**table_of("indexed", "pk, sk", **of_both, stream="NEW_AND_OLD_IMAGES"))
    item = {"pk": {"S": "aaaaa"}, "sk": {"S": "bbbbb"}, "l": {"S": "ccccc"}}
    client.put_item(TableName="indexed", Item=item)

    def billed() -> tuple[int, int]:
        every_table = database.engine.read(lambda reader: stored(reader, 9))
        [found] = [one for one in every_table if one.table == "indexed"]
        return found.bytes_, found.recovery_bytes

    assert billed() == (3 * (20 + 100), 0)
    client.update_continuous_backups(**recovery_of("indexed"))
    assert billed() == (3 * (20 + 100), 2 * (20 + 100))
    client.update_table(TableName="indexed", ReplicaUpdates=[{"Create": {"RegionName": "eu-west-1"}}])
    database.settle()
    assert billed() == (3 * (20 + 100) + 48, 2 * (20 + 100) + 48)


def test_a_month_at_the_same_rate(client: Any, database: Database, counting: meter.Meter) -> None:
    fill(client, 1)
    clock = database.clock
    assert isinstance(clock, VirtualClock)
    clock.advance(599)
    statement = Statement(counting.counted("us-east-1"), US_EAST)
    assert statement.a_month(statement.total.total) is None
    clock.advance(3_600 - 599)
    statement = Statement(counting.counted("us-east-1"), US_EAST)
    a_month = statement.a_month(statement.total.total)
    assert a_month is not None
    assert a_month.amount == 730 * statement.total.total.amount


def test_provisioned_tables_cost_by_the_hour(client: Any, counting: meter.Meter) -> None:
    client.create_table(
        TableName="fixed",
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        ProvisionedThroughput={"ReadCapacityUnits": 10, "WriteCapacityUnits": 2},
    )
    [provisioned] = Statement(counting.counted("us-east-1"), US_EAST).monthly()
    assert provisioned.what == "provisioned: 10 read, 2 write units"
    assert provisioned.cost.amount == 730 * (10 * Decimal("0.00013") + 2 * Decimal("0.00065"))


def advice_of(counting: meter.Meter) -> dict[str, Any]:
    return {piece.kind: piece for piece in advise(Statement(counting.counted("us-east-1"), US_EAST))}


def test_advice_on_requests_that_read_more_than_they_return(client: Any, counting: meter.Meter) -> None:
    fill(client, 40)
    names, values = {"#s": "status"}, {":s": {"S": "open"}, ":p": {"S": "a"}}
    for _ in range(10):
        client.query(
            TableName="orders",
            KeyConditionExpression="pk = :p",
            FilterExpression="#s = :s",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues=values,
        )
        client.scan(
            TableName="orders",
            FilterExpression="#s = :s",
            ExpressionAttributeNames=names,
            ExpressionAttributeValues={":s": {"S": "open"}},
        )
    advice = advice_of(counting)
    query, scan = advice["waste"], advice["scan"]
    assert query.text.startswith(
        "Query on orders (pk = :p; filter status = :s) reads 20 times what it returns. "
        "A global index with the sort key status would not have paid: it would have cost at most $0.000050"
    )
    assert query.basis.startswith("10 requests read 400 items and returned 20; they cost 75 read units, $")
    assert query.saved.amount == 75 * Decimal("0.95") * Decimal("0.000000125")
    assert "A global index on status" in scan.text
    assert advice["unread index"].text == "The index by-date of orders was written and never read."
    assert advice["unread index"].saved.amount == 80 * Decimal("0.000000625")


def test_advice_on_consistent_reads_and_single_transactions(client: Any, counting: meter.Meter) -> None:
    for number in range(10):
        item = KEY | {"sk": {"N": str(number)}}
        client.transact_write_items(TransactItems=[{"Put": {"TableName": "orders", "Item": item}}])
        client.get_item(TableName="orders", Key=KEY, ConsistentRead=True)
        client.get_item(TableName="orders", Key=KEY)
    advice = advice_of(counting)
    consistent = advice["consistent reads"]
    assert "67% of the read units of orders are theirs" in consistent.text
    assert consistent.basis == "10 requests with ConsistentRead cost 10 of 15 read units."
    assert consistent.saved.amount == 5 * Decimal("0.000000125")
    assert advice["transactions"].saved.amount == 10 * Decimal("0.000000625")


def test_advice_on_items_that_are_a_little_too_large(client: Any, counting: meter.Meter) -> None:
    # A key and names of 15 bytes, and 2,058 for the text: 25 more than 2 KB
    for number in range(10):
        item = KEY | {"sk": {"N": str(number + 1)}, "text": {"S": "x" * 2_058}}
        client.put_item(TableName="orders", Item=item)
    size = advice_of(counting)["item size"]
    assert size.text == (
        "Items of orders average 2.0 KB: 22 bytes less would save a third of the write units of an average "
        "item."
    )
    assert "which is 3 write units; 2 hold 2,048. Writes cost 30 units." in size.basis
    assert size.saved.amount == 10 * Decimal("0.000000625")


def test_rare_requests_give_no_advice(client: Any, counting: meter.Meter) -> None:
    fill(client, 9)
    for _ in range(9):
        client.scan(TableName="orders", ConsistentRead=True)
    assert advice_of(counting).keys() <= {"unread index"}


def test_advice_on_retries(counting: meter.Meter) -> None:
    counted = counting.counted("us-east-1")
    counted.rows = [Usage("orders", "", "PutItem", "x", 20, 0, 40, retried=15)]
    [piece] = advise(Statement(counted, US_EAST))
    assert piece.text.startswith("Repeated attempts consume 38% of the units of orders")
    assert piece.basis == "15 of 40 units are those of second and later attempts."


def test_repeated_attempts_are_counted(
    clients: Clients, client: Any, database: Database, counting: meter.Meter
) -> None:
    from hashrange.faults import lose_answer

    database.faults.add(lose_answer("PutItem").on_call(1))
    clients(attempts=3).put_item(TableName="orders", Item=ITEM)
    assert sum(row.retried for row in counting.counted("us-east-1").rows) == 2
