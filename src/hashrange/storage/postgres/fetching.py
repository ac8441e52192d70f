"""Fetches the records that bodies miss: one statement for all that wait.

The thread of a `Fetcher` takes all requests that came while its last statement was under way. An event loop
that submits is waited for to the end of its round, so that its bodies share a statement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Condition, Thread
from typing import NamedTuple

from hashrange.storage.api import StorageError, StoreClosed
from hashrange.storage.postgres.cache import CATALOG_SPACE, Catalog, CatalogState, Key, Known
from hashrange.storage.postgres.connections import Connection, Pool, call
from hashrange.storage.postgres.direct import Statements, arrays_of
from hashrange.storage.postgres.loops import Loop


class Fetched(NamedTuple):
    """Records of one moment: those that were asked for, and the catalog as it was then."""

    records: dict[Key, Known]
    state: CatalogState


def fetched_of(
    wanted: Sequence[Key], rows: Iterable[tuple[int, int, bytes | None]], catalog: Catalog
) -> Fetched:
    """What the rows of `fetch` and `lock_records` of `schema.sql` say. Raises StorageError."""
    records: dict[Key, Known] = dict.fromkeys(wanted, (None, 0))
    state: CatalogState | None = None
    for n, version, value in rows:
        if n:
            records[wanted[n - 1]] = (value, version)
        else:
            state = catalog.note(version, value)
    if state is None:
        raise StorageError("The schema of the store has no row in its table `store`; restore a backup.")
    for key, (value, _) in records.items():
        if key[0] == CATALOG_SPACE:
            state.records[key[1:]] = value
    return Fetched(records, state)


Then = Callable[["Fetched | StorageError"], None]
"""Called on the loop with what was fetched, or the error."""


class Fetching:
    """Fetches for the bodies of one engine. `learn` is told all that was fetched."""

    def __init__(
        self,
        pool: Pool,
        statements: Statements,
        catalog: Catalog,
        loop: Loop,
        learn: Callable[[Fetched], None],
    ) -> None:
        self._pool = pool
        self._statements = statements
        self._catalog = catalog
        self._loop = loop
        self._learn = learn
        self._work = Condition()
        self._waiting: list[tuple[Sequence[Key], Then]] = []
        self._released = False
        self._starting = False
        self._closed = False
        self.statements_sent = 0
        self._thread = Thread(target=self._run, name="hashrange-fetch", daemon=True)
        self._thread.start()

    def now(self, keys: Iterable[Key]) -> Fetched:
        """Fetch on this thread. Raises StorageError."""
        wanted = list(dict.fromkeys(keys))

        def work(connection: Connection) -> list[tuple[int, int, bytes | None]]:
            return call(connection, self._statements.fetch, arrays_of(wanted))

        rows = self._pool.again(work)
        self.statements_sent += 1
        fetched = fetched_of(wanted, rows, self._catalog)
        self._learn(fetched)
        return fetched

    def later(self, keys: Sequence[Key], then: Then, *, at_once: bool = False) -> None:
        """Fetch on the thread, and have `then` called. `at_once` says that this is not the loop's thread, so
        that its round cannot be waited for."""
        with self._work:
            self._waiting.append((keys, then))
            defer = self._loop.defer if self._loop.is_limited and not at_once else None
            if defer is None or self._released:
                self._released = True
                self._work.notify()
                return
            if self._starting:
                return
            self._starting = True
        defer(self.release)

    def release(self) -> None:
        """Let the thread take what waits."""
        with self._work:
            self._starting = False
            if self._waiting:
                self._released = True
                self._work.notify()

    def _run(self) -> None:
        while True:
            with self._work:
                while not (self._waiting and self._released) and not self._closed:
                    self._work.wait()
                waiting, self._waiting = self._waiting, []
                self._released = False
                if self._closed and not waiting:
                    return
            found: Fetched | StorageError
            try:
                found = self.now(key for keys, _ in waiting for key in keys)
            except StoreClosed as error:
                found = error
            except StorageError as error:
                found = error
            self._loop.post(tasks=[partial(then, found) for _, then in waiting])

    def close(self) -> None:
        with self._work:
            self._closed = True
            self._work.notify()
        self._thread.join()
