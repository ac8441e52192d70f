"""PostgreSQL killed, and its connections cut, under histories of several engines.

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
from hashrange.storage.postgres import PostgresEngine
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


def test_histories_over_kills(cluster: postgres.Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """No acknowledged write is lost, none is applied twice, and the histories are strictly serializable."""
    caplog.set_level(logging.CRITICAL)
    schema = postgres.new_schema()
    engines = [PostgresEngine(cluster.url, schema=schema) for _ in range(2)]
    run = Run(engines, lists=6, seed=ROUNDS, transactions=1_000_000)

    def meanwhile() -> None:
        for round_ in range(ROUNDS):
            enough = run.committed() + TRANSACTIONS_BETWEEN_KILLS
            while run.committed() < enough and not run.surprises:
                run.wait_a_little()
            kill(cluster, round_)
        enough = run.committed() + TRANSACTIONS_BETWEEN_KILLS
        while run.committed() < enough and not run.surprises:
            run.wait_a_little()

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
