"""The tools over a database in this process: what they answer, what they refuse, what they leave out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from hashrange import client
from hashrange.cli.remote.clients import Clients
from hashrange.database import Database
from hashrange.storage.memory import MemoryEngine
from hashrange_mcp.connection import Connection, connected
from hashrange_mcp.server import server_of
from mcp_server.agents import Agent, agent
from worlds import table_of

EXACT = "0.12345678901234567890123456789012345678"
BYTES_MAX = 6_000
READING = {
    "list_tables", "describe_table", "get_items", "query", "scan", "partiql", "recent_changes",
    "simulate_policy",
}  # fmt: skip
OF_HASHRANGE = {"history", "costs", "what_if", "suggest_policy"}


@pytest.fixture
def database() -> Iterator[Database]:
    with Database(MemoryEngine()) as database:
        yield database


@pytest.fixture
def clients(database: Database) -> Clients:
    return Clients(client.connect(database), client.connect(database, service="dynamodbstreams"))


@pytest.fixture
def reader(clients: Clients) -> Iterator[Agent]:
    with agent(server_of(Connection(clients, "a test", None, writes=False, bytes_max=BYTES_MAX))) as made:
        yield made


@pytest.fixture
def writer(clients: Clients) -> Iterator[Agent]:
    with agent(server_of(Connection(clients, "a test", None, writes=True, bytes_max=BYTES_MAX))) as made:
        yield made


@pytest.fixture
def shop(clients: Clients) -> Any:
    """A single table with users and orders, and an index of the orders by status."""
    dynamodb = clients.dynamodb
    dynamodb.create_table(
        **table_of("shop", "pk, sk", indexes={"by-status": "status, sk"}, stream="NEW_AND_OLD_IMAGES")
    )
    for user in range(8):
        pk = {"S": f"USER#{user}"}
        dynamodb.put_item(TableName="shop", Item={"pk": pk, "sk": {"S": "PROFILE"}, "name": {"S": "x"}})
        for order in range(3):
            item = {"pk": pk, "sk": {"S": f"ORDER#{order}"}, "total": {"N": EXACT}, "status": {"S": "open"}}
            dynamodb.put_item(TableName="shop", Item=item)
    return dynamodb


def test_only_tools_that_read_are_listed_without_write(reader: Agent, writer: Agent) -> None:
    assert set(reader.tools()) == READING
    assert set(writer.tools()) == READING | {"write_items", "create_tables"}
    assert all(tool.annotations and tool.annotations.read_only_hint for tool in reader.tools().values())
    assert "Unknown tool" in reader.text("write_items", table="shop", actions=[])


def test_a_hashrange_server_has_more_tools_and_aws_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "any")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "any")
    # (nobody answers there yet, and it may be a server of Hashrange)
    for endpoint, more in (("http://127.0.0.1:9", OF_HASHRANGE | {"undo"}), ("aws", set())):
        connection = connected(endpoint, "us-east-1", writes=True, bytes_max=BYTES_MAX)
        with agent(server_of(connection)) as made:
            assert set(made.tools()) == READING | {"write_items", "create_tables"} | more
            if more:
                said = made.refused("list_tables")
                assert "http://127.0.0.1:9" in said
                assert "hashrange serve" in said
                assert "hashrange serve" in made.refused("costs")


def test_every_tool_says_what_it_is_for(writer: Agent) -> None:
    for name, tool in writer.tools().items():
        assert len(tool.description or "") > 100, name
        for parameter, schema in tool.input_schema["properties"].items():
            assert schema.get("description"), f"{name}: {parameter}"


def test_tables_are_listed_with_their_keys(reader: Agent, shop: Any) -> None:
    listed = reader.ask("list_tables")
    assert (listed["endpoint"], listed["writes"], listed["is_hashrange"]) == ("a test", False, False)
    [table] = listed["tables"]
    assert table["key"] == "pk:S (partition), sk:S (sort)"
    assert table["indexes"] == {"by-status": "status:S (partition), sk:S (sort)"}
    assert (table["items"], table["capacity"], table["stream"]) == (32, "on demand", "NEW_AND_OLD_IMAGES")


def test_many_tables_are_listed_a_page_at_a_time(reader: Agent, clients: Clients) -> None:
    names = [f"table-{number:02}" for number in range(60)]
    for name in names:
        clients.dynamodb.create_table(**table_of(name, "pk"))
    found: list[str] = []
    start = ""
    while True:
        listed = reader.ask("list_tables", start=start)
        found += [table["name"] for table in listed["tables"]]
        if "next" not in listed:
            break
        start = listed["next"]
    assert found == names


def test_a_table_is_described_by_its_entities(reader: Agent, shop: Any) -> None:
    described = reader.ask("describe_table", table="shop")
    assert described["point_in_time_recovery"] == "DISABLED"
    assert described["sample"]["items"] == 32
    assert described["sample"]["consumed_units"] <= described["sample"]["estimated_units"]
    orders, users = described["entities"]
    assert (orders["partition"], orders["sort"], orders["share_percent"]) == ("USER#*", "ORDER#*", 75)
    assert orders["attributes"]["total"] == "number, 100%"
    assert "Query: pk = USER#* and begins_with(sk, ORDER#)" in orders["access"]
    assert any(access.startswith("Query on the index by-status") for access in orders["access"])
    assert (users["sort"], users["share_percent"]) == ("PROFILE", 25)


def test_numbers_keep_all_their_digits(writer: Agent, shop: Any) -> None:
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}, "n": {"N": EXACT}, "set": {"NS": [EXACT]}}
    assert writer.ask("write_items", table="shop", actions=[{"Put": {"Item": item}}])["written"] == 1
    key = {"pk": "a", "sk": "b"}
    assert writer.ask("get_items", table="shop", keys=[key])["items"] == [item]
    queried = writer.ask("query", table="shop", key_condition="pk = :p", values={":p": "a"})
    assert queried["items"] == [item]
    assert EXACT in writer.text("partiql", statement="SELECT n FROM shop WHERE pk = ?", parameters=["a"])
    assert EXACT in writer.text("recent_changes", table="shop", limit=1)


def test_a_number_that_may_have_lost_digits_is_refused(writer: Agent, shop: Any) -> None:
    action = {"Put": {"Item": {"pk": "a", "sk": "b", "list": [1, 0.1]}}}
    assert '{"N": "0.1"}' in writer.refused("write_items", table="shop", actions=[action])
    assert writer.ask("get_items", table="shop", keys=[{"pk": "a", "sk": "b"}])["missing"] == 1


def test_binary_values_come_back_as_they_were_given(writer: Agent, shop: Any) -> None:
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}, "bytes": {"B": "AAE="}, "in": {"M": {"b": {"BS": ["AA=="]}}}}
    writer.ask("write_items", table="shop", actions=[{"Put": {"Item": item}}])
    assert shop.get_item(TableName="shop", Key={"pk": {"S": "a"}, "sk": {"S": "b"}})["Item"]["bytes"] == {
        "B": b"\x00\x01"
    }
    assert writer.ask("get_items", table="shop", keys=[{"pk": "a", "sk": "b"}])["items"] == [item]


def test_a_query_says_its_cost_and_goes_on(reader: Agent, shop: Any) -> None:
    asked: dict[str, Any] = {
        "table": "shop", "key_condition": "pk = :p AND begins_with(sk, :s)",
        "values": {":p": {"S": "USER#3"}, ":s": {"S": "ORDER#"}}, "limit": 2,
    }  # fmt: skip
    first = reader.ask("query", **asked)
    assert first["estimated_units"] == first["consumed_units"] == 0.5
    # (0.125 dollars a million units; the read is eventually consistent)
    assert first["estimated_cost"] == "$0.000000062"
    rest = reader.ask("query", **asked, start=first["next"])
    orders = [item["sk"]["S"] for item in (*first["items"], *rest["items"])]
    assert orders == ["ORDER#0", "ORDER#1", "ORDER#2"]
    cost = reader.ask("query", **asked, cost_only=True, projection="#t", names={"#t": "total"})
    assert (cost["items"], cost["estimated_units_for_all"]) == (3, 0.5)


def test_an_index_is_read_with_its_own_key(reader: Agent, shop: Any) -> None:
    asked: dict[str, Any] = {
        "table": "shop", "index": "by-status", "key_condition": "#s = :s",
        "names": {"#s": "status"}, "values": {":s": "open"},
    }  # fmt: skip
    page = reader.ask("query", **asked, limit=20)
    rest = reader.ask("query", **asked, start=page["next"])
    assert len(page["items"]) + len(rest["items"]) == 24
    assert "by-status" in reader.refused("query", **{**asked, "index": "by-date"})


def test_what_costs_too_much_is_not_read(reader: Agent, shop: Any) -> None:
    before = shop.describe_table(TableName="shop")["Table"]["TableSizeBytes"]
    for number in range(40):
        item = {"pk": {"S": f"BIG#{number}"}, "sk": {"S": "x"}, "text": {"S": "x" * 100_000}}
        shop.put_item(TableName="shop", Item=item)
    assert shop.describe_table(TableName="shop")["Table"]["TableSizeBytes"] > before + 4_000_000
    refusal = reader.refused("scan", table="shop", limit=1_000)
    assert "Nothing was read" in refusal
    assert "max_units" in refusal
    assert "Nothing was read" in reader.refused("partiql", statement="SELECT * FROM shop", limit=1_000)
    assert "Nothing was read" in reader.refused(
        "describe_table", table="shop", sample_items=1_000, max_units=1
    )
    assert "Nothing was read" in reader.refused("get_items", table="shop", keys=[{"pk": "a"}], max_units=0)
    cost = reader.ask("scan", table="shop", cost_only=True)
    assert cost["items"] == 72
    assert cost["estimated_units_for_all"] > 400
    assert cost["estimated_cost_for_all"].startswith("$0.00006")


def test_a_plan_says_how_a_statement_reads(reader: Agent, shop: Any) -> None:
    ways = {
        "SELECT * FROM shop WHERE pk = 'USER#1' AND sk = 'PROFILE'": "get",
        "SELECT * FROM shop WHERE pk = 'USER#1'": "query",
        """SELECT * FROM shop."by-status" WHERE status = 'open'""": "query",
        "SELECT * FROM shop WHERE total > 1": "scan",
    }
    assert {text: reader.ask("partiql", statement=text)["plan"] for text in ways} == ways
    assert "--write" in reader.refused("partiql", statement="DELETE FROM shop WHERE pk = 'a' AND sk = 'b'")


def test_statements_write_with_write_only(writer: Agent, shop: Any) -> None:
    statement = "INSERT INTO shop VALUE {'pk': 'a', 'sk': ?}"
    writer.ask("partiql", statement=statement, parameters=["b"])
    assert writer.ask("get_items", table="shop", keys=[{"pk": "a", "sk": "b"}])["missing"] == 0


def test_answers_are_bounded_and_say_how_to_go_on(writer: Agent, shop: Any) -> None:
    for number in range(10):
        item = {"pk": {"S": "p"}, "sk": {"S": f"{number}"}, "text": {"S": "é" * 500}}
        shop.put_item(TableName="shop", Item=item)
    found: list[str] = []
    start: Any = None
    pages = 0
    while True:
        text = writer.text("query", table="shop", key_condition="pk = :p", values={":p": "p"}, start=start)
        assert len(text.encode()) <= BYTES_MAX
        page = orjson.loads(text)
        found += [item["sk"]["S"] for item in page["items"]]
        pages += 1
        if "next" not in page:
            break
        assert "send `next` as `start`" in page["truncated"]
        start = page["next"]
    assert found == [f"{number}" for number in range(10)]
    assert pages > 2


def test_a_statement_whose_answer_is_cut_off_is_asked_again_from_its_start(writer: Agent, shop: Any) -> None:
    for number in range(10):
        item = {"pk": {"S": "p"}, "sk": {"S": f"{number}"}, "text": {"S": "x" * 1_000}}
        shop.put_item(TableName="shop", Item=item)
    asked: dict[str, Any] = {"statement": "SELECT * FROM shop WHERE pk = 'p'"}
    page = writer.ask("partiql", **asked)
    assert len(page["items"]) < 10
    assert page["next"] == ""
    assert "smaller limit" in page["note"]
    small = writer.ask("partiql", **asked, limit=3)
    assert [item["sk"]["S"] for item in small["items"]] == ["0", "1", "2"]
    more = writer.ask("partiql", **asked, limit=3, start=small["next"])
    assert [item["sk"]["S"] for item in more["items"]] == ["3", "4", "5"]


def test_an_item_that_is_too_large_is_outlined(writer: Agent, shop: Any) -> None:
    item = {"pk": {"S": "p"}, "sk": {"S": "s"}, "small": {"N": "1"}, "large": {"S": "x" * 100_000}}
    shop.put_item(TableName="shop", Item=item)
    answer = writer.ask("get_items", table="shop", keys=[{"pk": "p", "sk": "s"}])
    assert "projection" in answer["outlined"]
    [outline] = answer["items"]
    assert outline["small"] == {"N": "1"}
    assert outline["large"] == "(100008 bytes)"


def test_the_newest_changes_come_first(writer: Agent, shop: Any) -> None:
    shop.delete_item(TableName="shop", Key={"pk": {"S": "USER#0"}, "sk": {"S": "PROFILE"}})
    first = writer.ask("recent_changes", table="shop", limit=3)
    assert first["changes"][0]["event"] == "REMOVE"
    assert first["changes"][0]["before"]["name"] == {"S": "x"}
    assert writer.ask("recent_changes", table="shop", after=first["positions"])["changes"] == []
    writer.ask("write_items", table="shop", actions=[{"Put": {"Item": {"pk": "new", "sk": "new"}}}])
    [change] = writer.ask("recent_changes", table="shop", after=first["positions"])["changes"]
    assert (change["event"], change["key"]["pk"]) == ("INSERT", {"S": "new"})


def test_errors_say_what_to_do_next(writer: Agent, clients: Clients, shop: Any) -> None:
    clients.dynamodb.create_table(**table_of("silent", "pk"))
    key = {"pk": "a", "sk": "b"}
    condition = {"Put": {"Item": {**key}, "ConditionExpression": "attribute_exists(pk)"}}
    for said, tool, arguments in (
        ("list_tables", "describe_table", {"table": "nothing"}),
        ("describe_table shows keys", "get_items", {"table": "shop", "keys": [{"pk": "a"}]}),
        ("Nothing was written", "write_items", {"table": "shop", "actions": [condition]}),
        ("Action 1 must have one member", "write_items", {"table": "shop", "actions": [{"Drop": {}}]}),
        ("enable one", "recent_changes", {"table": "silent"}),
        ("no Hashrange server", "get_items", {"table": "shop", "keys": [key], "as_of": "10m"}),
        ("Field required", "query", {"table": "shop"}),
        ("less than or equal to 1000", "scan", {"table": "shop", "limit": 5_000}),
        ("Correct the model", "create_tables", {"model": "{}"}),
        ("is not an ARN", "simulate_policy", {"policy": "{}", "action": "GetItem", "resource": "shop"}),
    ):
        assert said in writer.refused(tool, **arguments), tool


def test_writes_take_effect_together_or_not_at_all(writer: Agent, shop: Any) -> None:
    actions = [
        {"Put": {"Item": {"pk": "t", "sk": "1"}}},
        {
            "Put": {
                "Item": {"pk": "USER#1", "sk": "PROFILE"},
                "ConditionExpression": "attribute_not_exists(pk)",
            }
        },
    ]
    assert "ConditionalCheckFailed" in writer.refused("write_items", table="shop", actions=actions)
    assert writer.ask("get_items", table="shop", keys=[{"pk": "t", "sk": "1"}])["missing"] == 1
    update = {
        "Key": {"pk": "USER#1", "sk": "PROFILE"}, "UpdateExpression": "SET visits = :n",
        "ExpressionAttributeValues": {":n": {"N": EXACT}},
    }  # fmt: skip
    written = writer.ask("write_items", table="shop", actions=[actions[0], {"Update": update}])
    assert (written["written"], written["consumed_units"]) == (2, 4.0)


def test_tables_are_made_from_models(writer: Agent, clients: Clients) -> None:
    template = """
        Resources:
          Orders:
            Type: AWS::DynamoDB::Table
            Properties:
              TableName: orders
              BillingMode: PAY_PER_REQUEST
              KeySchema: [{AttributeName: pk, KeyType: HASH}]
              AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
              TimeToLiveSpecification: {AttributeName: until, Enabled: true}
              PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}
    """
    [shown] = writer.ask("create_tables", model=template, dry_run=True)["requests"]
    assert shown["create"]["TableName"] == "orders"
    assert writer.ask("list_tables")["tables"] == []
    assert writer.ask("create_tables", model=template)["tables"][0]["created"]
    described = writer.ask("describe_table", table="orders")
    assert (described["time_to_live"], described["point_in_time_recovery"]) == ("until", "ENABLED")
    [again] = writer.ask("create_tables", model=template)["tables"]
    assert not again["created"]
    assert "orders" in again["why"]


def test_a_workbench_model_brings_its_items(writer: Agent) -> None:
    keys = {"PartitionKey": {"AttributeName": "pk", "AttributeType": "S"}}
    items = [{"pk": {"S": f"{number}"}, "n": {"N": EXACT}} for number in range(30)]
    model = {
        "ModelName": "m",
        "DataModel": [{"TableName": "pages", "KeyAttributes": keys, "TableData": items}],
    }
    [made] = writer.ask("create_tables", model=orjson.dumps(model).decode())["tables"]
    assert made["items"] == 30
    assert writer.ask("get_items", table="pages", keys=[{"pk": "29"}])["items"] == [items[29]]


def test_policies_are_simulated(reader: Agent) -> None:
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/shop"
    keys = {"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": ["alice"]}}
    allow = {"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": arn, "Condition": keys}
    policy = orjson.dumps({"Version": "2012-10-17", "Statement": [allow]}).decode()
    asked: dict[str, Any] = {"policy": policy, "action": "GetItem", "resource": arn}
    alice = {"dynamodb:LeadingKeys": ["alice"]}
    assert reader.ask("simulate_policy", **asked, context=alice)["allowed"] is True
    bob = reader.ask("simulate_policy", **asked, context={"dynamodb:LeadingKeys": ["bob"]})
    assert bob["allowed"] is False
    assert any("does not apply" in line for line in bob["explained"])
    assert reader.ask("simulate_policy", **{**asked, "action": "PutItem"}, context=alice)["allowed"] is False
    assert "Correct the document" in reader.refused(
        "simulate_policy", **{**asked, "policy": '{"Statement": 1}'}
    )
