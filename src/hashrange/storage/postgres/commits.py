"""The commits of the PostgreSQL engine: collects groups of bodies, commits them one by one, informs callers.

1. A body runs over all known records, and its reads and writes are added to the collecting group.
2. When no commit is under way, the collecting group becomes the committing one, and a new one collects.
   `Writer` sends it as one call of `commit_group`.
3. `committed`: its records are known from now on, and the callers get their outcomes.
   `changed`: some records that its bodies read were out of date. They run again, and so do the bodies of the
   group that collected over it. A body that lost too often runs alone.
   A body that runs alone takes the place of a commit: it holds the exclusive lock of the store.
   A body that reads records that other engines change all the time waits, and runs under locks (`contended`).
4. If the connection is lost in the middle of a commit, the writer connects again, and asks for its outcome.
   The callers wait until it is known. If that takes too long, they get `CommitUnknown`.

Refuses to know: what bodies do.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from threading import Condition, Lock, Thread
from time import monotonic, sleep
from typing import Final

from hashrange.storage.api import CommitError, CommitFault, StoreClosed
from hashrange.storage.postgres.bodies import GroupTransaction, Missing, NeedsAlone
from hashrange.storage.postgres.cache import Cache, Catalog, Key
from hashrange.storage.postgres.connections import Lost, Refused, Retry
from hashrange.storage.postgres.contended import Contention, Locked, LockedRecords, covered_by, run_locked
from hashrange.storage.postgres.fetching import Fetched
from hashrange.storage.postgres.groups import Group
from hashrange.storage.postgres.loops import LOOP_SECONDS_MAX, Loop
from hashrange.storage.postgres.members import (
    LOSSES_MAX,
    Member,
    commit_failed,
    commit_unknown,
    outcomes_of,
    run_into,
)
from hashrange.storage.postgres.writer import Changed, Doubt, Undone, Writer

_log = logging.getLogger(__name__)

GROUP_BYTES_MAX: Final = 4 * 1024 * 1024
# A commit waits for more bodies while each round of the event loop brings some, but not for all of them, so
# that the server has something to do while PostgreSQL commits.
_GATHERED_BODIES_MAX: Final = 16
_GATHERED_ROUNDS_MAX: Final = 8
DOUBT_SECONDS_MAX: Final = 20.0
"""How long the callers wait for the outcome of a commit whose connection was lost."""
FORGOTTEN: Final = "this server was away for so long that the store has forgotten its last commit"
_PAUSE_SECONDS_MIN: Final = 0.05
_PAUSE_SECONDS_MAX: Final = 2.0


class Commits:
    """The groups of an engine. `lock` guards everything that bodies run over. `rerun` is called, without the
    lock, with submitted bodies that have lost; `run_queued` when there is room for queued bodies."""

    def __init__(
        self,
        writer: Writer,
        catalog: Catalog,
        loop: Loop,
        *,
        bodies_max: int,
        cache_bytes: int,
        rerun: Callable[[list[Member]], None],
        run_queued: Callable[[], None],
    ) -> None:
        self.fault: CommitFault | None = None
        self.writer = writer
        self.catalog = catalog
        self._loop = loop
        self._bodies_max = bodies_max
        self._rerun = rerun
        self._run_queued = run_queued
        self.cache = Cache(cache_bytes)

        self.lock = Lock()
        self._work = Condition(self.lock)  # the commit thread waits for a group
        self._idle = Condition(self.lock)  # other threads wait for the end of a commit
        self.collecting = Group(writer.next_version())
        self.members: list[Member] = []
        self.committing: Group | None = None
        self.queued: deque[Member] = deque()
        self._contention = Contention()
        self._waiting_for_locks: list[Member] = []
        self._was_locked = False  # the last commit was of bodies that waited for locks: others come next
        self._released = False
        self._starting = False
        self._gathered = self._rounds = 0
        self._sent: list[Member] = []  # the bodies whose commit the event loop waits for
        self._by_loop = False  # the event loop waits for the commit that is under way
        self._handed = False  # the commit thread has to wait for the loop's commit
        self._alone_waiting = 0
        self._was_alone = False  # the last commit was that of a body that ran alone: a group comes next
        self.losses = 0  # groups that were overtaken by other engines
        self.unsettled = 0  # submitted bodies whose outcome is not posted yet
        self.closed = False
        self._ended = False
        self.broken: str | None = None  # why writes are refused
        self._worker = Thread(target=self._run, name="hashrange-commit", daemon=True)
        self._worker.start()

    # Collecting. These methods need the lock, unless they say otherwise.

    def check_usable(self) -> None:
        """Raises StoreClosed, CommitFailed."""
        if self.closed:
            raise StoreClosed
        if self.broken is not None:
            raise commit_failed(self.broken)

    @property
    def full(self) -> bool:
        """Whether the collecting group has no room for another body."""
        return len(self.members) >= self._bodies_max or self.collecting.bytes >= GROUP_BYTES_MAX

    def wait_for_room(self) -> None:
        """Wait until the collecting group has room for another body. Raises CommitFailed."""
        while self.full:
            self._release()
            self._idle.wait()
            if self.broken is not None:
                raise commit_failed(self.broken)

    def perform(self, member: Member) -> bool:
        """Run a body. Returns whether its outcome has to wait for the collecting group. Raises a
        `BaseException` of the body that is not an `Exception`, such as `Missing`."""
        state = self.catalog.state
        if state.version < 0:
            raise Missing([])  # any fetch also returns the state
        contended = self._contention.keys
        txn = GroupTransaction(self.collecting, self.committing, self.cache, state, contended)
        if not run_into(self.collecting, txn, member):
            return False
        self.members.append(member)
        return True

    def wait_for_locks(self, member: Member, keys: Sequence[Key]) -> None:
        """Let a body run under locks of records; called without the lock."""
        with self.lock:
            if self.broken is None:
                member.locks.update(dict.fromkeys(keys))
                self._waiting_for_locks.append(member)
                self._work.notify()
                return
        self._settle([member], commit_failed(self.broken))

    def ask(self) -> None:
        """Release the collecting group, or ask the event loop that submits to release it soon."""
        if self.committing is not None or not self.members:
            return
        if not self._loop.is_limited:
            self._release()
        elif not self._starting:
            self._starting = True
            assert self._loop.defer is not None
            self._loop.defer(self._start)

    def _start(self) -> None:
        """Called by the event loop: send the group, unless each round brings more bodies. No lock held."""
        with self.lock:
            bodies = len(self.members)
            defer = self._loop.defer if self._loop.is_limited else None
            more = self._gathered < bodies < _GATHERED_BODIES_MAX and self._rounds < _GATHERED_ROUNDS_MAX
            if defer is not None and self.committing is None and more:
                self._gathered = bodies
                self._rounds += 1
            else:
                defer = None
                self._starting = False
        if defer is not None:
            defer(self._start)
        else:
            self._send_by_loop()

    def release(self) -> None:
        """Release the group that an earlier loop should have released; called without the lock."""
        with self.lock:
            self._hand_over()
            self._starting = False
            self._release()

    def release_now(self) -> None:
        """Release the collecting group, because a thread waits for it. Needs the lock."""
        if self.committing is None:
            self._release()

    def _release(self) -> None:
        if self.members:
            self._released = True
            self._work.notify()

    def _begin(self) -> tuple[Group, list[Member]]:
        group, members = self.collecting, self.members
        self.committing = group
        self._was_alone = self._was_locked = False
        self._collect_anew()
        return group, members

    def _collect_anew(self) -> None:
        self.collecting = Group(self.writer.next_version())
        self.members = []
        self._released = False
        self._gathered = self._rounds = 0

    # Commits: one at a time. These methods are called without the lock.

    def _run(self) -> None:
        """The commit thread."""
        while True:
            with self.lock:
                self._wait_for_turn()
                if self._ended:
                    return
                work = self._next()
            work()

    def _has_turn(self) -> bool:
        """Whether the commit thread has something to do: a group, or a connection to make."""
        if self._handed:
            return True
        if self.committing is not None or (self._alone_waiting and not self._was_alone):
            return False
        return self._released or bool(self._waiting_for_locks) or self.broken is not None

    def _next(self) -> Callable[[], None]:
        """The commit thread's next work, to be done without the lock."""
        if self._handed:
            self._handed = False
            members, self._sent = self._sent, []
            assert self.committing is not None
            finish = partial(self.writer.finish, self.committing)
            return partial(self._send, self.committing, members, finish)
        if self.broken is not None:
            return self._repair
        if self._waiting_for_locks and not (self._was_locked and self._released):
            return partial(self._commit_locked, *self._begin_locked())
        return partial(self._commit, *self._begin())

    def _send_by_loop(self) -> None:
        """Send the collecting group, and let the event loop wait for its outcome; if the loop cannot,
        release the group for the commit thread."""
        with self.lock:
            watch = self._loop.watching
            if watch is None or not self._is_plain():
                self._release()
                return
            group, self._sent = self._begin()
            self._by_loop = True
        if self.queued:
            self._loop.post(tasks=[self._run_queued])
        try:
            if self.writer.begin(group, watch, self._answered):
                return
        except Exception:
            _log.exception("a commit could not be sent")
        with self.lock:
            self._hand_over()

    def _is_plain(self) -> bool:
        """Whether the collecting group can be sent, and nothing else waits for its turn or is broken."""
        return (
            bool(self.members)
            and self.committing is None
            and not self._waiting_for_locks
            and not self._alone_waiting
            and self.broken is None
            and self.fault is None
            and self.collecting.catalog != -1
            and self.writer.is_ready
        )

    def _answered(self) -> None:
        """Called by the event loop when something has come from PostgreSQL."""
        with self.lock:
            group = self.committing
            if not self._by_loop or group is None:
                self.writer.unwatch()
                return
            committed = self.writer.ended(group)
            if committed is None:
                return
            if not committed:
                self._hand_over()
                return
            self._by_loop = False
            members, self._sent = self._sent, []
            self.cache.add(group.records, group.version)
            self._end_commit(told=True)
        self._settle(members, None, on_loop=True)

    def _hand_over(self) -> None:
        """Let the commit thread wait for the commit instead of the event loop. Needs the lock."""
        if self._by_loop:
            self._by_loop = False
            self._handed = True
            self._work.notify()

    def _wait_for_turn(self) -> None:
        """Wait until the commit thread has something to do. Needs the lock."""
        while not self._ended and not self._has_turn():
            group = self.committing if self._by_loop else None
            notified = self._work.wait(LOOP_SECONDS_MAX)
            if group is not None and not notified and self.committing is group:
                self._hand_over()  # the loop may no longer be running

    def _commit(self, group: Group, members: list[Member]) -> None:
        if self.queued:
            self._loop.post(tasks=[self._run_queued])
        self._send(group, members, lambda: self.writer.commit(group, self.fault))

    def _begin_locked(self) -> tuple[Group, list[Member]]:
        """Take the place of a commit for bodies that run under locks. Their group is not the committing one
        until all of them have run. Otherwise another body could read a value that a later body of the group
        changes: both values would have the same version, so nothing would detect the change."""
        self._contention.age()
        members, self._waiting_for_locks = self._waiting_for_locks, []
        self.committing = Group(self.writer.next_version())
        self._was_alone, self._was_locked = False, True
        return Group(self.writer.next_version()), members

    def _commit_locked(self, group: Group, members: list[Member]) -> None:
        """Lock the records of bodies, run them, and commit. Those that need more locks wait again."""
        keys = sorted({key for member in members for key in member.locks})

        def run(fetched: Fetched) -> None:
            self._run_locked(group, members, fetched)

        self._send(group, members, lambda: self.writer.commit_locked(group, keys, run, self.fault))

    def _run_locked(self, group: Group, members: list[Member], fetched: Fetched) -> None:
        """Run bodies over locked records, also those that arrived meanwhile and need no other locks, and
        leave those in `members` that have ended. Then the group becomes the committing one, and no longer
        changes."""
        records = LockedRecords(fetched.records, self.cache)
        with self.lock:
            covered, self._waiting_for_locks = covered_by(records.locked, self._waiting_for_locks)
        members += covered
        ran: dict[Locked, list[Member]] = {outcome: [] for outcome in Locked}
        for member in members:
            limited = member.done is not None and self._loop.is_limited
            with self.lock:
                txn = GroupTransaction(group, None, records, fetched.state, {}, records.locked)
                ran[run_locked(group, txn, member, limited)].append(member)
        members[:], others = ran[Locked.ENDED], ran[Locked.OTHERWISE]
        with self.lock:
            self._waiting_for_locks += ran[Locked.WAITS]
            self.committing = group
        self._settle([member for member in others if member.stopped is not None], None)
        self._run_again([member for member in others if member.stopped is None])

    def _send(self, group: Group, members: list[Member], send: Callable[[], None]) -> None:
        """Send a group, and act on its outcome."""
        try:
            send()
        except Changed as changed:
            with self.lock:
                self._contention.add(changed.keys)
            self._lose(members, changed.keys)
        except NeedsAlone:
            for member in members:
                member.losses = LOSSES_MAX
            self._lose(members, [])
        except Retry:
            self._lose(members, list(group.reads))
        except (Undone, Refused) as error:
            self._end(members, commit_failed(str(error)))
        except Doubt as doubt:
            self._doubt(group, members, doubt)
        except Lost as error:  # the group was not sent
            self.break_off(str(error), members, commit_failed(str(error)))
        except BaseException as error:
            _log.exception("a commit failed")
            self._end(members, commit_failed(repr(error)))
            if not isinstance(error, Exception):
                raise
        else:
            self._committed(group, members)

    def _committed(self, group: Group, members: list[Member]) -> None:
        with self.lock:
            self.cache.add(group.records, group.version)
            self._end_commit(told=any(member.done is not None for member in members))
        self._settle(members, None)

    def _end_commit(self, *, told: bool) -> None:
        """Let the next group be committed; under the lock. An event loop that defers commits releases it
        later: the answers lead to new requests, which can join the group. If a thread waits for
        the next group, the group is released at once."""
        self.committing = None
        self._idle.notify_all()
        waits = any(member.done is None for member in self.members)
        if not (told and self._loop.is_limited) or waits or self.full:
            self._release()
        if self._has_turn():  # a needless wake-up of a thread takes the GIL from the loop
            self._work.notify()

    def _lose(self, members: list[Member], keys: list[Key]) -> None:
        """Run the bodies of a group again, and those that ran over its writes."""
        with self.lock:
            self._contention.age()
            self.losses += 1
            self.cache.forget(keys)
            over = self.members
            self._collect_anew()
            self.committing = None
            self._idle.notify_all()
        for member in members:
            member.losses += 1
            member.missing = keys
        self._run_again([*members, *over])

    def _run_again(self, members: list[Member]) -> None:
        for member in members:
            if member.done is None:
                member.again = True
                member.gate.release()
        submitted = [member for member in members if member.done is not None]
        if submitted:
            self._rerun(submitted)

    def _end(self, members: list[Member], error: CommitError) -> None:
        """Fail the bodies of a group; those that ran over its writes run again."""
        _log.error("%s", error)
        with self.lock:
            over = self.members
            self._collect_anew()
            self.committing = None
            self._idle.notify_all()
        self._settle(members, error)
        self._run_again(over)

    def break_off(self, cause: str, members: list[Member], error: CommitError) -> None:
        """Refuse writes until the connection is restored."""
        _log.error("the store refuses writes: %s", cause)
        with self.lock:
            self.broken = cause
            over, queued = self.members, [*self.queued, *self._waiting_for_locks]
            self.queued.clear()
            self._waiting_for_locks = []
            self._collect_anew()
            self.committing = None
            self._idle.notify_all()
            self._work.notify()
        self._settle(members, error)
        self._settle([*over, *queued], commit_failed(cause))

    def _doubt(self, group: Group, members: list[Member], doubt: Doubt) -> None:
        """Find out the outcome of a commit whose connection was lost, and act on it."""
        if doubt.chosen:  # a test's fault; the connection is sound
            with self.lock:
                self.cache.forget(group.records)
            self._end(members, commit_unknown(str(doubt)))
            return
        try:
            came_to_pass = self.resolve(group, str(doubt))
        except Lost as error:
            self.break_off(str(error), members, commit_unknown(f"{doubt}; and then: {error}"))
            return
        if came_to_pass is None:
            with self.lock:
                self.cache.forget(group.records)
            self._end(members, commit_unknown(f"{doubt}; {FORGOTTEN}"))
        elif came_to_pass:
            self._committed(group, members)
        else:
            self._lose(members, [])

    def resolve(self, group: Group, cause: str) -> bool | None:
        """Whether a group was committed; None if that cannot be known. Raises Lost if the time runs out."""
        end = monotonic() + DOUBT_SECONDS_MAX
        pause_seconds = _PAUSE_SECONDS_MIN
        while True:
            try:
                last = self.writer.connect_again()
            except (Lost, Refused) as error:
                if monotonic() > end:
                    raise Lost(str(error)) from None
                with self.lock:
                    if self.broken is None:
                        self.broken = str(error) or cause
                        _log.error("the store refuses writes: %s", self.broken)
                sleep(pause_seconds)
                pause_seconds = min(2 * pause_seconds, _PAUSE_SECONDS_MAX)
            else:
                self._whole()
                return None if last is None else last == group.version

    def _repair(self) -> None:
        """Connect again, after a pause that grows."""
        pause_seconds = _PAUSE_SECONDS_MIN
        while not self._ended:
            try:
                self.writer.connect_again()
            except (Lost, Refused) as error:
                with self.lock:
                    self.broken = str(error)
                    if not self._ended:
                        self._work.wait(pause_seconds)
                pause_seconds = min(2 * pause_seconds, _PAUSE_SECONDS_MAX)
            else:
                self._whole()
                return

    def _whole(self) -> None:
        with self.lock:
            if self.broken is not None:
                _log.warning("the store takes writes again")
            self.broken = None

    def _settle(self, members: list[Member], error: Exception | None, *, on_loop: bool = False) -> None:
        """Deliver the outcomes of bodies to their callers. `on_loop`: this is the event loop's thread."""
        outcomes = outcomes_of(members, error)
        if outcomes:
            (self._loop.run if on_loop else self._loop.post)(outcomes)
            self.settled(len(outcomes))

    def settled(self, bodies: int) -> None:
        """Note that a number of submitted bodies have their outcome; called without the lock."""
        with self.lock:
            self.unsettled -= bodies
            if not self.unsettled:
                self._idle.notify_all()

    def told(self) -> None:
        """The loop has delivered outcomes: the next commit may begin."""
        with self.lock:
            self.ask()

    # Bodies that run alone (`alone`).

    def take_place(self) -> Group:
        """Take the place of a commit: bodies still collect over it. Raises CommitFailed."""
        with self.lock:
            self._alone_waiting += 1
            try:
                while self.committing is not None or (self._was_alone and self._released):
                    self._idle.wait()
                if self.broken is not None:
                    raise commit_failed(self.broken)
                self.committing = place = Group(self.writer.next_version())
                return place
            finally:
                self._alone_waiting -= 1
                self._work.notify()

    def end_place(self, place: Group) -> None:
        """Give the place of a commit back."""
        with self.lock:
            if self.committing is place:
                self._was_alone = True
                self._end_commit(told=False)

    def learn(self, fetched: Fetched) -> None:
        """Add fetched records to the cache, unless newer ones are known."""
        with self.lock:
            self.cache.learn(fetched.records, fetched.known)

    # The end.

    def drain(self) -> None:
        """Wait until all submitted bodies have their outcome."""
        with self.lock:
            self._starting = False
            self._release()
            while self.unsettled or self.members or self.committing is not None:
                self._hand_over()
                self._release()
                self._idle.wait(1.0)

    def end(self) -> None:
        """End the commit thread."""
        with self.lock:
            self._ended = True
            self._work.notify()
            self._idle.notify_all()
        self._worker.join()
        self.writer.close()
