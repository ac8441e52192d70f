"""Opening a store in PostgreSQL: making it, and refusing what is not one, or cannot be used."""

from __future__ import annotations

import os
import select
from threading import Barrier, Thread
from typing import Any

import psycopg
import pytest

import hashrange_engine_tests as contract
import postgres
from hashrange.storage.failures import StorageError, UnknownFormat
from hashrange_engine_tests.records import P, get, put, rows
from hashrange_postgres import PostgresEngine, schema
from hashrange_postgres.wire import connections, probe


@pytest.fixture
def name() -> str:
    """The name of the test's schema."""
    return postgres.new_schema()


def test_a_wrong_name_of_a_schema_is_refused(postgres_url: str) -> None:
    for wrong in ("", "Upper", "a-b", "a; DROP TABLE x", "1a", "x" * 60, "full", "user"):
        with pytest.raises(StorageError, match="cannot be the name of the schema"):
            PostgresEngine(postgres_url, schema=wrong)


def test_a_strangers_schema_is_left_alone(postgres_url: str, name: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        connection.execute(f"CREATE TABLE {name}.store (program text, kept integer)")
        with pytest.raises(UnknownFormat, match="other contents than a Hashrange store"):
            PostgresEngine(postgres_url, schema=name)
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = %s", (name,)
        ).fetchall()
    assert tables == [("store",)]


def test_a_newer_store_is_refused_and_an_older_one_migrated(
    postgres_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = PostgresEngine(postgres_url, schema=name)
    put(engine, 7, P, b"a", b"kept")
    engine.close()
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"UPDATE {name}.store SET format = {schema.FORMAT + 1}")
        with pytest.raises(UnknownFormat, match="newer Hashrange"):
            PostgresEngine(postgres_url, schema=name)
        connection.execute(f"UPDATE {name}.store SET format = {schema.FORMAT}")
    monkeypatch.setattr(schema, "FORMAT", schema.FORMAT + 1)
    monkeypatch.setitem(schema.MIGRATIONS, schema.FORMAT - 1, "CREATE TABLE {schema}.more (n integer);")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE FUNCTION {name}.fetch() RETURNS integer LANGUAGE sql AS 'SELECT 1'")
        engine = PostgresEngine(postgres_url, schema=name)
        put(engine, 7, P, b"b", b"made")
        assert get(engine, 7, P, b"a") == b"kept"
        engine.close()
        assert connection.execute(f"SELECT count(*) FROM {name}.more").fetchall() == [(0,)]
        functions = connection.execute(
            "SELECT count(*) FROM pg_proc WHERE pronamespace = %s::regnamespace AND proname = 'fetch'",
            (name,),
        )
        assert functions.fetchall() == [(1,)], "the functions are those of today, and no others"


def test_missing_rights_are_named(postgres_url: str, name: str) -> None:
    role = f"role_{name}"
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        theirs = postgres_url.replace("user=postgres", f"user={role}")
        with pytest.raises(StorageError, match=f"CREATE SCHEMA {name} AUTHORIZATION"):
            PostgresEngine(theirs, schema=name)
        connection.execute(f"CREATE SCHEMA {name} AUTHORIZATION {role}")
        engine = PostgresEngine(theirs, schema=name)
        put(engine, 7, P, b"a", b"")
        engine.close()
        connection.execute(f"ALTER ROLE {role} SET default_transaction_isolation TO 'serializable'")
        with pytest.raises(StorageError, match="default_transaction_isolation"):
            PostgresEngine(theirs, schema=name)
        connection.execute(f"ALTER ROLE {role} RESET default_transaction_isolation")
        connection.execute(f"ALTER ROLE {role} SET default_transaction_read_only TO on")
        for url in (theirs, f"{theirs} target_session_attrs=any"):
            with pytest.raises(StorageError, match=f'"{role}" SET default_transaction_read_only TO off'):
                PostgresEngine(url, schema=name)


def test_a_system_without_poll_is_refused(
    postgres_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Windows is. Nothing is made."""
    with monkeypatch.context() as windows:
        windows.delattr(select, "poll")
        with pytest.raises(StorageError, match="Run the server in WSL"):
            PostgresEngine(postgres_url, schema=name)
    with psycopg.connect(postgres_url) as connection:
        assert connection.execute("SELECT to_regnamespace(%s)", (name,)).fetchone() == (None,)


def test_a_limit_of_connections_that_is_used_up_is_named(postgres_url: str, name: str) -> None:
    """At the first connection, and at a later one."""
    role = f"role_{name}"
    theirs = postgres_url.replace("user=postgres", f"user={role}")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"CREATE SCHEMA {name} AUTHORIZATION {role}")
        for limit in (0, 1):
            connection.execute(f"ALTER ROLE {role} CONNECTION LIMIT {limit}")
            with pytest.raises(StorageError, match=r"accepts no more connections: .*Raise max_connections"):
                PostgresEngine(theirs, schema=name)
        connection.execute(f"ALTER ROLE {role} CONNECTION LIMIT 5")
        PostgresEngine(theirs, schema=name).close()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_a_database_of_any_encoding_holds_a_store(postgres_url: str, name: str, encoding: str) -> None:
    url = postgres_url.replace("dbname=postgres", f"dbname={name}")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(
            f"CREATE DATABASE {name} ENCODING {encoding} LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
        )
        try:
            for given in (url, f"{url} client_encoding=SQL_ASCII"):
                engine = PostgresEngine(given)
                put(engine, 7, P, b"\xff\x00", b"\xfe\x00")
                assert rows(engine, 7) == [(P, b"\xff\x00", b"\xfe\x00")]
                engine.close()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")


def test_a_schema_that_belongs_to_another_user_is_refused(postgres_url: str, name: str) -> None:
    PostgresEngine(postgres_url, schema=name).close()
    role = f"role_{name}"
    theirs = postgres_url.replace("user=postgres", f"user={role}")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        for rights in ("", f"GRANT USAGE ON SCHEMA {name} TO {role}"):
            if rights:
                connection.execute(rights)
            with pytest.raises(StorageError, match=r"belongs to postgres.*Connect as postgres; or"):
                PostgresEngine(theirs, schema=name)
        connection.execute(f"GRANT postgres TO {role}")
        PostgresEngine(theirs, schema=name).close()


def test_tables_that_citus_has_spread_are_refused() -> None:
    """On a stand-in for the catalog of Citus: which tables it spreads."""
    if not postgres.installed():
        pytest.skip("PostgreSQL is not installed")
    cluster = postgres.new_cluster()
    try:
        PostgresEngine(cluster.url, schema="before").close()
        with psycopg.connect(cluster.url, autocommit=True) as connection:
            connection.execute("SET allow_system_table_mods TO on")
            connection.execute("CREATE TABLE pg_catalog.pg_dist_partition (logicalrelid regclass)")
            PostgresEngine(cluster.url, schema="before").close()
            PostgresEngine(cluster.url, schema="local").close()
            connection.execute("INSERT INTO pg_dist_partition VALUES ('before.records'), ('before.total')")
        with pytest.raises(StorageError, match=r"undistribute_table\('before.records'\); SELECT undis"):
            PostgresEngine(cluster.url, schema="before")
        PostgresEngine(cluster.url, schema="local").close()
    finally:
        postgres.remove(cluster)


CITUS_URL = "HASHRANGE_TEST_CITUS_URL"


@pytest.mark.skipif(CITUS_URL not in os.environ, reason=f"{CITUS_URL} names no coordinator of Citus")
def test_the_contract_on_a_coordinator_of_citus(name: str) -> None:
    """The store lies on the coordinator; once its records are spread over the nodes, it is refused."""
    url = os.environ[CITUS_URL]
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS citus")
        schemas: list[str] = []

        def opener(_: str) -> Any:
            schemas.append(postgres.new_schema())
            return PostgresEngine(url, schema=schemas[-1])

        for check in contract.CHECKS:
            check(opener)
        PostgresEngine(url, schema=name).close()
        connection.execute(f"SELECT create_distributed_table('{name}.records', 'partition')")
        with pytest.raises(StorageError, match="undistribute_table"):
            PostgresEngine(url, schema=name)
        for one in (*schemas, name):
            connection.execute(f"DROP SCHEMA {one} CASCADE")


def test_many_engines_make_the_store_at_once(postgres_url: str, name: str) -> None:
    barrier = Barrier(6)
    engines: list[PostgresEngine] = []

    def work() -> None:
        barrier.wait()
        engines.append(PostgresEngine(postgres_url, schema=name))

    threads = [Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({engine._writer.server for engine in engines}) == 6
    for engine in engines:
        engine.close()


# A server that speaks PostgreSQL's protocol, and is something else.


def test_postgresql_has_all_that_is_needed(postgres_url: str) -> None:
    with connections.connect(postgres_url) as connection:
        probe.check(connection)
        left = connections.call(connection, "SELECT count(*) FROM pg_class WHERE relname ~ '^probed'")
        assert left == [(0,)]


def test_what_a_server_lacks_is_named(postgres_url: str, name: str) -> None:
    """Advisory locks that do nothing, and sequences that are set back, play another product."""
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        connection.execute(
            f"CREATE FUNCTION {name}.pg_advisory_xact_lock(int, int) RETURNS void LANGUAGE sql AS ''; "
            f"CREATE FUNCTION {name}.pg_sequence_last_value(regclass) RETURNS bigint LANGUAGE sql "
            "AS 'SELECT 1::bigint'"
        )
    url = f"{postgres_url} options='-c search_path={name},pg_catalog'"
    with pytest.raises(StorageError, match="lacks what Hashrange needs: ") as refused:
        PostgresEngine(url, schema=f"{name}_store")
    needs = str(refused.value).partition("needs: ")[2].partition(". Use PostgreSQL 15")[0].split("; ")
    assert needs == [
        "advisory locks that pg_locks shows",
        "sequences that keep their value when a block is undone",
    ]
    with psycopg.connect(postgres_url) as connection:
        made = connection.execute("SELECT to_regnamespace(%s)", (f"{name}_store",)).fetchone()
    assert made == (None,)


@pytest.mark.parametrize("need", probe.NEEDS, ids=lambda need: need.name)
def test_each_need_is_tried(postgres_url: str, monkeypatch: pytest.MonkeyPatch, need: Any) -> None:
    """A server does not know the last statement; the other needs are tried all the same."""
    broken = need._replace(statements=(*need.statements[:-1], "SELECT unknown_here()"))
    monkeypatch.setattr(probe, "NEEDS", [broken if one is need else one for one in probe.NEEDS])
    with connections.connect(postgres_url) as connection, pytest.raises(StorageError) as refused:
        probe.check(connection)
    assert f"needs: {need.name} (function unknown_here() does not exist" in str(refused.value)
    assert ";" not in str(refused.value)


def test_a_user_that_may_make_no_temporary_tables_is_not_refused(postgres_url: str, name: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}")
        connection.execute(f"REVOKE TEMPORARY ON DATABASE {name} FROM PUBLIC")
        connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(f"GRANT CREATE ON DATABASE {name} TO {name}")
        url = postgres_url.replace("user=postgres", f"user={name}")
        try:
            PostgresEngine(url.replace("dbname=postgres", f"dbname={name}"), schema=name).close()
        finally:
            connection.execute(f"DROP DATABASE {name} WITH (FORCE)")
            connection.execute(f"DROP ROLE {name}")
