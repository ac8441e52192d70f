"""The commits of the PostgreSQL engine: one group after the other, and what becomes of its bodies.

The package draws the path of a commit, and `turns` says whose turn it is. Here a group is sent
(`_send_by_loop` on the event loop, `_send` on the commit thread), and its outcome settled (`_answered` on the
loop if it is a plain success, `_conclude` on the commit thread in all other cases).

Refuses to know: what bodies do, SQL.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from threading import Thread
from time import monotonic
from typing import Final

from hashrange.storage.failures import CommitError, CommitFault, CommitUnknown, StoreOutgrown
from hashrange.storage.loops import Loop
from hashrange_postgres.bodies import GroupTransaction
from hashrange_postgres.cache import Catalog, Key
from hashrange_postgres.direct import DirectTransaction
from hashrange_postgres.fetching import Fetched
from hashrange_postgres.groups import Group, State
from hashrange_postgres.members import (
    LOSSES_MAX,
    Member,
    commit_failed,
    commit_unknown,
    outcomes_of,
)
from hashrange_postgres.running import Held, run_alone, run_under_locks
from hashrange_postgres.turns import Turns
from hashrange_postgres.waiting import LockedRecords
from hashrange_postgres.wire.connections import (
    OTHER_FORMAT,
    Lost,
    NeedsExclusive,
    Outgrown,
    Refused,
    Retry,
    StoreBusy,
    TimedOut,
)
from hashrange_postgres.writer import Changed, NotSent, Undone, Writer

_log = logging.getLogger("hashrange.postgres")

FORGOTTEN: Final = (
    "the store does not know this server's last commit: the server was away for more than a day, or an older "
    "copy of the store was put back"
)
_PAUSE_SECONDS_MIN: Final = 0.05
_PAUSE_SECONDS_MAX: Final = 2.0


class Commits:
    """The commits of an engine. A group has its outcome after `seconds_max`, whatever PostgreSQL does.
    `rerun` is called with submitted bodies that have lost, `run_queued` when there is room for queued bodies.

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
        run_queued: Callable[[], None],
    ) -> None:
        self.fault: CommitFault | None = None
        self.writer = writer
        self._loop = loop
        self._seconds_max = seconds_max
        self._rerun = rerun
        self._run_queued = run_queued
        self.turns = Turns(
            catalog, bodies_max=bodies_max, cache_bytes=cache_bytes, next_version=writer.next_version
        )
        self._starting = False  # the event loop was asked to call `_start`
        self.losses = 0  # groups that were overtaken by other engines
        self.refusal: str | None = None  # why PostgreSQL refused the last group that it has refused
        self.refused_at = -math.inf  # when, by the monotonic clock
        self._worker = Thread(target=self._run, name="hashrange-commit", daemon=True)
        self._worker.start()

    def wait_for_locks(self, member: Member, keys: Sequence[Key] | None) -> None:
        """Let a body run under locks of records, or of the store (None)."""
        turns = self.turns
        with turns.lock:
            if turns.broken is None:
                member.needs(keys)
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
        if not self._loop.is_limited:
            turns.release()
        elif not self._starting:
            self._starting = True
            assert self._loop.defer is not None
            self._loop.defer(self._start)

    def release(self) -> None:
        """Release the group that an earlier loop should have sent."""
        with self.turns.lock:
            self.turns.hand_over()
            self._starting = False
            self.turns.release()

    # On the event loop.

    def _start(self) -> None:
        """Send the collecting group, unless each round of the loop brings more bodies."""
        with self.turns.lock:
            defer = self._loop.defer if self._loop.is_limited else None
            if defer is None or self.turns.committing is not None or not self.turns.collecting.grows():
                defer = None
                self._starting = False
        if defer is not None:
            defer(self._start)
        else:
            self._send_by_loop()

    def _send_by_loop(self) -> None:
        """Send the collecting group, and let the loop wait for its outcome; if the loop cannot, release the
        group for the commit thread."""
        with self.turns.lock:
            group, watch = self.turns.collecting, self._loop.watching
            plain = self.turns.is_plain() and self.fault is None and group.catalog != -1
            if watch is None or not plain or not self.writer.is_ready:
                self.turns.release()
                return
            self.turns.begin(group, by_loop=True)
        if self.turns.queued:
            self._loop.post(tasks=[self._run_queued])
        try:
            if self.writer.send(group, watch, self._answered):
                return
        except Exception:
            _log.exception("a commit could not be sent")
        with self.turns.lock:
            self.turns.hand_over()

    def _answered(self) -> None:
        """Called when something has come from PostgreSQL."""
        with self.turns.lock:
            group = self.turns.committing
            if group is None or not group.by_loop:
                self.writer.unwatch()
                return
            committed = self.writer.answered(group)
            if committed is None:
                return
            if not committed:
                self.turns.hand_over()
                return
            self._note(group)
        self._settle(group.members, None, on_loop=True)

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
            return partial(self._conclude, turns.committing, self.writer.finish)
        if turns.broken is not None:
            return self._repair
        return partial(self._conclude, turns.begin_next(), self._send)

    def _send(self, group: Group) -> None:
        """Send a group, and wait for its outcome. Raises as `Writer.hold`; and NotSent."""
        if self.turns.queued:
            self._loop.post(tasks=[self._run_queued])
        self.writer.ready()
        if group.state is State.HELD or self.fault is not None:
            self.writer.hold(group, self._run_held, self.fault)
        elif group.catalog == -1:
            raise Changed([])
        else:
            self.writer.send(group, None, None)
            self.writer.finish(group)

    def _run_held(self, group: Group, locked: Fetched | DirectTransaction | None) -> None:
        """Run the bodies of a group over what it has locked, also those that arrived meanwhile and need no
        other locks. From then on the group does not change."""
        if isinstance(locked, DirectTransaction):
            with self.turns.lock:
                self.turns.waiting.got_store()
            run_alone(group, locked, group.to_run[0])
            group.to_run.clear()  # not before: if a statement of the body fails, it has to run again
        elif locked is not None:
            self._run_over(group, locked)

    def _run_over(self, group: Group, fetched: Fetched) -> None:
        records = LockedRecords(fetched.records, self.turns.cache)
        with self.turns.lock:
            group.to_run += self.turns.waiting.take_covered(records.locked)
        ran: dict[Held, list[Member]] = {outcome: [] for outcome in Held}
        while group.to_run:
            member = group.to_run[0]
            limited = member.done is not None and self._loop.is_limited
            with self.turns.lock:
                txn = GroupTransaction(group, None, records, fetched.state, {}, records.locked)
                ran[run_under_locks(group, txn, member, limited)].append(member)
            del group.to_run[0]
        with self.turns.lock:
            self.turns.waiting.add(ran[Held.WAITS])
            group.state = State.SENT
        self._settle(ran[Held.ENDED], None)
        self._run_again(ran[Held.ELSEWHERE])

    def _conclude(self, group: Group, commit: Callable[[Group], None]) -> None:
        """Have a group committed in this way, and act on its outcome. Whatever is not foreseen counts as a
        lost connection: then the outcome is looked up."""
        try:
            commit(group)
        except Changed as changed:
            with self.turns.lock:
                self.turns.contention.add(changed.keys)
                if changed.keys:
                    self.turns.contention.note(lost=True)
            self._lose(group, changed.keys)
        except NeedsExclusive:
            if group.locks.keys:
                self._lose(group, [], store=True)
            else:
                group.exclusive = True
                self._conclude(group, self._send)
        except StoreBusy as busy:
            with self.turns.lock:
                self.turns.waiting.try_store_later()
            if any(self._is_late(member) for member in group.to_run):
                self._fail(group, commit_failed(str(busy)))
            else:
                self._lose(group, [])
        except Retry:
            self._lose(group, list(group.reads))
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
        if not group.locks.keys:
            self.turns.contention.note(lost=False)
        is_submitted = any(member.done is not None for member in group.members)
        self.turns.end(release=not (is_submitted and self._loop.is_limited))

    def _lose(self, group: Group, keys: Sequence[Key], *, store: bool = False) -> None:
        """Run the bodies of a group again, and those that ran over its writes. `keys` are out of date.
        `store`: under the store's lock."""
        members = [*group.members, *group.to_run]
        with self.turns.lock:
            self.turns.contention.age()
            self.losses += 1
            self.turns.cache.forget(keys)
            over = self.turns.give_up()
        for member in members:
            member.losses += 1
            member.missing = keys
            member.store |= store or member.losses > LOSSES_MAX
        self._run_again([*members, *over])

    def _run_again(self, members: list[Member]) -> None:
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
        """Fail the bodies of a group; those that ran over its writes run again."""
        _log.error("%s", error)
        with self.turns.lock:
            self.turns.forget(group)
            over = self.turns.give_up()
        self._settle([*group.members, *group.to_run], error)
        self._run_again(over)

    # On the commit thread: lost connections.

    def _resolve(self, group: Group, error: BaseException) -> None:
        """Find out the outcome of a commit whose connection was lost, and act on it."""
        group.state = State.LOST
        cause = str(error) or repr(error)
        with self.turns.lock:
            self.turns.forget(group)
        try:
            now = monotonic()
            last = self._connect(max(group.sent_at + self._seconds_max, now + self._seconds_max / 2))
        except Lost as lost:
            self._break_off(group, str(lost), commit_unknown(f"{cause}; and then: {lost}"))
            return
        if last is None:
            self._fail(group, commit_unknown(f"{cause}; {FORGOTTEN}"))
        elif last == group.version:
            self._committed(group)
        elif isinstance(error, TimedOut):
            self._fail(group, commit_failed(cause))
        else:
            self._lose(group, [])

    def _break_off(self, group: Group, cause: str, error: CommitError) -> None:
        """Refuse writes until the connection is restored."""
        self._refuse(cause)
        with self.turns.lock:
            others = self.turns.take_all()
        self._settle([*group.members, *group.to_run], error)
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
            self._settle([*group.members, *group.to_run], commit_unknown(cause))
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
            self._starting = False
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
