"""Walks over damaged SST files come to an end, and a server does not start silently or with a traceback."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import islice, pairwise
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import urlopen

import orjson
import pytest
from click.testing import CliRunner
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from doses import examples
from hashrange.cli import main
from hashrange.cli.admin import bind_admin
from hashrange.cli.serving.serve import command as serve
from hashrange.database import Database
from hashrange.errors import InternalServerError
from hashrange.server import running
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.embedded.files import damage
from hashrange.storage.embedded.offline.repair import repair
from hashrange.storage.embedded.offline.salvage import BadRange, StoredRecords, walk
from hashrange.storage.embedded.upkeep import Upkeep
from hashrange.storage.failures import StorageError, StoreDamaged
from worlds import schema_of

P = b"partition"
ITEMS = 40
_END = b"\xff" * 40


@pytest.fixture(scope="session")
def small_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store with one small SST file, of several blocks; its values cannot be compressed."""
    directory = tmp_path_factory.mktemp("small") / "data"
    engine = EmbeddedEngine(directory)

    def fill(txn: Any) -> None:
        for n in range(ITEMS):
            txn.put(1, P, b"%03d" % n, random.Random(n).randbytes(600))

    engine.write(fill)
    engine.close()
    return directory


def small_sst(data: Path) -> Path:
    (sst,) = (data / "rocks").glob("*.sst")
    return sst


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(25))
@given(at=st.floats(0, 1, exclude_max=True), length=st.sampled_from([1, 16, 512, 4096]))
def test_a_walk_over_a_damaged_file_goes_forward_only(
    small_store: Path, tmp_path: Path, at: float, length: int
) -> None:
    """Zeros anywhere in a small SST file: the walk ends, and so does a repair, which invents nothing."""
    data = Path(shutil.copytree(small_store, tmp_path / "zeroed"))
    try:
        sst = small_sst(data)
        content = bytearray(sst.read_bytes())
        start = int(at * len(content))
        length = min(length, len(content) - start)
        content[start : start + length] = bytes(length)
        sst.write_bytes(content)

        store = StoredRecords(data)
        bad: list[BadRange] = []
        found = [key for key, _ in islice(walk(store.db, b"", _END, bad.append), 10 * ITEMS)]
        assert found == sorted(set(found))
        for one in tuple(bad):  # a repair walks up to the damage
            before = [key for key, _ in islice(walk(store.db, b"", one.low, bad.append), 10 * ITEMS)]
            assert before == [key for key in found if key < one.low]
        store.close()
        assert all(one.low < one.high for one in bad)
        assert all(one.high <= other.low for one, other in pairwise(bad))

        list(repair(data))
        engine = EmbeddedEngine(data)
        left = engine.read(lambda reader: list(reader.scan(1, P)))
        engine.close()
        assert all(value == random.Random(int(sort)).randbytes(600) for sort, value in left)
    finally:
        shutil.rmtree(data)


def test_a_file_with_bytes_behind_its_end_is_cut_to_its_length(small_store: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(small_store, tmp_path / "data"))
    sst = small_sst(data)
    with sst.open("ab") as file:
        file.write(b"x")
    with pytest.raises(StoreDamaged, match=rf"rocks/{sst.name} has \d+ bytes instead of \d+"):
        EmbeddedEngine(data)
    assert f"rocks/{sst.name} ends where it did" in list(repair(data))
    engine = EmbeddedEngine(data)
    assert len(engine.read(lambda reader: list(reader.scan(1, P)))) == ITEMS
    engine.close()


def test_a_damaged_block_under_the_catalog_ends_a_start_with_the_remedy(tmp_path: Path) -> None:
    data = tmp_path / "data"
    database = Database.open(data)
    for n in range(3):
        database.execute("CreateTable", {"TableName": f"table{n}", **TABLE})
    database.close()
    for sst in (data / "rocks").glob("*.sst"):
        content = bytearray(sst.read_bytes())
        content[10:60] = bytes(50)
        sst.write_bytes(content)
    started = CliRunner().invoke(serve, ["--data-dir", str(data), "--port", "0"])
    assert isinstance(started.exception, SystemExit)
    assert started.exit_code == 1
    assert "hashrange check" in started.output


TABLE: dict[str, Any] = schema_of("p")


@pytest.fixture(scope="module")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store of one SST file with two tables, and a deleted one whose space was not given back."""
    directory = tmp_path_factory.mktemp("tables") / "data"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Upkeep, "step", lambda self, db: None)
        with Database.open(directory) as database:
            for n in range(3):
                database.execute("CreateTable", {"TableName": f"table{n}", **TABLE})
                for key in range(20):
                    item = {"p": {"S": f"{key}"}, "v": {"S": random.Random(key).randbytes(400).hex()}}
                    database.execute("PutItem", {"TableName": f"table{n}", "Item": item})
            database.execute("DeleteTable", {"TableName": "table2"})
            database.settle()
    return directory


@pytest.mark.parametrize("share", [n / 10 for n in range(10)])
def test_damage_that_is_met_at_any_moment_is_told_with_the_file_and_the_remedy(
    tables: Path, tmp_path: Path, share: float, caplog: pytest.LogCaptureFixture
) -> None:
    """By a start, reads, writes, the background work, a compaction, and a close: never by a traceback."""
    data = Path(shutil.copytree(tables, tmp_path / "data"))
    sst = small_sst(data)
    content = bytearray(sst.read_bytes())
    at = int(share * len(content))
    content[at : at + 64] = bytes(64)
    sst.write_bytes(content)
    told: list[str] = []

    def step(work: Callable[[], Any]) -> Any:
        try:
            return work()
        except StorageError as error:
            told.append(str(error))
        except InternalServerError:
            pass

    database = step(lambda: Database.open(data))
    if database is not None:
        for n in range(2):
            table = f"table{n}"
            for key in range(20):
                one = {"TableName": table, "Key": {"p": {"S": f"{key}"}}}
                step(partial(database.execute, "GetItem", one))
            step(partial(database.execute, "Scan", {"TableName": table}))
            step(partial(database.execute, "PutItem", {"TableName": table, "Item": {"p": {"S": "1"}}}))
        step(database.settle)
        database.engine._store.upkeep.wait()
        assert bool(told) <= bool(database.engine.problems())
        told += database.engine.problems()
        step(database.close)
    assert told
    assert all(sst.name in text and "hashrange check" in text for text in told)
    assert [record.getMessage() for record in caplog.records if record.exc_info] == []


def test_notes_of_deleted_spaces_that_cannot_be_read_end_a_start_with_the_remedy(
    tables: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = Path(shutil.copytree(tables, tmp_path / "data"))

    def unreadable(db: Any, prefix: bytes) -> list[bytes]:
        raise Exception("Corruption: block checksum mismatch in rocks/000009.sst")  # as rocksdict

    monkeypatch.setattr("hashrange.storage.embedded.upkeep.keys_under", unreadable)
    started = CliRunner().invoke(serve, ["--data-dir", str(data), "--port", "0"])
    assert isinstance(started.exception, SystemExit)
    assert started.exit_code == 1
    assert "rocks/000009.sst" in started.output
    assert "hashrange check" in started.output


def test_health_tells_of_damage_that_a_request_met(tables: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(tables, tmp_path / "data"))
    sst = small_sst(data)
    content = bytearray(sst.read_bytes())
    content[8_000:12_000] = bytes(4_000)  # items of the first table
    sst.write_bytes(content)
    database = Database.open(data)
    listening = bind_admin(0)
    with running(database, admin=listening):
        for n in range(2):
            with suppress(StorageError):
                database.execute("Scan", {"TableName": f"table{n}"})
        with urlopen(f"{listening.url}/health") as answer:
            shown = orjson.loads(answer.read())
    assert shown["status"] == "degraded"
    assert sst.name in shown["problems"][0]
    with suppress(StorageError):
        database.close()


@pytest.mark.parametrize("name", ["FORMAT", "STORE"])
def test_a_small_file_that_was_written_twice(small_store: Path, tmp_path: Path, name: str) -> None:
    data = Path(shutil.copytree(small_store, tmp_path / "data"))
    (data / name).write_bytes((data / name).read_bytes() * 2)
    with pytest.raises(StoreDamaged, match=f"the file {name} is damaged"):
        EmbeddedEngine(data)
    checked = CliRunner().invoke(main, ["check", str(data)])
    assert checked.exit_code == 1
    assert f"the file {name} is damaged" in checked.output
    list(repair(data))
    EmbeddedEngine(data).close()


def test_a_long_start_says_what_it_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    data = tmp_path / "data"
    code = (
        "import os, sys\nfrom hashrange.storage.embedded import EmbeddedEngine\n"
        "engine = EmbeddedEngine(sys.argv[1], logged_bytes_max=1 << 30)\n"
        "for _ in range(18):\n"
        "    engine.write(lambda txn: txn.put(1, b'p', os.urandom(8), bytes(1 << 20)))\n"
        "os._exit(9)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(data)], check=False).returncode == 9
    monkeypatch.setattr(damage, "_TELL_SECONDS", 0.0)
    with caplog.at_level("INFO", logger="hashrange.storage.embedded"):
        EmbeddedEngine(data).close()
    messages = [record.message for record in caplog.records]
    assert "reading the log of the store" in messages
    assert messages[-1] == "opening the store: RocksDB plays back its log"


@pytest.mark.parametrize("name", ["CURRENT", "MANIFEST-*", "*.sst", "*.log", "../STORE", ".", ". replaced"])
def test_files_that_are_removed_from_an_open_store_are_noticed(
    small_store: Path, tmp_path: Path, name: str
) -> None:
    data = Path(shutil.copytree(small_store, tmp_path / "data"))
    engine = EmbeddedEngine(data)
    engine.write(lambda txn: txn.put(1, P, b"more", b""))
    assert engine.missing_files() is None
    taken = tmp_path / "taken"
    if name.startswith(". "):
        (data / "rocks").rename(taken)
        shutil.copytree(taken, data / "rocks")
    elif name == ".":
        (data / "rocks").rename(taken)
    else:
        for path in (data / "rocks").glob(name):
            path.unlink()
    message = engine.missing_files()
    assert message is not None
    assert str(data) in message
    with suppress(StorageError):  # RocksDB misses the files as well
        engine.close()


def test_health_tells_of_files_that_were_removed(small_store: Path, tmp_path: Path) -> None:
    data = Path(shutil.copytree(small_store, tmp_path / "data"))
    database = Database(EmbeddedEngine(data))
    listening = bind_admin(0)
    with running(database, admin=listening):
        with urlopen(f"{listening.url}/health") as answer:
            assert orjson.loads(answer.read())["status"] == "ok"
        for log in (data / "rocks").glob("*.log"):
            log.unlink()
        with pytest.raises(HTTPError) as refused:
            urlopen(f"{listening.url}/health")
        with refused.value as refusal:
            shown = orjson.loads(refusal.read())
        assert (refused.value.code, shown["status"]) == (503, "files missing")
        assert f"the log in {data / 'rocks'} was removed" in shown["cause"]
    database.close()
