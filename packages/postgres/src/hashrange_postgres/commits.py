"""The commits of the PostgreSQL engine: one group after the other, and what becomes of its bodies.

The package draws the path of a commit, and `turns` says whose turn it is. Here a group is sent, step by step
(`_go_on_by_loop` on the event loop, `_send` and `_finish` on the commit thread), its bodies run again if what
they have read has changed (`_run_again`), and its outcome is settled: `_answered` does that on the loop if
all goes well, `_conclude` on the commit thread in all other cases.

Refuses to know: what bodies do, SQL.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable
from functools import partial
from threading import Thread
from time import monotonic
from typing import Final, NamedTuple

from hashrange.storage.failures import (
    CommitError,
    CommitFault,
    CommitUnknown,
    StorageError,
    StoreOutgrown,
)
from hashrange.storage.loops import Gathering, Loop
from hashrange_postgres.bodies import GroupTransaction
from hashrange_postgres.cache import Catalog, LockedRecords
from hashrange_postgres.direct import DirectTransaction
from hashrange_postgres.fetching import Fetched
from hashrange_postgres.groups import Group, State
from hashrange_postgres.members import (
    TRIES_MAX,
    Member,
    commit_failed,
    commit_unknown,
    outcomes_of,
)
from hashrange_postgres.running import Rerun, run_again, run_alone
from hashrange_postgres.turns import Turns
from hashrange_postgres.wire.connections import (
    OTHER_FORMAT,
    Fenced,
    Lost,
    NeedsExclusive,
    Outgrown,
    Refused,
    Retry,
    StoreBusy,
    TimedOut,
    Trouble,
)
from hashrange_postgres.writer import Changed, Locked, NotSent, Undone, Writer

_log = logging.getLogger("hashrange.postgres")

FORGOTTEN: Final = (
    "the store does not know this server's last commit: the server was away for more than a day, or an older "
    "copy of the store was put back"
)
_PAUSE_SECONDS_MIN: Final = 0.05
_PAUSE_SECONDS_MAX: Final = 2.0
# A group waits for more bodies while each round of the event loop brings some, but not for all of them, so
# that the server has something to do while PostgreSQL commits.
_GATHERED_BODIES_MAX: Final = 16


class _Left(NamedTuple):
    """Bodies that are no longer in their group: those that have ended without it, and those that need more
    than it has locked."""

    ended: list[Member]
    elsewhere: list[Member]


class Commits:
    """The commits of an engine. A group has its outcome after `seconds_max`, whatever PostgreSQL does.
    `rerun` is called with submitted bodies that have lost, `run_queued` when there is room for a queued body.

    The methods are called without the lock, unless they say otherwise.
    """

    def __init__(
        self,
        writer: Writer,
        catalog: Catalog,
        loop: Loop,
        *,
        bodies_max: int,
        cache_bytes: int,
        seconds_max: float,
        rerun: Callable[[list[Member]], None],
        run_queued: Callable[[Member], Callable[[], None] | None],
    ) -> None:
        self.fault: CommitFault | None = None
        self.writer = writer
        self._loop = loop
        self._seconds_max = seconds_max
        self._rerun = rerun
        self.turns = Turns(
            catalog,
            loop,
            bodies_max=bodies_max,
            cache_bytes=cache_bytes,
            next_version=writer.next_version,
            run_queued=run_queued,
        )
        self._gathering = Gathering(
            loop, self.turns.lock, _GATHERED_BODIES_MAX, self._gathered, self._send_by_loop
        )
        self.losses = 0  # groups that were overtaken by other engines
        self.refusal: str | None = None  # why PostgreSQL refused the last group that it has refused
        self.refused_at = -math.inf  # when, by the monotonic clock
        self._worker = Thread(target=self._run, name="hashrange-commit", daemon=True)
        self._worker.start()

    def wait_for_store(self, member: Member) -> None:
        """Let a body run under the store's lock."""
        turns = self.turns
        with turns.lock:
            if turns.broken is None:
                member.store = True
                turns.waiting.add([member])
                turns.work.notify()
                return
        self._settle([member], commit_failed(turns.broken))

    def ask(self) -> None:
        """Release the collecting group, or ask the event loop that submits to send it soon. Needs the
        lock."""
        turns = self.turns
        if turns.committing is not None or not turns.collecting.members:
            return
        if not self._gathering.ask():
            turns.release()

    def release(self) -> None:
        """Release the group that an earlier loop should have sent."""
        with self.turns.lock:
            self.turns.hand_over()
            self._gathering.forget()
            self.turns.release()

    # On the event loop.

    def _gathered(self) -> int:
        """How many bodies a commit would hold now; 0 if another one is under way."""
        return 0 if self.turns.committing is not None else len(self.turns.collecting.members)

    def _send_by_loop(self) -> Callable[[], None] | None:
        """Send the collecting group, and let the loop wait for its outcome; if the loop cannot, release the
        group for the commit thread. Needs the lock."""
        plain = self.turns.is_plain() and self.fault is None
        if self._loop.watching is None or not plain or not self.writer.is_ready:
            self.turns.release()
            return None
        self.turns.begin(self.turns.collecting, by_loop=True)
        self._go_on_by_loop()
        return self.turns.queue.go_on

    def _go_on_by_loop(self) -> None:
        """Send the next step of the group whose turn it is, or have the commit thread wait for it. Needs the
        lock, so that the thread does not take over in between."""
        group, watch = self.turns.committing, self._loop.watching
        assert group is not None
        try:
            if self.writer.send(group, watch, self._answered) and watch is not None:
                return
        except Exception:
            _log.exception("a commit could not be sent")
        self.turns.hand_over()

    def _answered(self) -> None:
        """Called when something has come from PostgreSQL."""
        left: _Left = _Left([], [])
        with self.turns.lock:
            group = self.turns.committing
            if group is None or not group.by_loop:
                self.writer.unwatch()
                return
            if not self.writer.has_answer():
                return
            try:
                locked = self.writer.judge(group)
            except (Trouble, Changed, StorageError):
                self.turns.hand_over()
                return
            if locked is None:
                self._note(group)
            elif self._is_up_to_date(group, locked):
                self._go_on_by_loop()
                return
            elif any(member.done is None for member in [*group.members, *self.turns.collecting.members]):
                self.turns.hand_over()  # a thread's bodies may take any time
                return
            else:
                left = self._run_again(group, locked)
                self._go_on_by_loop()
        if locked is None:
            self._settle(group.members, None, on_loop=True)
        self._let_go(left)

    # On the commit thread.

    def _run(self) -> None:
        try:
            while True:
                with self.turns.lock:
                    self.turns.wait_for_work()
                    if self.turns.ended:
                        return
                    work = self._next()
                work()
        except BaseException as error:
            self._die(error)
            raise

    def _next(self) -> Callable[[], None]:
        """The commit thread's next work, to be done without the lock. Needs the lock."""
        turns = self.turns
        if turns.committing is not None:  # the event loop has handed it over
            return partial(self._conclude, turns.committing, self._finish)
        if turns.broken is not None:
            return self._repair
        return partial(self._conclude, turns.begin_next(), self._send)

    def _send(self, group: Group) -> None:
        """Send a group, and wait for its outcome. Raises as `Writer.hold`; and NotSent."""
        self.turns.queue.go_on()
        self.writer.ready()
        if group.under_store:
            self.writer.hold(group, partial(self._run_alone, group), self.fault)
        elif self.fault is None or not self._commits_now(group):
            self.writer.send(group, None, None)
            self._finish(group)
        else:
            self.writer.commit(group, self.fault)

    def _commits_now(self, group: Group) -> bool:
        """Whether the next step of a group is its commit."""
        return group.state is State.SENT and group.wrote()

    def _finish(self, group: Group) -> None:
        """Wait for the answer to the step of a group that was sent, and do the others."""
        self.writer.wait()
        locked = self.writer.judge(group)
        if locked is None:
            return
        left = _Left([], [])
        with self.turns.lock:
            if not self._is_up_to_date(group, locked):
                left = self._run_again(group, locked)
        self._let_go(left)
        self._send(group)

    def _run_alone(self, group: Group, txn: DirectTransaction) -> None:
        """Run the body of a group under the store's lock."""
        with self.turns.lock:
            self.turns.waiting.got_lock()
        run_alone(group, txn, group.to_run[0])
        group.to_run.clear()  # not before: if a statement of the body fails, it has to run again

    def _is_up_to_date(self, group: Group, locked: Locked) -> bool:
        """Whether the bodies of a group have read what it has locked; if so, it is committed next. Needs the
        lock."""
        if locked.changed or locked.state.version != group.catalog:
            return False
        group.state = State.SENT
        return True

    def _run_again(self, group: Group, locked: Locked) -> _Left:
        """Run the bodies of a group over what it has locked, also those that were collected meanwhile if they
        need nothing else: other engines may have held the locks for long. From then on the group does not
        change. Returns the bodies that are not in it any more. Needs the lock."""
        turns = self.turns
        turns.note(changed=bool(locked.changed))
        self.losses += 1
        for key, known in locked.changed.items():
            turns.cache.put(key, known)
        records = LockedRecords(locked.versions, locked.changed, turns.cache)
        group.begin_again(self.writer.next_version())
        group.to_run += turns.take_covered(locked.versions)
        left = _Left([], [])
        while group.to_run:
            member = group.to_run[0]
            limited = member.done is not None and self._loop.is_limited
            ran = run_again(group, GroupTransaction(group, None, records, locked.state), member, limited)
            del group.to_run[0]
            if ran is Rerun.ENDED:
                left.ended.append(member)
            elif ran is not Rerun.JOINED:
                left.elsewhere.append(member)
        group.state = State.SENT
        if group.catalog is None:
            group.catalog = locked.state.version  # no body is left
        return left

    def _let_go(self, left: _Left) -> None:
        """Settle the bodies that have ended without their group, and run those again that need more than it
        has locked."""
        self._settle(left.ended, None)
        if left.elsewhere:
            self._run_elsewhere(left.elsewhere)
        self.turns.queue.go_on()

    def _conclude(self, group: Group, commit: Callable[[Group], None]) -> None:
        """Have a group committed in this way, and act on its outcome. Whatever is not foreseen counts as a
        lost connection: then the outcome is looked up."""
        try:
            commit(group)
        except NeedsExclusive:
            self._try_again(group, State.SENT)
        except StoreBusy as busy:
            self.writer.roll_back()
            with self.turns.lock:
                self.turns.waiting.try_later()
            if any(self._is_late(member) for member in group.bodies):
                self._fail(group, commit_failed(str(busy)))
            else:
                self._give_up(group)
        except (Changed, Retry) as error:
            if isinstance(error, Fenced):
                self.writer.close()
            self._try_again(group, State.LOCKING)
        except StoreOutgrown as error:
            self._fail(group, error)
        except Outgrown:
            self._fail(group, self.turns.catalog.outgrow(OTHER_FORMAT))
        except (Undone, Refused) as error:
            with self.turns.lock:
                self.refusal, self.refused_at = str(error), monotonic()
            self._fail(group, commit_failed(str(error)))
        except CommitUnknown as chosen:  # by a test's fault; the connection is sound
            self._fail(group, commit_unknown(str(chosen)))
        except NotSent as error:
            self._break_off(group, str(error), commit_failed(str(error)))
        except BaseException as error:
            if not isinstance(error, Lost):
                _log.exception("a commit failed")
            self._resolve(group, error)
        else:
            self._committed(group)

    def _try_again(self, group: Group, state: State) -> None:
        """Commit a group in another way, of which PostgreSQL has written nothing: LOCKING its records first,
        after which its bodies run again if they have to; or SENT under the store's lock."""
        self.writer.roll_back()
        group.tries += 1
        if group.under_store or group.tries > TRIES_MAX:
            self._give_up(group)
            return
        with self.turns.lock:
            group.state = state
            group.exclusive = state is State.SENT
        self._conclude(group, self._send)

    def _is_late(self, member: Member) -> bool:
        """Whether a body has waited too long for the store's lock."""
        now = monotonic()
        member.waits_since = member.waits_since or now
        return now - member.waits_since >= self._seconds_max

    def _committed(self, group: Group) -> None:
        with self.turns.lock:
            self._note(group)
        self._settle(group.members, None)

    def _note(self, group: Group) -> None:
        """A group was committed. Needs the lock. An event loop that defers commits sends the next one later:
        the answers lead to new requests, which can join it."""
        self.turns.know(group)
        self.turns.note(changed=False)
        is_submitted = any(member.done is not None for member in group.members)
        self.turns.end(release=not (is_submitted and self._loop.is_limited))

    def _give_up(self, group: Group) -> None:
        """Run each body of a group again, under the store's lock."""
        members = group.bodies
        with self.turns.lock:
            self.losses += 1
            self.turns.end(release=True)
        for member in members:
            member.store = True
        self._run_elsewhere(members)

    def _run_elsewhere(self, members: list[Member]) -> None:
        with self.turns.lock:
            self.turns.waiting.add([member for member in members if member.store])
            self.turns.work.notify()
        others = [member for member in members if not member.store]
        for member in others:
            if member.done is None:
                member.again = True
                member.gate.release()
        submitted = [member for member in others if member.done is not None]
        if submitted:
            self._rerun(submitted)

    def _fail(self, group: Group, error: CommitError) -> None:
        """Fail the bodies of a group."""
        _log.error("%s", error)
        self.writer.roll_back()
        with self.turns.lock:
            self.turns.forget(group)
            self.turns.end(release=True)
        self._settle(group.bodies, error)

    # On the commit thread: lost connections.

    def _resolve(self, group: Group, error: BaseException) -> None:
        """Find out the outcome of a commit whose connection was lost, and act on it."""
        in_doubt = group.under_store or self._commits_now(group)
        cause = str(error) or repr(error)
        with self.turns.lock:
            group.state = State.LOST
            self.turns.forget(group)
        try:
            now = monotonic()
            last = self._connect(max(group.sent_at + self._seconds_max, now + self._seconds_max / 2))
        except Lost as lost:
            failed = commit_unknown if in_doubt else commit_failed
            self._break_off(group, str(lost), failed(f"{cause}; and then: {lost}"))
            return
        if in_doubt and last is None:
            self._fail(group, commit_unknown(f"{cause}; {FORGOTTEN}"))
        elif in_doubt and last == group.version:
            self._committed(group)
        elif isinstance(error, TimedOut):
            self._fail(group, commit_failed(cause))
        else:
            group.sent_at = monotonic()
            self._try_again(group, State.LOCKING)

    def _break_off(self, group: Group, cause: str, error: CommitError) -> None:
        """Refuse writes until the connection is restored."""
        self._refuse(cause)
        with self.turns.lock:
            others = self.turns.take_all()
        self._settle(group.bodies, error)
        self._settle(others, commit_failed(cause))

    def _refuse(self, cause: str) -> None:
        with self.turns.lock:
            if self.turns.broken is None:
                _log.error("the store refuses writes: %s", cause)
            self.turns.broken = cause

    def _repair(self) -> None:
        """Connect again, however long it takes."""
        try:
            self._connect(math.inf)
        except Lost:
            assert self.turns.ended

    def _connect(self, until: float) -> int | None:
        """Connect again, with pauses that grow, and return the version of the last group that was committed,
        None if it is forgotten. Raises Lost when the time is over, or the engine ends."""
        pause_seconds = _PAUSE_SECONDS_MIN
        while True:
            try:
                last = self.writer.connect_again(max(until - monotonic(), 0.0))
                break
            except BaseException as error:
                # Whatever it is: callers wait for the connection, and would hear of nothing else.
                self._refuse(str(error) or repr(error))
                if self.turns.ended or monotonic() > until:
                    raise Lost(self.turns.broken) from None
            with self.turns.lock:
                self.turns.work.wait(pause_seconds)
            pause_seconds = min(2 * pause_seconds, _PAUSE_SECONDS_MAX)
        with self.turns.lock:
            if self.turns.broken is not None:
                _log.warning("the store takes writes again")
            self.turns.broken = None
        return last

    def _die(self, error: BaseException) -> None:
        """The commit thread ends, which nothing foresees: refuse all writes from now on."""
        cause = f"the thread that commits has ended, so this server has to be started again: {error!r}"
        group = self.turns.committing
        self._refuse(cause)
        with self.turns.lock:
            self.turns.ended = True
            others = self.turns.take_all()
        if group is not None:
            self._settle(group.bodies, commit_unknown(cause))
        self._settle(others, commit_failed(cause))

    # Outcomes.

    def _settle(self, members: Iterable[Member], error: Exception | None, *, on_loop: bool = False) -> None:
        """Deliver the outcomes of bodies to their callers. `on_loop`: this is the event loop's thread."""
        outcomes = outcomes_of(members, error)
        if outcomes:
            (self._loop.run if on_loop else self._loop.post)(outcomes)
            self.settled(len(outcomes))

    def settled(self, bodies: int) -> None:
        """Note that a number of submitted bodies have their outcome."""
        with self.turns.lock:
            self.turns.unsettled -= bodies
            if not self.turns.unsettled:
                self.turns.idle.notify_all()

    def told(self) -> None:
        """The loop has delivered outcomes: the next commit may begin."""
        with self.turns.lock:
            self.ask()

    def learn(self, fetched: Fetched) -> None:
        """Add fetched records to the cache, unless newer ones are known."""
        with self.turns.lock:
            self.turns.cache.learn(fetched.records, fetched.known)

    # The end.

    def drain(self) -> None:
        """Wait until all submitted bodies have their outcome."""
        with self.turns.lock:
            self._gathering.forget()
            self.turns.release()
            while self.turns.unsettled or self.turns.collecting.members or self.turns.committing is not None:
                if self.turns.ended:
                    return  # the commit thread is no more
                self.turns.hand_over()
                self.turns.release()
                self.turns.idle.wait(1.0)

    def end(self) -> None:
        """End the commit thread."""
        with self.turns.lock:
            self.turns.ended = True
            self.turns.work.notify()
            self.turns.idle.notify_all()
        self._worker.join()
        self.writer.close()
