"""The durable engine: RocksDB in a directory, with group commit. This module runs the bodies.

The life of a write:

1. `submit` (or `write`) runs the body on the caller's thread, under the engine's only lock, so bodies run one
   after the other. Unless the body raises, its writes are added to the collecting batch (`Batch`).
2. `group_commit` makes one batch after another durable and visible, and delivers the outcomes of its bodies.

A body that wrote nothing, or raised, may have read records of a batch that is not committed yet: its outcome
waits for that batch. If there is no such batch, its outcome is delivered at once.

While the collecting batch is full, submitted bodies wait in a queue, in order, and run when the next batch
collects. So `submit` never waits; `write` waits, or commits the full batch by itself.

Refuses to know: what records mean.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

from rocksdict import DbClosedError

from hashrange import pace
from hashrange.errors import bare
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.capabilities import Follower, Position
from hashrange.storage.embedded import cache
from hashrange.storage.embedded.bodies import ViewReader
from hashrange.storage.embedded.group_commit import Commits, Queued
from hashrange.storage.embedded.outcomes import Batch, Waiter
from hashrange.storage.embedded.store import Store
from hashrange.storage.embedded.upkeep import count_nothing
from hashrange.storage.embedded.view import told
from hashrange.storage.failures import CommitFault, StorageError, StoreClosed, StoreDamaged
from hashrange.storage.loops import Done, Outcome

T = TypeVar("T")

_MIB: Final = 1024 * 1024


class EmbeddedEngine:
    """The store in `directory`, which is made if it is missing.

    `cache_bytes` limits the block cache; None: the limit that `cache` computes. A batch of more than
    `logged_bytes_max` bytes goes to an SST file instead of RocksDB's log (`store`).
    """

    name = "embedded"
    runs_once = True

    def __init__(
        self,
        directory: str | Path,
        *,
        cache_bytes: int | None = None,
        write_buffer_bytes: int = 32 * _MIB,
        batch_bodies_max: int = 4_096,
        recent_bytes: int = 32 * _MIB,
        logged_bytes_max: int = 2 * _MIB,
    ) -> None:
        """Raises DataDirectoryLocked, UnknownFormat, StoreDamaged, StorageError."""
        if cache_bytes is None:
            cache_bytes = cache.cache_bytes(cache.memory_bytes())
        self._directory = Path(directory).absolute()
        self._damage = ""
        self._store = Store(
            Path(directory),
            cache_bytes=cache_bytes,
            write_buffer_bytes=write_buffer_bytes,
            logged_bytes_max=logged_bytes_max,
        )
        try:
            self._commits = Commits(
                self._store,
                bodies_max=batch_bodies_max,
                recent_bytes=recent_bytes,
                run_queued=self._run_queued,
            )
            self.loop = self._commits.loop
        except BaseException:
            self._store.close(broken=True)
            raise
        # A thread that is inside RocksDB when the interpreter ends would abort the process.
        atexit.register(self.close)

    @property
    def commit_fault(self) -> CommitFault | None:
        return self._commits.fault

    @commit_fault.setter
    def commit_fault(self, fault: CommitFault | None) -> None:
        self._commits.fault = fault

    def read(self, body: Callable[[Reader], T]) -> T:
        view = self._commits.view
        if view is None:
            raise StoreClosed
        reader = ViewReader(view)
        try:
            return body(reader)
        except DbClosedError:
            raise StoreClosed from None
        except StoreDamaged as error:
            self._damage = str(error)
            raise
        finally:
            # An exception's traceback would keep the view, and so RocksDB, open.
            reader.end()
            del view

    def write(self, body: Callable[[Transaction], T]) -> T:
        commits = self._commits
        own: Batch | None = None
        waiter: Waiter | None = None
        with commits.lock:
            commits.admit()
            result, raised, batch = self._perform(body)
            if batch is not None:
                waiter = Waiter()
                batch.waiters.append(waiter)
                if commits.committing is None:
                    own = commits.begin()
        if own is not None:
            commits.commit(own)
        if waiter is not None:
            waiter.gate.acquire()
            if waiter.failed is not None:
                raise waiter.failed
        if raised is not None:
            try:
                raise raised
            finally:
                raised = None  # its traceback refers to this frame
        return result  # type: ignore[no-any-return]

    def submit_read(self, body: Callable[[Reader], Any], done: Done) -> None:
        # As `read_at_once`, without the detour over the protocol.
        try:
            result = self.read(body)
        except Exception as error:
            done(None, error)
        else:
            done(result, None)

    def submit(self, body: Callable[[Transaction], Any], done: Done) -> None:
        commits = self._commits
        pace.acquire(commits.lock)
        try:
            commits.check_usable()
            queued = commits.queue.bodies
            if queued or commits.is_full():
                queued.append((body, done))
                return
            outcome: Outcome | None = self._take(body, done)
        except StorageError as error:
            outcome = (done, None, error)
        finally:
            commits.lock.release()
        if outcome is not None:
            done(outcome[1], outcome[2])

    def refusing(self) -> str | None:
        return self._commits.broken

    def checkpoint(self, directory: str) -> None:
        self._commits.checkpoint(Path(directory))

    def checkpoint_inside(self) -> str:
        # Imported here because few stores are copied.
        from hashrange.storage.embedded.offline.directory_copy import new_checkpoint

        checkpoint = new_checkpoint(self._directory)
        self._commits.checkpoint(checkpoint)
        return str(checkpoint)

    def follow(self, follower: Follower | None) -> Position:
        """As `Followed.follow`."""
        return self._commits.follow(follower)

    def stand_by(self, why: Callable[[], str]) -> tuple[Position, bytes | None]:
        """As `Following.stand_by`."""
        return self._commits.stand_by(why)

    def apply(self, batches: Iterable[Mapping[bytes, bytes | None]], note: bytes) -> None:
        """As `Following.apply`."""
        self._commits.apply(batches, note)

    def take_over(self) -> Position:
        """As `Following.take_over`."""
        return self._commits.take_over()

    def missing_files(self) -> str | None:
        commits = self._commits
        with commits.lock:
            if commits.closed or commits.broken is not None:
                return None
            db = self._store.db
        try:
            return self._store.missing_files(db)
        except DbClosedError:
            return None

    def upkeep(self) -> None:
        commits = self._commits
        with commits.lock:
            if commits.closed or commits.broken is not None or commits.view is None:
                return
            db = self._store.db
        upkeep = self._store.upkeep
        if upkeep.stale and commits.standing_by is None:
            self.write(count_nothing)  # a commit makes a new snapshot, without the deleted records
        try:
            upkeep.step(db)
        except Exception as error:
            raise StorageError(told(error)) from error

    def problems(self) -> list[str]:
        return [problem for problem in (self._damage, self._store.upkeep.problem) if problem]

    def discard(self, wanted: bool) -> None:
        """As `Local.discard`."""
        self._store.discard(wanted)

    def close(self) -> None:
        if self._commits.close():
            atexit.unregister(self.close)
            self._store.close(broken=self._commits.broken is not None)

    # Running bodies. These methods need the lock unless they say otherwise.

    def _perform(self, body: Callable[[Transaction], Any]) -> tuple[Any, Exception | None, Batch | None]:
        """Run a body. Returns its result, the exception that it raised, and the batch that its outcome waits
        for (None: it need not wait)."""
        commits = self._commits
        transaction = commits.transaction()
        try:
            result = body(transaction)
        except Exception as error:
            if isinstance(error, StoreDamaged):
                self._damage = str(error)
            return None, bare(error), commits.under_way()
        else:
            return result, None, commits.collect(transaction)
        finally:
            transaction.end()

    def _take(self, body: Callable[[Transaction], Any], done: Done) -> Outcome | None:
        """Run a submitted body; return its outcome if the outcome need not wait for a batch."""
        result, raised, batch = self._perform(body)
        if batch is None:
            return done, result, raised
        batch.outcomes.append((done, result, raised))
        self._commits.ask()
        return None

    def _run_queued(self, queued: Queued) -> Callable[[], None] | None:
        """Run a body that was queued; returns how its outcome is delivered if the outcome need not wait."""
        body, done = queued
        outcome = self.loop.in_turn(partial(self._take, body, done), done)
        return partial(self.loop.post, [outcome]) if outcome is not None else None
