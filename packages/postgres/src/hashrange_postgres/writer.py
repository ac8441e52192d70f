"""The one connection of an engine that writes: sends groups, and knows its own row in the table `server`.

A group is sent in one of two ways. Either it is one statement, which is a transaction of its own, and whose
answer the event loop or the commit thread waits for: `send`, then `answered` or `finish`. Or it is a
transaction that takes locks first: `hold`, on the commit thread.

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
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

from psycopg.pq import TransactionStatus

from hashrange.storage.failures import CommitFault, CommitUnknown, Moment
from hashrange.storage.loops import Loop, LoopWatch
from hashrange_postgres.cache import Catalog, Key
from hashrange_postgres.direct import DirectTransaction
from hashrange_postgres.fetching import Fetched, FetchRequest, fetched_of
from hashrange_postgres.groups import Group, State
from hashrange_postgres.wire.connections import (
    Connection,
    Fenced,
    Lost,
    NeedsExclusive,
    Overtaken,
    Retry,
    TimedOut,
    Trouble,
    call,
    call_all,
    close,
    connect,
    place_of,
    translated,
)
from hashrange_postgres.wire.loop_connections import LoopConnection, number, numbered, numbers
from hashrange_postgres.wire.statements import Arguments, Statements, arrays_of

_log = logging.getLogger("hashrange.postgres")


ABSENT_AFTER: Final = "1 day"
"""An engine that has committed nothing for this long, by PostgreSQL's clock, counts as ended."""

_SLOTS: Final = 16
"""Of `total` in `schema.sql`."""

_BEGIN: Final = ("BEGIN ISOLATION LEVEL READ COMMITTED", ())
_COMMIT: Final = ("COMMIT", ())

Opened = Callable[[Group, "Fetched | DirectTransaction | None"], None]
"""Called with a group whose locks are held, and the records that it has locked, or the transaction of a body
that runs under the store's lock; None if the group's bodies have run before."""


class Changed(Exception):
    """The bodies of a group read records that are out of date; `keys` are these records."""

    def __init__(self, keys: list[Key]) -> None:
        super().__init__(keys)
        self.keys = keys


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
        self._sent_commit, self._sent_verify = numbered(statements.commit), numbered(statements.verify)
        nothing = Group(0)
        self._often = [(self._sent_commit, Arguments()), (self._sent_verify, nothing.read_arrays()[0])]
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

    # A group as one statement.

    @property
    def is_ready(self) -> bool:
        """Whether `send` may be called: the connection is sound, as far as is known."""
        return self._loop_connection is not None and self._loop_connection.is_sound

    def send(self, group: Group, watch: LoopWatch | None, then: Callable[[], None] | None) -> bool:
        """Send a group. `watch`, if this is the event loop's thread: have the loop call `then` when an answer
        arrives. Returns False if the commit thread has to call `finish` in any case."""
        assert self._loop_connection is not None
        self.statements_sent += 1
        if group.wrote():
            values: Sequence[Any] = self._arguments(group)
            return self._loop_connection.send(self._sent_commit, values, watch, then)
        values, self._sent_keys = group.read_arrays()
        return self._loop_connection.send(self._sent_verify, values, watch, then)

    def _arguments(self, group: Group) -> Arguments:
        return group.arguments(self._server, self._epoch)

    def answered(self, group: Group) -> bool | None:
        """Whether the group was committed; None: the answer is not complete yet. If False, the commit thread
        has to call `finish`. Called on the event loop's thread."""
        loop_connection = self._loop_connection
        assert loop_connection is not None
        if not loop_connection.poll():
            return None
        loop_connection.unwatch()
        try:
            self._judge_answer(group, loop_connection)
        except (Trouble, Changed):
            return False
        return True

    def unwatch(self) -> None:
        """Stop the event loop's waiting; on its thread."""
        if self._loop_connection is not None:
            self._loop_connection.unwatch()

    def finish(self, group: Group) -> None:
        """Wait for the outcome of a group that was sent. Raises Changed, Retry, Refused: nothing was written;
        Lost."""
        assert self._loop_connection is not None
        try:
            self._loop_connection.wait()
            self._judge_answer(group, self._loop_connection)
        except Overtaken:
            raise self._changed(group) from None
        except Fenced:
            self.close()
            raise
        except Lost as lost:
            self.close()
            if group.wrote() or isinstance(lost, TimedOut):
                raise
            raise Changed([]) from None  # nothing was to be written: the bodies can run again

    def _judge_answer(self, group: Group, loop_connection: LoopConnection) -> None:
        answer = loop_connection.answer()
        if group.wrote():
            outcome = (answer.get_value(0, 0) or b"").decode()
            self._judge((outcome, number(answer.get_value(0, 1))))
        else:
            row = (number(answer.get_value(0, 0)), numbers(answer.get_value(0, 1)))
            self._judge_verified(group, row, self._sent_keys)

    def _judge(self, row: tuple[Any, ...]) -> None:
        """Raise Changed if `commit_group` reports another version of the catalog."""
        outcome, catalog = row
        if outcome != "committed":
            self._forget_catalog(catalog)
            raise Changed([])

    def _judge_verified(self, group: Group, row: tuple[Any, ...], keys: Sequence[Key]) -> None:
        catalog, bad = row
        if catalog != group.catalog or bad:
            self._forget_catalog(catalog)
            raise Changed([keys[n - 1] for n in bad or ()])

    def _forget_catalog(self, version: int) -> None:
        """Forget the catalog if this is its version now, so that it is fetched again."""
        if version != self._catalog.state.version:
            self._catalog.forget()

    def _changed(self, group: Group) -> Changed:
        """The error with the records that changed since a group's bodies read them; nothing was written."""
        connection = self._connection
        arrays, keys = group.read_arrays()
        if connection is None:
            return Changed(keys)
        try:
            [(_, bad)] = call(connection, self._statements.verify, arrays)
        except Trouble:
            self.close()
            return Changed(keys)
        return Changed([keys[n - 1] for n in bad or ()])

    # A group as a transaction of several statements.

    def hold(self, group: Group, run: Opened, fault: CommitFault | None) -> None:
        """Take the locks of a group, have `run` add what its bodies read and write, and commit it. Raises as
        `finish`; NeedsExclusive if the group needs the store's lock, which must not be taken after others;
        for a test's fault Undone, and CommitUnknown."""
        connection = self._connection
        assert connection is not None
        chosen: CommitUnknown | None = None
        try:
            run(group, self._open(connection, group))
            if group.catalog == -1:
                raise Changed([])
            if group.wrote():
                chosen = self._commit_held(connection, group, fault)
            else:
                if group.reads:
                    arrays, keys = group.read_arrays()
                    [row] = call(connection, self._statements.verify, arrays)
                    self._judge_verified(group, row, keys)
                call(connection, "COMMIT")
        except Lost:
            self.close()
            raise
        except Overtaken:
            self._roll_back(connection)
            raise self._changed(group) from None
        except BaseException:
            self._roll_back(connection)
            raise
        if chosen is not None:
            raise chosen

    def _open(self, connection: Connection, group: Group) -> Fetched | DirectTransaction | None:
        """Begin a transaction, and take the locks of a group whose bodies have not run yet."""
        statements = self._statements
        if group.state is not State.HELD:
            self.statements_sent += 1
            call(connection, *_BEGIN)
            return None
        if not group.locks.store:
            keys = group.locks.keys
            self.statements_sent += 2
            _, rows = call_all(connection, [_BEGIN, (statements.lock_records, arrays_of(keys))])
            return fetched_of(FetchRequest(keys), rows, self._catalog)
        self.bodies_alone += 1
        lock = (statements.lock, (group.locks.wait_ms,))
        [_, _, [(group.catalog, told)]] = call_all(connection, [_BEGIN, lock, (statements.told, ())])
        self._catalog.note(group.catalog, told)
        return DirectTransaction(connection, statements, self._catalog)

    def _commit_held(
        self, connection: Connection, group: Group, fault: CommitFault | None
    ) -> CommitUnknown | None:
        """Send what the bodies of a group write, and commit; returns the doubt that a test's fault asks
        for."""
        self._meet(fault, "before")
        arguments = self._arguments(group)
        if arguments.exclusive_ms and group.locks.keys:
            raise NeedsExclusive("the group needs the store's lock")
        commit = (self._statements.commit, arguments)
        if fault is None:
            [[row], _] = call_all(connection, [commit, _COMMIT])
            self._judge(row)
            return None
        [row] = call(connection, *commit)
        self._judge(row)
        chosen: CommitUnknown | None = None
        try:
            self._meet(fault, "after")
        except CommitUnknown as doubt:
            chosen = doubt
        call(connection, *_COMMIT)
        return chosen

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

    def _roll_back(self, connection: Connection) -> None:
        try:
            if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                call(connection, "ROLLBACK")
        except Trouble:
            self.close()

    def close(self) -> None:
        if self._loop_connection is not None:
            self._loop_connection.close()
        if self._connection is not None:
            close(self._connection)
        self._connection = self._loop_connection = None
