"""`hashrange pull --follow`, between two servers."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import boto3
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.database import Database
from hashrange.server import running
from sync.world import STREAM
from worlds import table_of

ARN = "arn:aws:dynamodb:us-east-1:000000000000:table/orders"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture
def sides() -> Iterator[list[Any]]:
    """Clients of the account, with a table, and of the server here."""
    with (
        Database.in_memory() as account,
        Database.in_memory() as here,
        running(account) as there_url,
        running(here) as url,
    ):
        account.execute("CreateTable", {**table_of("orders", "id"), "StreamSpecification": STREAM})
        account.execute("PutItem", {"TableName": "orders", "Item": {"id": {"S": "first"}}})
        yield [boto3.client("dynamodb", endpoint_url=one) for one in (there_url, url)]


def pull(sides: list[Any], *arguments: str) -> Result:
    urls = ["--from", sides[0].meta.endpoint_url, "--endpoint-url", sides[1].meta.endpoint_url]
    return CliRunner().invoke(main, ["pull", *arguments, *urls])


def keys(client: Any) -> set[str]:
    return {item["id"]["S"] for item in client.scan(TableName="orders", ConsistentRead=True)["Items"]}


@pytest.mark.parametrize(("stop", "table"), [(signal.SIGINT, "orders"), (signal.SIGTERM, ARN)])
def test_items_and_later_changes_come_until_a_signal(
    sides: list[Any], stop: signal.Signals, table: str
) -> None:
    before = {one: signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)}
    seen: list[set[str]] = []

    def use() -> None:
        """Wait for the first copy, change something, and wait for the change."""
        try:
            for wanted in ({"first"}, {"second"}):
                if "second" in wanted:
                    sides[0].delete_item(TableName="orders", Key={"id": {"S": "first"}})
                    sides[0].put_item(TableName="orders", Item={"id": {"S": "second"}})
                for _ in range(2_000):
                    try:
                        found = keys(sides[1])
                    except sides[1].exceptions.ResourceNotFoundException:
                        continue
                    if found == wanted:
                        break
                seen.append(found)
        finally:
            os.kill(os.getpid(), stop)

    user = threading.Thread(target=use)
    user.start()
    try:
        result = pull(sides, table, "--follow")
    finally:
        user.join()
        for one, handler in before.items():
            signal.signal(one, handler)
    assert seen == [{"first"}, {"second"}]
    assert result.exit_code == 0, result.output
    assert "orders: key id; stream NEW_AND_OLD_IMAGES" in result.output
    assert "orders: first copy: about 1 items" in result.output
    assert set(sides[0].list_tables()["TableNames"]) == {"orders"}  # (nothing was written there)


def test_a_table_without_a_stream_is_refused_at_once(sides: list[Any]) -> None:
    sides[0].update_table(TableName="orders", StreamSpecification={"StreamEnabled": False})
    result = pull(sides, "orders", "--follow")
    assert result.exit_code == 1
    assert "The stream of the cloud's table orders is off" in result.output
    assert keys(sides[1]) == set()


def test_a_dry_run_follows_nothing(sides: list[Any]) -> None:
    result = pull(sides, "orders", "--follow", "--dry-run")
    assert (result.exit_code, result.output.count("would be created")) == (0, 1)
    assert sides[1].list_tables()["TableNames"] == []
