"""`hashrange lab`: throttling and late reads of a running server, without a request by hand."""

from __future__ import annotations

from collections.abc import Iterator

import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.client import connect
from hashrange.database import Database
from hashrange.server import running
from worlds import create


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory() as database:
        create(database, "orders", "pk")
        yield database


@pytest.fixture
def url(database: Database) -> Iterator[str]:
    listening = bind_admin(0)
    with running(database, admin=listening):
        yield listening.url


def lab(url: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["lab", *arguments, "--admin-url", url], prog_name="hashrange")


def test_throttling_starts_and_stops_for_all_tables_and_for_one(database: Database, url: str) -> None:
    throttling = database.lab.throttling
    assert lab(url, "throttling", "start").output.splitlines()[1:] == [
        "throttling      on", "eventual reads  off",
    ]  # fmt: skip
    assert throttling.everywhere
    assert "  of orders: off" in lab(url, "throttling", "stop", "--table", "orders").output
    assert throttling.tables == {"orders": False}
    assert "orders" not in lab(url, "throttling", "reset", "--table", "orders").output
    assert throttling.tables == {}
    lab(url, "throttling", "stop")
    assert not throttling.everywhere


def test_late_reads_start_and_stop(database: Database, url: str) -> None:
    assert lab(url, "eventual", "start", "2s").output.endswith("eventual reads  2s\n")
    assert database.lab.eventual.seconds == 2
    given = ("eventual", "start", "1m30s", "--seed", "7", "--monotonic")
    assert lab(url, *given).output.endswith("eventual reads  1m30s, seed 7, monotonic\n")
    assert lab(url, "eventual", "stop").output.endswith("eventual reads  off\n")
    assert database.lab.eventual.seconds == 0
    assert lab(url, "eventual", "start", "0s").exit_code == 2


def test_it_shows_what_was_used(database: Database, url: str) -> None:
    lab(url, "throttling", "start")
    connect(database).put_item(TableName="orders", Item={"pk": {"S": "a"}})
    shown = lab(url, "show").output.splitlines()
    assert shown[-1].split() == ["orders", "4", "0.0", "1.0", "0", "0"]
    assert orjson.loads(lab(url, "show", "--format", "json").stdout)["throttle"] is True
    lines = lab(url, "partitions", "orders").output.splitlines()
    assert lines[1].startswith("from the hash")
    assert len(lines) == 6
    parts = orjson.loads(lab(url, "partitions", "orders", "--format", "json").stdout)["partitions"]
    assert sum(part["consumed_write_units"] for part in parts) == 1
    missing = lab(url, "partitions", "absent")
    assert (missing.exit_code, "GET /v1/lab lists those" in missing.output) == (1, True)
