"""What requests cost, in process and over HTTP: the records, the assertions, and their tables."""

from __future__ import annotations

import re
import textwrap
from decimal import Decimal
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ConnectionClosedError

from endpoints import REGION
from hashrange.costs import Costs, Record, show
from hashrange.database import Database
from hashrange.faults import latency, lose_answer, throttle, unprocessed
from hashrange.prices import published
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from hashrange_engine_tests.reruns import Reruns
from plugin_runs import run_pytest, run_pytest_in_a_process
from unit.test_bills import REQUESTS, made
from vector_tables import index_of, listed
from watched import Clients, create
from worlds import table_of

KEY = {"pk": {"S": "a"}, "sk": {"N": "1"}}
GET = {"TableName": "orders", "Key": KEY}
ITEM = KEY | {"date": {"S": "2026-01-01"}, "text": {"S": "x" * 3_000}}
PUT = {"TableName": "orders", "Item": ITEM}


def fill(client: Any, items: int) -> None:
    for number in range(items):
        changing = {"sk": {"N": str(number)}, "text": {"S": "x" * 100}, "paid": {"BOOL": number < 2}}
        client.put_item(TableName="orders", Item=ITEM | changing)


def test_units_are_those_that_the_answers_show(client: Any, database: Database) -> None:
    with database.costs() as costs:
        client.put_item(**PUT)
        client.get_item(**GET, ConsistentRead=True)
        client.get_item(**GET)
        shown = client.put_item(**PUT, ReturnConsumedCapacity="TOTAL")["ConsumedCapacity"]
        client.delete_item(**GET)
    client.get_item(**GET)
    operations = ["PutItem", "GetItem", "GetItem", "PutItem", "DeleteItem"]
    assert [one.operation for one in costs.requests] == operations
    assert {one.tables for one in costs} == {("orders",)}
    put, strong, weak, again, delete = costs
    assert (put.read_units, put.write_units, put.index_units) == (0, 6, {"by-date": 3})
    assert (strong.read_units, weak.read_units) == (1, 0.5)
    assert again.write_units == shown["CapacityUnits"]
    assert (strong.read_items, strong.returned_items, put.read_items) == (1, 1, None)
    assert (costs.read_units, costs.write_units) == (1.5, put.units + again.units + delete.units)
    assert 3_000 < put.request_bytes < 3_300 < strong.answer_bytes + 300


@pytest.mark.parametrize("engine", [MemoryEngine, lambda: Reruns(MemoryEngine())])
@pytest.mark.parametrize("how", ["execute", "submit", "run_aside"])
def test_every_operation_is_recorded_once_with_its_bill(how: str, engine: Any) -> None:
    from unit.test_bills import Bills, asked

    recorded, billed = made(engine()), made(engine())
    bills: list[Any] = []
    billed.observers.observe(Bills(bills))
    with recorded.costs() as costs:
        for operation, request in REQUESTS:
            assert asked(recorded, operation, request, how) == asked(billed, operation, request, how)
    assert [one.operation for one in costs] == [operation for operation, _ in REQUESTS]
    for one, (_, _, bill) in zip(costs, bills, strict=True):
        units = {False: 0.0, True: 0.0}
        for part in bill:
            units[part.writes] += part.wire("TOTAL")["CapacityUnits"]
        assert (one.read_units, one.write_units) == (units[False], units[True])
        assert one.tables == tuple(dict.fromkeys(part.table_name for part in bill))
        assert one.answer_bytes > 0 < one.request_bytes
        assert one.error == ""
    assert {one.index for one in costs} == {"", "local", "global"}
    assert [one.operation for one in costs if one.is_scan] == ["Scan"]


def test_items_read_and_returned(client: Any, database: Database) -> None:
    fill(client, 12)
    query = {
        "TableName": "orders",
        "KeyConditionExpression": "pk = :p",
        "FilterExpression": "paid = :yes",
        "ExpressionAttributeValues": {":p": {"S": "a"}, ":yes": {"BOOL": True}},
    }
    keys = [{"pk": {"S": "a"}, "sk": {"N": str(number)}} for number in (1, 2, 99)]
    gets = [{"Get": {"TableName": "orders", "Key": key}} for key in keys]
    with database.costs() as costs:
        client.scan(TableName="orders", IndexName="by-date", Limit=5)
        client.batch_get_item(RequestItems={"orders": {"Keys": keys}})
        client.transact_get_items(TransactItems=gets)
        client.get_item(TableName="orders", Key=keys[2])
        with database.faults(unprocessed(share=0.3)):
            client.batch_get_item(RequestItems={"orders": {"Keys": keys}})
        client.describe_table(TableName="orders")
    counts = [(one.read_items, one.returned_items) for one in costs]
    assert counts == [(5, 5), (3, 2), (3, 2), (1, 0), (2, 2), (None, None)]
    assert costs.requests[0].index == "by-date"
    with database.costs() as costs:
        client.query(**query)
        costs.no_waste(times=7)
        with pytest.raises(AssertionError, match="a request read 6 times the items that it returned"):
            costs.no_waste(times=6)
    assert [(one.read_items, one.returned_items) for one in costs] == [(12, 2)]


def test_the_bytes_of_vector_indexes_are_beside_the_units(client: Any, database: Database) -> None:
    client.create_table(**table_of("words", "pk", VectorIndexes=[index_of()]))
    with database.costs() as costs:
        word = {"pk": {"S": "cat"}, "v": listed((1, 0)), "text": {"S": "x" * 1_500}}
        put = client.put_item(TableName="words", Item=word, ReturnConsumedCapacity="INDEXES")
        searched = client.search_vectors(
            TableName="words",
            IndexName="near",
            SearchVector=listed((1, 0))["L"],
            TopK=1,
            ReturnConsumedCapacity="TOTAL",
        )
    write, search = costs
    shown = put["ConsumedCapacity"]["VectorIndexes"]["near"]["VectorWriteRequestBytes"]
    assert (write.vector_write_bytes, write.vector_search_bytes) == (shown, 0)
    assert (write.write_units, search.read_units) == (2, 0)
    shown = searched["ConsumedCapacity"]["VectorSearchRequestBytes"]
    assert (search.vector_write_bytes, search.vector_search_bytes) == (0, shown)
    totals = (costs.vector_write_bytes, costs.vector_search_bytes)
    assert totals == (write.vector_write_bytes, search.vector_search_bytes)
    assert min(totals) > 1_024


def test_the_bytes_of_vector_indexes_have_a_price() -> None:
    write = Record("PutItem", ("words",), "", write_units=2, vector_write_bytes=1024**3)
    search = Record("SearchVectors", ("words",), "near", vector_search_bytes=5 * 1024**3)
    costs = Costs(lambda *_: None)
    costs.add(write)
    costs.add(search)
    of_units = 2 * Decimal("0.000000625")
    assert costs.dollars() == of_units + Decimal("0.52") + 5 * Decimal("0.002")
    assert costs.of("SearchVectors").dollars("us-west-2") == 5 * Decimal("0.002")
    with pytest.raises(ValueError, match="the price in eu-west-1 for a GB written to vector indexes"):
        costs.dollars("eu-west-1")
    with pytest.raises(ValueError, match="the price in eu-west-1 for a GB searched in vector indexes"):
        costs.of("SearchVectors").dollars("eu-west-1")


def test_scans_are_found_in_partiql_as_well(client: Any, database: Database) -> None:
    fill(client, 1)
    scans = [
        'SELECT * FROM "orders"',
        'SELECT * FROM "orders" WHERE "date" = \'x\'',
        'SELECT * FROM "orders"."by-date" WHERE pk = \'a\'',
    ]
    others = [
        "SELECT * FROM \"orders\" WHERE pk = 'a'",
        "SELECT * FROM \"orders\" WHERE pk IN ['a', 'b']",
        'SELECT * FROM "orders"."by-date" WHERE "date" = \'x\'',
        "INSERT INTO \"orders\" VALUE {'pk': 'b', 'sk': 1}",
    ]
    for statements, is_scan in ((scans, True), (others, False)):
        for statement in statements:
            with database.costs() as costs:
                client.execute_statement(Statement=statement)
            assert [one.is_scan for one in costs] == [is_scan], statement
            assert [one.tables for one in costs] == [("orders",)]
            if is_scan:
                with pytest.raises(AssertionError, match="a table or an index was scanned"):
                    costs.no_scan()
            else:
                costs.no_scan()
    with database.costs() as costs, pytest.raises(client.exceptions.ResourceNotFoundException):
        client.execute_statement(Statement='SELECT * FROM "nothing"')
    assert [(one.is_scan, one.error) for one in costs] == [(False, "ResourceNotFoundException")]


@pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
def test_retries_are_counted_by_what_the_sdk_says(
    client: Any, clients: Clients, database: Database, mode: str
) -> None:
    with database.costs() as costs, database.faults(throttle("GetItem").on_call(1, 2)):
        clients(attempts=4, mode=mode).get_item(**GET)
        client.get_item(**GET)
    assert [one.attempt for one in costs] == [1, 2, 3, 1]
    refused = "ProvisionedThroughputExceededException"
    assert [one.error for one in costs] == [refused, refused, "", ""]
    assert (costs.retries, costs.read_units) == (2, 1.0)
    with pytest.raises(AssertionError, match="a request was repeated"):
        costs.no_retry()
    with pytest.raises(AssertionError, match="a request failed"):
        costs.no_error()


def test_a_lost_answer_has_its_price(client: Any, database: Database) -> None:
    with (
        database.costs() as costs,
        database.faults(lose_answer("PutItem"), latency(seconds=1, virtual=True)),
        pytest.raises(ConnectionClosedError),
    ):
        client.put_item(**PUT)
    [lost] = costs
    assert (lost.error, lost.write_units, lost.answer_bytes) == ("AnswerLost", 6, 0)


def test_wrong_requests_are_recorded_too(client: Any, database: Database) -> None:
    with database.costs() as costs:
        for operation, parameters in (
            ("put_item", {"TableName": "orders", "Item": {"pk": {"N": "x"}}}),
            ("get_item", {"TableName": "nothing", "Key": KEY}),
            ("batch_write_item", {"RequestItems": {}}),
            ("execute_statement", {"Statement": "SELECT"}),
            ("transact_write_items", {"TransactItems": [{}]}),
        ):
            with pytest.raises(client.exceptions.ClientError):
                getattr(client, operation)(**parameters)
    assert [one.error for one in costs] == [
        "ValidationException",
        "ResourceNotFoundException",
        *["ValidationException"] * 3,
    ]
    assert [one.tables for one in costs][:2] == [("orders",), ("nothing",)]
    assert costs.read_units == costs.write_units == 0


def test_a_large_request_is_recorded(client: Any, database: Database) -> None:
    with database.costs() as costs:
        client.put_item(TableName="orders", Item=KEY | {"text": {"S": "x" * 100_000}})
    [put] = costs
    assert (put.tables, put.write_units) == (("orders",), 98)
    assert put.request_bytes > 100_000


# -- the assertions --


def test_a_failed_assertion_shows_a_table(client: Any, database: Database) -> None:
    fill(client, 20)
    with database.costs() as costs:
        client.scan(
            TableName="orders",
            FilterExpression="sk = :s",
            ExpressionAttributeValues={":s": {"N": "3"}},
        )
        client.get_item(**GET)
    with pytest.raises(AssertionError) as caught:
        costs.no_waste(times=20)
    assert str(caught.value).splitlines() == [
        "a request read 20 times the items that it returned:",
        "  operation  table   read units  read  returned  bytes",
        f"→ Scan       orders         0.5    20         1    {costs.requests[0].answer_bytes}",
        f"  GetItem    orders         0.5     1         1    {costs.requests[1].answer_bytes}",
    ]
    costs.no_waste(times=21)
    with pytest.raises(AssertionError, match=r"^1 read units, more than 0\.5:\n"):
        costs.read_units_at_most(0.5)
    with pytest.raises(AssertionError, match="a table or an index was scanned"):
        costs.no_scan()


def records(*written: float) -> Costs:
    costs = Costs(lambda costs, begins: None)
    for units in written:
        costs.add(Record("PutItem", ("t",), write_units=units))
    return costs


def test_limits_hold_at_their_bounds() -> None:
    costs = records(1, 5, 2)
    assert costs.write_units_at_most(8).read_units_at_most(0).requests_at_most(3).no_error() is costs
    with pytest.raises(AssertionError) as caught:
        costs.write_units_at_most(7.5)
    assert "8 write units, more than 7.5:" in str(caught.value)
    assert [line for line in str(caught.value).splitlines() if line.startswith("→")] == [
        "→ PutItem    t                5"
    ]
    with pytest.raises(AssertionError, match="3 requests, more than 2"):
        costs.requests_at_most(2)
    records().read_units_at_most(0).no_scan().no_waste()
    assert str(records()) == ""


def test_long_lists_are_cut() -> None:
    costs = records(*[1] * 200, 9)
    with pytest.raises(AssertionError) as caught:
        costs.write_units_at_most(10)
    lines = str(caught.value).splitlines()
    assert len(lines) == 53
    assert lines[-1] == "  and 151 others"
    assert lines[-2].startswith("→ PutItem")


def test_a_part_of_the_costs() -> None:
    costs = Costs(lambda costs, begins: None)
    costs.add(Record("Query", ("a",), "i", read_units=1))
    costs.add(Record("Query", ("a",), read_units=2))
    costs.add(Record("Scan", ("a", "b"), read_units=4, is_scan=True))
    assert [part.read_units for part in (costs.of("Query"), costs.of(table="b"), costs.of(index="i"))] == [
        3, 4, 1,
    ]  # fmt: skip
    costs.of("Query").no_scan()
    assert len(costs.of("Query", "Scan", table="a")) == 3


def test_nothing_read_and_nothing_returned_is_no_waste() -> None:
    for read, returned, times, wastes in (
        (0, 0, 1, False), (10, 0, 10, True), (9, 0, 10, False), (10, 1, 10, True), (19, 2, 10, False),
        (None, None, 1, False), (None, 3, 1, False),
    ):  # fmt: skip
        assert Record("Query", read_items=read, returned_items=returned).wastes(times) is wastes


def test_the_table_leaves_empty_columns_out() -> None:
    text = show([Record("ListTables"), Record("Query", ("t",), "i", 0.5, error="X", attempt=2)])
    assert text.splitlines() == [
        "  operation   table  index  read units  attempt  error",
        "  ListTables                         0",
        "  Query       t      i             0.5        2  X",
    ]


# -- recording --


def test_nobody_pays_when_no_one_records(client: Any, database: Database) -> None:
    with database.costs() as outer, database.costs() as inner:
        client.get_item(**GET)
    with outer:
        client.get_item(**GET)
    client.get_item(**GET)
    assert (len(outer), len(inner)) == (2, 1)
    assert database.observers.active is None
    assert not database.observers.bills


def test_a_server_and_clients_in_process_are_recorded_together() -> None:
    from hashrange.client import connect

    with Database.in_memory() as database, running(database) as endpoint:
        client = boto3.client(
            "dynamodb",
            endpoint_url=endpoint,
            region_name=REGION,
            aws_access_key_id="a",
            aws_secret_access_key="b",
        )
        with database.costs() as costs:
            create(client, "orders")
            connect(database).list_tables()
        client.close()
    assert [(one.operation, one.attempt) for one in costs] == [("CreateTable", 1), ("ListTables", 1)]


SUITE = """
    import pytest
    from hashrange.client import connect
    from hashrange.database import Database

    @pytest.fixture
    def client():
        with Database.in_memory() as database:
            client = connect(database)
            client.create_table(
                TableName="things",
                KeySchema=[{"AttributeName": "p", "KeyType": "HASH"}],
                AttributeDefinitions=[{"AttributeName": "p", "AttributeType": "S"}],
                BillingMode="PAY_PER_REQUEST",
            )
            yield client

    def test_dear(client):
        for number in range(3):
            client.put_item(TableName="things", Item={"p": {"S": str(number)}})
        client.scan(TableName="things")

    def test_cheap(client):
        client.get_item(TableName="things", Key={"p": {"S": "1"}})

    def test_free():
        pass
"""


@pytest.mark.parametrize(
    ("options", "tests"),
    [
        ([], []),
        (["--dynamodb-costs"], ["test_dear", "test_cheap"]),
        (["--dynamodb-costs", "--dynamodb-costs-max=1"], ["test_dear"]),
        (["--dynamodb-costs", "-n", "1"], ["test_dear", "test_cheap"]),
    ],
)
def test_pytest_prints_the_most_expensive_tests(tmp_path: Path, options: list[str], tests: list[str]) -> None:
    (tmp_path / "test_suite.py").write_text(textwrap.dedent(SUITE), encoding="utf-8")
    running_pytest = run_pytest_in_a_process if "-n" in options else run_pytest
    shown = running_pytest(tmp_path, *options)
    assert "3 passed" in shown
    table = [line.split() for line in shown.splitlines() if "test_suite.py::" in line]
    assert [row[-1].rpartition("::")[2] for row in table] == tests
    if tests:
        assert "DynamoDB: the most expensive of 2 tests" in shown
        assert table[0][:-1] == ["0.5", "3", "5", "1", "3", "3", "0", "0", "$0.0000019"]
        lines = [line.split() for line in shown.splitlines() if re.search(r"test_suite\.py:\d+$", line)]
        assert lines[0] == ["0", "3", "3", "$0.0000019", "test_suite.py:20"]
        assert len(lines) == (1 if "--dynamodb-costs-max=1" in options else 3)
        # 1 read unit and 3 write units, at $0.125 and $0.625 for a million
        run = f"On demand in us-east-1 (prices of {published().date}) this run would cost"
        assert f"{run} $0.0000020, and a million such runs $2.00." in shown


def test_pytest_prints_no_money_where_no_source_has_prices(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(textwrap.dedent(SUITE), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ndynamodb_region = eu-west-3\n", encoding="utf-8")
    shown = run_pytest(tmp_path, "--dynamodb-costs")
    assert "DynamoDB: the most expensive of 2 tests" in shown
    assert "$" not in shown
    assert "would cost" not in shown


VECTORS = """
    import pytest
    from hashrange.database import Database

    INDEX = {
        "IndexName": "near", "VectorAttribute": {"AttributeName": "v"}, "Dimensions": 1,
        "DistanceFunction": "COSINE", "Projection": {"ProjectionType": "KEYS_ONLY"},
    }
    TABLE = {
        "TableName": "words", "BillingMode": "PAY_PER_REQUEST", "VectorIndexes": [INDEX],
        "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "p", "AttributeType": "S"}],
    }

    def test_words():
        database = Database.in_memory()
        database.execute("CreateTable", TABLE)
        item = {"p": {"S": "a"}, "v": {"L": [{"N": "1"}]}}
        database.execute("PutItem", {"TableName": "words", "Item": item})
        search = {"TableName": "words", "IndexName": "near", "SearchVector": [{"N": "1"}], "TopK": 1}
        database.execute("SearchVectors", search)
"""


def test_pytest_prints_what_searches_of_vectors_cost(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(textwrap.dedent(VECTORS), encoding="utf-8")
    shown = run_pytest(tmp_path, "--dynamodb-costs")
    lines = [line.split() for line in shown.splitlines() if re.search(r"test_suite\.py:\d+$", line)]
    # A write unit at $0.625 for a million, and 1,024 bytes at $0.52 for a GB
    assert lines[0] == ["0", "1", "1", "$0.0000011", "test_suite.py:19"]
    assert lines[1][:3] == ["0", "0", "1"]
    assert lines[1][-1] == "test_suite.py:21"
    assert re.match(r"\$0\.0+[1-9]", lines[1][3])
    assert "would cost $0.0000011, and a million such runs $1.12." in shown
    (tmp_path / "pytest.ini").write_text("[pytest]\ndynamodb_region = eu-west-1\n", encoding="utf-8")
    shown = run_pytest(tmp_path, "--dynamodb-costs")
    for missing in ("a GB searched in vector indexes", "a GB written to vector indexes"):
        assert f"No source has the price in eu-west-1 for {missing}; the sum lacks it." in shown
    assert "would cost $0.00000070 + ?, and a million such runs $0.70 + ?." in shown


def test_a_write_whose_condition_fails_is_charged(client: Any, database: Database) -> None:
    client.put_item(**PUT)
    with database.costs() as costs, pytest.raises(client.exceptions.ConditionalCheckFailedException):
        client.put_item(**PUT, ConditionExpression="attribute_not_exists(pk)")
    [record] = costs.requests
    assert (record.write_units, record.error) == (3, "ConditionalCheckFailedException")


def test_money(client: Any, database: Database) -> None:
    with database.costs() as costs:
        client.put_item(**PUT)  # 6 write units, at $0.625 for a million
        client.get_item(**GET, ConsistentRead=True)  # 1 read unit, at $0.125 for a million
        assert costs.dollars() == Decimal("0.000003875")
        assert costs.dollars("eu-west-1") == Decimal("6") * Decimal("0.705e-6") + Decimal("0.1415e-6")
        costs.dollars_at_most("0.000004").dollars_at_most("4", times=1_000_000)
        with pytest.raises(AssertionError, match=r"^\$3.875\d*, more than \$3:\n  operation"):
            costs.dollars_at_most("3", times=1_000_000)
    with pytest.raises(ValueError, match="No source has the price in eu-west-3 for a million read"):
        costs.dollars("eu-west-3")
    with pytest.raises(ValueError, match="Did you mean 'eu-west-1'"):
        costs.dollars("eu-west-11")


FIXTURES = """
    import pytest
    from hashrange.faults import internal_error, throttle

    pytestmark = pytest.mark.dynamodb("orders", "pk")
    ITEM = {"pk": {"S": "a"}}

    @pytest.mark.parametrize("again", [1, 2])
    def test_faults_end_with_the_test(dynamodb, dynamodb_client, dynamodb_faults, again):
        assert len(dynamodb_faults) == 0
        throttled = dynamodb_faults.add(throttle("PutItem").on_call(1))
        dynamodb_client.put_item(TableName="orders", Item=ITEM)
        assert (throttled.matched, len(dynamodb.faults)) == (2, 1)

    def test_costs(dynamodb_client, dynamodb_costs):
        dynamodb_client.get_item(TableName="orders", Key=ITEM)
        assert [one.operation for one in dynamodb_costs] == ["GetItem"]
        dynamodb_costs.no_scan().read_units_at_most(0.5)
        with pytest.raises(AssertionError, match="GetItem"):
            dynamodb_costs.read_units_at_most(0)
"""


def test_the_fixtures_of_the_plugin(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(textwrap.dedent(FIXTURES), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\ndynamodb_scope = module\n", encoding="utf-8")
    assert "3 passed" in run_pytest(tmp_path)
