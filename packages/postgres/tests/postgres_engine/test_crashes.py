"""PostgreSQL is killed, and its connections are cut, while several engines write histories.

`HASHRANGE_POSTGRES_ROUNDS` sets the number of kills (default 3).
"""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator

import psycopg
import pytest

import postgres
from hashrange.storage.api import Totals
from hashrange.storage.failures import CommitError, CommitFailed, StorageError
from hashrange_engine_tests.records import P, get, put, rows
from hashrange_engine_tests.transactions import writable
from hashrange_postgres import PostgresEngine
from list_append import SPACE, Run

ROUNDS = int(os.environ.get("HASHRANGE_POSTGRES_ROUNDS", "3"))
TRANSACTIONS_BETWEEN_KILLS = 150


@pytest.fixture
def cluster() -> Iterator[postgres.Cluster]:
    """A cluster that only this test uses."""
    if not postgres.installed():
        pytest.skip("PostgreSQL is not installed")
    cluster = postgres.new_cluster()
    yield cluster
    postgres.remove(cluster)


@pytest.fixture
def standby(cluster: postgres.Cluster) -> Iterator[postgres.Cluster]:
    """A standby of the cluster; each commit waits for it."""
    standby = cluster.standby()
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET synchronous_standby_names = '*'")
        connection.execute("SELECT pg_reload_conf()")
        while not connection.execute(
            "SELECT 1 FROM pg_stat_replication WHERE sync_state = 'sync'"
        ).fetchall():
            connection.execute("SELECT pg_sleep(0.05)")  # until the standby is connected
    yield standby
    postgres.remove(standby)


def kill(cluster: postgres.Cluster, round_: int) -> None:
    """Kill PostgreSQL as a crash does and start it again, or cut all connections."""
    if round_ % 2 == 0:
        cluster.restart_after_crash()
        return
    with psycopg.connect(cluster.url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )


def await_commits(run: Run) -> None:
    """Let the histories go on for a while."""
    enough = run.committed() + TRANSACTIONS_BETWEEN_KILLS
    while run.committed() < enough and not run.surprises:
        run.wait_a_little()


def test_histories_over_kills(cluster: postgres.Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """No acknowledged write is lost, none is applied twice, and the histories are strictly serializable."""
    caplog.set_level(logging.CRITICAL)
    schema = postgres.new_schema()
    engines = [PostgresEngine(cluster.url, schema=schema) for _ in range(2)]
    run = Run(engines, lists=6, seed=ROUNDS, transactions=1_000_000)

    def meanwhile() -> None:
        for round_ in range(ROUNDS):
            await_commits(run)
            kill(cluster, round_)
        await_commits(run)

    run.run(threads_per_engine=3, meanwhile=meanwhile)
    for engine in engines:
        engine.close()
    after = PostgresEngine(cluster.url, schema=schema)
    final = run.final(after)
    values = sum(map(len, final.values()))
    assert after.read(lambda reader: reader.totals(SPACE)) == Totals(values, 4 * values)
    after.close()
    assert run.anomalies() == []
    assert sum(engine.counts()["reconnections"] for engine in engines) >= 2


def test_postgres_is_away_for_a_while(
    cluster: postgres.Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Writes are refused and reads fail while it is down; everything resumes by itself when it is back."""
    caplog.set_level(logging.CRITICAL)
    engine = PostgresEngine(cluster.url, schema=postgres.new_schema(), answer_seconds=1.0)
    put(engine, 7, P, b"a", b"before")
    cluster.stop()
    with pytest.raises(CommitError):
        put(engine, 7, P, b"a", b"away")
    assert engine.refusing() is not None
    with pytest.raises(CommitFailed):
        put(engine, 7, P, b"a", b"away")
    with pytest.raises(StorageError, match="does not answer"):
        get(engine, 7, P, b"a")
    cluster.start()
    writable(engine)
    assert get(engine, 7, P, b"a") == b"before"
    put(engine, 7, P, b"a", b"after")
    assert get(engine, 7, P, b"a") == b"after"
    cluster.stop()
    engine.close()


def test_a_standby_is_refused(cluster: postgres.Cluster, standby: postgres.Cluster) -> None:
    schema = postgres.new_schema()
    PostgresEngine(cluster.url, schema=schema).close()
    with pytest.raises(StorageError, match="is a standby"):
        PostgresEngine(standby.url, schema=schema)


def test_of_a_standby_and_its_primary_the_primary_is_read(
    cluster: postgres.Cluster, standby: postgres.Cluster
) -> None:
    both = f"host={standby.directory},{cluster.directory} user=postgres dbname=postgres"
    engine = PostgresEngine(both, schema=postgres.new_schema())
    with psycopg.connect(standby.url, autocommit=True) as connection:
        connection.execute("SELECT pg_wal_replay_pause()")
    put(engine, 7, P, b"a", b"new")
    assert get(engine, 7, P, b"a") == b"new"
    assert str(cluster.directory) in engine.connected_to
    engine.close()


def test_a_primary_that_became_a_standby_is_not_read(
    cluster: postgres.Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """Its records are out of date, and an older connection may still reach it, for example through
    PgBouncer."""
    caplog.set_level(logging.CRITICAL)
    engine = PostgresEngine(cluster.url + " target_session_attrs=any", schema=postgres.new_schema())
    put(engine, 7, P, b"a", b"old")
    cluster.stop()
    (cluster.directory / "data" / "standby.signal").touch()
    cluster.start()
    for read in (lambda: get(engine, 7, P, b"a"), lambda: rows(engine, 7)):
        with pytest.raises(StorageError, match="standby"):
            read()
    with pytest.raises(CommitError, match="standby"):
        put(engine, 7, P, b"a", b"new")
    assert "standby" in (engine.refusing() or "")
    (cluster.directory / "data" / "standby.signal").unlink()
    cluster.restart_after_crash()
    writable(engine)
    assert get(engine, 7, P, b"a") == b"old"
    engine.close()


def test_histories_over_a_failover(
    cluster: postgres.Cluster, standby: postgres.Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    """The primary is killed and its synchronous standby promoted; the engines' URL names both."""
    caplog.set_level(logging.CRITICAL)
    schema = postgres.new_schema()
    both = f"host={cluster.directory},{standby.directory} user=postgres dbname=postgres"
    engines = [PostgresEngine(both, schema=schema) for _ in range(2)]
    run = Run(engines, lists=6, seed=1, transactions=1_000_000)

    def meanwhile() -> None:
        await_commits(run)
        cluster.stop("immediate")
        standby.promote()
        await_commits(run)

    run.run(threads_per_engine=3, meanwhile=meanwhile)
    final = run.final(engines[0])
    assert run.anomalies() == []
    for engine in engines:
        assert str(standby.directory) in engine.connected_to
    values = sum(map(len, final.values()))
    assert engines[1].read(lambda reader: reader.totals(SPACE)) == Totals(values, 4 * values)
    for engine in engines:
        engine.close()
