"""The embedded engine on a disk that is full or fails: reads go on, writes are refused at once, and it mends
itself when the disk does."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from threading import Event, Thread
from typing import Any
from urllib.parse import urlsplit

import orjson
import pytest
from rocksdict import Rdict

from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.errors import InternalServerError
from hashrange.server import running
from hashrange.storage.api import Reader, Totals, Transaction
from hashrange.storage.embedded import EmbeddedEngine, disk
from hashrange.storage.embedded.room import Room
from hashrange.storage.failures import CommitError, CommitFailed, CommitUnknown
from hashrange_engine_tests import faults
from worlds import table_of

pytestmark = pytest.mark.once

P = b"partition"
Usage = namedtuple("Usage", "total used free")
CREATE = table_of("events", "pk")
HEADERS = {
    "Content-Type": "application/x-amz-json-1.0",
    "Authorization": "AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, "
    "SignedHeaders=host, Signature=0",
    "X-Amz-Date": "20260101T000000Z",
}


def start(txn: Transaction) -> None:
    for sort in (b"changed", b"deleted", b"kept"):
        txn.put(1, P, sort, b"before")
    txn.put(2, P, b"", b"before")
    txn.count(1, 3, 3)


def change(txn: Transaction) -> None:
    txn.put(1, P, b"changed", b"after")
    txn.put(1, P, b"new", b"after")
    txn.delete(1, P, b"deleted")
    txn.delete_space(2)
    txn.count(1, 5, 5)


def look(reader: Reader) -> Any:
    """All records, read in every way."""
    rows = list(reader.scan(1, P))
    assert list(reader.scan(1, P, reverse=True)) == rows[::-1]
    assert [(sort, value) for _, sort, value in reader.scan_space(1)] == rows
    assert reader.get_many([(1, P, sort) for sort, _ in rows]) == [value for _, value in rows]
    return rows, reader.get(1, P, b"new"), reader.get(2, P, b""), reader.totals(1)


BEFORE = (
    [(b"changed", b"before"), (b"deleted", b"before"), (b"kept", b"before")], None, b"before", Totals(3, 3)
)  # fmt: skip
AFTER = ([(b"changed", b"after"), (b"kept", b"before"), (b"new", b"after")], b"after", None, Totals(8, 8))


def mended(engine: EmbeddedEngine) -> None:
    """Wait until the store takes writes again."""
    while engine.refusing():
        pass


def ask(url: str, path: str, operation: str = "", request: object = None) -> tuple[int, str]:
    """The status and the text of an answer of either port."""
    connection = HTTPConnection(urlsplit(url).netloc, timeout=30)
    if operation:
        headers = {"X-Amz-Target": f"DynamoDB_20120810.{operation}", **HEADERS}
        connection.request("POST", path, orjson.dumps(request), headers)
    else:
        connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[EmbeddedEngine]:
    engine = EmbeddedEngine(tmp_path / "data")
    engine.write(start)
    yield engine
    engine.close()


@pytest.fixture
def openable(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """RocksDB can be opened for writing while the event is set."""
    openable = Event()
    openable.set()
    open_rocks = disk.open_rocks

    def refuse(*arguments: Any, **options: Any) -> Rdict:
        if not openable.is_set():
            raise Exception("IO error: No space left on device")
        return open_rocks(*arguments, **options)

    monkeypatch.setattr(disk, "open_rocks", refuse)
    yield openable
    openable.set()


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> Iterator[Event]:
    """The disk is full while the event is set."""
    is_full = Event()
    measured = shutil.disk_usage

    def usage(path: Any) -> Any:
        return Usage(1000, 999, 1) if is_full.is_set() else measured(path)

    monkeypatch.setattr("hashrange.storage.embedded.room.shutil.disk_usage", usage)
    # Each batch is to ask the disk.
    monkeypatch.setattr("hashrange.storage.embedded.room.SPARE_BYTES_MIN", 1 << 62)
    yield is_full
    is_full.clear()


def test_reads_go_on_while_the_store_cannot_be_opened_again(
    engine: EmbeddedEngine, openable: Event, caplog: pytest.LogCaptureFixture
) -> None:
    openable.clear()
    with faults.failing(engine), pytest.raises(CommitUnknown, match="no space left on the test"):
        engine.write(change)
    # The failed batch is in the log and in RocksDB; nobody sees it unless the process dies now.
    errors: list[Exception | None] = []
    for turn in range(3):
        assert engine.read(look) == BEFORE
        with pytest.raises(CommitFailed, match="no space left on the test"):
            engine.write(change)
        engine.submit(change, lambda result, error: errors.append(error))
        assert [type(error) for error in errors] == [CommitFailed] * (turn + 1)
        with pytest.raises(CommitFailed):
            engine.checkpoint("nowhere")
    assert engine.refusing() == (
        "no space left on the test; still: IO error: No space left on device"
    )
    openable.set()
    mended(engine)
    assert engine.read(look) == BEFORE
    engine.write(change)
    assert engine.read(look) == AFTER
    # Two lines in all, however many were refused.
    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("ERROR", "the store refuses writes: no space left on the test"),
        ("WARNING", "the store takes writes again; 10 were refused"),
    ]


def test_a_read_that_began_before_keeps_its_moment(engine: EmbeddedEngine, openable: Event) -> None:
    """And the RocksDB that it reads from; the repair waits for it, new readers do not."""
    began, go_on = Event(), Event()
    seen: list[Any] = []

    def long_read(reader: Reader) -> None:
        scan = reader.scan(1, P)
        first = next(scan)
        began.set()
        assert go_on.wait(30)
        seen.append([first, *scan])
        seen.append(look(reader))

    thread = Thread(target=engine.read, args=(long_read,))
    thread.start()
    assert began.wait(30)
    openable.clear()
    outcomes: list[Exception | None] = []
    warned = Event()

    def done(result: Any, error: Exception | None) -> None:
        outcomes.append(error)
        warned.set()

    with faults.failing(engine):
        engine.submit(change, done)
        while not engine.refusing():
            pass
    openable.set()
    assert engine.read(look) == BEFORE
    go_on.set()
    thread.join()
    assert warned.wait(30)
    mended(engine)
    assert seen == [BEFORE[0], BEFORE]
    assert engine.read(look) == BEFORE
    engine.write(change)
    assert engine.read(look) == AFTER


def test_a_store_that_was_closed_while_it_was_broken(tmp_path: Path, openable: Event) -> None:
    """What it acknowledged is there; of what it failed, all or nothing."""
    engine = EmbeddedEngine(tmp_path / "data")
    engine.write(start)
    openable.clear()
    with faults.failing(engine), pytest.raises(CommitUnknown):
        engine.write(change)
    engine.close()
    openable.set()
    engine = EmbeddedEngine(tmp_path / "data")
    assert engine.read(look) in (BEFORE, AFTER)
    engine.close()


def test_a_batch_that_has_no_room_never_reaches_rocksdb(
    engine: EmbeddedEngine, full: Event, caplog: pytest.LogCaptureFixture
) -> None:
    db, number = engine._store.db, engine._store.db.latest_sequence_number()
    full.set()
    for _ in range(3):
        with pytest.raises(CommitFailed, match=r"has 0\.0 MiB free, of which the store keeps 4\.0 MiB"):
            engine.write(change)
        assert engine.read(look) == BEFORE
    assert engine._store.db.latest_sequence_number() == number
    full.clear()
    mended(engine)
    assert engine._store.db is db, "it was opened again without need"
    engine.write(change)
    assert engine.read(look) == AFTER
    assert [record.levelname for record in caplog.records] == ["ERROR", "WARNING"]


@pytest.mark.parametrize("kind", ["full", "broken"])
def test_a_server_serves_reads_and_says_that_it_refuses_writes(
    tmp_path: Path, full: Event, openable: Event, kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = EmbeddedEngine(tmp_path / "data")
    database = Database(engine)
    key = {"pk": {"S": "here"}}
    listening = bind_admin(0)
    with running(database, admin=listening) as endpoint, ExitStack() as failures:
        url = listening.url

        def call(operation: str, request: dict[str, Any]) -> tuple[int, str]:
            return ask(endpoint, "/", operation, request)

        assert call("CreateTable", dict(CREATE))[0] == 200
        while call("PutItem", {"TableName": "events", "Item": key})[0] != 200:
            pass
        assert ask(url, "/health")[0] == 200
        assert "hashrange_refuses_writes 0" in ask(url, "/metrics")[1]
        if kind == "full":
            full.set()
        else:
            openable.clear()
            failures.enter_context(faults.failing(engine))
        for _ in range(5):
            status, answer = call("PutItem", {"TableName": "events", "Item": {"pk": {"S": "new"}}})
            assert (status, "InternalServerError" in answer) == (500, True)
            assert call("GetItem", {"TableName": "events", "Key": key})[0] == 200
            assert call("Scan", {"TableName": "events"})[0] == 200
        status, text = ask(url, "/health")
        shown = orjson.loads(text)
        assert (status, shown["status"]) == (503, "refuses writes")
        assert shown["cause"]
        assert "hashrange_refuses_writes 1" in ask(url, "/metrics")[1]
        failures.close()
        full.clear()
        openable.set()
        mended(engine)
        assert ask(url, "/health")[0] == 200
        assert call("PutItem", {"TableName": "events", "Item": {"pk": {"S": "new"}}})[0] == 200
    database.close()
    records = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert [record.levelname for record in records] == ["ERROR", "WARNING"]
    assert all(record.exc_info is None for record in records)


def test_a_database_in_process_says_so_in_the_services_words(engine: EmbeddedEngine, full: Event) -> None:
    database = Database(engine)
    full.set()
    with pytest.raises(InternalServerError):
        database.execute("CreateTable", dict(CREATE))


# Disks of their own.

MOUNTS = {
    "ext4": ("mount", "-o", "loop", "{image}", "{folder}"),
    "tmpfs": ("mount", "-t", "tmpfs", "-o", "size=48m", "tmpfs", "{folder}"),
}


@pytest.fixture(params=MOUNTS)
def small_disk(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A folder on a file system of 48 MB."""
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("to mount a small file system takes Linux and root; test_storage_embedded does without")
    if request.param == "ext4":
        if shutil.which("mkfs.ext4") is None:
            pytest.skip("needs mkfs.ext4")
        with image.open("wb") as file:
            file.truncate(48 * 1024 * 1024)
        subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    command = [part.format(image=image, folder=folder) for part in MOUNTS[request.param]]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        pytest.skip(f"this machine does not let a test mount {request.param}: {mounted.stderr.strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def put(txn: Transaction, sort: bytes, value: bytes) -> None:
    txn.put(1, P, sort, value)


def fill(path: Path) -> None:
    """Take all the room that is left, but for what is not worth a block."""
    with path.open("wb", buffering=0) as file:
        for size in (1024 * 1024, 4096):
            try:
                while file.write(bytes(size)) == size:
                    pass
            except OSError:
                continue


@pytest.mark.parametrize("watched", [True, False], ids=["watched", "unwatched"])
def test_a_real_disk_that_is_full(small_disk: Path, watched: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Watched, the store stops before the end; unwatched, RocksDB runs into it, as when others fill it."""
    engine = EmbeddedEngine(small_disk / "data")
    known: dict[bytes, bytes] = {}

    def write(number: int) -> bool:
        sort, value = b"%d" % number, os.urandom(300_000)
        try:
            engine.write(partial(put, sort=sort, value=value))
        except CommitError:
            return False
        known[sort] = value
        return True

    def check() -> None:
        assert engine.read(lambda reader: dict(reader.scan(1, P))) == known
        assert engine.read(lambda reader: {sort: reader.get(1, P, sort) for sort in known}) == known

    if not watched:
        monkeypatch.setattr(Room, "look", lambda *arguments: 0)
    for turn in range(2):
        assert write(turn)
        fill(small_disk / "fill")
        assert not all(write(1000 + number) for number in range(20))
        check()
        assert engine.refusing()
        (small_disk / "fill").unlink()
        mended(engine)
        check()
    # And it fills the disk by itself.
    assert not all(write(number) for number in range(2000, 2400))
    check()
    if watched:  # what it kept for that is there
        engine.close()
        engine = EmbeddedEngine(small_disk / "data")
        check()
    engine.close()
