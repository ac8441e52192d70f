"""The one connection of an engine that writes: sends groups, and knows its own row in the table `server`.

Each commit sets the row to the version of its group. When the connection is lost in the middle of a commit,
`connect_again` adds one to the row's epoch, so that a commit that has not succeeded by then can no longer
succeed, and reads the version, which shows whether the commit succeeded.

A new engine removes the rows of engines that have not committed for a day. An engine whose row is gone can
commit nothing, not even a statement already sent, and gets a new row. The new row does not show the outcome
of an earlier commit that was cut off: the engine normally asks for it within seconds, but its machine may
have been suspended.

Refuses to know: members, caches.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, Final

from psycopg.pq import TransactionStatus

from hashrange.storage.api import CommitFault, CommitUnknown, LoopWatch, Moment
from hashrange.storage.postgres.bodies import NeedsAlone
from hashrange.storage.postgres.cache import Catalog, Key
from hashrange.storage.postgres.connections import (
    Connection,
    Fenced,
    Lost,
    NeedsExclusive,
    Overtaken,
    Retry,
    Trouble,
    call,
    call_all,
    close,
    connect,
    place_of,
    translated,
)
from hashrange.storage.postgres.direct import DirectTransaction, Statements, arrays_of
from hashrange.storage.postgres.fetching import Fetched, Wanted, fetched_of
from hashrange.storage.postgres.groups import (
    EXCLUSIVE_AT,
    GROUP_BITS,
    Group,
    values_of_direct,
    version_of,
)
from hashrange.storage.postgres.lines import Line, number, numbered, numbers
from hashrange.storage.postgres.loops import Loop

_log = logging.getLogger(__name__)


ABSENT_AFTER: Final = "1 day"
"""An engine that has committed nothing for this long, by PostgreSQL's clock, counts as ended."""


class Changed(Exception):
    """The bodies of a group read records that are out of date; `keys` are these records."""

    def __init__(self, keys: list[Key]) -> None:
        super().__init__(keys)
        self.keys = keys


class Undone(Exception):
    """A test's fault has undone a commit."""


class Doubt(Exception):
    """The outcome of a commit is not known; `chosen`: because a test's fault says so. `result` is that of a
    body that ran alone."""

    def __init__(self, cause: str, *, chosen: bool = False, result: Any = None) -> None:
        super().__init__(cause)
        self.chosen = chosen
        self.result = result


class Writer:
    """The connection that writes. Only the commit whose turn it is uses it."""

    def __init__(self, url: str, statements: Statements, catalog: Catalog, loop: Loop, name: str) -> None:
        self._url = url
        self._statements = statements
        self._catalog = catalog
        self._name = name
        self._loop = loop
        self._connection: Connection | None = None
        self._line: Line | None = None
        self._sent_commit, self._sent_verify = numbered(statements.commit), numbered(statements.verify)
        empty = Group(0)
        self._often = [
            (self._sent_commit, empty.values(0, 0, 0)),
            (self._sent_verify, empty.read_arrays()[0]),
        ]
        self._sent_keys: list[Key] = []
        self._server = 0
        self._epoch = 0
        self._groups = 0
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
        self._groups += 1
        return version_of(self._server, self._groups)

    def connect_again(self) -> int | None:
        """Connect, and fence all that is still on its way; returns the version of the last group that was
        committed, None if nobody knows it any more. Raises Refused; Lost, also for whatever else fails: who
        waits for the connection tries again, and would never hear of any other error."""
        self.close()
        try:
            connection = connect(self._url, name=self._name)
            try:
                server, epoch, known = self._take_row(connection)
                with translated(connection):
                    place = place_of(connection, self._statements.schema)
                line = Line(connection, self._loop, self._often)
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
        self._connection = connection
        self._line = line
        return known

    def _take_row(self, connection: Connection) -> tuple[int, int, int | None]:
        """The number of this engine, its epoch from now on, and the version of the last group that was
        committed; None if the row is a new one."""
        schema = self._statements.schema
        if self._server:
            rows = call(
                connection,
                f"UPDATE {schema}.server SET epoch = epoch + 1, seen = now() WHERE id = %s "
                "RETURNING epoch, last_group",
                (self._server,),
            )
            if rows:
                [(epoch, last)] = rows
                return self._server, epoch, last
        # A row that a commit under way has locked is not that of an engine that has ended.
        call(
            connection,
            f"DELETE FROM {schema}.server WHERE id = ANY(ARRAY(SELECT id FROM {schema}.server "
            "WHERE seen < now() - %s::interval FOR UPDATE SKIP LOCKED))",
            (ABSENT_AFTER,),
        )
        [(epoch, server)] = call(
            connection, f"INSERT INTO {schema}.server DEFAULT VALUES RETURNING epoch, id"
        )
        return server, epoch, None

    def commit(self, group: Group, fault: CommitFault | None) -> None:
        """Commit a group. Raises Changed, Retry, Refused, Undone (nothing was written), Lost (it was not
        sent), Doubt."""
        if group.catalog == -1:
            raise Changed([])
        connection = self._ready()
        self.statements_sent += 1
        if not group.wrote():
            self._verify(connection, group)
            return
        self._meet(fault, "before")
        chosen: Doubt | None = None
        try:
            self._send(connection, group, in_transaction=fault is not None)
            if fault is not None:
                chosen = self._finish(connection, fault)
        except Lost as error:
            self.close()
            raise Doubt(str(error)) from None
        except Overtaken:
            self._roll_back(connection)
            raise self._changed(group) from None
        except (Trouble, Changed, Undone):
            self._roll_back(connection)
            raise
        if chosen is not None:
            raise chosen

    # Commits whose outcome the event loop waits for.

    @property
    def is_ready(self) -> bool:
        """Whether `begin` may be called: the connection is sound, as far as is known."""
        return self._line is not None and self._line.is_sound

    def begin(self, group: Group, watch: LoopWatch, then: Callable[[], None]) -> bool:
        """Send a group, on the loop's thread, and have `then` called when an answer arrives. False: the
        commit thread has to call `finish`."""
        assert self._line is not None
        self._line.clear()
        self.statements_sent += 1
        if group.wrote():
            values = group.values(self._server, self._epoch, group.version)
            return self._line.send(self._sent_commit, values, watch, then)
        arrays, self._sent_keys = group.read_arrays()
        return self._line.send(self._sent_verify, arrays, watch, then)

    def ended(self, group: Group) -> bool | None:
        """Whether the group was committed; None: the answer is not complete yet. If False, the commit thread
        has to call `finish`."""
        line = self._line
        assert line is not None
        if not line.poll():
            return None
        line.unwatch()
        try:
            self._judge_answer(group, line)
        except (Trouble, Changed):
            return False
        return True

    def unwatch(self) -> None:
        """Stop the event loop's waiting; on its thread."""
        if self._line is not None:
            self._line.unwatch()

    def finish(self, group: Group) -> None:
        """Wait for the outcome of a group that was sent. Raises as `commit`."""
        assert self._line is not None
        try:
            self._line.wait()
            self._judge_answer(group, self._line)
        except NeedsExclusive:
            group.exclusive = True
            self.commit(group, None)
        except Overtaken:
            raise self._changed(group) from None
        except Fenced:
            self.close()
            raise
        except Lost as error:
            self.close()
            if group.wrote():
                raise Doubt(str(error)) from None
            raise Changed([]) from None  # nothing was to be written: the bodies can run again

    def _judge_answer(self, group: Group, line: Line) -> None:
        answer = line.answer()
        if group.wrote():
            outcome = (answer.get_value(0, 0) or b"").decode()
            self._judge((outcome, number(answer.get_value(0, 1))))
        else:
            found = (number(answer.get_value(0, 0)), numbers(answer.get_value(0, 1)))
            self._judge_verified(group, found, self._sent_keys)

    # Commits that the commit thread waits for.

    def commit_locked(
        self, group: Group, keys: Sequence[Key], run: Callable[[Fetched], None], fault: CommitFault | None
    ) -> None:
        """Lock records, let `run` add the reads and writes of bodies to the group, and commit it. Raises like
        `commit`; and NeedsAlone if the group needs the exclusive lock, which must not be taken after other
        locks."""
        connection = self._ready()
        self.statements_sent += 2
        chosen: Doubt | None = None
        try:
            begin = ("BEGIN ISOLATION LEVEL READ COMMITTED", ())
            _, rows = call_all(connection, [begin, (self._statements.lock_records, arrays_of(keys))])
            run(fetched_of(Wanted(keys), rows, self._catalog))
            if group.catalog == -1:
                raise Changed([])
            if group.catalog is None:  # all bodies wait for more locks
                call(connection, "ROLLBACK")
            elif group.wrote():
                self._meet(fault, "before")
                values = group.values(self._server, self._epoch, group.version)
                if values[EXCLUSIVE_AT]:
                    raise NeedsAlone
                commit = (self._statements.commit, values)
                if fault is None:
                    [[outcome], _] = call_all(connection, [commit, ("COMMIT", ())])
                    self._judge(outcome)
                else:
                    self._judge(call(connection, *commit)[0])
                    chosen = self._finish(connection, fault)
            else:
                self._verify(connection, group)
                call(connection, "COMMIT")
        except Lost as error:
            self.close()
            raise Doubt(str(error)) from None
        except Overtaken:
            self._roll_back(connection)
            raise self._changed(group) from None
        except NeedsExclusive:
            self._roll_back(connection)
            raise NeedsAlone from None
        except BaseException:
            self._roll_back(connection)
            raise
        if chosen is not None:
            raise chosen

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

    def _judge(self, told: tuple[Any, ...]) -> None:
        """Raise Changed if `commit_group` reports another version of the catalog."""
        outcome, catalog = told
        if outcome != "committed":
            self._note(catalog)
            raise Changed([])

    def _send(self, connection: Connection, group: Group, *, in_transaction: bool) -> None:
        """Send a group; again with the exclusive lock if it needs it."""
        while True:
            if in_transaction:
                call(connection, "BEGIN ISOLATION LEVEL READ COMMITTED")
            values = group.values(self._server, self._epoch, group.version)
            try:
                [told] = call(connection, self._statements.commit, values)
            except NeedsExclusive:
                self._roll_back(connection)
                group.exclusive = True
            else:
                self._judge(told)
                return

    def _verify(self, connection: Connection, group: Group) -> None:
        values, keys = group.read_arrays()
        try:
            [row] = call(connection, self._statements.verify, values)
        except Lost:
            self.close()
            raise Changed([]) from None  # nothing was to be written: the bodies can run again
        self._judge_verified(group, row, keys)

    def _judge_verified(self, group: Group, row: tuple[Any, ...], keys: Sequence[Key]) -> None:
        catalog, bad = row
        if catalog != group.catalog or bad:
            self._note(catalog)
            raise Changed([keys[n - 1] for n in bad or ()])

    def _note(self, catalog: int) -> None:
        """The catalog has another version: forget the known state, so that it is fetched again."""
        if catalog != self._catalog.state.version:
            self._catalog.forget()

    def _finish(self, connection: Connection, fault: CommitFault | None) -> Doubt | None:
        """Commit a transaction, with a test's fault in between. Raises Undone, Trouble; returns the Doubt
        that the fault demands."""
        chosen: Doubt | None = None
        try:
            self._meet(fault, "after")
        except Doubt as doubt:
            chosen = doubt
        call(connection, "COMMIT")
        return chosen

    def alone(
        self,
        version: int,
        body: Callable[[Any], Any],
        fault: CommitFault | None,
        learn: Callable[[DirectTransaction, int], None],
    ) -> Any:
        """Run a body under the exclusive lock of the store, and commit it. Raises what the body raises,
        Retry, Refused, Undone, Lost (nothing was written), Doubt."""
        connection = self._ready()
        self.bodies_alone += 1
        chosen: Doubt | None = None
        sent = False
        result: Any = None
        try:
            self._begin(connection)
            txn = DirectTransaction(connection, self._statements, self._catalog)
            [(catalog,)] = call(connection, f"SELECT catalog FROM {self._statements.schema}.store")
            result = body(txn)
            if txn.wrote():
                self._meet(fault, "before")
                changes = bool(txn.deleted) or any(key[0] == 0 for key in txn.own)
                values = values_of_direct(
                    txn, self._server, self._epoch, version, catalog, changes_catalog=changes
                )
                call(connection, self._statements.commit, values)
                sent = True
                chosen = self._finish(connection, fault)
                if changes:
                    self._catalog.forget()
                learn(txn, version)
            else:
                call(connection, "COMMIT")
        except Lost as error:
            self.close()
            if sent:
                raise Doubt(str(error), result=result) from None
            raise
        except BaseException:
            self._roll_back(connection)
            raise
        if chosen is not None:
            raise chosen
        return result

    def _begin(self, connection: Connection) -> None:
        call(connection, "BEGIN ISOLATION LEVEL READ COMMITTED")
        call(connection, self._statements.lock, (True,))

    def _roll_back(self, connection: Connection) -> None:
        try:
            if not connection.closed and connection.info.transaction_status != TransactionStatus.IDLE:
                call(connection, "ROLLBACK")
        except Trouble:
            self.close()

    def _ready(self) -> Connection:
        """The connection; a new one if it does not exist or is known to be lost. Raises Lost."""
        if self._connection is None or self._connection.closed or self._connection.broken:
            self.connect_again()
        assert self._connection is not None
        return self._connection

    def _meet(self, fault: CommitFault | None, moment: Moment) -> None:
        """Call a test's fault, if there is one, to fail the commit."""
        if fault is None:
            return
        try:
            fault(moment)
        except CommitUnknown as error:
            raise Doubt(str(error), chosen=True) from None
        except Exception as error:
            raise Undone(str(error)) from error

    def close(self) -> None:
        if self._line is not None:
            self._line.close()
        if self._connection is not None:
            close(self._connection)
        self._connection = self._line = None


def server_of(version: int) -> int:
    """The engine whose group wrote a record of this version."""
    return version >> GROUP_BITS
