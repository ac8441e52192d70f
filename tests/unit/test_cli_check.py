"""`hashrange check`: it only reads, reports every kind of damage, and repairs what can be repaired."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import orjson
import pytest
from click.testing import CliRunner, Result

from hashrange.cli import main
from hashrange.database import Database
from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.embedded.files.logs import LogRecord, read_log, write_log
from hashrange.storage.embedded.files.manifest import read_manifest
from hashrange.tables.definitions import catalog
from hashrange.tables.items import records
from worlds import table_of

ITEMS = 400

# Two tables, one with an index and expiry; half of the items in SST files, half in the log; then a kill.
_WRITER = """
import os, random, sys
from hashrange.database import Database
from hashrange.storage.api import Transaction
from hashrange.storage.embedded import EmbeddedEngine

directory, count = sys.argv[1], int(sys.argv[2])

def create(database, name, **more):
    names = "pg" if more else "p"
    database.execute("CreateTable", {
        "TableName": name, "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": n, "AttributeType": "S"} for n in names],
        "KeySchema": [{"AttributeName": "p", "KeyType": "HASH"}], **more})

def fill(database, numbers):
    for n in numbers:
        item = {"p": {"S": f"p{n}"}, "g": {"S": f"g{n % 7}"}, "ttl": {"N": str(5_000_000_000 + n)}}
        item["v"] = {"S": random.Random(n).randbytes(400).hex()}
        database.execute("PutItem", {"TableName": "many", "Item": item})
    database.execute("PutItem", {"TableName": "few", "Item": {"p": {"S": str(n)}}})

engine = EmbeddedEngine(directory)
database = Database(engine)
create(database, "few")
create(database, "many", GlobalSecondaryIndexes=[{
    "IndexName": "by-g", "KeySchema": [{"AttributeName": "g", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"}}])
database.execute("UpdateTimeToLive", {
    "TableName": "many", "TimeToLiveSpecification": {"AttributeName": "ttl", "Enabled": True}})
database.tend()
fill(database, range(count // 2))
engine.close()
engine = EmbeddedEngine(directory)
fill(Database(engine), range(count // 2, count))
os._exit(9)
"""


@pytest.fixture(scope="session")
def killed_tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("tables") / "data"
    done = subprocess.run([sys.executable, "-c", _WRITER, str(directory), str(ITEMS)], check=False)
    assert done.returncode == 9
    return directory


@pytest.fixture
def data(killed_tables: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(killed_tables, tmp_path / "data"))


def run(data: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["check", str(data), *options])


def state(data: Path) -> dict[str, tuple[bytes, int]]:
    paths = [path for path in sorted(data.rglob("*")) if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in paths}


def problems(data: Path, *options: str) -> list[str]:
    """What check prints; it changes nothing, and says by its exit code whether it printed something."""
    before = state(data)
    result = run(data, *options)
    assert state(data) == before
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    lines = result.stdout.splitlines()
    assert result.exit_code == (1 if lines else 0), result.output
    return lines


def items(data: Path, table: str = "many") -> set[int]:
    """The numbers of the items that a scan finds."""
    engine = EmbeddedEngine(data)
    try:
        database = Database(engine)
        found: set[int] = set()
        request: dict[str, Any] = {"TableName": table, "ProjectionExpression": "p"}
        while True:
            page = orjson.loads(orjson.dumps(database.execute("Scan", request), default=str))
            found.update(int(item["p"]["S"][1:]) for item in page["Items"])
            if "LastEvaluatedKey" not in page:
                return found
            request["ExclusiveStartKey"] = page["LastEvaluatedKey"]
    finally:
        engine.close()


def flip(path: Path, offset: int, count: int = 1) -> None:
    content = bytearray(path.read_bytes())
    for at in range(offset, offset + count):
        content[at] ^= 0xFF
    path.write_bytes(content)


def log_of(data: Path) -> Path:
    return max((data / "rocks").glob("*.log"), key=lambda path: int(path.stem))


def largest_sst(data: Path) -> Path:
    ssts = read_manifest(data / "rocks").ssts.values()
    return data / "rocks" / max(ssts, key=lambda sst: sst.size_bytes).name


def test_a_killed_store_is_sound(data: Path) -> None:
    assert problems(data) == []
    assert items(data) == set(range(ITEMS))
    assert problems(data) == []


def test_a_hole_in_the_log_is_reported_and_repaired_without_its_records(data: Path) -> None:
    log = log_of(data)
    records = [found for found in read_log(log.read_bytes()) if isinstance(found, LogRecord)]
    flip(log, records[50].offset + 500, 3)
    first, *rest = problems(data)
    assert "log is damaged at byte" in first
    assert "lost are the batches" in first
    assert rest  # the totals no longer match the items
    kept = log.read_bytes()
    repaired = run(data, "--repair")
    assert repaired.exit_code == 0, repaired.output
    assert "repaired" in repaired.stderr
    assert (data / "damaged-1/rocks" / log.name).read_bytes() == kept
    assert problems(data) == []
    lost = set(range(ITEMS)) - items(data)
    assert len(lost) == 1
    assert problems(data) == []


def test_records_that_no_table_owns_are_kept_in_a_file_and_deleted(data: Path) -> None:
    item = {"p": {"S": "nobody's"}}
    engine = EmbeddedEngine(data)

    def body(txn: Transaction) -> int:
        space = catalog.new_space(txn)
        txn.put(space, b"p", b"1", records.pack(item, 9))
        txn.put(space, b"p", b"2", b"no item")
        return space

    space = engine.write(body)
    engine.close()
    assert problems(data) == [f"store: space {space} holds records, but no table owns it"]
    assert run(data, "--repair").exit_code == 0
    kept = (data / f"damaged-1/space-{space}.jsonl").read_text().splitlines()
    other = {"Record": [b"p".hex(), b"2".hex(), b"no item".hex()]}
    assert [orjson.loads(line) for line in kept] == [{"Item": item}, other]
    assert problems(data) == []
    assert items(data) == set(range(ITEMS))


def test_the_log_is_deleted(data: Path) -> None:
    log_of(data).unlink()
    assert any("write-ahead log is missing" in line for line in problems(data))
    assert any("which were acknowledged" in line for line in problems(data))
    assert run(data, "--repair").exit_code == 0
    assert items(data) == set(range(ITEMS // 2))
    assert problems(data) == []


@pytest.mark.parametrize("name", ["rocks/CURRENT", "STORE", "FORMAT"])
def test_what_can_be_made_again_is(data: Path, name: str) -> None:
    (data / name).unlink()
    assert any(f"{name} is missing" in line for line in problems(data))
    assert run(data, "--repair").exit_code == 0
    assert items(data) == set(range(ITEMS))


def test_current_names_a_manifest_that_is_not_there(data: Path) -> None:
    (data / "rocks/CURRENT").write_text("MANIFEST-000999\n")
    assert any("MANIFEST-000999, which rocks/CURRENT names, is missing" in line for line in problems(data))
    assert run(data, "--repair").exit_code == 0
    assert items(data) == set(range(ITEMS))


def test_a_file_that_a_shortened_manifest_does_not_name_is_kept(data: Path) -> None:
    manifest = data / "rocks" / read_manifest(data / "rocks").name
    sst = largest_sst(data)
    edits = [found.payload for found in read_log(manifest.read_bytes()) if isinstance(found, LogRecord)]
    while True:
        edits.pop()
        manifest.write_bytes(write_log(edits))
        if sst.name not in {one.name for one in read_manifest(data / "rocks").ssts.values()}:
            break
    assert problems(data)
    run(data, "--repair")
    assert (data / "damaged-1/rocks" / sst.name).exists()


@pytest.mark.parametrize("name", ["rocks", "rocks/MANIFEST-*"])
def test_what_cannot_be_repaired_is_refused(data: Path, name: str) -> None:
    for path in list(data.glob(name)):
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    lines = problems(data)
    assert "is missing" in lines[0]
    assert "no record can be read" in lines[-1]
    before = state(data)
    refused = run(data, "--repair")
    assert refused.exit_code == 2
    assert "restore a copy" in refused.stderr
    assert state(data) == before


def test_a_damaged_block_is_passed_over(data: Path) -> None:
    sst = largest_sst(data)
    for at in (20_000, 60_000):
        flip(sst, at)
    lines = problems(data)
    blocks = [line for line in lines if "checksum mismatch" in line]
    assert len(blocks) == 2, lines
    assert all(f"rocks/{sst.name}" in line and "lost: some records of" in line for line in blocks)
    assert "table few" not in "".join(blocks)
    assert run(data, "--repair").exit_code == 0
    assert (data / "damaged-1/rocks" / sst.name).exists()
    lost = set(range(ITEMS)) - items(data)
    assert 0 < len(lost) < 60
    assert max(lost) < ITEMS // 2
    assert problems(data) == []


@pytest.mark.parametrize("how", ["missing", "cut", "unreadable"])
def test_a_file_of_which_nothing_is_left(data: Path, how: str) -> None:
    sst = largest_sst(data)
    if how == "missing":
        sst.unlink()
    elif how == "cut":
        os.truncate(sst, 5_000)
    else:
        flip(sst, sst.stat().st_size - 60, 60)
    lines = problems(data)
    assert sum(f"rocks/{sst.name}" in line for line in lines) == 1, lines
    assert "bytes of records" in lines[0]
    run(data, "--repair")
    problems(data)
    engine = EmbeddedEngine(data)  # what is left can be served
    engine.close()


@contextmanager
def served(data: Path) -> Iterator[Any]:
    """A client of a server over a directory, which is killed at the end."""
    command = [sys.executable, "-m", "hashrange", "serve", "--port", "0", "--log-format", "json"]
    with subprocess.Popen([*command, "--data-dir", str(data)], stderr=subprocess.PIPE) as process:
        assert process.stderr is not None
        try:
            yield boto3.client(
                "dynamodb",
                endpoint_url=orjson.loads(process.stderr.readline())["endpoint"],
                region_name="us-east-1",
                aws_access_key_id="test",
                aws_secret_access_key="test",
            )
        finally:
            process.kill()


def test_a_killed_server_whose_log_was_damaged(tmp_path: Path) -> None:
    """It refuses to start, as often as it is tried, until the loss is accepted; then only that is lost."""
    data = tmp_path / "data"
    with served(data) as client:
        client.create_table(**table_of("many", "p"))
        for n in range(60):
            client.put_item(TableName="many", Item={"p": {"S": f"p{n}"}, "v": {"S": "x" * 500}})
    assert all(path.stat().st_mode & 0o077 == 0 for path in (data, *data.rglob("*")))
    flip(log_of(data), log_of(data).stat().st_size // 2)
    before = state(data)
    for _ in range(2):
        refused = subprocess.run(
            [sys.executable, "-m", "hashrange", "serve", "--port", "0", "--data-dir", str(data)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert refused.returncode == 1
        assert "lost are the batches" in refused.stderr
        assert "--repair" in refused.stderr
    assert state(data) == before
    assert run(data, "--repair").exit_code == 0
    with served(data) as client:
        assert client.scan(TableName="many", Select="COUNT")["Count"] == 59
    assert problems(data) == []


def test_json_lines(data: Path) -> None:
    (data / "STORE").unlink()
    line = orjson.loads(problems(data, "--format", "json")[0])
    assert line["message"] == "the file STORE is missing"
    assert line["table"] is None


def test_a_directory_in_use_is_not_checked(data: Path) -> None:
    engine = EmbeddedEngine(data)
    result = run(data)
    assert result.exit_code == 2
    assert "in use by another process" in result.stderr
    engine.close()


@pytest.mark.skipif(sys.platform != "linux" or os.getuid() != 0, reason="mounts a read-only directory")
def test_a_disk_that_cannot_be_written_to(data: Path, tmp_path: Path) -> None:
    (tmp_path / "mount").mkdir()
    script = "mount --bind {0} {1} && mount -o remount,ro,bind {1} && exec {2} -m hashrange check {1}"
    command = script.format(data, tmp_path / "mount", sys.executable)
    unshared = ["unshare", "--mount", "sh", "-c"]
    probe = subprocess.run([*unshared, command.rpartition(" && ")[0]], capture_output=True, check=False)
    if probe.returncode != 0:
        pytest.skip("mounts are not allowed here")
    done = subprocess.run([*unshared, command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    flip(log_of(data), 20_000)
    done = subprocess.run([*unshared, command], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "log is damaged" in done.stdout
