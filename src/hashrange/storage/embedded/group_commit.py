"""The commits of the embedded engine: collects batches, commits them one by one, and informs the callers.

1. Bodies add their writes to the collecting batch (`Commits.collecting`).
2. When no commit is under way, the collecting batch becomes the committing one (`begin`), and a new one
   collects. The commit thread does this once an event loop that submits has no more bodies to submit, and so
   releases the batch (`loops.Gathering`). A thread in `EmbeddedEngine.write` does it at once, which spares
   two switches.
3. `store` makes the whole batch durable, without the lock, and tells its follower, if it has one.
4. `_publish` makes the batch visible to readers, and `_settle` hands the outcomes of its bodies to the loop.

A failed commit fails every body of its batch and of the batch collected over it, and leaves the store
broken: RocksDB refuses every write after a log error, and the log may or may not hold the batch. The commit
thread repairs the store (`_repair`) at once, or as soon as the disk allows it. Until then writes are refused,
and reads continue. If the process dies before the repair, a restart may find the failed batch. A batch for
which the disk has no room fails before RocksDB gets it (`room`).

A batch that the follower holds back is durable and visible, but its bodies end with CommitUnknown, and writes
are refused until the follower allows them.

While the store stands by, its batches come from another store (`apply`), and bodies that write are refused.

Refuses to know: what bodies do, and how a batch is written.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Condition, Lock, Thread
from typing import Any, Final

from hashrange import pace
from hashrange.storage.api import Transaction
from hashrange.storage.capabilities import Follower, Position
from hashrange.storage.embedded.bodies import LayeredTransaction, Recent, Stamps
from hashrange.storage.embedded.keys import BATCH_KEY, FOLLOWED_KEY, STAMP_KEY, unpack_batch
from hashrange.storage.embedded.outcomes import Batch, Waiter, commit_failed
from hashrange.storage.embedded.store import Store
from hashrange.storage.embedded.view import View, told
from hashrange.storage.failures import CommitFailed, CommitFault, StorageError, StoreClosed
from hashrange.storage.loops import Done, Gathering, Loop, Queue

_log = logging.getLogger(__name__)

Queued = tuple[Callable[[Transaction], Any], Done]

# A commit waits for at most this many bodies.
_GATHERED_BODIES_MAX: Final = 64
# The pause between two tries to repair a store.
_REPAIR_PAUSE_SECONDS_MIN: Final = 0.05
_REPAIR_PAUSE_SECONDS_MAX: Final = 2.0


class Commits:
    """The batches of a store, and the thread that commits them.

    `lock` is the engine's only lock. It guards the collecting batch, the bodies that wait for room in it
    (`queue`), and what bodies read. `run_queued` runs one of those.
    """

    def __init__(
        self,
        store: Store,
        *,
        bodies_max: int,
        recent_bytes: int,
        run_queued: Callable[[Queued], Callable[[], None] | None],
    ) -> None:
        self.fault: CommitFault | None = None
        self._store = store
        self._bodies_max = bodies_max

        self.lock = Lock()
        self._work = Condition(self.lock)  # the commit thread waits for a batch
        self._idle = Condition(self.lock)  # other threads wait for the end of a commit
        self.loop = Loop(self._delivered, self._left)
        self.queue = Queue(self.loop, self.lock, self.is_full, run_queued)
        self._gathering = Gathering(
            self.loop, self.lock, _GATHERED_BODIES_MAX, self._gathered, self._release
        )
        self.collecting = Batch()
        self.committing: Batch | None = None
        self._released = False  # the collecting batch may be committed
        self._checkpoints: list[Batch] = []  # the places of the checkpoints that wait
        self.closed = False
        self.broken: str | None = None  # why writes are refused
        self.standing_by: Callable[[], str] | None = None  # says why bodies may not write
        self._refused = 0  # how many bodies were refused since the store broke
        self._failed: list[Batch] = []  # batches whose bodies have not been told of the failure yet

        self._sequence = 0
        self._stamps: Stamps = {}  # the last stamp of each log
        self._recent = Recent(recent_bytes)
        self.view: View | None
        self.view, self._sequence = store.begin(store.db)
        self._last_stamp = _last_stamp(self.view)
        self._committer = Thread(target=self._run, name="hashrange-commit", daemon=True)
        self._committer.start()

    # Collecting. These methods need the lock, unless they say otherwise.

    def check_usable(self) -> None:
        """Raises StoreClosed, CommitFailed."""
        if self.closed or self.broken is not None:
            raise self._unsound()
        if self.standing_by is not None:
            raise CommitFailed(self.standing_by())

    def _check_sound(self) -> None:
        """As `check_usable`, for what a store that stands by does as well."""
        if self.closed or self.broken is not None:
            raise self._unsound()

    def _unsound(self) -> StorageError:
        if self.closed or self.broken is None:
            return StoreClosed()
        self._refused += 1
        return commit_failed(self.broken)

    def is_full(self) -> bool:
        """Whether the collecting batch has no room for another body."""
        return self.collecting.full(self._bodies_max)

    def admit(self) -> None:
        """Wait until the collecting batch has room for a body. Raises StorageError, CommitFailed."""
        while True:
            self.check_usable()
            if not self.is_full():
                return
            if self.committing is not None:
                self._idle.wait()
                continue
            batch = self.begin()
            self.lock.release()
            try:
                self.commit(batch)
            finally:
                self.lock.acquire()

    def transaction(self) -> LayeredTransaction:
        """A transaction over all that was written so far."""
        view = self.view
        assert view is not None
        collecting, committing = self.collecting, self.committing
        cleared = view.cleared
        if collecting.cleared:
            cleared = cleared | collecting.cleared
        lower: tuple[Batch, ...] = (collecting,)
        if committing is not None:
            lower = (collecting, committing)
            if committing.cleared:
                cleared = cleared | committing.cleared
        return LayeredTransaction(
            view, lower, self._recent, cleared, self._sequence, self._last_stamp, self._stamps
        )

    def collect(self, transaction: LayeredTransaction) -> Batch | None:
        """Add a body's writes to the collecting batch; return the batch that its outcome waits for."""
        own = transaction.own
        self._sequence = transaction.sequence
        if not own.wrote():
            return self.under_way()
        transaction.keep_stamps()
        self._last_stamp = max(transaction.own_stamp, self._last_stamp)
        batch = self.collecting
        batch.absorb(own)
        batch.bodies += 1
        batch.bytes += transaction.bytes
        return batch

    def under_way(self) -> Batch | None:
        """The newest batch that a body may have read from."""
        return self.collecting if self.collecting.bodies else self.committing

    def begin(self) -> Batch:
        """Make the collecting batch the committing one."""
        batch = self.committing = self.collecting
        self.collecting = Batch()
        self._released = False
        return batch

    def ask(self) -> None:
        """Release the collecting batch, or ask the event loop that submits to release it soon."""
        if self.committing is not None or not self.collecting.bodies:
            return
        if not self._gathering.ask():
            self._release()

    def _gathered(self) -> int:
        """How many bodies a commit would hold now; 0 if another one is under way."""
        return 0 if self.committing is not None else self.collecting.bodies

    def _release(self) -> None:
        """Let the commit thread take the collecting batch."""
        if self.collecting.bodies:
            self._released = True
            if self.committing is None:
                pace.begin_commit()
            self._work.notify()

    # Commits: one at a time. These methods are called without the lock, unless they say otherwise.

    def _run(self) -> None:
        """The commit thread."""
        while True:
            self._repair()
            with self.lock:
                batch = self._next()
                ended = batch is None and self.closed and not self._failed
            if ended:
                return
            if batch is not None:
                self.commit(batch)

    def _next(self) -> Batch | None:
        """Wait for the commit thread's next work: a batch to commit, or None: repair the store, or end."""
        while not self.broken and (self.committing or not (self._released or self.closed)):
            self._work.wait()
        if self.broken is not None or not (self.collecting.bodies or self.queue.bodies):
            self._released = False
            return None
        return self.begin()

    def commit(self, batch: Batch) -> None:
        """Make a batch durable and visible, and deliver its outcomes; or fail it."""
        pace.begin_commit()
        self.queue.go_on()
        assert self.view is not None
        try:
            view = self._store.commit(batch, self.view, self._sequence, self.fault)
        except BaseException as error:
            pace.end_commit()
            self._fail(batch, told(error))
            if not isinstance(error, Exception):
                raise
            return
        if batch.held_back is not None:
            pace.end_commit()
            self._publish(batch, view, ends=False)
            self._fail(batch, batch.held_back)
            return
        self._publish(batch, view)
        self._settle(batch, batch.unknown)
        if not self._released:
            pace.end_commit()

    def _publish(self, batch: Batch, view: View, *, ends: bool = True) -> None:
        """Make a durable batch visible; `ends`: and end its commit. The batch counts as committed even if an
        error occurs here."""
        with self.lock:
            old, self.view = self.view, view
            try:
                if batch.cleared and old is not None:
                    self._store.upkeep.add(batch.cleared, old)
                self._recent.add(batch.records, batch.bytes)
            except Exception:
                _log.exception("a batch was committed, but is not kept in memory")
                self._recent.clear()
            del old
            if ends:
                self._end_commit(batch)
            self._store.drop_deleted(view)

    def _end_commit(self, batch: Batch | None = None) -> None:
        """Let the next batch be committed; under the lock. An event loop that defers commits releases it
        later: the answers lead to new requests, which can join the batch. If a thread waits for
        the next batch, or for room in it, the batch is released at once.

        A waiting checkpoint goes before the next batch; otherwise busy writers could delay it forever.
        """
        self.committing = self._checkpoints[0] if self._checkpoints and self.broken is None else None
        self._idle.notify_all()
        delivers = self.loop.is_limited and batch is not None and batch.outcomes
        if not delivers or self.collecting.waiters or self.is_full():
            self._release()
        if self._released or self.closed:
            self._work.notify()

    def follow(self, follower: Follower | None) -> Position:
        """Tell the follower all batches after the returned position. Raises StoreClosed, CommitFailed."""
        with self.lock:
            while self.committing is not None:
                self._idle.wait()
            self._check_sound()
            self._store.follower = follower
            return self._store.position

    def stand_by(self, why: Callable[[], str]) -> tuple[Position, bytes | None]:
        """As `Following.stand_by`."""
        with self.lock:
            while self.committing is not None or self.collecting.bodies:
                self._idle.wait()
            self._check_sound()
            self.standing_by = why
            assert self.view is not None
            return self._store.position, self.view.get(FOLLOWED_KEY)

    def apply(self, batches: Iterable[Mapping[bytes, bytes | None]], note: bytes) -> None:
        """As `Following.apply`."""
        batch, waiter = Batch(), Waiter()
        batch.tell(batches)
        batch.records[FOLLOWED_KEY] = note
        batch.waiters.append(waiter)
        self._take_turn(batch)
        self.commit(batch)
        waiter.gate.acquire()
        if waiter.failed is not None:
            raise waiter.failed

    def take_over(self) -> Position:
        """As `Following.take_over`."""
        with self.lock:
            while self.committing is not None:
                self._idle.wait()
            self._check_sound()
            view = self.view
            assert view is not None
            self._sequence = _last_sequence(view)
            self._last_stamp = _last_stamp(view)
            self._recent.clear()
            self.standing_by = None
            return self._store.position

    def checkpoint(self, directory: Path) -> None:
        """Copy the store between two commits. Raises StorageError, CommitFailed."""
        # An empty batch takes the place of a commit: bodies still collect, but nothing is written meanwhile.
        token = Batch()
        self._take_turn(token)
        try:
            self._store.checkpoint(directory)
        finally:
            with self.lock:
                self._end_commit()
            self._settle(token, None)

    def _take_turn(self, token: Batch) -> None:
        """Wait for the turn of a checkpoint, or of another store's batch, in place of a commit. Raises
        StoreClosed, CommitFailed."""
        with self.lock:
            self._checkpoints.append(token)
            try:
                while self.committing is not token:
                    self._check_sound()
                    if self.committing is None and self._checkpoints[0] is token:
                        self.committing = token
                    else:
                        self._idle.wait()
            finally:
                self._checkpoints.remove(token)

    def close(self) -> bool:
        """Commit what was collected, and end the thread. Returns whether the store was open."""
        self.loop.close()
        with self.lock:
            if self.closed:
                return False
            self.closed = True
            self._work.notify()
        self._committer.join()
        with self.lock:
            while self.committing is not None:
                self._idle.wait()
            self.view = None
        return True

    # Failures.

    def _fail(self, batch: Batch, cause: str) -> None:
        """Refuse writes until the commit thread has repaired the store. Callers learn of the failure after
        the first try of a repair, because until then a crash could still bring the failed batch back."""
        cause = cause or "the cause is not known"
        _log.error("the store refuses writes: %s", cause)
        with self.lock:
            self.broken = cause
            self._refused = 0
            over, self.collecting = self.collecting, Batch()
            self._stamps.clear()
            over.outcomes += [(done, None, None) for _, done in self.queue.bodies]
            self.queue.bodies.clear()
            self._failed = [batch, over]
            self._work.notify()

    def _repair(self) -> None:
        """Make a broken store take writes again, unless it was closed; on the commit thread."""
        pause_seconds, cause = _REPAIR_PAUSE_SECONDS_MIN, self.broken
        while cause is not None:
            still, closed = "", self.closed
            try:
                self._try_repair()
            except Exception as error:
                still = cause if str(error) == cause else f"{cause}; still: {error}"
            with self.lock:
                failed, self._failed = self._failed, []
                if failed and self._store.unsure:  # a restart may find the batch in RocksDB's log
                    failed[0].unknown = still
                self._refused += sum(len(batch.outcomes) + len(batch.waiters) for batch in failed)
                self.broken = still or None
                if self.committing is not None:
                    self._end_commit()
            if not still:
                _log.warning("the store takes writes again; %d were refused", self._refused)
            for batch in failed:
                self._settle(batch, cause)
            if not still or closed:
                return
            with self.lock:
                if not self.closed:
                    self._work.wait(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _REPAIR_PAUSE_SECONDS_MAX)

    def _try_repair(self) -> None:
        """Try a repair once; raises the error that prevents it. No body writes meanwhile, so no lock is
        taken."""
        self._store.room_again()
        if self._store.unsure:
            self._open_again()
        if (follower := self._store.follower) is not None and (cause := follower.refusing()) is not None:
            raise StorageError(cause)

    def _open_again(self) -> None:
        assert self.view is not None
        self.view = self._store.stand_in(self.view)
        view, sequence = self._store.open_again()
        self._recent.clear()
        self._sequence = max(sequence, self._sequence)
        self.view = view

    # Outcomes. Their receivers may submit, so these methods are called without the lock.

    def _settle(self, batch: Batch, cause: str | None) -> None:
        """Deliver all outcomes that wait for a batch."""
        for waiter in batch.waiters:
            if cause is not None:
                waiter.failed = batch.failure(cause)
            waiter.gate.release()
        outcomes = batch.outcomes
        if not outcomes:
            return
        if cause is not None:
            outcomes = [(done, None, batch.failure(cause)) for done, _, _ in outcomes]
        self.loop.post(outcomes)

    def _delivered(self) -> None:
        """The loop has delivered outcomes: the next commit may begin."""
        with self.lock:
            self.ask()

    def _left(self) -> None:
        """Release the batch that a former loop should have released."""
        with self.lock:
            self._gathering.forget()
            self._release()


def _last_stamp(view: View) -> int:
    stored = view.get(STAMP_KEY)
    return 0 if stored is None else int.from_bytes(stored, "big")


def _last_sequence(view: View) -> int:
    stored = view.get(BATCH_KEY)
    return 0 if stored is None else unpack_batch(stored)[1]
