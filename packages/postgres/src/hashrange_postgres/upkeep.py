"""Deletes the records of deleted spaces, a few thousand at a time, on a thread of its own.

Several engines may do this at the same time: the row of the space in `cleared` is locked for each step, and
an engine skips rows that another engine has locked.

Another thread watches PostgreSQL (`Monitor`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from threading import Event, Lock, Thread
from time import monotonic
from typing import Final

from hashrange.clock import StoreClock
from hashrange.storage.failures import StorageError
from hashrange_postgres.cache import Catalog
from hashrange_postgres.wire.connections import Connection, Pool, Trouble, call
from hashrange_postgres.wire.statements import Statements

_log = logging.getLogger("hashrange.postgres")

_RECORDS_PER_STEP: Final = 5_000
_LOOK_SECONDS: Final = 1.0
MEASURE_SECONDS: Final = 2.0
"""How often PostgreSQL is asked for the time, and so whether it answers."""


class Upkeep:
    """The background work of an engine."""

    def __init__(self, pool: Pool, statements: Statements, catalog: Catalog) -> None:
        self._pool = pool
        self._schema = statements.schema
        self._catalog = catalog
        self._lock = Lock()
        self._thread: Thread | None = None
        self._closed = False
        self._done: frozenset[int] = frozenset()

    def begin(self) -> None:
        """Start deleting if there are spaces to clear and no deletion is under way."""
        cleared = self._catalog.state.cleared
        with self._lock:
            if self._closed or not cleared - self._done:
                return
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = Thread(target=self._clear, args=(cleared,), name="hashrange-upkeep", daemon=True)
            self._thread.start()

    def _clear(self, cleared: frozenset[int]) -> None:
        try:
            while not self._closed and self._pool.again(self._step):
                pass
        except Exception as error:  # (a thread that ends by an error would end the server)
            if not self._closed:
                _log.warning("deleted records were not removed: %s", error)
            return
        self._done = cleared

    def _step(self, connection: Connection) -> bool:
        """Delete some records of one space. Returns whether there is more to do."""
        schema = self._schema
        call(connection, "BEGIN ISOLATION LEVEL READ COMMITTED")
        try:
            rows = call(connection, f"SELECT space FROM {schema}.cleared LIMIT 1 FOR UPDATE SKIP LOCKED")
            if rows:
                deleted = call(
                    connection,
                    f"WITH gone AS (DELETE FROM {schema}.records WHERE ctid = ANY(ARRAY("
                    f"SELECT ctid FROM {schema}.records WHERE space = %s LIMIT %s)) RETURNING 1) "
                    "SELECT count(*) FROM gone",
                    (rows[0][0], _RECORDS_PER_STEP),
                )
                if deleted[0][0] < _RECORDS_PER_STEP:
                    for table in ("log", "cleared"):
                        call(connection, f"DELETE FROM {schema}.{table} WHERE space = %s", rows[0])
        except Trouble:
            raise
        except BaseException:
            call(connection, "ROLLBACK")
            raise
        call(connection, "COMMIT")
        return bool(rows)

    def close(self) -> None:
        with self._lock:
            self._closed = True
            thread = self._thread
        if thread is not None:
            thread.join()


class Monitor:
    """Watches PostgreSQL: whether it answers, what its clock shows, and what commits wait for if they are
    slow. On a thread of its own, because all others may be waiting for PostgreSQL."""

    def __init__(self, pool: Pool, is_slow: Callable[[], bool]) -> None:
        """Raises StorageError."""
        self._pool = pool
        self._is_slow = is_slow
        self._asked_at = 0.0
        self._ended = Event()
        self._thread: Thread | None = None
        self.waits_for = ""
        """What slow commits wait for, as was last seen: a part of a sentence, or nothing."""
        self.clock = StoreClock(self._ask_time)

    def start(self) -> None:
        """Start the thread, if it does not run."""
        if self._thread is None and not self._ended.is_set():
            self._thread = Thread(target=self._run, name="hashrange-monitor", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while not self._ended.wait(_LOOK_SECONDS):
            try:
                self.look()
            except Exception:  # nothing depends on it that a server could not do without
                _log.exception("PostgreSQL could not be watched")

    def look(self) -> None:
        """Look once; waits for PostgreSQL."""
        with suppress(StorageError):  # PostgreSQL is unreachable: the clock runs on
            self.clock.measure(MEASURE_SECONDS)
        # Between two tries to connect nothing waits: the last cause still holds.
        waits_for = self.waits_for if self._is_slow() else ""
        if self._is_slow():
            with suppress(StorageError):
                waits_for = self._ask_who_waits() or waits_for
        self.waits_for = waits_for

    def silent_seconds(self) -> float:
        """For how long PostgreSQL has not answered a question that is asked all the time; 0 if it does."""
        asked_at = self._asked_at
        return monotonic() - asked_at if asked_at else 0.0

    def _ask_time(self) -> float:
        """What PostgreSQL's clock shows. Raises StorageError."""

        def work(connection: Connection) -> float:
            [(now,)] = call(connection, "SELECT extract(epoch FROM clock_timestamp())::float8")
            return float(now)

        self._asked_at = self._asked_at or monotonic()
        now = float(self._pool.again(work))
        self._asked_at = 0.0
        return now

    def _ask_who_waits(self) -> str:
        """What transactions of this user wait for that may take long: a part of a sentence, or nothing."""

        def work(connection: Connection) -> str:
            [(standby, locks)] = call(
                connection,
                "SELECT count(*) FILTER (WHERE wait_event = 'SyncRep'), "
                "count(*) FILTER (WHERE wait_event_type = 'Lock') FROM pg_stat_activity "
                "WHERE usename = current_user AND state <> 'idle'",
            )
            if standby:
                return "; a synchronous standby does not confirm commits: look at pg_stat_replication"
            return "; commits wait for locks: look at pg_locks and pg_prepared_xacts" if locks else ""

        return str(self._pool.again(work))

    def close(self) -> None:
        self._ended.set()
