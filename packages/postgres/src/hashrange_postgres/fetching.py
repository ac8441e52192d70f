"""Fetches the records that bodies miss, with one statement for all waiting bodies.

All requests that arrived while the last statement was under way share the next one. A statement is not sent
before the end of the event loop's round, so that its bodies share the statement. The loop sends it itself,
and waits for the answer among its other work (`loop_connections`). If it cannot, or the connection is lost, a
thread does.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Condition, Thread
from time import monotonic
from typing import Any, Final, NamedTuple

from hashrange.storage.failures import StorageError
from hashrange.storage.loops import Loop, Outcome, Task
from hashrange_postgres.cache import (
    CATALOG_SPACE,
    Catalog,
    CatalogState,
    Key,
    Known,
    Range,
    Records,
)
from hashrange_postgres.wire.connections import Connection, Pool, Trouble, call, close
from hashrange_postgres.wire.loop_connections import LOOP_SECONDS_MAX, LoopConnection, numbered, rows_of
from hashrange_postgres.wire.statements import Statements, arrays_of_ranges, arrays_to_fetch

_log = logging.getLogger("hashrange.postgres")

_NOTHING: Final[dict[Key, Known]] = {}
_ABSENT: Final[Known] = (None, 0)
UNMARKED: Final[Records] = ([], False)
"""What is fetched of a log before it is known that the space has logs: it has to be fetched again."""


class FetchRequest(NamedTuple):
    """The records and ranges that one statement fetches; `known` records are returned only if they have
    changed."""

    keys: Sequence[Key]
    ranges: Sequence[Range] = ()
    known: dict[Key, Known] = _NOTHING

    def statement(self, statements: Statements, logs: set[int]) -> tuple[str, list[Any]]:
        """The statement that fetches this; `logs` are the spaces known to have logs."""
        records = arrays_to_fetch(self.keys, self.known)
        if not self.ranges:
            return statements.fetch, records
        has_log = not logs.isdisjoint([space for space, *_ in self.ranges])
        text = statements.fetch_logs if has_log else statements.fetch_ranges
        return text, [*records, *arrays_of_ranges(self.ranges)]


class Fetched(NamedTuple):
    """The requested records and the catalog, of one moment. `known`: the records that were known before."""

    records: dict[Key, Known]
    state: CatalogState
    ranges: dict[Range, Records]
    known: dict[Key, Known]


def fetched_of(wanted: FetchRequest, rows: Iterable[tuple[Any, ...]], catalog: Catalog) -> Fetched:
    """Decode the rows of `fetch` and `lock_records` of `schema.sql`, and the rows of ranges, which have
    negative numbers. Raises StorageError."""
    records: dict[Key, Known] = dict.fromkeys(wanted.keys, _ABSENT)
    records.update(wanted.known)
    ranges: list[Records] = [([], False) for _ in wanted.ranges]
    state: CatalogState | None = None
    for row in rows:
        n, version, value = row[0], row[1], row[2]
        if n > 0:
            records[wanted.keys[n - 1]] = (value, version) if version is not None else _ABSENT
        elif n == 0:
            state = catalog.note(version, value)
        elif row[3] is not None:
            ranges[-n - 1][0].append(((row[3], row[4]), value))
        elif version is None:
            ranges[-n - 1] = (ranges[-n - 1][0], True)
    if state is None:
        raise StorageError("The schema of the store has no row in its table `store`; restore a backup.")
    for wanted_range, range_records in zip(wanted.ranges, ranges, strict=True):
        if range_records == UNMARKED:
            catalog.logs.add(wanted_range[0])
    for key, (value, _) in records.items():
        if key[0] == CATALOG_SPACE:
            state.records[key[1:]] = value
    return Fetched(records, state, dict(zip(wanted.ranges, ranges, strict=True)), wanted.known)


Then = Callable[["Fetched | StorageError"], None]
"""Called on the loop with the fetched records or the error."""

Verify = Callable[[Fetched], "Outcome | None"]
"""Returns the outcome of a body that has already ended, if the fetched records confirm it."""

_Request = tuple[FetchRequest, Then, Verify | None]


def all_of(requests: Sequence[_Request]) -> FetchRequest:
    """The records and ranges that several bodies wait for."""
    keys = dict.fromkeys([key for wanted, _, _ in requests for key in wanted.keys])
    ranges = dict.fromkeys([wanted_range for wanted, _, _ in requests for wanted_range in wanted.ranges])
    known: dict[Key, Known] = {}
    for wanted, _, _ in requests:
        known.update(wanted.known)
    return FetchRequest(list(keys), list(ranges), known)


class Fetching:
    """Fetches for the bodies of one engine. `learn` is called with all fetched records, `settled` with the
    number of bodies that thereby have their outcome."""

    def __init__(
        self,
        pool: Pool,
        statements: Statements,
        catalog: Catalog,
        loop: Loop,
        learn: Callable[[Fetched], None],
        settled: Callable[[int], None],
    ) -> None:
        self._pool = pool
        self._statements = statements
        self._catalog = catalog
        self._loop = loop
        self._learn = learn
        self._settled = settled
        self._work = Condition()
        self._waiting: list[_Request] = []
        self._released = False
        self._starting = False
        self._closed = False
        self._connection: Connection | None = None
        self._loop_connection: LoopConnection | None = None  # over `_connection`
        self._sent: list[_Request] | None = None
        self._sent_wanted = FetchRequest(())
        self._sent_at = 0.0
        self._stalled = False  # the statement could not be sent at once: the thread finishes it
        records = arrays_to_fetch((), _NOTHING)
        ranges = [*records, *arrays_of_ranges(())]
        texts = (statements.fetch, statements.fetch_ranges, statements.fetch_logs)
        self._numbered = {text: numbered(text) for text in texts}
        self._often = list(zip(self._numbered.values(), (records, ranges, ranges), strict=True))
        self.statements_sent = 0
        self._worker = Thread(target=self._run, name="hashrange-fetch", daemon=True)
        self._worker.start()

    def now(self, wanted: FetchRequest) -> Fetched:
        """Fetch on this thread. Raises StorageError."""

        def work(connection: Connection) -> list[tuple[Any, ...]]:
            return call(connection, *wanted.statement(self._statements, self._catalog.logs))

        rows = self._pool.again(work)
        self.statements_sent += 1
        fetched = fetched_of(wanted, rows, self._catalog)
        self._learn(fetched)
        return fetched

    def later(
        self, wanted: FetchRequest, then: Then, verify: Verify | None = None, *, at_once: bool = False
    ) -> None:
        """Fetch, and have `then` called on the loop unless `verify` has an outcome. `at_once`: this is not
        the loop's thread, so do not wait for the end of a round."""
        with self._work:
            self._waiting.append((wanted, then, verify))
            defer = self._loop.defer if self._loop.is_limited and not at_once else None
            if defer is None or self._released:
                self._released = True
                self._work.notify()
                return
            if self._starting or self._sent is not None:
                return  # the loop sends it, now or after the answer that it waits for
            self._starting = True
        defer(self._send)

    def release(self) -> None:
        """Let the thread take the waiting requests of an earlier loop."""
        with self._work:
            self._starting = False
            self._take_back()
            if self._waiting:
                self._released = True
                self._work.notify()

    # On the event loop.

    def _send(self) -> None:
        """Fetch the records that the bodies of this round wait for; by the thread if the loop cannot."""
        with self._work:
            self._starting = False
            if not self._waiting or self._sent is not None or self._released:
                return
            watch = self._loop.watching
            if watch is None or self._loop_connection is None or not self._loop_connection.is_sound:
                self._released = True
                self._work.notify()
                return
            self._sent, self._waiting = self._waiting, []
            self._sent_at = monotonic()
            self._sent_wanted = all_of(self._sent)
            self.statements_sent += 1
            text, values = self._sent_wanted.statement(self._statements, self._catalog.logs)
            calls = [(self._numbered[text], values)]
            if not self._loop_connection.send(calls, watch, self._answered):
                self._stalled = True
                self._work.notify()

    def _answered(self) -> None:
        """Called when data has arrived from PostgreSQL."""
        with self._work:
            loop_connection = self._loop_connection
            if loop_connection is None or self._sent is None or not loop_connection.poll():
                return
            loop_connection.unwatch()
            ended = self._end()
        if ended is not None:
            fetched, sent = ended
            self._learn(fetched)
            self._send()
            self._loop.run(*self._outcomes_of(fetched, sent))

    def _end(self) -> tuple[Fetched, list[_Request]] | None:
        """The records fetched on the connection, and the requests that wait for them. Needs the lock."""
        loop_connection, sent = self._loop_connection, self._sent
        assert loop_connection is not None
        assert sent is not None
        try:
            fetched = fetched_of(self._sent_wanted, rows_of(loop_connection.answers()[-1]), self._catalog)
        except (Trouble, Exception):
            self._take_back()  # the thread tries again, and tells what is wrong
            return None
        self._sent = None
        return fetched, sent

    def _outcomes_of(self, fetched: Fetched, sent: list[_Request]) -> tuple[list[Outcome], list[Task]]:
        """The outcomes to deliver and the tasks to run on the loop after this fetch."""
        outcomes: list[Outcome] = []
        tasks: list[Task] = []
        for _, then, verify in sent:
            outcome = verify(fetched) if verify is not None else None
            if outcome is not None:
                outcomes.append(outcome)
            else:
                tasks.append(partial(then, fetched))
        if outcomes:
            self._settled(len(outcomes))
        return outcomes, tasks

    # On the thread.

    def _finish(self) -> None:
        """Send the rest of a statement that could not be sent at once, and wait for its answer."""
        loop_connection = self._loop_connection
        assert loop_connection is not None
        loop_connection.wait()
        with self._work:
            self._stalled = False
            ended = self._end()
        if ended is not None:
            fetched, sent = ended
            self._learn(fetched)
            outcomes, tasks = self._outcomes_of(fetched, sent)
            self._loop.post(outcomes, [*tasks, self._send])

    def _take_back(self) -> None:
        """Let the thread send the request again on another connection. Needs the lock."""
        if self._sent is not None and not self._stalled:
            self._waiting[:0] = self._sent
            self._sent = None
            self._released = True
            self._work.notify()
            self._drop_loop_connection()

    def _take_back_if_late(self) -> None:
        """The loop may no longer be running. Others may wake the thread all the time, so it looks at the
        clock. Needs the lock."""
        if self._sent is not None and monotonic() - self._sent_at >= LOOP_SECONDS_MAX:
            self._take_back()

    def _drop_loop_connection(self) -> None:
        loop_connection, connection = self._loop_connection, self._connection
        self._loop_connection = self._connection = None
        if loop_connection is not None:
            loop_connection.close()
        if connection is not None:
            close(connection)

    def _make_loop_connection(self) -> None:
        """Make a connection for the event loop to wait on, if it can."""
        if self._loop.watching is None:
            return
        with self._work:
            if self._loop_connection is not None and self._loop_connection.is_sound:
                return
            self._take_back()
            self._drop_loop_connection()
        try:
            connection = self._pool.separate()
        except Trouble:
            return  # bodies get the error from the statements that they wait for
        try:
            loop_connection = LoopConnection(connection, self._loop, self._often)
        except Trouble:
            close(connection)
            return
        with self._work:
            self._connection, self._loop_connection = connection, loop_connection

    def _take(self) -> Callable[[], None] | None:
        """Wait for the next work; None at the end."""
        with self._work:
            self._take_back_if_late()
            while not (self._waiting and self._released) and not self._closed and not self._stalled:
                self._work.wait(LOOP_SECONDS_MAX)
                self._take_back_if_late()
            if self._stalled:
                return self._finish
            waiting, self._waiting = self._waiting, []
            self._released = False
            return partial(self._fetch, waiting) if waiting else None

    def _run(self) -> None:
        while (work := self._take()) is not None:
            work()

    def _fetch(self, waiting: list[_Request]) -> None:
        try:
            fetched = self.now(all_of(waiting))
        except StorageError as error:
            self._fail(waiting, error)
        except Exception as error:  # the thread goes on: all that is fetched later needs it
            _log.exception("records could not be fetched")
            self._fail(waiting, StorageError(f"Records could not be fetched: {error!r}."))
        else:
            self._loop.post(*self._outcomes_of(fetched, waiting))
        self._make_loop_connection()

    def _fail(self, waiting: list[_Request], error: StorageError) -> None:
        self._loop.post(tasks=[partial(then, error) for _, then, _ in waiting])

    def close(self) -> None:
        with self._work:
            self._closed = True
            self._work.notify()
        self._worker.join()
        with self._work:
            self._drop_loop_connection()
