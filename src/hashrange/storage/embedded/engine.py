"""The durable engine: RocksDB in a directory, with group commit.

The life of a write:

1. `submit` (or `write`) runs the body on the caller's thread, under the engine's only lock, so bodies run one
   after the other. Its writes are added to the collecting batch (`Batch`), unless it raised.
2. When no commit is in flight, the collecting batch becomes the committing one (`_begin`), and a new one
   collects. The commit thread does this once an event loop that submits has no more bodies to submit, and so
   releases the batch (`_start_commit`). A thread in `write` does it at once, which spares two switches.
3. `_store` hands the whole batch to RocksDB in one call, then makes its log durable in another. rocksdict
   0.3.29 keeps the GIL during the first (memory and page cache) and releases it during the second (the
   fsync): a write with `sync` would hold every other thread up for as long as the disk takes.
4. `_publish` makes the batch visible to readers, and the outcomes of its bodies are delivered in one call.

A body that wrote nothing, or raised, may have read records of a batch that is not committed yet: its outcome
waits for that batch. If there is no such batch, its outcome is delivered at once.

A failed commit fails every body of its batch and of the batch collected over it, and leaves the store
broken: RocksDB refuses every write after a log error, and the log may or may not hold the batch. The commit
thread repairs the store (`_repair`, `reopening`) at once, or as soon as the disk allows it. Until then writes
are refused, and reads go on. If the process dies before the repair, a restart may find the failed batch.
A batch that the disk has no room for fails before RocksDB gets it (`room`).

While the collecting batch is full, submitted bodies wait in a queue, in order, and run when the next batch
collects. So `submit` never waits; `write` waits, or commits the full batch by itself.

Refuses to know: what records mean.
"""

from __future__ import annotations

import atexit
import logging
from collections import deque
from collections.abc import Callable
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Any, Final, TypeVar

from rocksdict import DbClosedError, Rdict

from hashrange import pace
from hashrange.errors import bare
from hashrange.storage.api import (
    CommitFault,
    Done,
    Reader,
    Stopped,
    StorageError,
    StoreClosed,
    Totals,
    Transaction,
)
from hashrange.storage.embedded.batches import write, writing
from hashrange.storage.embedded.bodies import LayeredTransaction, Recent, Stamps, ViewReader, with_totals
from hashrange.storage.embedded.directory import open_directory
from hashrange.storage.embedded.disk import open_for_reading
from hashrange.storage.embedded.gathering import Gathering
from hashrange.storage.embedded.keys import BATCH_KEY, clearing_key, pack_batch, unpack_batch
from hashrange.storage.embedded.outcomes import Batch, Outcome, Prevented, Waiter, call, commit_failed, tell
from hashrange.storage.embedded.reopening import Reopening
from hashrange.storage.embedded.room import MARGIN_BYTES, NoRoom, find_room
from hashrange.storage.embedded.upkeep import Upkeep, count_nothing
from hashrange.storage.embedded.view import View
from hashrange.storage.reads import read_at_once

T = TypeVar("T")

_log = logging.getLogger(__name__)

_MIB: Final = 1024 * 1024

# The pause between two tries to repair a store.
_REPAIR_PAUSE_SECONDS_MIN: Final = 0.05
_REPAIR_PAUSE_SECONDS_MAX: Final = 2.0

_QUEUED_BODIES_PER_TURN: Final = 64  # in one turn of the event loop

_Records = dict[bytes, bytes | None]


class EmbeddedEngine:
    """The store in `directory`, which is made if it is missing."""

    name = "embedded"

    def __init__(
        self,
        directory: str | Path,
        *,
        cache_bytes: int = 128 * _MIB,
        write_buffer_bytes: int = 32 * _MIB,
        batch_bodies_max: int = 4_096,
        recent_bytes: int = 32 * _MIB,
    ) -> None:
        """Raises DataDirectoryLocked, UnknownFormat, StoreDamaged, StorageError."""
        self.commit_fault: CommitFault | None = None
        self._directory = Path(directory)
        self._log_bytes_max = 4 * write_buffer_bytes
        self._batch_bodies_max = batch_bodies_max
        self._disk, self._db = open_directory(
            self._directory, cache_bytes=cache_bytes, write_buffer_bytes=write_buffer_bytes
        )

        self._lock = Lock()
        self._work = Condition(self._lock)  # the commit thread waits for a batch
        self._idle = Condition(self._lock)  # other threads wait for the end of a commit
        self._deliver: Callable[[Callable[[], None]], None] = call
        self._gathering = Gathering()
        self._defer: Callable[[Callable[[], None]], object] | None = None
        self._collecting = Batch()
        self._committing: Batch | None = None
        self._released = False  # the collecting batch may be committed
        self._starting = False  # the event loop was asked to call `_start_commit`
        self._queued: deque[tuple[Callable[[Transaction], Any], Done]] = deque()  # wait for room in a batch
        self._closed = False
        self._broken: str | None = None  # why writes are refused
        self._refused = 0  # how many bodies were refused since it is broken
        self._repairing: Reopening | None = None  # None: RocksDB itself is sound
        self._failed: list[Batch] = []  # their bodies are still to be told of the failure
        self._unsynced = False  # whether RocksDB got a batch that is not durable yet
        self._batch_number = 0
        self._sequence = 0
        self._stamps: Stamps = {}  # the last stamp of each log
        self._totals: dict[int, Totals] = {}
        self._recent = Recent(recent_bytes)
        self._upkeep = Upkeep()
        self._view: View | None = None
        self._start(self._db)
        self._committer = Thread(target=self._run, name="hashrange-commit", daemon=True)
        self._committer.start()
        # A thread that is inside RocksDB when the interpreter ends would abort the process.
        atexit.register(self.close)

    def read(self, body: Callable[[Reader], T]) -> T:
        view = self._view
        if view is None:
            raise StoreClosed
        reader = ViewReader(view)
        try:
            return body(reader)
        except DbClosedError:
            raise StoreClosed from None
        finally:
            # An exception's traceback would keep the view, and so RocksDB, open.
            reader.end()
            del view

    def write(self, body: Callable[[Transaction], T]) -> T:
        own: Batch | None = None
        waiter: Waiter | None = None
        with self._lock:
            self._admit()
            result, raised, batch = self._perform(body)
            if batch is not None:
                waiter = Waiter()
                batch.waiters.append(waiter)
                if self._committing is None:
                    own = self._begin()
        if own is not None:
            self._commit(own)
        if waiter is not None:
            waiter.gate.acquire()
            if waiter.failed is not None:
                raise waiter.failed
        if raised is not None:
            try:
                raise raised
            finally:
                raised = None  # its traceback holds this frame
        return result  # type: ignore[no-any-return]

    def submit_read(self, body: Callable[[Reader], Any], done: Done) -> None:
        read_at_once(self, body, done)

    def submit(self, body: Callable[[Transaction], Any], done: Done) -> None:
        pace.acquire(self._lock)
        try:
            self._check_usable()
            if self._queued or self._collecting.full(self._batch_bodies_max):
                self._queued.append((body, done))
                return
            outcome: Outcome | None = self._take(body, done)
        except StorageError as error:
            outcome = (done, None, error)
        finally:
            self._lock.release()
        if outcome is not None:
            done(outcome[1], outcome[2])

    def deliver_on(
        self,
        deliver: Callable[[Callable[[], None]], None],
        defer: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        with self._lock:
            self._deliver, self._defer = deliver, defer
            self._starting = False  # an earlier loop may not do what it was asked to
            self._release()
        if self._queued:
            self._hand_over(self._run_queued)

    def refusing(self) -> str | None:
        return self._broken

    def checkpoint(self, directory: str) -> None:
        with self._lock:
            while self._committing is not None:
                self._idle.wait()
            self._check_usable()
            # An empty batch takes the place of a commit: bodies go on collecting, but nothing is written now.
            token = self._committing = Batch()
        try:
            self._disk.checkpoint(self._db, Path(directory))
        finally:
            with self._lock:
                self._end_commit()
            self._settle(token, None)

    def upkeep(self) -> None:
        with self._lock:
            if self._closed or self._broken is not None or self._view is None:
                return
            db = self._db
        if self._upkeep.stale:
            self.write(count_nothing)  # a commit makes a new snapshot, without what was deleted
        self._upkeep.step(db)

    def close(self) -> None:
        with self._lock:
            if self._closed:
                return
            self._closed = True
            self._work.notify()
        atexit.unregister(self.close)
        self._committer.join()
        with self._lock:
            while self._committing is not None:
                self._idle.wait()
            self._view = None
            broken = self._broken
        cut_short = self._upkeep.stop(self._db)
        try:
            self._db.close()
        except Exception as error:
            if broken is None and not cut_short:
                raise StorageError(f"The store in {self._directory} did not close well: {error}") from None
        finally:
            self._disk.close()

    # Running bodies. All of these methods need the lock, unless they say otherwise.

    def _perform(self, body: Callable[[Transaction], Any]) -> tuple[Any, Exception | None, Batch | None]:
        """Run a body. Returns its result, the exception that it raised, and the batch that its outcome has to
        wait for (None: it need not wait)."""
        transaction = self._transaction()
        try:
            result = body(transaction)
        except Exception as error:
            return None, bare(error), self._under_way()
        else:
            return result, None, self._collect(transaction)
        finally:
            transaction.end()

    def _take(self, body: Callable[[Transaction], Any], done: Done) -> Outcome | None:
        """Run a submitted body; return its outcome if the outcome need not wait for a batch."""
        result, raised, batch = self._perform(body)
        if batch is None:
            return done, result, raised
        batch.outcomes.append((done, result, raised))
        self._ask()
        return None

    def _run_queued(self) -> None:
        """Run as many queued bodies as the collecting batch has room for; without the lock. On an event loop
        it runs a few of them at a time, so that the loop gets to its other work."""
        outcomes: list[Outcome | None] = []
        turn = pace.turn()
        with self._lock:
            defer = None if self._closed else self._defer
            while self._queued and not self._collecting.full(self._batch_bodies_max):
                if defer is not None and len(outcomes) == _QUEUED_BODIES_PER_TURN:
                    defer(self._run_queued)
                    break
                body, done = self._queued.popleft()
                turn.begin(pace.WITHOUT_END if defer is None else pace.TURN_SECONDS)
                try:
                    outcomes.append(self._take(body, done))
                except BaseException as error:  # it belongs to this body; the others go on
                    outcomes.append((done, None, Stopped(f"The queued body was ended by {error!r}.")))
                finally:
                    turn.end()
        tell([outcome for outcome in outcomes if outcome is not None])

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreClosed
        if self._broken is not None:
            self._refused += 1
            raise commit_failed(self._broken)

    def _admit(self) -> None:
        """Wait until the collecting batch has room for a body. Raises StorageError, CommitFailed."""
        while True:
            self._check_usable()
            if not self._collecting.full(self._batch_bodies_max):
                return
            if self._committing is not None:
                self._idle.wait()
                continue
            batch = self._begin()
            self._lock.release()
            try:
                self._commit(batch)
            finally:
                self._lock.acquire()

    def _transaction(self) -> LayeredTransaction:
        assert self._view is not None
        collecting, committing = self._collecting, self._committing
        cleared = self._view.cleared
        if collecting.cleared:
            cleared = cleared | collecting.cleared
        lower: tuple[Batch, ...] = (collecting,)
        if committing is not None:
            lower = (collecting, committing)
            if committing.cleared:
                cleared = cleared | committing.cleared
        return LayeredTransaction(self._view, lower, self._recent, cleared, self._sequence, self._stamps)

    def _collect(self, transaction: LayeredTransaction) -> Batch | None:
        """Add a body's writes to the collecting batch; return the batch that its outcome waits for."""
        own = transaction.own
        self._sequence = transaction.sequence
        if not own.wrote():
            return self._under_way()
        transaction.keep_stamps()
        batch = self._collecting
        batch.absorb(own)
        batch.bodies += 1
        batch.bytes += transaction.bytes
        return batch

    def _under_way(self) -> Batch | None:
        """The newest batch that a body may have read from."""
        return self._collecting if self._collecting.bodies else self._committing

    def _begin(self) -> Batch:
        """Make the collecting batch the committing one."""
        batch = self._committing = self._collecting
        self._collecting = Batch()
        self._released = False
        self._gathering.reset()
        return batch

    def _ask(self) -> None:
        """Release the collecting batch, or ask the event loop that submits to release it soon."""
        if self._committing is not None or not self._collecting.bodies:
            return
        if self._defer is None or self._closed:
            self._release()
        elif not self._starting:
            self._starting = True
            self._defer(self._start_commit)

    def _start_commit(self) -> None:
        """Release the collecting batch once no more bodies come in; on the event loop, without the lock."""
        with self._lock:
            defer = self._defer
            bodies = self._collecting.bodies
            if defer is None or self._committing is not None or not self._gathering.goes_on(bodies):
                self._starting = False
                self._release()
                return
        defer(self._start_commit)

    def _release(self) -> None:
        """Let the commit thread take the collecting batch."""
        if self._collecting.bodies:
            self._released = True
            self._work.notify()

    # Commits: one at a time. These methods are called without the lock, unless they say otherwise.

    def _run(self) -> None:
        """The commit thread."""
        while True:
            self._repair()
            with self._lock:
                batch = self._next()
                ended = batch is None and self._closed and not self._failed
            if ended:
                return
            if batch is not None:
                self._commit(batch)
            if batch is not None and self._closed:
                self._run_queued()  # the event loop that would do it may have gone

    def _next(self) -> Batch | None:
        """Wait for the commit thread's next work: a batch to commit, or None: repair the store, or end."""
        while not self._broken and (self._committing or not (self._released or self._closed)):
            self._work.wait()
        if self._broken is not None or not (self._collecting.bodies or self._queued):
            self._released = False
            return None
        return self._begin()

    def _commit(self, batch: Batch) -> None:
        """Make a batch durable and visible, and deliver its outcomes; or fail it."""
        if self._queued:
            self._hand_over(self._run_queued)
        records: _Records = {}
        try:
            batch.meet(self.commit_fault, "before")
            find_room(self._directory, batch.bytes, self._log_bytes_max, self._db.flush)
            records, totals = self._records(batch)
            view = self._store(batch, records)
        except (NoRoom, Prevented) as error:
            self._fail(batch, None, str(error))
            return
        except BaseException as error:
            self._fail(batch, records, str(error))
            if not isinstance(error, Exception):
                raise
            return
        self._totals.update(totals)
        self._publish(batch, view)
        self._settle(batch, batch.unknown)

    def _records(self, batch: Batch) -> tuple[_Records, dict[int, Totals]]:
        """All records of a batch, the engine's own included, and the new totals."""
        assert self._view is not None
        records, totals = with_totals(batch, self._totals, self._view)
        for space in batch.cleared:
            self._totals.pop(space, None)
        for space in self._upkeep.take_done():
            records[clearing_key(space)] = None
        self._batch_number += 1
        records[BATCH_KEY] = pack_batch(self._batch_number, self._sequence)
        return records, totals

    def _store(self, batch: Batch, records: _Records) -> View:
        """Write a batch durably, and return the view that shows it."""
        assert self._view is not None
        cleared = self._upkeep.masked(self._view.cleared, batch.cleared)
        view = self._view.follow(list(records), cleared)
        if self._unsynced:
            self._db.flush_wal(True)
            self._unsynced = False
        write(self._db, lambda: writing(records))
        batch.meet(self.commit_fault, "after")
        self._sync()
        view.snapshot = self._db.snapshot()
        return view

    def _sync(self) -> None:
        """Make RocksDB's log durable, and note in STORE how far it goes. A batch is written only when the one
        before it is durable: a crash could otherwise lose only the earlier one, which would look like
        damage."""
        self._db.flush_wal(True)
        self._disk.advance(self._batch_number, self._db.latest_sequence_number())

    def _publish(self, batch: Batch, view: View) -> None:
        """Make a durable batch visible. The batch counts as committed even if an error occurs here."""
        with self._lock:
            old, self._view = self._view, view
            try:
                if batch.cleared and old is not None:
                    self._upkeep.add(batch.cleared, old)
                self._recent.add(batch.records, batch.bytes)
            except Exception:
                _log.exception("a batch was committed, but is not kept in memory")
                self._recent.clear()
            del old
            self._end_commit(batch)
            self._unsynced |= self._upkeep.drop(self._db, view)

    def _end_commit(self, batch: Batch | None = None) -> None:
        """Let the next batch be committed; under the lock. An event loop that defers commits releases it
        later: the answers bring new requests, and the batch can hold these as well. If a thread waits for
        the next batch, or for room in it, it is released at once."""
        self._committing = None
        self._idle.notify_all()
        collecting = self._collecting
        told = self._defer is not None and batch is not None and batch.outcomes
        if not told or collecting.waiters or collecting.full(self._batch_bodies_max):
            self._release()
        if self._released or self._closed:
            self._work.notify()

    def _fail(self, batch: Batch, records: _Records | None, cause: str) -> None:
        """Refuse writes from now on; the commit thread repairs the store. RocksDB may have got `records`.
        Callers are told of the failure after the first try of a repair, because until then a crash could
        still bring the failed batch back."""
        cause = cause or "the cause is not known"
        _log.error("the store refuses writes: %s", cause)
        with self._lock:
            self._broken = cause
            self._refused = 0
            if records is not None:
                self._repairing = Reopening(self._db, self._batch_number, records)
            over, self._collecting = self._collecting, Batch()
            self._stamps.clear()
            over.outcomes += [(done, None, None) for _, done in self._queued]
            self._queued.clear()
            self._failed = [batch, over]
            self._work.notify()

    def _repair(self) -> None:
        """Make a broken store take writes again, unless it was closed; on the commit thread."""
        pause_seconds, cause = _REPAIR_PAUSE_SECONDS_MIN, self._broken
        while cause is not None:
            still, closed = "", self._closed
            try:
                self._try_repair()
            except Exception as error:
                still = f"{cause}; still: {error}"
            with self._lock:
                failed, self._failed = self._failed, []
                if failed and self._repairing is not None:  # a restart may find the batch in RocksDB's log
                    failed[0].unknown = still
                self._refused += sum(len(batch.outcomes) + len(batch.waiters) for batch in failed)
                self._broken = still or None
                if self._committing is not None:
                    self._end_commit()
            if not still:
                _log.warning("the store takes writes again; %d were refused", self._refused)
            for batch in failed:
                self._settle(batch, cause)
            if not still or closed:
                return
            with self._lock:
                if not self._closed:
                    self._work.wait(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _REPAIR_PAUSE_SECONDS_MAX)

    def _try_repair(self) -> None:
        """Try once, without the lock: a broken RocksDB is only read from. Raises the error that remains."""
        repair = self._repairing
        if repair is None:
            find_room(self._directory, MARGIN_BYTES, self._log_bytes_max)
            return
        find_room(self._directory, 0, self._log_bytes_max)
        self._upkeep.stop(self._db)
        assert self._view is not None
        self._view = repair.stand_in(self._view, lambda: open_for_reading(self._directory))
        db = repair.open_again(self._directory, self._disk.open)
        try:
            self._start(db)
        except BaseException:
            db.close()
            raise
        self._repairing = None

    def _settle(self, batch: Batch, cause: str | None) -> None:
        """Deliver all outcomes that wait for a batch; without the lock: their receivers may submit."""
        for waiter in batch.waiters:
            if cause is not None:
                waiter.failed = batch.failure(cause)
            waiter.gate.release()
        outcomes = batch.outcomes
        if not outcomes:
            return
        if cause is not None:
            outcomes = [(done, None, batch.failure(cause)) for done, _, _ in outcomes]

        def deliver() -> None:
            tell(outcomes)
            if self._defer is not None:
                with self._lock:
                    self._ask()

        self._hand_over(deliver)

    def _hand_over(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the thread that outcomes are delivered on; without the lock."""
        try:
            self._deliver(callback)
        except Exception as error:
            # The event loop is closed. The frames of a logged traceback would keep RocksDB open.
            _log.error("outcomes could not be delivered: %s", repr(error))
            with self._lock:
                self._release()

    def _start(self, db: Rdict) -> None:
        """Begin to use a RocksDB that was just opened, while no body writes."""
        stored = db.get(BATCH_KEY)
        number, sequence = (0, 0) if stored is None else unpack_batch(stored)
        # A number that was given to a batch is never given again, also if that batch failed.
        self._batch_number = max(number, self._batch_number)
        self._sequence = max(sequence, self._sequence)
        self._db = db
        self._totals.clear()
        self._recent.clear()
        self._upkeep.start(db)
        self._sync()
        view = View(db, [], frozenset())
        view.snapshot = db.snapshot()
        self._view = view
