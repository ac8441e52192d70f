"""The engine over PostgreSQL: connections that are cut, and what became of commits that were under way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from itertools import count, product
from typing import Any

import psycopg
import pytest

import postgres
from hashrange.storage.api import Totals, Transaction
from hashrange.storage.failures import CommitFailed, CommitUnknown
from hashrange_engine_tests import faults
from hashrange_engine_tests.records import Outcomes, P, get, put, rows
from hashrange_postgres import PostgresEngine, writer
from hashrange_postgres.turns import ALWAYS
from hashrange_postgres.wire import connections
from hashrange_postgres.wire.loop_connections import LoopConnection
from list_append import SPACE, Run


@pytest.fixture
def name() -> str:
    """The name of the test's schema."""
    return postgres.new_schema()


@pytest.fixture
def open_engine(postgres_url: str, name: str) -> Iterator[Callable[[], PostgresEngine]]:
    """Opens engines over one store."""
    with ExitStack() as stack:

        def opener() -> PostgresEngine:
            engine = PostgresEngine(postgres_url, schema=name)
            stack.callback(engine.close)
            return engine

        yield opener


Opener = Callable[[], PostgresEngine]


def cut_connections(url: str, schema: str) -> None:
    """Cut the connections on which the engines of a test commit, as an administrator does; not those of other
    tests, which use the same PostgreSQL at the same time."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() "
            "AND backend_type = 'client backend' AND query LIKE %s",
            (f"%{schema}.commit_group%",),
        )


def adding(log: int) -> Callable[[Transaction], int]:
    """A body that adds one to a counter, and appends the sum to a log."""

    def add(txn: Transaction) -> int:
        value = int(txn.get(7, P, b"n") or b"0") + 1
        txn.put(7, P, b"n", b"%d" % value)
        txn.append(log, P, b"%d" % value)
        return value

    return add


def alone(body: Callable[[Transaction], int]) -> Callable[[Transaction], int]:
    """The body, run under the exclusive lock, because it reads a range."""

    def run(txn: Transaction) -> int:
        list(txn.scan(9, P))
        return body(txn)

    return run


def test_histories_with_cut_connections(
    open_engine: Opener, postgres_url: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Connections are cut while commits are under way; each outcome is found out, and nothing is lost."""
    caplog.set_level(logging.CRITICAL)
    engines = [open_engine(), open_engine()]
    run = Run(engines, lists=4, seed=4, transactions=1_000)
    before = [engine.counts()["reconnections"] for engine in engines]

    def meanwhile() -> None:
        while len(run.history) < 300 and not run.surprises:
            # Without it, a machine under load cuts each new connection while the engine still prepares it.
            run.wait_a_little()
            cut_connections(postgres_url, name)

    run.run(threads_per_engine=3, meanwhile=meanwhile)
    final = run.final(engines[0])
    assert [engine.counts()["reconnections"] for engine in engines] > before
    assert run.anomalies() == []
    values = sum(map(len, final.values()))
    assert engines[1].read(lambda reader: reader.totals(SPACE)) == Totals(values, 4 * values)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_cut_around_a_commit(
    open_engine: Opener, postgres_url: str, name: str, moment: Any
) -> None:
    """What became of the commit is found out; the body is not applied twice."""
    engine = open_engine()

    def add(txn: Transaction) -> int:
        value = int(txn.get(7, P, b"n") or b"0") + 1
        txn.put(7, P, b"n", b"%d" % value)
        txn.append(8, P, b"%d" % value)
        return value

    engine.write(add)
    cuts: list[None] = []

    def cut() -> None:
        if not cuts:
            cuts.append(None)
            cut_connections(postgres_url, name)

    with faults.at(engine, moment, cut):
        assert engine.write(add) == 2
    assert len(cuts) == 1
    assert engine.write(add) == 3
    assert [value for _, _, value in rows(engine, 8)] == [b"1", b"2", b"3"]


def test_a_commit_whose_acknowledgement_is_lost(
    open_engine: Opener, postgres_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commit took effect, but its answer was lost: the engine finds that out, and does not repeat it."""
    engine = open_engine()
    cut = Cut(engine, monkeypatch, postgres_url, name)

    def add(txn: Transaction) -> int:
        value = int(txn.get(7, P, b"n") or b"0") + 1
        txn.put(7, P, b"n", b"%d" % value)
        txn.append(8, P, b"%d" % value)
        return value

    def add_alone(txn: Transaction) -> int:
        assert len(list(txn.scan(8, P))) == 1
        return add(txn)

    for number, body in enumerate((add, add_alone), 1):
        cut.arm(committed=True, forgotten=False)
        assert engine.write(body) == number
        assert engine.counts()["reconnections"] == number
    assert engine.write(add) == 3
    assert [value for _, _, value in rows(engine, 8)] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("submitted", [False, True])
@pytest.mark.parametrize(
    "error",
    [psycopg.OperationalError(), psycopg.errors.LockNotAvailable(), psycopg.errors.DiskFull(), OSError()],
    ids=repr,
)
def test_a_body_whose_own_statement_fails_has_its_outcome(
    open_engine: Opener,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: Exception,
    submitted: bool,
) -> None:
    """It runs under the store's lock, and asks PostgreSQL: its connection is cut, say. Its caller hears."""
    caplog.set_level(logging.CRITICAL)
    engine, execute, failures = open_engine(), psycopg.Cursor.execute, count(1)

    def fail(cursor: Any, statement: Any, *values: Any, **named: Any) -> Any:
        if f"{engine._writer._statements.schema}.scan(" in statement and next(failures) == 1:
            raise error
        return execute(cursor, statement, *values, **named)

    monkeypatch.setattr(psycopg.Cursor, "execute", fail)
    body, outcomes = alone(adding(8)), Outcomes(1)
    if submitted:
        engine.submit(body, outcomes)
        outcomes.wait()
    else:
        try:
            outcomes(engine.write(body), None)
        except CommitFailed as raised:
            outcomes(None, raised)
    refused = isinstance(error, psycopg.errors.DiskFull)
    assert (outcomes.results, len(outcomes.errors)) == (([], 1) if refused else ([1], 0))
    assert engine.write(body) == (1 if refused else 2)


def servers(url: str, name: str) -> list[int]:
    with psycopg.connect(url) as connection:
        return [row[0] for row in connection.execute(f"SELECT id FROM {name}.server ORDER BY id")]


def grow_old(url: str, name: str, id_: int) -> None:
    """Let an engine have committed nothing for longer than any engine does that goes on."""
    with psycopg.connect(url) as connection:
        connection.execute(
            f"UPDATE {name}.server SET seen = seen - 2 * %s::interval WHERE id = %s",
            (writer.ABSENT_AFTER, id_),
        )


def test_the_rows_of_engines_long_gone_are_removed(open_engine: Opener, postgres_url: str, name: str) -> None:
    first, second = open_engine(), open_engine()
    put(first, 7, P, b"a", b"1")
    put(second, 7, P, b"b", b"1")
    gone, ended = first._writer.server, second._writer.server
    first.close()
    second.close()
    grow_old(postgres_url, name, gone)
    third = open_engine()
    assert set(servers(postgres_url, name)) == {ended, third._writer.server}
    put(third, 7, P, b"a", b"2")
    assert get(third, 7, P, b"a") == b"2"


def test_an_engine_whose_row_was_removed_goes_on(open_engine: Opener, postgres_url: str, name: str) -> None:
    engine = open_engine()
    put(engine, 7, P, b"n", b"0")
    add = adding(8)
    for number, body in enumerate((add, alone(add)), 1):
        gone = engine._writer.server
        grow_old(postgres_url, name, gone)
        open_engine()
        assert gone not in servers(postgres_url, name)
        assert engine.write(body) == number
        assert engine._writer.server in servers(postgres_url, name)
    assert [value for _, _, value in rows(engine, 8)] == [b"1", b"2"]


@pytest.mark.parametrize("is_alone", [False, True])
def test_nobody_takes_a_new_row_for_the_outcome_of_an_old_commit(
    open_engine: Opener, postgres_url: str, name: str, is_alone: bool
) -> None:
    """A commit's connection was cut, and the machine of its engine was then suspended for days."""
    engine = open_engine()
    body = alone(adding(8)) if is_alone else adding(8)
    cuts: list[None] = []

    def stand_still() -> None:
        if not cuts:
            cuts.append(None)
            cut_connections(postgres_url, name)
            with psycopg.connect(postgres_url) as connection:
                connection.execute(f"DELETE FROM {name}.server")

    with faults.at(engine, "after", stand_still), pytest.raises(CommitUnknown, match="does not know"):
        engine.write(body)
    assert engine.write(body) == 1  # the cut came before PostgreSQL had committed
    assert [value for _, _, value in rows(engine, 8)] == [b"1"]


def test_an_engine_that_stops_under_its_locks_keeps_nobody_waiting(
    open_engine: Opener, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """PostgreSQL ends its connection after a while. When it goes on, it notices, and begins again."""
    caplog.set_level(logging.CRITICAL)
    monkeypatch.setattr(writer, "IDLE_MS_MAX", 50)
    stopped, other = open_engine(), open_engine()
    stopped.write(adding(8))
    stopped._turns.lock_first_share = ALWAYS
    added: list[int] = []

    def stop() -> None:
        if not added:
            added.append(0)
            added.append(other.write(adding(8)))

    with faults.at(stopped, "before", stop):
        assert stopped.write(adding(8)) == 3
    assert added == [0, 2]
    assert stopped.counts()["reconnections"] == 1
    assert [value for _, _, value in rows(other, 8)] == [b"1", b"2", b"3"]


class Failing:
    """Fails one step of making the writer's connection: the one at `at`, counted from 1. Each is done in two
    steps, so that it fails before it is done, or after."""

    def __init__(self, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, error: type[BaseException]):
        self._engine = engine
        self.at = 0
        for name in ("connect", "call", "place_of", "LoopConnection"):
            # Who cannot connect hears nothing from PostgreSQL but that. Any step may fail for another reason.
            failing = connections.Lost if name == "connect" and error is not OSError else error
            monkeypatch.setattr(writer, name, partial(self._do, failing, getattr(writer, name)))

    def _do(self, error: type[BaseException], what: Callable[..., Any], *values: Any, **named: Any) -> Any:
        if self._engine._writer.connected:
            return what(*values, **named)
        self._step(error)
        result = what(*values, **named)
        try:
            self._step(error)
        except BaseException:
            if isinstance(result, psycopg.Connection):
                result.close()
            raise
        return result

    def _step(self, error: type[BaseException]) -> None:
        self.at -= 1
        if self.at == 0:
            raise error("the test failed the connection")


class Cut:
    """Cuts the writer's connection at its next commit, before or after the commit takes effect, and may
    delete the engine's row in PostgreSQL."""

    def __init__(self, engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, url: str, name: str) -> None:
        self._engine = engine
        self._forget = f"DELETE FROM {name}.server"
        self._url = url
        self._next: tuple[bool, bool] | None = None
        self._is_cut = False
        monkeypatch.setattr(writer, "call_all", partial(self._call_all, connections.call_all))
        send = LoopConnection.send
        monkeypatch.setattr(LoopConnection, "send", lambda line, *values: self._send(send, line, *values))

    def arm(self, committed: bool, forgotten: bool) -> None:
        self._next = (committed, forgotten)

    def _send(self, send: Any, line: Any, calls: Any, *values: Any) -> Any:
        def do() -> Any:
            sent = send(line, calls, *values)
            if self._is_cut:
                line.wait()
            return sent

        connection = self._engine._writer._connection
        commits = any(b"commit_group" in statement for statement, _ in calls)
        ends = line is self._engine._writer._loop_connection and commits
        try:
            return self._cut_if(ends, connection, do)
        except connections.Lost:
            return send(line, calls, *values)  # it notices that the connection is closed

    def _call_all(self, call_all: Any, connection: Any, statements: Any) -> Any:
        ends = any(statement == "COMMIT" for statement, _ in statements)
        return self._cut_if(ends, connection, partial(call_all, connection, statements))

    def _cut_if(self, ends: bool, connection: Any, do: Callable[[], Any]) -> Any:
        if self._next is None or not ends:
            return do()
        (committed, forgotten), self._next = self._next, None
        if committed:
            self._is_cut = True
            do()
            self._is_cut = False
        connection.close()
        if forgotten:
            with psycopg.connect(self._url) as administrator:
                administrator.execute(self._forget)
        raise connections.Lost("the test cut the connection")


@pytest.mark.parametrize("error", [connections.Lost, connections.Refused, connections.Retry, OSError])
@pytest.mark.parametrize("way", ["plain", "locked", "alone"])
def test_no_commit_is_applied_twice_whatever_fails_afterwards(
    open_engine: Opener,
    postgres_url: str,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    way: str,
    error: type[BaseException],
) -> None:
    """A commit is cut in each state of the engine's row, and then each step of making a connection fails."""
    caplog.set_level(logging.CRITICAL)
    engine = open_engine()
    body = alone(adding(8)) if way == "alone" else adding(8)
    engine.write(body)
    if way == "locked":
        engine._turns.lock_first_share = ALWAYS
    cut = Cut(engine, monkeypatch, postgres_url, name)
    failing = Failing(engine, monkeypatch, error)
    for committed, forgotten in product([False, True], repeat=2):
        for at in count(1):
            before = int(get(engine, 7, P, b"n") or b"")
            cut.arm(committed, forgotten)
            failing.at = at
            try:
                returned: int | None = engine.write(body)
            except CommitUnknown:
                returned = None
            added = int(get(engine, 7, P, b"n") or b"") - before
            if forgotten:
                assert (returned, added) == (None, committed), at
            else:
                assert (returned, added) == (before + 1, 1), at
            if failing.at > 0:
                assert at > 8, "each step has failed"
                break
    numbers = [int(value) for _, _, value in rows(engine, 8)]
    assert numbers == list(range(1, len(numbers) + 1))
