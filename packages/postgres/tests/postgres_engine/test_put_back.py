"""The engine over PostgreSQL: an older copy of the store takes the store's place while engines run.

What was written after the copy is lost, as the administrator wants it. But no engine may take a later record
for one of those that it remembers, and no addition may be lost afterwards.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import psycopg
import pytest

import postgres
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.embedded import EmbeddedEngine
from hashrange.storage.embedded.offline.directory_copy import DirectorySource
from hashrange.storage.failures import CommitUnknown
from hashrange.storage.store_copy import copy
from hashrange_engine_tests.records import P
from hashrange_postgres import PostgresEngine
from hashrange_postgres.moving import SchemaTarget

SPACE = 7
COUNTERS = [b"%d" % number for number in range(20)]


def total(reader: Reader, name: bytes) -> int:
    return int(reader.get(SPACE, P, name) or b"0")


def add(engine: PostgresEngine | EmbeddedEngine, name: bytes, amount: int) -> int:
    def body(txn: Transaction) -> int:
        sum_ = total(txn, name) + amount
        txn.put(SPACE, P, name, b"%d" % sum_)
        return sum_

    return engine.write(body)


def read_all(engine: PostgresEngine) -> list[int]:
    return [engine.read(partial(total, name=name)) for name in COUNTERS]


class Files:
    """PostgreSQL is stopped, and an older copy of its files put back."""

    def __init__(self, cluster: postgres.Cluster) -> None:
        self._cluster = cluster

    def _run(self, *command: str) -> None:
        subprocess.run(command, cwd=self._cluster.directory, check=True)

    def save(self) -> None:
        self._cluster.stop()
        self._run("cp", "-a", "data", "saved")
        self._cluster.start()

    def put_back(self) -> None:
        self._cluster.stop()
        self._run("rm", "-r", "data")
        self._run("mv", "saved", "data")
        self._cluster.start()


class Dump:
    """The schema is dropped, and read from a dump, while all connections live."""

    def __init__(self, cluster: postgres.Cluster) -> None:
        self._cluster = cluster
        self._dump = ""

    def _run(self, program: str, *arguments: str, text: str = "") -> str:
        where = ["-h", str(self._cluster.directory), "-U", "postgres", "postgres"]
        command = [str(postgres.binaries() / program), *arguments, *where]
        return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout

    def save(self) -> None:
        self._dump = self._run("pg_dump", "--schema=hashrange")

    def put_back(self) -> None:
        script = f"BEGIN; DROP SCHEMA hashrange CASCADE;\n{self._dump}\nCOMMIT;"
        self._run("psql", "-q", "-v", "ON_ERROR_STOP=1", text=script)


@pytest.fixture(params=[Files, Dump])
def copies(request: pytest.FixtureRequest) -> Iterator[tuple[postgres.Cluster, Files | Dump]]:
    if not postgres.installed():
        pytest.skip("PostgreSQL is not installed")
    cluster = postgres.new_cluster()
    yield cluster, request.param(cluster)
    postgres.remove(cluster)


def test_nothing_that_was_undone_is_taken_for_what_came_later(
    copies: tuple[postgres.Cluster, Files | Dump],
) -> None:
    cluster, saved = copies
    with ExitStack() as stack:

        def opened() -> PostgresEngine:
            engine = PostgresEngine(cluster.url)
            stack.callback(engine.close)
            return engine

        old = opened()
        for name in COUNTERS:
            add(old, name, 1_000)
        saved.save()
        undone = opened()
        for name in COUNTERS:
            assert add(undone, name, 1_029) == 2_029
        assert read_all(old) == read_all(undone) == [2_029] * len(COUNTERS)
        saved.put_back()
        # The copy may know nothing of an engine, and so of a commit for which it finds its connection cut.
        for engine in (old, undone):
            with suppress(CommitUnknown):
                add(engine, b"other", 1)
        new = opened()
        for name in COUNTERS:
            assert add(new, name, 1) == 1_001
        for engine in (old, undone):
            assert read_all(engine) == [1_001] * len(COUNTERS)
        for sum_, engine in enumerate((old, undone, new, undone, old), 1_002):
            assert [add(engine, name, 1) for name in COUNTERS] == [sum_] * len(COUNTERS)
        assert read_all(new) == [1_006] * len(COUNTERS)


def test_a_second_copy_in_the_place_of_the_first(tmp_path: Path, postgres_url: str) -> None:
    """No record of it is taken for one of the first copy."""
    directory, schema = tmp_path / "data", postgres.new_schema()

    def copied() -> None:
        source = DirectorySource(directory, lambda reader: set())
        target = SchemaTarget(postgres_url, schema)
        try:
            copy(source, target, lambda step, done, of: None)
        finally:
            source.close()
            target.close()

    def written() -> None:
        engine = EmbeddedEngine(directory)
        for name in COUNTERS:
            add(engine, name, 1_000)
        engine.close()

    written()
    copied()
    old = PostgresEngine(postgres_url, schema=schema)
    try:
        assert read_all(old) == [1_000] * len(COUNTERS)
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            connection.execute(f"DROP SCHEMA {schema} CASCADE")
        written()
        copied()
        assert read_all(old) == [2_000] * len(COUNTERS)
        assert [add(old, name, 1) for name in COUNTERS] == [2_001] * len(COUNTERS)
    finally:
        old.close()
