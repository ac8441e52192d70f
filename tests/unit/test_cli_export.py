"""`hashrange export`: the items of a table in a file that `hashrange import` and other programs read."""

from __future__ import annotations

import errno
import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import exporting, main
from hashrange.database import Database
from hashrange.server import running
from worlds import create

ITEMS: list[dict[str, Any]] = [
    {"pk": {"S": "a"}, "n": {"N": "12345678901234567890.5"}, "b": {"B": "AAE="}},
    {"pk": {"S": "b,\"c\"\nd"}, "list": {"L": [{"N": "1"}, {"NULL": True}, {"BS": ["YQ=="]}]}},
    {"pk": {"S": "c"}, "map": {"M": {"x": {"BOOL": True}, "s": {"NS": ["2", "3"]}}}},
]  # fmt: skip


@pytest.fixture
def database() -> Iterator[Database]:
    with Database.in_memory() as database:
        for name in ("music", "copied"):
            create(database, name, "pk")
        for item in ITEMS:
            database.execute("PutItem", {"TableName": "music", "Item": item})
        yield database


@pytest.fixture
def endpoint(database: Database, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "any")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    with running(database) as url:
        yield url


def run(endpoint: str, *arguments: object, command: str = "export") -> Result:
    return CliRunner().invoke(main, [command, *map(str, arguments), "--endpoint-url", endpoint])


def scan(database: Database, table: str) -> list[dict[str, Any]]:
    found = orjson.loads(orjson.dumps(database.execute("Scan", {"TableName": table})))
    items: list[dict[str, Any]] = found["Items"]
    return items


@pytest.mark.parametrize("name", ["songs.json", "songs.jsonl.gz", "songs"])
def test_what_is_exported_is_imported_with_every_type(
    database: Database, endpoint: str, tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    result = run(endpoint, "music", file)
    assert result.exit_code == 0, result.output
    assert result.stdout == "3 items exported\n"
    assert run(endpoint, "copied", file, command="import").exit_code == 0
    assert scan(database, "copied") == scan(database, "music") == sorted(ITEMS, key=scan_order(database))
    assert [path.name for path in tmp_path.iterdir()] == [name]


def scan_order(database: Database) -> Any:
    keys = [item["pk"] for item in scan(database, "music")]
    return lambda item: keys.index(item["pk"])


def test_plain_json_and_csv(database: Database, endpoint: str, tmp_path: Path) -> None:
    plain = run(endpoint, "music", "-", "--format", "plain")
    assert "12345678901234567890.5" in plain.stdout
    found = {item["pk"]: item for item in map(json.loads, plain.stdout.splitlines())}
    assert found['b,"c"\nd']["list"] == [1, None, ["YQ=="]]
    assert found["c"] == {"pk": "c", "map": {"x": True, "s": [2, 3]}}
    assert plain.stderr.endswith("3 items exported\n")
    file = tmp_path / "songs.csv.gz"
    assert run(endpoint, "music", file).exit_code == 0
    head, *lines = gzip.decompress(file.read_bytes()).decode().split("\n")
    assert head.startswith("pk,")
    assert sorted(head.split(",")) == ["b", "list", "map", "n", "pk"]
    assert any("12345678901234567890.5" in line and "AAE=" in line for line in lines)
    assert run(endpoint, "copied", file, command="import").exit_code == 0
    assert {item["pk"]["S"] for item in scan(database, "copied")} == {"a", 'b,"c"\nd', "c"}


def test_a_file_is_overwritten_only_if_that_is_wanted(endpoint: str, tmp_path: Path) -> None:
    file = tmp_path / "songs.json"
    file.write_text("mine")
    refused = run(endpoint, "music", file)
    assert refused.exit_code == 1
    assert f"Overwrite {file}? There is no terminal for the answer: give --yes." in refused.stderr
    assert file.read_text() == "mine"
    assert run(endpoint, "music", file, "--yes", "--limit", "2").stdout == "2 items exported\n"
    assert len(file.read_text().splitlines()) == 2


def test_what_fails_leaves_no_file(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = run(endpoint, "absent", tmp_path / "a.json")
    assert (missing.exit_code, "ResourceNotFoundException" in missing.stderr) == (1, True)
    nowhere = run(endpoint, "music", tmp_path / "none" / "a.json")
    assert "cannot be written: No such file or directory" in nowhere.stderr

    def full(items: object) -> bytes:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(exporting, "typed_lines", full)
    failed = run(endpoint, "music", tmp_path / "a.json")
    assert (failed.exit_code, "cannot be written: No space left" in failed.stderr) == (1, True)
    assert list(tmp_path.iterdir()) == []
