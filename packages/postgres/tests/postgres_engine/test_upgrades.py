"""A server over PostgreSQL runs while a newer program upgrades the store: it answers no more, and says so."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import orjson
import psycopg
import pytest

import postgres
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running
from hashrange.storage import features
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.failures import StoreOutgrown
from hashrange_engine_tests.loops import Loop
from hashrange_engine_tests.records import Outcomes, P, get, put, rows
from hashrange_postgres import PostgresEngine
from hashrange_postgres import schema as schemas
from hashrange_postgres.wire.statements import Arguments
from unit.test_admin import ask
from worlds import table_of


@pytest.fixture
def name(caplog: pytest.LogCaptureFixture) -> str:
    """The name of the test's schema."""
    caplog.set_level(logging.CRITICAL)
    return postgres.new_schema()


@pytest.fixture
def engine(postgres_url: str, name: str) -> Iterator[PostgresEngine]:
    engine = PostgresEngine(postgres_url, schema=name)
    put(engine, 7, P, b"n", b"1")
    yield engine
    engine.close()


def need_more(url: str, name: str, _: pytest.MonkeyPatch) -> None:
    """Play a newer program that uses a feature for the first time."""
    newer = PostgresEngine(url, schema=name)
    newer.write(lambda txn: txn.put(features.SPACE, features.NEEDS, b"granite", b""))
    newer.close()


def raise_format(url: str, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Play a newer program that raises the format, and keeps the names and the parameters of functions."""
    with monkeypatch.context() as newer:
        newer.setattr(schemas, "FORMAT", schemas.FORMAT + 1)
        newer.setitem(schemas.MIGRATIONS, schemas.FORMAT - 1, "")
        PostgresEngine(url, schema=name).close()


def change_functions(url: str, name: str, _: pytest.MonkeyPatch) -> None:
    """Play a newer program whose functions have other parameters."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            f"DO $$ DECLARE one regprocedure; BEGIN "
            f"FOR one IN SELECT oid FROM pg_proc WHERE pronamespace = '{name}'::regnamespace LOOP "
            f"EXECUTE 'ALTER FUNCTION ' || one::text || ' RENAME TO other' || one::oid; END LOOP; END $$"
        )


UPGRADES = [
    (need_more, "needs granite"),
    (raise_format, f"has (format {schemas.FORMAT + 1}|another format)"),
    (change_functions, "has another format"),
]


def write(txn: Transaction) -> None:
    txn.put(7, P, b"n", b"2")


def add(txn: Transaction) -> None:
    txn.put(7, P, b"n", b"%d" % (int(txn.get(7, P, b"n") or b"0") + 1))


def look(txn: Transaction) -> bytes | None:
    return txn.get(7, P, b"n")


def scan(txn: Transaction) -> None:
    list(txn.scan(7, P))
    txn.put(7, P, b"n", b"2")


def write_alone(txn: Transaction) -> None:
    txn.delete_space(8)
    txn.put(7, P, b"n", b"2")


def read(reader: Reader) -> bytes | None:
    return reader.get(7, P, b"n")


def read_range(reader: Reader) -> list[Any]:
    return list(reader.scan(7, P))


@pytest.mark.parametrize(("upgrade", "told"), UPGRADES)
@pytest.mark.parametrize("on_loop", [False, True])
@pytest.mark.parametrize("body", [write, add, look, scan, write_alone, read, read_range])
def test_no_body_reads_or_writes_any_more(
    engine: PostgresEngine,
    postgres_url: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    body: Callable[[Any], Any],
    on_loop: bool,
    upgrade: Callable[[str, str, pytest.MonkeyPatch], None],
    told: str,
) -> None:
    is_read = body in (read, read_range)
    assert engine.refusing() is None
    upgrade(postgres_url, name, monkeypatch)
    for _ in range(2):
        if not on_loop:
            with pytest.raises(StoreOutgrown, match=told):
                (engine.read if is_read else engine.write)(body)
            continue
        loop, outcomes = Loop(engine), Outcomes(1)
        (engine.submit_read if is_read else engine.submit)(body, outcomes)
        loop.run(partial(outcomes.has, 1))
        [error] = outcomes.errors
        with pytest.raises(StoreOutgrown, match=told):
            raise error
    if not is_read:
        assert "Restart this server" in (engine.refusing() or "")
    with psycopg.connect(postgres_url) as connection:
        values = connection.execute(f"SELECT value FROM {name}.records WHERE space = 7").fetchall()
    assert values == [(b"1",)]


def test_what_adds_no_feature_stops_nobody(engine: PostgresEngine, postgres_url: str, name: str) -> None:
    other = PostgresEngine(postgres_url, schema=name)
    other.write(lambda txn: txn.put(features.SPACE, b"table", b"/a", b""))
    other.write(lambda txn: txn.put(features.SPACE, features.NEEDS, features.VECTORS.encode(), b""))
    other.close()
    put(engine, 7, P, b"n", b"2")
    assert get(engine, 7, P, b"n") == b"2"
    assert len(rows(engine, 7)) == 1


def post(endpoint: str, operation: str, request: dict[str, Any]) -> tuple[int, dict[str, Any]]:
    headers = {
        "X-Amz-Target": f"DynamoDB_20120810.{operation}",
        "Content-Type": "application/x-amz-json-1.0",
        "Authorization": "AWS4-HMAC-SHA256 Credential=AKID/20260101/us-east-1/dynamodb/aws4_request, "
        "SignedHeaders=host;x-amz-date;x-amz-target, Signature=00",
        "X-Amz-Date": "20260101T000000Z",
    }
    try:
        with urlopen(Request(endpoint, orjson.dumps(request), headers)) as answer:
            return answer.status, orjson.loads(answer.read())
    except HTTPError as error:
        return error.code, orjson.loads(error.read())


def test_a_server_says_that_it_has_to_be_restarted(
    postgres_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = table_of("events", "id")
    item = {"id": {"S": "a"}}
    with Database(PostgresEngine(postgres_url, schema=name)) as database:
        admin = bind_admin(0)
        with running(database, admin=admin) as endpoint:
            assert post(endpoint, "CreateTable", table)[0] == 200
            assert ask(admin.url, "/health")[0] == 200
            need_more(postgres_url, name, monkeypatch)
            for operation, request in (
                ("PutItem", {"TableName": "events", "Item": item}),
                ("GetItem", {"TableName": "events", "Key": item}),
                ("Scan", {"TableName": "events"}),
                ("ListTables", {}),
            ):
                status, answer = post(endpoint, operation, request)
                assert status == 503, answer
                assert answer["__type"].endswith("ServiceUnavailable")
                assert "needs granite" in str(answer)
            status, health = ask(admin.url, "/health")
            assert (status, health["status"]) == (503, "refuses writes")
            assert "needs granite" in health["cause"]
            assert "Restart this server" in health["cause"]


def test_a_program_of_format_7_that_runs_on_reads_what_is_there(postgres_url: str, name: str) -> None:
    """It takes what it is told about the format and the features for the numbers of deleted spaces."""

    def need(txn: Transaction) -> None:
        for feature in (b"granite", b"sandstone", b"x"):
            txn.put(features.SPACE, features.NEEDS, feature, b"")
        txn.delete_space(9)

    engine = PostgresEngine(postgres_url, schema=name)
    engine.write(need)
    engine.close()
    with psycopg.connect(postgres_url) as connection:
        [(told,)] = connection.execute(f"SELECT value FROM {name}.fetch('{{}}', '{{}}', '{{}}', '{{}}')")
    *others, deleted = [int.from_bytes(told[at : at + 8]) for at in range(0, len(told), 8)]
    assert deleted == 9
    assert min(others) > 0xFFFF_FFFF, "there are no such spaces"


def test_a_program_of_format_7_that_runs_on_is_told_why_it_writes_nothing(
    engine: PostgresEngine, postgres_url: str, name: str
) -> None:
    """It gives no format. Programs of format 6 call the function in the same way."""
    names = [field for field in Arguments._fields if field != "format"]
    values = ", ".join(f"in_{field} => %s" for field in names)
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        row = f"SELECT id, epoch, (SELECT catalog FROM {name}.store) FROM {name}.server"
        [(server, epoch, catalog)] = connection.execute(row)
        given = Arguments(server=server, epoch=epoch, version=5, catalog=catalog)
        with pytest.raises(psycopg.Error, match="restart this server with the newer version"):
            connection.execute(
                f"SELECT {name}.commit_group({values})",
                [[] if isinstance(value, list) else value for value in given._asdict().values()][:-1],
            )
