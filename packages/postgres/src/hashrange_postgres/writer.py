"""The one connection of an engine that writes: sends groups, and knows its own row in the table `server`.

A group is sent in one or two steps (`send`): if it locks its records first, a transaction begins with that,
and the next step commits it. Otherwise its commit is one statement, which is a transaction of its own. The
event loop or the commit thread waits for the answer, and `judge` says what it means. A body under the store's
lock has a transaction of several statements, on the commit thread (`hold`).

Each commit sets the row to the version of its group. When the connection is lost in the middle of a commit,
`connect_again` gives the row a new epoch, so that a commit that has not succeeded by then can no longer
succeed, and reads the version, which shows whether the commit succeeded.

Engines, epochs and versions are random numbers of 63 bits, because counters would repeat: when an older copy
of the database takes its place, it brings its counters along, while running engines remember records that
were written after the copy.

A new engine removes the rows of engines that have not committed for a day. An engine whose row is gone can
commit nothing, not even a statement already sent, and gets a new row. The new row does not show the outcome
of an earlier commit that was cut off: the engine normally asks for it within seconds, but its machine may
have been suspended.

Refuses to know: the bodies of a group, caches.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple

from psycopg.pq import TransactionStatus

from hashrange.storage.failures import CommitFault, CommitUnknown, Moment
from hashrange.storage.loops import Loop, LoopWatch
from hashrange_postgres.cache import Catalog, CatalogState, Key, Known
from hashrange_postgres.direct import DirectTransaction
from hashrange_postgres.groups import Group, State
from hashrange_postgres.wire.connections import (
    Connection,
    Lost,
    Retry,
    Trouble,
    call,
    call_all,
    close,
    connect,
    place_of,
    translated,
)
from hashrange_postgres.wire.loop_connections import LoopConnection, number, numbered, rows_of
from hashrange_postgres.wire.statements import Arguments, Statements

_log = logging.getLogger("hashrange.postgres")


ABSENT_AFTER: Final = "1 day"
"""An engine that has committed nothing for this long, by PostgreSQL's clock, counts as ended."""

_SLOTS: Final = 16
"""Of `total` in `schema.sql`."""

IDLE_MS_MAX: Final = 2_000
"""An engine that holds locks of records, and says nothing for this long, has lost them and its connection."""

_BEGIN: Final = ("BEGIN ISOLATION LEVEL READ COMMITTED", ())
_COMMIT: Final = ("COMMIT", ())
_SENT_BEGIN, _SENT_COMMIT, _SENT_ROLLBACK = (
    (text.encode(), ()) for text in (_BEGIN[0], _COMMIT[0], "ROLLBACK")
)


class Locked(NamedTuple):
    """The versions of the records that a group has locked, those that are not what its bodies have read, and
    the catalog."""

    versions: dict[Key, int]
    changed: dict[Key, Known]
    state: CatalogState


class Changed(Exception):
    """The bodies of a group read records, or a catalog, that are out of date; nothing was written."""


class Undone(Exception):
    """A test's fault has undone a commit."""


class NotSent(Exception):
    """PostgreSQL could not be reached; nothing was sent."""


class Writer:
    """The connection that writes. Only the commit whose turn it is uses it."""

    def __init__(
        self,
        url: str,
        statements: Statements,
        catalog: Catalog,
        loop: Loop,
        *,
        name: str,
        seconds_max: float,
    ) -> None:
        """`seconds_max`: how long PostgreSQL may take for an answer."""
        self._url = url
        self._seconds_max = seconds_max
        self._statements = statements
        self._catalog = catalog
        self._name = name
        self._loop = loop
        self._connection: Connection | None = None
        self._loop_connection: LoopConnection | None = None
        self._sent_commit, self._sent_fetch, self._sent_lock = map(
            numbered, (statements.commit, statements.fetch, statements.lock_records)
        )
        nothing = Group(0)
        self._often = [
            (self._sent_commit, Arguments()),
            (self._sent_fetch, nothing.arrays_to_read()[0]),
            (self._sent_lock, [IDLE_MS_MAX, *nothing.arrays_to_lock()[0]]),
        ]
        self._sent_keys: list[Key] = []
        self._server = 0
        self._epoch = 0
        self._random = Random()  # seeded by the operating system
        self.statements_sent = 0
        self.connections_made = 0
        self.bodies_alone = 0
        self.connected_to = ""

    @property
    def connected(self) -> bool:
        return self._connection is not None

    @property
    def server(self) -> int:
        """The number of this engine."""
        return self._server

    def next_version(self) -> int:
        """The version of a new group. No other group of any engine has it."""
        return self._number()

    def _number(self) -> int:
        """A number from 1 to 2^63 - 1 that nobody draws again, at one in 10^18 for each comparison."""
        return self._random.getrandbits(63) or 1

    def connect_again(self, left_seconds: float = math.inf) -> int | None:
        """Connect, and fence all that is still on its way; returns the version of the last group that was
        committed, None if nobody knows it any more. Ends about when the time is over. Raises Refused; Lost,
        also for whatever else fails: who waits for the connection tries again, and would never hear of any
        other error."""
        self.close()
        try:
            connection = connect(
                self._url,
                name=self._name,
                seconds_max=min(self._seconds_max, max(left_seconds, 1.0)),
                connect_seconds=left_seconds,
            )
            try:
                server, epoch, known = self._take_row(connection)
                with translated(connection):
                    place = place_of(connection, self._statements.schema)
                loop_connection = LoopConnection(connection, self._loop, self._often)
            except BaseException:
                close(connection)
                raise
        except Retry as error:
            raise Lost(str(error)) from None
        except Exception as error:
            raise Lost(repr(error)) from error
        # Only now is the engine another one. If it had taken a new row before, and then the connection had
        # failed, the new row would be asked for the outcome of a commit of the old one.
        self._server, self._epoch = server, epoch
        self.connections_made += 1
        if self.connected_to not in ("", place):
            _log.warning("connected to %s, no longer to %s", place, self.connected_to)
        self.connected_to = place
        connection.seconds_max = self._seconds_max
        self._connection = connection
        self._loop_connection = loop_connection
        return known

    def _take_row(self, connection: Connection) -> tuple[int, int, int | None]:
        """The number of this engine, its epoch from now on, and the version of the last group that was
        committed; None if the row is a new one."""
        schema = self._statements.schema
        epoch = self._number()
        if self._server:
            rows = call(
                connection,
                f"UPDATE {schema}.server SET epoch = %s, seen = now() WHERE id = %s RETURNING last_group",
                (epoch, self._server),
            )
            if rows:
                return self._server, epoch, rows[0][0]
        # A row that a commit under way has locked is not that of an engine that has ended.
        call(
            connection,
            f"DELETE FROM {schema}.server WHERE id = ANY(ARRAY(SELECT id FROM {schema}.server "
            "WHERE seen < now() - %s::interval FOR UPDATE SKIP LOCKED))",
            (ABSENT_AFTER,),
        )
        # The lowest bits choose the rows of totals that this engine changes: not those of the engine before.
        [(server,)] = call(
            connection,
            f"INSERT INTO {schema}.server (id, epoch) SELECT %s + count(*) %% {_SLOTS}, %s "
            f"FROM {schema}.server RETURNING id",
            (self._number() // _SLOTS * _SLOTS, epoch),
        )
        return server, epoch, None

    def ready(self) -> None:
        """Connect if there is no connection, or it is known to be lost. Raises NotSent."""
        if self._loop_connection is not None and self._loop_connection.is_sound:
            return
        try:
            self.connect_again()
        except Trouble as error:
            raise NotSent(str(error)) from None

    # A group, step by step.

    @property
    def is_ready(self) -> bool:
        """Whether `send` may be called: the connection is sound, as far as is known."""
        return self._loop_connection is not None and self._loop_connection.is_sound

    @property
    def _is_idle(self) -> bool:
        """Whether there is no transaction."""
        assert self._connection is not None
        return self._connection.info.transaction_status == TransactionStatus.IDLE

    def send(self, group: Group, watch: LoopWatch | None, then: Callable[[], None] | None) -> bool:
        """Send the step that the group's state says. `watch`, if this is the event loop's thread: have the
        loop call `then` when an answer arrives. Returns False if the commit thread has to wait for it in any
        case."""
        assert self._loop_connection is not None
        self._loop_connection.forget_answers()
        self.statements_sent += 1
        if group.state is State.LOCKING:
            arrays, self._sent_keys = group.arrays_to_lock()
            calls = [_SENT_BEGIN, (self._sent_lock, [IDLE_MS_MAX, *arrays])]
        elif group.wrote():
            calls = [(self._sent_commit, self._arguments(group))]
            if not self._is_idle:
                calls.append(_SENT_COMMIT)
        else:
            arrays, self._sent_keys = group.arrays_to_read()
            calls = [(self._sent_fetch, arrays)]
            if not self._is_idle:
                calls.append(_SENT_ROLLBACK)
        return self._loop_connection.send(calls, watch, then)

    def _arguments(self, group: Group) -> Arguments:
        return group.arguments(self._server, self._epoch)

    def has_answer(self) -> bool:
        """Whether the answer is complete; on the event loop's thread."""
        assert self._loop_connection is not None
        if not self._loop_connection.poll():
            return False
        self._loop_connection.unwatch()
        return True

    def unwatch(self) -> None:
        """Stop the event loop's waiting; on its thread."""
        if self._loop_connection is not None:
            self._loop_connection.unwatch()

    def wait(self) -> None:
        """Wait for the answer, on this thread."""
        assert self._loop_connection is not None
        self._loop_connection.wait()

    def judge(self, group: Group) -> Locked | None:
        """What the answer to the last step means: the locked records, if the group locks them, and otherwise
        that it was committed. Raises Changed, Retry, Refused: nothing was written; Lost; StorageError."""
        assert self._loop_connection is not None
        answers = self._loop_connection.answers()
        if group.state is State.LOCKING:
            return self._locked(group, rows_of(answers[-1]))
        if group.wrote():
            answer = answers[0]
            self._judge(((answer.get_value(0, 0) or b"").decode(), number(answer.get_value(0, 1))))
            if len(answers) > 1 and answers[1].command_status != _SENT_COMMIT[0]:
                raise Lost("the transaction was not committed")
        else:
            (_, catalog, told), *changed = rows_of(answers[0])
            self._catalog.note(catalog, told)
            if changed or catalog != group.catalog:
                raise Changed
        return None

    def _locked(self, group: Group, rows: list[tuple[Any, ...]]) -> Locked:
        (_, catalog, told), *present = rows
        state = self._catalog.note(catalog, told)
        versions: dict[Key, int] = dict.fromkeys(self._sent_keys, 0)
        changed: dict[Key, Known] = {}
        reads = group.reads
        for n, version, value in present:
            key = self._sent_keys[n - 1]
            versions[key] = version
            if reads.get(key, version) != version:
                changed[key] = value, version
        for key, version in reads.items():
            if version and not versions[key]:
                changed[key] = None, 0
        return Locked(versions, changed, state)

    def _judge(self, row: tuple[Any, ...]) -> None:
        """Raise Changed if `commit_group` reports another version of the catalog."""
        outcome, catalog = row
        if outcome != "committed":
            if catalog != self._catalog.state.version:
                self._catalog.forget()  # so that it is fetched again
            raise Changed

    # A group as a transaction of several statements, on the commit thread.

    def hold(self, group: Group, run: Callable[[DirectTransaction], None], fault: CommitFault | None) -> None:
        """Take the store's lock, have `run` run a body under it, and commit what it writes. Raises as
        `judge`; for a test's fault Undone, and CommitUnknown."""
        connection = self._connection
        assert connection is not None
        self.bodies_alone += 1
        lock = (self._statements.lock, (group.store_ms,))
        [_, _, [(group.catalog, told)]] = call_all(connection, [_BEGIN, lock, (self._statements.told, ())])
        self._catalog.note(group.catalog, told)
        run(DirectTransaction(connection, self._statements, self._catalog))
        if group.wrote():
            self.commit(group, fault)
        else:
            call(connection, *_COMMIT)

    def commit(self, group: Group, fault: CommitFault | None) -> None:
        """Commit a group, in several steps if a test may fail them. Raises as `hold`."""
        connection = self._connection
        assert connection is not None
        if self._is_idle:
            self.statements_sent += 1
            call(connection, *_BEGIN)
        self._meet(fault, "before")
        commit = (self._statements.commit, self._arguments(group))
        if fault is None:
            [[row], _] = call_all(connection, [commit, _COMMIT])
            self._judge(row)
            return
        [row] = call(connection, *commit)
        self._judge(row)
        chosen: CommitUnknown | None = None
        try:
            self._meet(fault, "after")
        except CommitUnknown as doubt:
            chosen = doubt
        call(connection, *_COMMIT)
        if chosen is not None:
            raise chosen

    def _meet(self, fault: CommitFault | None, moment: Moment) -> None:
        """Call a test's fault, if there is one, to fail the commit."""
        if fault is None:
            return
        try:
            fault(moment)
        except CommitUnknown:
            raise
        except Exception as error:
            raise Undone(str(error)) from error

    def roll_back(self) -> None:
        """End the transaction of a group that was not committed; on the commit thread."""
        connection = self._connection
        try:
            if connection is not None and not connection.closed and not self._is_idle:
                call(connection, "ROLLBACK")
        except Trouble:
            self.close()

    def close(self) -> None:
        if self._loop_connection is not None:
            self._loop_connection.close()
        if self._connection is not None:
            close(self._connection)
        self._connection = self._loop_connection = None
