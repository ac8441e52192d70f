"""PostgreSQL on a full disk: writes are refused, nothing is half-written, and all resumes once there is
room."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import postgres
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.failures import CommitError, CommitFailed
from hashrange_engine_tests.records import P, Q, get
from hashrange_engine_tests.transactions import writable
from hashrange_postgres import PostgresEngine

MIB = 1024 * 1024
LEFT_BYTES = 12 * MIB


@pytest.fixture
def small_disk() -> Iterator[Path]:
    """A folder on a file system of its own, which PostgreSQL may use."""
    if not postgres.installed():
        pytest.skip("PostgreSQL is not installed")
    if sys.platform != "linux" or os.geteuid() != 0:
        pytest.skip("mounting a small file system needs Linux and root")
    folder = postgres.new_directory()
    command = ["mount", "-t", "tmpfs", "-o", "size=160m,mode=755", "tmpfs", str(folder)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode != 0:
        folder.rmdir()
        pytest.skip(f"this machine does not let a test mount a file system: {mounted.stderr.strip()}")
    postgres.own(folder)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
    folder.rmdir()


def fill(disk: Path) -> None:
    """Leave little room on the disk."""
    usage = os.statvfs(disk)
    with (disk / "fill").open("wb") as file:
        file.truncate()
        os.posix_fallocate(file.fileno(), 0, usage.f_bavail * usage.f_frsize - LEFT_BYTES)


class Writes:
    """Writes pairs of records; knows which were acknowledged, and which are in doubt."""

    def __init__(self, engine: PostgresEngine) -> None:
        self.engine = engine
        self.known: dict[bytes, bytes] = {}
        self.doubtful: dict[bytes, bytes] = {}

    def write(self, number: int) -> CommitError | None:
        def body(txn: Transaction) -> None:
            txn.put(7, P, sort, value)
            txn.put(8, Q, sort, value)
            txn.append(9, P, sort)
            txn.count(7, 1, len(value))

        sort, value = b"%d" % number, os.urandom(300_000)
        try:
            self.engine.write(body)
        except CommitFailed as error:
            return error
        except CommitError as error:
            self.doubtful[sort] = value
            return error
        self.known[sort] = value
        return None

    def until_refused(self, numbers: range) -> CommitError:
        for number in numbers:
            error = self.write(number)
            if error is not None:
                return error
        raise AssertionError("the disk was not full")

    def check(self) -> None:
        """Assert that all acknowledged pairs are there, none in part, and nothing else but those in doubt."""

        def body(reader: Reader) -> None:
            rows = dict(reader.scan(7, P))
            assert dict(reader.scan(8, Q)) == rows
            assert sorted(value for _, value in reader.scan(9, P)) == sorted(rows)
            assert reader.totals(7) == (len(rows), sum(map(len, rows.values())))
            assert self.known.items() <= rows.items()
            assert rows.items() <= (self.known | self.doubtful).items()

        self.engine.read(body)


def test_tables_on_a_full_disk(
    small_disk: Path, caplog: pytest.LogCaptureFixture, postgres_url: str
) -> None:
    """PostgreSQL keeps running, and reads go on."""
    caplog.set_level(logging.CRITICAL)
    cluster = postgres.new_cluster()
    try:
        with psycopg.connect(cluster.url, autocommit=True) as connection:
            connection.execute(f"CREATE TABLESPACE small LOCATION '{small_disk}'")
            connection.execute("ALTER ROLE postgres SET default_tablespace TO small")
        engine = PostgresEngine(cluster.url, schema="small")
        writes = Writes(engine)
        for turn in range(2):
            assert writes.write(turn) is None
            fill(small_disk)
            error = writes.until_refused(range(1000 * turn + 1000, 1000 * turn + 1100))
            assert isinstance(error, CommitFailed)
            assert "No space left on device" in str(error)
            writes.check()
            assert get(engine, 7, P, b"0") == writes.known[b"0"]
            assert engine.refusing() is None, "small writes may have room"
            (small_disk / "fill").unlink()
            assert writes.write(1000 * turn + 1999) is None
            writes.check()
        engine.close()
    finally:
        postgres.remove(cluster)


def test_postgres_itself_on_a_full_disk(small_disk: Path, caplog: pytest.LogCaptureFixture) -> None:
    """It cannot write its log, so that it stops, and may not start again by itself."""
    caplog.set_level(logging.CRITICAL)
    cluster = postgres.Cluster(small_disk)
    cluster.make()
    cluster.start()
    engine = PostgresEngine(cluster.url, schema="small", answer_seconds=2.0)
    writes = Writes(engine)
    for turn in range(2):
        assert writes.write(turn) is None
        fill(small_disk)
        writes.until_refused(range(1000 * turn + 1000, 1000 * turn + 1200))
        (small_disk / "fill").unlink()
        if not cluster.is_running():
            cluster.start()
        writable(engine)
        writes.check()
        assert writes.write(1000 * turn + 1999) is None
        writes.check()
    engine.close()
    cluster.stop("immediate")
