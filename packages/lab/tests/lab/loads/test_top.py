"""`hashrange top`: the busiest keys of a running server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import boto3
import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.faults import parse
from hashrange.server import running
from hashrange_lab.commands import top
from unit.test_admin import ask
from watched import create


@pytest.fixture
def servers(database: Database) -> Iterator[tuple[Any, str]]:
    """A client with the table "orders", and the URL of the admin plane."""
    listening = bind_admin(0)
    with running(database, admin=listening) as endpoint:
        client = boto3.client("dynamodb", endpoint_url=endpoint)
        create(client, "orders")
        yield client, listening.url
        client.close()


def put(client: Any, pk: str, sk: int = 1, **others: Any) -> None:
    client.put_item(TableName="orders", Item={"pk": {"S": pk}, "sk": {"N": str(sk)}, **others})


def get(client: Any, pk: str) -> None:
    client.get_item(TableName="orders", Key={"pk": {"S": pk}, "sk": {"N": "1"}})


def load(client: Any) -> None:
    for _ in range(6):
        get(client, "hot")
    for number in range(3):
        put(client, "warm", number, date={"S": "2026"})
    client.query(
        TableName="orders",
        IndexName="by-date",
        KeyConditionExpression="#date = :date",
        ExpressionAttributeNames={"#date": "date"},
        ExpressionAttributeValues={":date": {"S": "2026"}},
    )
    client.scan(TableName="orders")


def run(monkeypatch: pytest.MonkeyPatch, url: str, work: Callable[[], None], *arguments: str) -> Result:
    """One picture, between whose two answers `work` is done."""
    monkeypatch.setattr(top, "hold_up", lambda seconds: work())
    return CliRunner().invoke(
        main, ["top", "--once", *arguments], prog_name="hashrange", env={"HASHRANGE_ADMIN_URL": url}
    )


def test_the_busiest_keys_of_tables_and_indexes(
    servers: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, url = servers
    result = run(monkeypatch, url, lambda: load(client), "--format", "json")
    assert result.exit_code == 0, result.output
    picture = orjson.loads(result.stdout)
    seconds = picture["seconds"]
    rows = [
        (row["key"], row["index"], round(row["reads"] * seconds), round(row["writes"] * seconds))
        for row in picture["keys"]
    ]
    assert rows == [
        ({"pk": {"S": "hot"}}, "", 6, 0),
        ({"date": {"S": "2026"}}, "by-date", 1, 3),
        ({"pk": {"S": "warm"}}, "", 0, 3),
    ]
    places = {(row["table"], row["index"]): row for row in picture["places"]}
    assert round(places["orders", ""]["without_key"] * seconds) == 1
    assert round(places["orders", "by-date"]["writes"] * seconds) == 3
    operations = {of["operation"]: of for of in picture["operations"]}
    assert round(operations["GetItem"]["rate"] * seconds) == 6
    assert operations["GetItem"]["p50_seconds"] is None or operations["GetItem"]["p50_seconds"] > 0
    assert operations.keys() == {"GetItem", "PutItem", "Query", "Scan"}


def test_a_picture_for_people_has_eighty_columns(
    servers: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, url = servers

    def work() -> None:
        load(client)
        for _ in range(3):
            get(client, "x" * 200 + "\x1b[2J")

    result = run(monkeypatch, url, work)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= top.COLUMNS
    assert "\x1b" not in result.stdout
    assert any(line.startswith("hot ") and line.endswith("██████████") for line in lines)
    assert any(line.startswith("xxxxx") and "…" in line for line in lines)
    assert any(line.startswith("2026 ") and "orders/by-date" in line for line in lines)
    assert any(line.startswith("GetItem") for line in lines)


def test_the_order_and_the_table_are_chosen(
    servers: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, url = servers
    create(client, "others")

    def work() -> None:
        load(client)
        client.get_item(TableName="others", Key={"pk": {"S": "z"}, "sk": {"N": "1"}})

    by_writes = orjson.loads(
        run(monkeypatch, url, work, "--format", "json", "--by", "writes", "--limit", "2").stdout
    )
    values = [next(iter(row["key"].values()))["S"] for row in by_writes["keys"]]
    assert sorted(values) == ["2026", "warm"]
    of_others = orjson.loads(run(monkeypatch, url, work, "--format", "json", "--table", "others").stdout)
    assert [row["key"] for row in of_others["keys"]] == [{"pk": {"S": "z"}}]
    assert [row["table"] for row in of_others["places"]] == ["others"]


def test_throttled_keys(
    servers: tuple[Any, str], database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, url = servers
    database.faults.add(parse("GetItem key.pk=hot throttle"))

    def work() -> None:
        get(client, "cold")
        with pytest.raises(client.exceptions.ProvisionedThroughputExceededException):
            get(client, "hot")

    picture = orjson.loads(run(monkeypatch, url, work, "--format", "json", "--by", "throttles").stdout)
    assert [row["key"] for row in picture["keys"]] == [{"pk": {"S": "hot"}}]
    assert "no key was throttled" in run(monkeypatch, url, lambda: None, "--by", "throttles").stdout


def test_a_table_that_is_made_later_is_looked_up(
    servers: tuple[Any, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    client, url = servers

    def work() -> None:
        create(client, "later")
        client.get_item(TableName="later", Key={"pk": {"S": "first"}, "sk": {"N": "1"}})
        ask(url, "/v1/heat")
        client.get_item(TableName="later", Key={"pk": {"S": "second"}, "sk": {"N": "1"}})

    picture = orjson.loads(run(monkeypatch, url, work, "--format", "json").stdout)
    assert [row["key"] for row in picture["keys"]] == [{"pk": {"S": "second"}}]


def is_watched(database: Database) -> bool:
    return database.observers.active is not None


def test_nothing_is_counted_until_somebody_looks(servers: tuple[Any, str], database: Database) -> None:
    _, url = servers
    assert not is_watched(database)
    status, shown = ask(url, "/v1/heat")
    assert status == 200
    assert shown["heat"]["keys"] == []
    assert is_watched(database)
    why = "the query ?keys=0 is not valid: Expected `int` >= 1 - at `$.keys`"
    assert ask(url, "/v1/heat?keys=0") == (400, {"error": why})


def test_counts_that_began_anew_count_from_zero() -> None:
    row = {"table": "orders", "index": "", "key": {"pk": {"S": "a"}}, "reads": 5, "writes": 0, "throttles": 0}
    heat: dict[str, Any] = {"since": "1", "seconds": 10.0, "places": []}
    heat |= {"operations": {}, "bounds_seconds": []}
    before = {**heat, "keys": [row]}
    later = {**heat, "since": "2", "seconds": 12.0, "keys": [{**row, "reads": 8}]}
    assert top.difference(before, {**later, "since": "1"}, None, "all", 10)["keys"][0]["reads"] == 1.5
    assert top.difference(before, later, None, "all", 10)["keys"][0]["reads"] == 4.0
