"""Candidates for the embedded engine, under the load of its commit thread.

    python -m bench.storage_engines [--seconds 5] [--directory DIR]

Each makes batches of 32 random records of 1 KB durable, one after the other: alone, and beside a thread that
runs Python all the time, as an event loop under load does. LMDB is measured if its package is installed.

    rocksdb         write, then the log synced (what hashrange.storage.embedded does)
    rocksdb-sync    write with sync=True
    sqlite          WAL, synchronous=FULL, one transaction a batch by executemany
    sqlite-each     the same by execute, record by record
    lmdb            one transaction a batch
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sqlite3
import tempfile
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from rocksdict import Options, Rdict, WriteBatch, WriteOptions

BATCH_RECORDS = 32
# Many different values, so that no engine compresses one value against the next.
VALUES = [os.urandom(1024) for _ in range(4096)]
KEYS = 1_000_000

Record = tuple[bytes, bytes]
Commit = Callable[[list[Record]], None]


class Candidate(NamedTuple):
    """An engine: `open(directory)` gives a commit function and a close function."""

    name: str
    open: Callable[[Path], tuple[Commit, Callable[[], None]]]


def open_rocksdb(directory: Path, *, sync: bool) -> tuple[Commit, Callable[[], None]]:
    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_write_buffer_size(32 * 1024 * 1024)
    options.set_max_write_buffer_number(4)
    db = Rdict(str(directory), options)
    write_options = WriteOptions()
    write_options.sync = sync

    def commit(records: list[Record]) -> None:
        batch = WriteBatch(raw_mode=True)
        for key, value in records:
            batch.put(key, value)
        db.write(batch, write_options)
        if not sync:
            db.flush_wal(True)

    return commit, db.close


def open_sqlite(directory: Path, *, each: bool) -> tuple[Commit, Callable[[], None]]:
    connection = sqlite3.connect(directory / "db", isolation_level=None, check_same_thread=False)
    connection.execute("PRAGMA journal_mode=WAL")
    connection.execute("PRAGMA synchronous=FULL")
    connection.execute("CREATE TABLE records (key BLOB PRIMARY KEY, value BLOB) WITHOUT ROWID")
    statement = "INSERT OR REPLACE INTO records VALUES (?, ?)"

    def commit(records: list[Record]) -> None:
        connection.execute("BEGIN")
        if each:
            for record in records:
                connection.execute(statement, record)
        else:
            connection.executemany(statement, records)
        connection.execute("COMMIT")

    return commit, connection.close


def open_lmdb(directory: Path) -> tuple[Commit, Callable[[], None]]:
    environment: Any = import_module("lmdb").open(str(directory), map_size=32 * 1024**3)

    def commit(records: list[Record]) -> None:
        with environment.begin(write=True) as transaction:
            transaction.cursor().putmulti(records)

    return commit, environment.close


CANDIDATES = (
    Candidate("rocksdb", lambda directory: open_rocksdb(directory, sync=False)),
    Candidate("rocksdb-sync", lambda directory: open_rocksdb(directory, sync=True)),
    Candidate("sqlite", lambda directory: open_sqlite(directory, each=False)),
    Candidate("sqlite-each", lambda directory: open_sqlite(directory, each=True)),
    Candidate("lmdb", open_lmdb),
)


def run(candidate: Candidate, parent: Path, seconds: float, busy: bool) -> str:
    """One row of the table."""
    directory = Path(tempfile.mkdtemp(dir=parent))
    commit, close = candidate.open(directory)
    chance = random.Random(1)
    stop = threading.Event()
    turns = [0]
    gaps = [0.0]

    def spin() -> None:
        last = time.perf_counter()
        while not stop.is_set():
            now = time.perf_counter()
            turns[0] += 1
            gaps[0] = max(gaps[0], now - last)
            last = now

    spinner = threading.Thread(target=spin)
    if busy:
        spinner.start()
    took: list[float] = []
    start = time.perf_counter()
    while (begin := time.perf_counter()) < start + seconds:
        commit(
            [
                (chance.randrange(KEYS).to_bytes(16, "big"), chance.choice(VALUES))
                for _ in range(BATCH_RECORDS)
            ]
        )
        took.append(time.perf_counter() - begin)
    elapsed = time.perf_counter() - start
    stop.set()
    if busy:
        spinner.join()
    close()
    disk = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file()) / 1024**2
    shutil.rmtree(directory)
    took.sort()
    cells = [
        candidate.name,
        "yes" if busy else "no",
        f"{len(took) / elapsed:.0f}",
        f"{len(took) * BATCH_RECORDS / elapsed:.0f}",
        f"{took[len(took) // 2] * 1000:.2f}",
        f"{took[len(took) * 99 // 100] * 1000:.2f}",
        f"{turns[0] / elapsed / 1e6:.2f}" if busy else "",
        f"{gaps[0] * 1000:.0f}" if busy else "",
        f"{disk:.0f}",
    ]
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.storage_engines")
    parser.add_argument("--seconds", type=float, default=5.0)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()))
    arguments = parser.parse_args()
    print("| engine | beside a busy thread | batches/s | records/s | p50 ms | p99 ms |", end="")
    print(" busy thread M turns/s | its longest gap ms | MiB on disk |")
    print("|---|---|---|---|---|---|---|---|---|")
    for candidate in CANDIDATES:
        for busy in (False, True):
            try:
                print(run(candidate, arguments.directory, arguments.seconds, busy), flush=True)
            except ModuleNotFoundError as error:
                print(f"| {candidate.name} | not installed: {error.name} |", flush=True)
                break


if __name__ == "__main__":
    main()
