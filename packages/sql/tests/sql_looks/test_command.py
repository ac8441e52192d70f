"""`hashrange sql`: its forms, files and moments, over a server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import duckdb
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.clock import VirtualClock
from hashrange.database import Database
from hashrange.server import running
from hashrange.storage.memory import MemoryEngine
from worlds import NOW, create, recovery_of

SUMS = "select status, sum(total) as total from orders group by status order by status"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


@pytest.fixture
def clock() -> VirtualClock:
    return VirtualClock(NOW, frozen=True)


@pytest.fixture
def database(clock: VirtualClock) -> Iterator[Database]:
    with Database(MemoryEngine(), clock=clock) as database:
        create(database, "orders", "id:N", indexes={"by-status": "status"})
        database.execute("UpdateContinuousBackups", recovery_of("orders"))
        for number in range(500):
            status = "open" if number % 2 else "done"
            item = {"id": {"N": str(number)}, "status": {"S": status}, "total": {"N": f"{number}.25"}}
            database.execute("PutItem", {"TableName": "orders", "Item": item})
        yield database


@pytest.fixture
def url(database: Database) -> Iterator[str]:
    with running(database, admin=bind_admin(0)) as url:
        yield url


def run(url: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["sql", *arguments, "--endpoint-url", url])


def test_rows_as_a_table_and_the_plan_before(url: str) -> None:
    result = run(url, SUMS)
    assert result.exit_code == 0, result.output
    assert "│ done    │      62312.50 │" in result.stdout
    assert "orders: Scan; the attributes status, total; about" in result.stderr
    only = run(url, SUMS, "--plan")
    assert "orders: Scan; the attributes status, total; about" in only.stdout
    assert "62312" not in only.stdout


def test_rows_in_other_forms(url: str, tmp_path: Path) -> None:
    assert run(url, SUMS, "--format", "csv").stdout == "status,total\ndone,62312.50\nopen,62562.50\n"
    assert run(url, SUMS, "--format", "json", "--limit", "1").stdout == '{"status":"done","total":62312.50}\n'
    file = tmp_path / "sums.parquet"
    assert run(url, SUMS, "--output", str(file)).stdout == ""
    assert file.stat().st_mode & 0o077 == 0
    with duckdb.connect() as reader:
        assert reader.execute(f"select count(*) from '{file}'").fetchall() == [(2,)]
    assert "Overwrite" in run(url, SUMS, "--output", str(file)).stderr
    assert run(url, SUMS, "--output", str(file), "--yes").exit_code == 0
    text = tmp_path / "sums.txt"
    assert run(url, SUMS, "--output", str(text)).exit_code == 0
    assert "62312" in text.read_text(encoding="utf-8")
    assert "Parquet is for files" in run(url, SUMS, "--format", "parquet").stderr


def test_pages_are_read_as_they_come(url: str) -> None:
    client: Any = boto3.client("dynamodb", endpoint_url=url)
    large = "x" * 10_000
    for number in range(1_000, 1_250):
        item = {"id": {"N": str(number)}, "note": {"S": large}, "bytes": {"B": b"\x00\xff"}}
        client.put_item(TableName="orders", Item=item)
    result = run(url, "select count(*), sum(length(note)), max(hex(bytes)) from orders", "--format", "csv")
    assert result.stdout.splitlines()[1] == "750,2500000,00FF"


def test_boto3_decodes_no_items(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither those of a Scan nor those of a Query: that takes most of the time."""

    def fail(value: object) -> None:
        raise AssertionError(f"{value} was decoded")

    monkeypatch.setattr("hashrange_sql.reading.from_boto3", fail)
    for sql in ("select count(*) from orders", "select total from orders where id = 7"):
        result = run(url, sql)
        assert result.exit_code == 0, result.output


def test_the_past(database: Database, clock: VirtualClock, url: str) -> None:
    clock.advance(60)
    moment = str(clock.now())
    clock.advance(60)
    database.execute("PutItem", {"TableName": "orders", "Item": {"id": {"N": "999"}}})
    count = "select count(*) as n from orders"
    assert run(url, count, "--format", "csv").stdout == "n\n501\n"
    past = run(url, count, "--format", "csv", "--as-of", moment)
    assert past.stdout == "n\n500\n", past.output
    assert run(url, count, "--format", "csv", "--as-of", "1m").stdout == "n\n500\n"
    one = run(url, "select total from orders where id = 7", "--format", "csv", "--as-of", moment)
    assert one.stdout == "total\n7.25\n"
    # The past has no indexes.
    of_status = f"{count} where status = 'open'"
    assert run(url, of_status, "--format", "csv", "--as-of", moment).stdout == "n\n250\n"
    assert "index by-status" in run(url, of_status, "--plan").stdout
    assert "--as-of: " in run(url, count, "--as-of", "yesterday").stderr
    assert "--as-of" in run("aws", count, "--as-of", "1m").stderr


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("update orders set status = 'x'", "nothing can be written"),
        ("select * from nowhere", "there are: orders"),
        ("select rare from orders", "a larger one (`hashrange sql --sample`)"),
    ],
)
def test_errors_say_what_to_do(url: str, sql: str, said: str) -> None:
    result = run(url, sql)
    assert result.exit_code == 1
    assert said in result.stderr
    assert "Traceback" not in result.output


def test_nothing_is_left_in_the_folder_of_temporary_files(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert run(url, SUMS).exit_code == 0
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_does_not_answer() -> None:
    result = run("http://127.0.0.1:1", "select * from orders")
    assert result.exit_code == 1
    assert "http://127.0.0.1:1" in result.stderr
