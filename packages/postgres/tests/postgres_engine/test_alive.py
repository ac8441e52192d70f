"""The engine over PostgreSQL stays alive: whatever PostgreSQL does, each caller hears in time, and afterwards
all goes on."""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Callable, Iterator
from time import monotonic
from typing import Any, Final

import psycopg
import pytest

import postgres
from hashrange.cli.admin import bind_admin
from hashrange.database import Database
from hashrange.server import running
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.failures import CommitError, CommitFailed, StorageError
from hashrange_engine_tests.loops import Loop
from hashrange_engine_tests.records import Outcomes, P, get, put
from hashrange_engine_tests.transactions import writable
from hashrange_postgres import PostgresEngine, upkeep
from hashrange_postgres.fetching import FetchRequest
from hashrange_postgres.wire.connections import Lost
from proxy import Proxy
from unit.test_admin import ask

ANSWER_SECONDS: Final = 1.0


def add(txn: Transaction) -> int:
    value = int(txn.get(7, P, b"n") or b"0") + 1
    txn.put(7, P, b"n", b"%d" % value)
    return value


def add_alone(txn: Transaction) -> int:
    assert list(txn.scan(9, P)) == []
    return add(txn)


def add_after_absent(txn: Transaction) -> int:
    assert txn.get(8, P, b"never there") is None
    return add(txn)


def look(txn: Transaction) -> int:
    return int(txn.get(7, P, b"n") or b"0")


BODIES: Final = (add, add_after_absent, add_alone)


@pytest.fixture
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL)


# A standby that does not confirm.


@pytest.fixture(scope="module")
def cluster() -> Iterator[postgres.Cluster]:
    """A cluster whose settings these tests change."""
    if not postgres.installed():
        pytest.skip("PostgreSQL is not installed")
    cluster = postgres.new_cluster()
    yield cluster
    postgres.remove(cluster)


class Administrator:
    """Lets a cluster wait for a standby that is gone, or no longer."""

    def __init__(self, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._connection.execute("SET synchronous_commit TO off")

    def wait_for_standby(self, name: str) -> None:
        self._connection.execute(f"ALTER SYSTEM SET synchronous_standby_names TO '{name}'")
        self._connection.execute("SELECT pg_reload_conf()")
        shown = ("",)
        while shown != (name,):
            # A new connection sees the settings of now.
            with psycopg.connect(self._connection.info.dsn, autocommit=True) as connection:
                [shown] = connection.execute("SHOW synchronous_standby_names").fetchall()

    def cut(self) -> None:
        """Cut the connections whose commits wait for the standby."""
        cut = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
        while not self._connection.execute(cut).fetchall():
            pass

    def close(self) -> None:
        self.wait_for_standby("")
        self._connection.close()


@pytest.fixture
def administrator(cluster: postgres.Cluster) -> Iterator[Administrator]:
    administrator = Administrator(cluster.url)
    yield administrator
    administrator.close()


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("cut", [False, True])
@pytest.mark.parametrize("body", BODIES)
def test_a_write_ends_although_the_standby_is_gone(
    cluster: postgres.Cluster, administrator: Administrator, body: Callable[[Transaction], int], cut: bool
) -> None:
    """Also where the look-up of a commit ends by another error than a lost connection: the role has a
    lock_timeout, and the row of the engine is locked by the commit that waits."""
    url = f"{cluster.url} options='-c lock_timeout=100ms'"
    engine = PostgresEngine(url, schema=postgres.new_schema(), answer_seconds=ANSWER_SECONDS)
    assert engine.write(add) == 1
    administrator.wait_for_standby("gone")
    outcomes = Outcomes(1)
    engine.submit(body, outcomes)
    if cut:
        administrator.cut()
    outcomes.wait()
    assert [isinstance(error, CommitError) for error in outcomes.errors] == [True]
    while "; " not in (engine.refusing() or ""):
        engine._monitor.look()  # it looks at what waits, which there is at each try to connect
    assert "a synchronous standby does not confirm" in (engine.refusing() or "")
    with pytest.raises(CommitFailed):
        engine.write(add)
    assert get(engine, 7, P, b"n") in (b"1", b"2"), "reads go on"
    administrator.wait_for_standby("")
    writable(engine)
    known = int(get(engine, 7, P, b"n") or b"")
    assert known in (1, 2)
    assert engine.write(body) == known + 1
    engine.close()


def test_a_commit_that_takes_long_is_a_problem(
    cluster: postgres.Cluster, administrator: Administrator
) -> None:
    engine = PostgresEngine(cluster.url, schema=postgres.new_schema(), answer_seconds=16.0)
    put(engine, 7, P, b"a", b"1")
    assert (engine.problems(), engine.commit_seconds()) == ([], 0.0)
    administrator.wait_for_standby("gone")
    outcomes = Outcomes(1)
    engine.submit(lambda txn: txn.put(7, P, b"a", b"2"), outcomes)
    while "standby does not confirm" not in "".join(engine.problems()):
        engine._monitor.look()
    assert engine.commit_seconds() > 0.0
    administrator.wait_for_standby("")
    outcomes.wait()
    assert outcomes.errors == []
    assert engine.problems() == []
    engine.close()


def test_the_missing_standby_is_named_whoever_else_waits(
    cluster: postgres.Cluster, administrator: Administrator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Background work may wait for a commit on the thread that calls `upkeep`, and call it no more."""
    monkeypatch.setattr(upkeep, "_LOOK_SECONDS", 0.01)
    engine = PostgresEngine(cluster.url, schema=postgres.new_schema(), answer_seconds=ANSWER_SECONDS)
    engine.upkeep()
    administrator.wait_for_standby("gone")
    with pytest.raises(CommitError):
        engine.write(add)
    while "a synchronous standby does not confirm" not in (engine.refusing() or ""):
        pass
    administrator.wait_for_standby("")
    writable(engine)
    engine.close()


def test_a_postgres_that_answers_nothing_is_a_problem_without_a_commit(
    proxy: Proxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = PostgresEngine(proxy.url, schema=postgres.new_schema(), answer_seconds=16.0)
    proxy.hold("requests", "answers")
    engine.clock._measured = -math.inf  # long ago
    looking = threading.Thread(target=engine._monitor.look)
    looking.start()
    while not engine._monitor.silent_seconds():
        pass
    assert engine.problems() == []
    with monkeypatch.context() as later:
        later.setattr(upkeep, "monotonic", lambda: monotonic() + 3.0)
        assert engine.problems() == ["PostgreSQL has not answered for 3 seconds"]
    proxy.pass_on()
    looking.join()
    assert (engine.problems(), engine._monitor.silent_seconds()) == ([], 0.0)
    engine.close()


@pytest.mark.usefixtures("quiet")
def test_health_and_metrics_tell_of_a_write_that_was_refused(postgres_url: str) -> None:
    schema = postgres.new_schema()
    with Database(PostgresEngine(postgres_url, schema=schema)) as database:
        listening = bind_admin(0)
        with running(database, admin=listening), psycopg.connect(postgres_url, autocommit=True) as connection:
            assert (ask(listening.url, "/health")[1]["status"], database.engine.refusing()) == ("ok", None)
            connection.execute(
                f"CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS "
                "$$ BEGIN RAISE EXCEPTION 'no space left' USING ERRCODE = '53100'; END $$"
            )
            connection.execute(
                f"CREATE TRIGGER refuse BEFORE INSERT ON {schema}.records "
                f"FOR EACH ROW WHEN (NEW.space = 7) EXECUTE FUNCTION {schema}.refuse()"
            )
            with pytest.raises(CommitFailed, match="no space left"):
                put(database.engine, 7, P, b"a", b"1")
            put(database.engine, 8, P, b"a", b"1")
            status, shown = ask(listening.url, "/health")
            assert (status, shown["status"]) == (200, "degraded")
            assert "PostgreSQL has refused a write: no space left" in shown["problems"][0]
            _, text = ask(listening.url, "/metrics")
            assert "hashrange_store_commit_seconds 0" in text


# A proxy that holds back everything: connections live, and nothing comes through.


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[Proxy]:
    with Proxy(postgres_url) as proxy:
        yield proxy


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("on_loop", [False, True])
@pytest.mark.parametrize("body", [*BODIES, look])
def test_requests_end_although_nothing_comes_through(
    proxy: Proxy, body: Callable[[Transaction], int], on_loop: bool
) -> None:
    url = f"{proxy.url} connect_timeout=2"
    engine = PostgresEngine(url, schema=postgres.new_schema(), answer_seconds=ANSWER_SECONDS)
    assert engine.write(add) == 1
    loop = Loop(engine) if on_loop else None
    for answers in (0, 2):  # the first reads let the loop have a connection of its own
        outcomes = Outcomes(1 + bool(answers))
        if answers:
            proxy.hold("requests", "answers")
        engine.submit_read(lambda reader: reader.get(7, P, b"n"), outcomes)
        if answers:
            engine.submit(body, outcomes)
        if loop is not None:
            loop.run(lambda: len(outcomes.results) + len(outcomes.errors) == 1 + bool(answers))  # noqa: B023
        outcomes.wait()
        assert len(outcomes.errors) == answers
        assert all(isinstance(error, StorageError) for error in outcomes.errors)
    proxy.pass_on()
    if loop is not None:
        engine.loop.use(lambda callback: callback())
    writable(engine)
    known = int(get(engine, 7, P, b"n") or b"")
    assert known in (1, 2)
    assert engine.write(body) == known + (body is not look)
    engine.close()


# Others keep coming.


def test_no_read_waits_because_others_keep_coming(postgres_url: str) -> None:
    """The loop's connection breaks while it waits for an answer, and requests of others wake the thread all
    the time that has to notice."""
    engine = PostgresEngine(postgres_url, schema=postgres.new_schema())
    put(engine, 7, P, b"a", b"found")
    loop, first, second = Loop(engine), Outcomes(1), Outcomes(1)

    def look(reader: Reader) -> bytes | None:
        return reader.get(7, P, b"a")

    engine.submit_read(look, first)
    loop.run(lambda: bool(first.results))
    fetching = engine._fetching
    while fetching._loop_connection is None:
        pass  # the thread makes it
    engine.submit_read(look, second)
    while loop.soon:
        loop.round()
    assert fetching._sent is not None
    fetching._connection.close()  # type: ignore[union-attr]
    for _ in range(1_000):
        others = Outcomes(1)
        fetching.later(FetchRequest([(7, P, b"b")]), lambda found: others(found, None), at_once=True)  # noqa: B023
        while not others.results:
            loop.handed.get(timeout=30)()
        if second.results:
            break
    assert second.results == [b"found"]
    engine.close()


# The commit thread.


@pytest.mark.parametrize("error", [Lost("unforeseen"), MemoryError(), RuntimeError()], ids=repr)
def test_a_commit_thread_that_ends_says_so(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch, error: BaseException, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.CRITICAL)
    ended: list[Any] = []
    monkeypatch.setattr(threading, "excepthook", ended.append)
    engine = PostgresEngine(postgres_url, schema=postgres.new_schema())

    def end(*_: object) -> None:
        raise error

    monkeypatch.setattr(engine._commits, "_try_again", end)
    other = PostgresEngine(postgres_url, schema=engine._writer._statements.schema)
    put(engine, 7, P, b"a", b"1")
    put(other, 7, P, b"a", b"2")
    engine.submit(lambda txn: txn.put(7, P, b"a", (txn.get(7, P, b"a") or b"") + b"!"), Outcomes(1))
    while not ended:
        pass
    assert ended[0].thread.name == "hashrange-commit"
    assert ended[0].exc_value is error
    assert "has to be started again" in (engine.refusing() or "")
    with pytest.raises(CommitFailed, match="started again"):
        put(engine, 7, P, b"a", b"3")
    engine.close()
    other.close()
