"""The engine over PostgreSQL in a process without a descriptor left, whose driver raises OSError."""

from __future__ import annotations

import errno
import logging
import select
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue
from typing import Any

import psycopg
import pytest

import postgres
from hashrange.storage.api import Transaction
from hashrange.storage.failures import CommitFailed, StorageError
from hashrange_engine_tests.records import P, put, rows
from hashrange_postgres import PostgresEngine
from hashrange_postgres.wire import connections


@pytest.fixture
def engine(postgres_url: str) -> Iterator[PostgresEngine]:
    opened = PostgresEngine(postgres_url, schema=postgres.new_schema())
    yield opened
    opened.close()


def adding(txn: Transaction) -> int:
    """Add one to a counter, and append the sum to a log."""
    value = int(txn.get(7, P, b"n") or b"0") + 1
    txn.put(7, P, b"n", b"%d" % value)
    txn.append(8, P, b"%d" % value)
    return value


def adding_alone(txn: Transaction) -> int:
    """The same under the exclusive lock, because it reads a range."""
    list(txn.scan(9, P))
    return adding(txn)


class NoDescriptors:
    """A process without a descriptor left: the driver raises OSError where it waits for PostgreSQL, which it
    knows no word for. While `commits` is above 0, the next commit that was sent meets it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.connects = False
        self.commits = 0
        connect = connections.Connection.connect
        monkeypatch.setattr(connections.Connection, "connect", partial(self._connect, connect))
        monkeypatch.setattr(select, "poll", partial(self._poll, select.poll))
        execute = psycopg.Cursor.execute
        monkeypatch.setattr(psycopg.Cursor, "execute", lambda *given: self._execute(execute, *given))

    def _connect(self, connect: Any, *given: Any, **named: Any) -> Any:
        if self.connects:
            raise OSError(errno.EMFILE, "Too many open files")
        return connect(*given, **named)

    def _poll(self, poll: Any) -> Any:
        if self.commits:
            self.commits -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return poll()

    def _execute(self, execute: Any, cursor: Any, statement: str, values: Any = ()) -> Any:
        found = execute(cursor, statement, values)
        if self.commits and "commit_group" in statement:
            self.commits -= 1
            raise OSError(errno.EMFILE, "Too many open files")
        return found


def test_a_process_without_descriptors_goes_on_when_it_has_some(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """No thread of the engine ends: neither that which commits nor that which fetches."""
    caplog.set_level(logging.CRITICAL)
    lacking = NoDescriptors(monkeypatch)
    outcomes: SimpleQueue[Any] = SimpleQueue()

    def submitted(submit: Callable[..., None], body: Callable[[Any], Any]) -> Any:
        submit(body, lambda result, error: outcomes.put((result, error)))
        return outcomes.get(timeout=30)

    for number in range(1, 4):
        cut_off(engine)
        lacking.connects = True
        for submit in (engine.submit_read, engine.submit):
            result, error = submitted(submit, lambda txn: txn.get(9, P, b"%d" % number))  # noqa: B023
            assert (result, type(error) in (StorageError, CommitFailed)) == (None, True)
        with pytest.raises(CommitFailed):
            put(engine, 9, P, b"blind", b"1")
        lacking.connects = False
        while engine.refusing() is not None:
            pass
        assert submitted(engine.submit_read, lambda reader: reader.get(9, P, b"%d" % number)) == (None, None)  # noqa: B023
        assert submitted(engine.submit, adding) == (number, None)


def cut_off(engine: PostgresEngine) -> None:
    """Close the connections of an engine, as PostgreSQL does when it is started again."""
    writer_, fetching = engine._writer, engine._fetching
    for connection in (writer_._connection, fetching._connection, *engine._pool._idle):
        if connection is not None:
            connection.close()


@pytest.mark.parametrize("is_alone", [False, True])
def test_an_error_of_the_driver_after_a_commit_was_sent_leaves_no_doubt(
    engine: PostgresEngine, monkeypatch: pytest.MonkeyPatch, is_alone: bool
) -> None:
    """The commit may have taken effect: the engine finds out, as if the connection had been cut."""
    body = adding_alone if is_alone else adding
    engine.write(body)
    lacking = NoDescriptors(monkeypatch)
    for number in range(2, 5):
        lacking.commits = 1
        assert engine.write(body) == number
        assert lacking.commits == 0
    assert [value for _, _, value in rows(engine, 8)] == [b"1", b"2", b"3", b"4"]
