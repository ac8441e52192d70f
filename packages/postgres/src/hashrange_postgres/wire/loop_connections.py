"""A connection on which the event loop waits for the answers of one statement at a time, or of a few that are
sent together.

Only `wait` waits. A thread that wakes for each answer would cost more than the statement: it takes the GIL
from the loop, and the loop takes it back.

Refuses to know: what the statements are.
"""

from __future__ import annotations

import math
import os
import select
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from time import monotonic
from typing import Any, Final

import psycopg
from psycopg import errors, pq

from hashrange.storage.loops import Loop, LoopWatch
from hashrange_postgres.wire.connections import (
    Connection,
    Lost,
    TimedOut,
    Trouble,
    encode,
    is_direct,
    translated,
    trouble_of,
)

Answer = pq.abc.PGresult

_GOOD: Final = frozenset({pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK})
_BROKEN: Final = pq.ConnStatus.BAD
LOOP_SECONDS_MAX: Final = 1.0
"""If the event loop does not handle an answer of PostgreSQL for about this long, a thread does."""


def numbered(statement: str) -> bytes:
    """A statement with $1, $2, … in the places of its %s, as PostgreSQL takes it."""
    numbers = count(1)
    first, *rest = statement.split("%s")
    return (first + "".join(f"${next(numbers)}{part}" for part in rest)).encode()


def number(value: bytes | None) -> int:
    """A `bigint` of an answer."""
    return int.from_bytes(value or b"", "big", signed=True)


def rows_of(answer: Answer) -> list[tuple[Any, ...]]:
    """The rows of `Statements.fetch`, `lock_records` and `fetch_ranges`. A version that is null is 0 in the
    first two."""
    value = answer.get_value
    if answer.nfields == 3:
        return [(number(value(n, 0)), number(value(n, 1)), value(n, 2)) for n in range(answer.ntuples)]
    rows: list[tuple[Any, ...]] = []
    for n in range(answer.ntuples):
        version = value(n, 1)
        known = None if version is None else number(version)
        rows.append((number(value(n, 0)), known, value(n, 2), value(n, 3), value(n, 4)))
    return rows


Calls = Sequence[tuple[bytes, Sequence[Any]]]
"""Statements, each with the values of its parameters."""


class LoopConnection:
    """A line `waits` for the answers to statements, has the answers, or is idle.

    Only one thread at a time may use a line and its connection.
    """

    __slots__ = (
        "_answers",
        "_connection",
        "_failed",
        "_loop",
        "_names",
        "_pipelined",
        "_sent_at",
        "_socket",
        "_watched_by",
        "waits",
    )

    def __init__(self, connection: Connection, loop: Loop, often: Calls) -> None:
        """`often`: statements that are sent often, with values of the right types. It prepares them, if it
        can: parsing and planning one takes as long as looking up a few records. Raises Lost, Retry,
        Refused."""
        self._connection = connection
        self._loop = loop
        self._names: dict[bytes, bytes] = {}
        self._answers: list[Answer] = []
        self._pipelined = False
        self._failed: Trouble | None = None
        # A descriptor of its own: the loop may look at it, while another thread closes the connection.
        try:
            self._socket = os.dup(connection.pgconn.socket)
        except (OSError, psycopg.Error) as error:
            raise Lost(str(error)) from None
        self._watched_by: LoopWatch | None = None
        self.waits = False
        self._sent_at = 0.0
        try:
            if is_direct(connection):
                for statement, values in often:
                    self._prepare(statement, values)
        except BaseException:
            os.close(self._socket)
            raise

    def _prepare(self, statement: bytes, values: Sequence[Any]) -> None:
        name = b"hashrange_%d" % len(self._names)
        with translated(self._connection):
            self._connection.pgconn.send_prepare(name, statement, [encode(value)[1] for value in values])
        self._begin()
        self.wait()
        self.answers()
        self._names[statement] = name

    def _begin(self) -> None:
        """A statement is on its way."""
        self.waits = True
        self._sent_at = monotonic()

    @property
    def is_sound(self) -> bool:
        """Whether statements can be sent, as far as is known."""
        return self._connection.pgconn.status != _BROKEN

    def send(self, calls: Calls, watch: LoopWatch | None, then: Callable[[], None] | None) -> bool:
        """Send statements, each with its values. If one of them fails, PostgreSQL skips the others. `watch`,
        if this is the event loop's thread: have the loop call `then` when more of the answers has arrived.
        Returns False if not all was sent, or nothing: call `wait` and `answers` then."""
        pgconn = self._connection.pgconn
        self.forget_answers()
        encoded = [(statement, [encode(value) for value in values]) for statement, values in calls]
        self._pipelined = len(calls) > 1
        try:
            if self._pipelined:
                pgconn.enter_pipeline_mode()
            for statement, parameters in encoded:
                self._send(statement, parameters)
            if self._pipelined:
                pgconn.pipeline_sync()
            self._begin()
            if pgconn.flush():
                return False
        except psycopg.Error as error:
            self.waits = False
            self._failed = Lost(str(error).strip())
            return False
        if watch is not None:
            watch(self._socket, then)
            self._watched_by = watch
        return True

    def _send(self, statement: bytes, parameters: Sequence[tuple[bytes | None, int, pq.Format]]) -> None:
        pgconn = self._connection.pgconn
        contents = [parameter[0] for parameter in parameters]
        formats = [parameter[2] for parameter in parameters]
        name = self._names.get(statement)
        if name is not None:
            pgconn.send_query_prepared(name, contents, formats, pq.Format.BINARY)
        else:
            types = [parameter[1] for parameter in parameters]
            pgconn.send_query_params(statement, contents, types, formats, pq.Format.BINARY)

    def forget_answers(self) -> None:
        """Forget the answers to earlier statements: whatever fails before others are sent, nobody may take
        them for theirs."""
        self._answers = []
        self._failed = None

    def unwatch(self) -> None:
        """Stop the event loop's waiting. Called on the loop's thread."""
        watch, self._watched_by = self._watched_by, None
        if watch is not None:
            watch(self._socket, None)

    def poll(self) -> bool:
        """Read what has arrived. Returns whether the answers are complete."""
        if not self.waits:
            return True
        pgconn = self._connection.pgconn
        try:
            pgconn.consume_input()
            while self.waits and not pgconn.is_busy():
                self._take(pgconn.get_result())
        except psycopg.Error as error:
            self._failed = Lost(str(error).strip())
            self.waits = False
        return not self.waits

    def _take(self, answer: Answer | None) -> None:
        """Take the next answer. None comes after each statement. Raises psycopg.Error."""
        pgconn = self._connection.pgconn
        if answer is None:
            if not self._pipelined:  # all is done, the commit included
                self.waits = False
            elif pgconn.status == _BROKEN:
                raise psycopg.OperationalError("the connection is lost")
        elif answer.status == pq.ExecStatus.PIPELINE_SYNC:
            pgconn.exit_pipeline_mode()
            self.waits = False
        elif answer.status in _GOOD:
            self._answers.append(answer)
        elif answer.status != pq.ExecStatus.PIPELINE_ABORTED:
            self._failed = trouble_of(errors.error_from_result(answer), self._connection)

    def wait(self) -> None:
        """Wait for the answer, on this thread, for as long as the connection allows."""
        pgconn, seconds_max = self._connection.pgconn, self._connection.seconds_max
        poller = select.poll()
        poller.register(self._socket, select.POLLIN)
        while not self.poll():
            try:
                left = pgconn.flush()
            except psycopg.Error as error:
                self._failed = Lost(str(error).strip())
                self.waits = False
                return
            poller.modify(self._socket, select.POLLIN | (select.POLLOUT if left else 0))
            left_seconds = self._sent_at + seconds_max - monotonic()
            if left_seconds <= 0:
                self._failed = TimedOut(f"PostgreSQL has not answered for {seconds_max:g} seconds")
                self.waits = False
                self._connection.abandon()
                return
            poller.poll(left_seconds * 1000 if left_seconds < math.inf else None)

    def answers(self) -> list[Answer]:
        """The answers, one for each statement. Raises Lost, Retry, Refused."""
        if self._failed is not None:
            raise self._failed
        if not self._answers:
            raise Lost("PostgreSQL gave no answer")
        return self._answers

    def close(self) -> None:
        """Release the connection without closing it; on any thread."""
        self._loop.post(tasks=[self._let_go])

    def _let_go(self) -> None:
        with suppress(Exception):  # a loop that was closed
            self.unwatch()
        with suppress(OSError):
            os.close(self._socket)
