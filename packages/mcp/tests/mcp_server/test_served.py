"""The tools over a real `hashrange serve`, by stdio and by HTTP, with the SDK's own client: history and undo,
costs, larger loads, policies."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from hashrange.cli.remote.clients import Clients, connect
from mcp_server.agents import Agent, agent, command
from serving import Server, free_port, serving
from worlds import table_of


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving("--memory", "--costs", "--virtual-clock") as running:
        yield running


@pytest.fixture(scope="module")
def clients(server: Server) -> Clients:
    return connect(server.endpoint, "us-east-1", credentials=("hashrange", "hashrange"))


@pytest.fixture(scope="module")
def by_stdio(server: Server) -> Iterator[Agent]:
    with agent(command(server.endpoint, "--write")) as made:
        yield made


@contextmanager
def by_http(endpoint: str, *options: str) -> Iterator[str]:
    """The tools by HTTP; their URL."""
    address = f"127.0.0.1:{free_port()}"
    arguments = ["-m", "hashrange_mcp", "--endpoint-url", endpoint, "--http", address, *options]
    process = subprocess.Popen([sys.executable, *arguments], stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    try:
        for line in process.stderr:
            if "running on" in line:
                break
        else:
            raise AssertionError("the tools ended before they listened")
        yield f"http://{address}/mcp"
    finally:
        process.terminate()
        process.communicate()


def past(server: Server, clients: Clients, table: str) -> str:
    """A table with recovery, two items, and a moment before they changed."""
    clients.dynamodb.create_table(**table_of(table, "pk"))
    clients.dynamodb.update_continuous_backups(
        TableName=table, PointInTimeRecoverySpecification={"PointInTimeRecoveryEnabled": True}
    )
    for key in ("a", "b"):
        clients.dynamodb.put_item(TableName=table, Item={"pk": {"S": key}, "n": {"N": "1"}})
    moment = _clock(server, "advance", "1m").split()[0]
    _clock(server, "advance", "1m")
    clients.dynamodb.put_item(TableName=table, Item={"pk": {"S": "a"}, "n": {"N": "2"}})
    clients.dynamodb.delete_item(TableName=table, Key={"pk": {"S": "b"}})
    return moment


def _clock(server: Server, *words: str) -> str:
    arguments = ["-m", "hashrange", "clock", *words, "--endpoint-url", server.endpoint]
    done = subprocess.run([sys.executable, *arguments], check=True, capture_output=True, text=True)
    return done.stdout


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_both_transports_and_both_handshakes_list_the_same_tools(
    server: Server, by_stdio: Agent, mode: str
) -> None:
    with by_http(server.endpoint, "--write") as url, agent(url, mode) as over_http:
        assert over_http.tools().keys() == by_stdio.tools().keys()
        assert len(by_stdio.tools()) == 15
        assert over_http.ask("list_tables")["is_hashrange"] is True
    with agent(command(server.endpoint), mode) as reading:
        assert by_stdio.tools().keys() - reading.tools().keys() == {"write_items", "create_tables", "undo"}


def test_a_web_page_cannot_reach_the_tools(server: Server) -> None:
    with by_http(server.endpoint) as url:
        for header, value in (("Host", "evil.example"), ("Origin", "http://evil.example")):
            request = urllib.request.Request(url, b"{}", {"Content-Type": "application/json", header: value})
            with pytest.raises(urllib.error.HTTPError) as refused:
                urllib.request.urlopen(request)
            assert refused.value.code in (403, 421)
            refused.value.close()


def test_items_are_read_as_of_a_moment(server: Server, clients: Clients, by_stdio: Agent) -> None:
    moment = past(server, clients, "as-of")
    before = {"pk": {"S": "a"}, "n": {"N": "1"}}
    asked: dict[str, Any] = {"table": "as-of", "as_of": moment}
    assert by_stdio.ask("get_items", keys=[{"pk": "a"}], **asked)["items"] == [before]
    assert len(by_stdio.ask("scan", **asked)["items"]) == 2
    queried = by_stdio.ask("query", key_condition="pk = :p", values={":p": "a"}, **asked)
    assert queried["items"] == [before]
    assert "is not a time" in by_stdio.refused("scan", table="as-of", as_of="yesterday")


def test_history_shows_versions_and_differences(server: Server, clients: Clients, by_stdio: Agent) -> None:
    moment = past(server, clients, "history")
    versions = by_stdio.ask("history", table="history", key={"pk": "a"})["versions"]
    assert [version["Item"] and version["Item"]["n"]["N"] for version in versions] == ["2", "1", None]
    assert versions[0]["By"] == "hashrange"
    page = by_stdio.ask("history", table="history", since=moment, limit=1)
    rest = by_stdio.ask("history", table="history", since=moment, limit=1, start=page["next"])
    found = {one["Key"]["pk"]["S"]: one["After"] for one in (*page["differences"], *rest["differences"])}
    assert found == {"a": {"pk": {"S": "a"}, "n": {"N": "2"}}, "b": None}
    assert "Give either" in by_stdio.refused("history", table="history")
    clients.dynamodb.create_table(**table_of("no-past", "pk"))
    assert "recovery" in by_stdio.refused("history", table="no-past", since="1m")


def test_undo_writes_only_what_its_preview_showed(server: Server, clients: Clients, by_stdio: Agent) -> None:
    moment = past(server, clients, "undone")
    first = by_stdio.ask("undo", table="undone", to=moment)
    assert first["changes"] == 2
    assert len(clients.dynamodb.scan(TableName="undone")["Items"]) == 1
    wrong = by_stdio.ask("undo", table="undone", to=first["to"], confirm="0123456789abcdef")
    assert "refused" in wrong
    clients.dynamodb.put_item(TableName="undone", Item={"pk": {"S": "c"}})
    late = by_stdio.ask("undo", table="undone", to=first["to"], confirm=first["confirm"])
    assert late["changes"] == 3
    assert len(clients.dynamodb.scan(TableName="undone")["Items"]) == 2
    done = by_stdio.ask("undo", table="undone", to=first["to"], confirm=late["confirm"])
    assert {one["Done"] for one in done["undone"]} == {"restored", "deleted"}
    items = clients.dynamodb.scan(TableName="undone")["Items"]
    assert sorted(items, key=str) == [{"pk": {"S": key}, "n": {"N": "1"}} for key in ("a", "b")]
    assert "nothing to restore" in by_stdio.ask("undo", table="undone", to=first["to"])["note"]


def test_undo_of_one_item_leaves_the_others(server: Server, clients: Clients, by_stdio: Agent) -> None:
    moment = past(server, clients, "one-undone")
    asked: dict[str, Any] = {"table": "one-undone", "to": moment, "keys": [{"pk": "a"}]}
    token = by_stdio.ask("undo", **asked)["confirm"]
    by_stdio.ask("undo", **asked, confirm=token)
    assert clients.dynamodb.scan(TableName="one-undone")["Items"] == [{"pk": {"S": "a"}, "n": {"N": "1"}}]


def test_costs_and_larger_loads_follow_from_what_was_counted(
    server: Server, clients: Clients, by_stdio: Agent
) -> None:
    clients.dynamodb.create_table(
        **table_of("busy", "pk")
        | {
            "BillingMode": "PROVISIONED",
            "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5},
        }
    )
    by_stdio.text("what_if")  # (from now on the keys are counted)
    # (so that all requests are in one minute)
    _clock(server, "freeze")
    values = {":n": {"N": "1"}}
    for number in range(12):
        for key in ("hot", f"{number}"):
            clients.dynamodb.put_item(TableName="busy", Item={"pk": {"S": key}})
    for _ in range(12):
        clients.dynamodb.scan(TableName="busy", FilterExpression="n = :n", ExpressionAttributeValues=values)
    _clock(server, "resume")
    told = by_stdio.ask("costs", by=["table", "operation"])
    lines = {(line["table"], line["operation"]): line for line in told["lines"]}
    assert lines["busy", "PutItem"]["write_units"] == 24
    assert any(advice["table"] == "busy" and advice["kind"] == "scan" for advice in told["advice"])
    ten = by_stdio.ask("what_if", times=10)
    place = next(one for one in ten["places"] if one["table"] == "busy")
    assert (place["peak_write_units_a_second"], place["passes"]) == (4.0, [])
    more = by_stdio.ask("what_if", times=10_000)
    place = next(one for one in more["places"] if one["table"] == "busy")
    assert "provisioned capacity: 5 write units a second" in place["passes"]
    hot = [key for key in more["busiest_keys"]["keys"] if key["table"] == "busy"]
    assert (hot[0]["key"], hot[0]["write_units_a_second"]) == ({"pk": {"S": "hot"}}, 2_000.0)
    assert [key["throttled"] for key in hot[:2]] == [True, False]
    assert {plan["plan"] for plan in more["plans"]} >= {"on demand", "provisioned, fixed"}
    assert "us-east-1" in by_stdio.refused("costs", region="moon-1")


def test_the_smallest_policy_allows_what_was_counted(clients: Clients, by_stdio: Agent) -> None:
    clients.dynamodb.create_table(**table_of("asked", "pk", indexes={"by-kind": "kind"}))
    clients.dynamodb.put_item(TableName="asked", Item={"pk": {"S": "a"}, "kind": {"S": "k"}})
    clients.dynamodb.query(
        TableName="asked", IndexName="by-kind", KeyConditionExpression="kind = :k",
        ExpressionAttributeValues={":k": {"S": "k"}},
    )  # fmt: skip
    policy = by_stdio.ask("suggest_policy")["policy"]
    arn = clients.dynamodb.describe_table(TableName="asked")["Table"]["TableArn"]
    allowed = {
        (resource, action)
        for statement in policy["Statement"]
        for resource in statement["Resource"]
        for action in statement["Action"]
    }
    assert {pair for pair in allowed if pair[0].startswith(arn)} == {
        (arn, "dynamodb:PutItem"),
        (f"{arn}/index/by-kind", "dynamodb:Query"),
    }
    assert "Nothing is counted" in by_stdio.refused("suggest_policy", caller="nobody")
    clients.dynamodb.create_table(**table_of("kept", "pk"))
    clients.dynamodb.put_item(TableName="kept", Item={"pk": {"S": "a"}})
    clients.dynamodb.delete_table(TableName="asked")
    again = by_stdio.ask("suggest_policy")
    assert not [one for one in again["policy"]["Statement"] if arn in one["Resource"]]
    assert any("asked" in note and "is gone" in note for note in again["notes"])


def test_a_server_that_does_not_count_says_how_to_begin() -> None:
    with serving("--memory") as running, agent(command(running.endpoint)) as reading:
        for tool in ("costs", "what_if", "suggest_policy"):
            assert "hashrange costs start" in reading.refused(tool)


def test_a_server_with_a_token_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HASHRANGE_ADMIN_TOKEN", "a-token-of-this-test")
    with serving("--memory", "--costs") as running:
        unknown = {name: value for name, value in os.environ.items() if name != "HASHRANGE_ADMIN_TOKEN"}
        without = command(running.endpoint)
        with agent(without.model_copy(update={"env": unknown})) as stranger:
            assert "HASHRANGE_ADMIN_TOKEN" in stranger.refused("costs")
            assert stranger.ask("list_tables")["tables"] == []
        with agent(without.model_copy(update={"env": dict(os.environ)})) as known:
            assert known.ask("costs")["lines"] == []
