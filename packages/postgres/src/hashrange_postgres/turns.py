"""Whose turn it is to commit, and what bodies run over until then: what the only lock of an engine guards.

One group at a time has its turn. Meanwhile the next one collects, other bodies wait for locks, and submitted
bodies for which the collecting group has no room wait in a queue.

Refuses to know: threads, connections, the event loop.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from threading import Condition, Lock
from time import monotonic
from typing import Final

from hashrange.storage.failures import StoreClosed
from hashrange_postgres.bodies import GroupTransaction, Missing
from hashrange_postgres.cache import Cache, Catalog
from hashrange_postgres.groups import Group, State
from hashrange_postgres.members import Member, commit_failed
from hashrange_postgres.running import run_into
from hashrange_postgres.waiting import Contention, Waiting
from hashrange_postgres.wire.loop_connections import LOOP_SECONDS_MAX

GROUP_BYTES_MAX: Final = 4 * 1024 * 1024


class Turns:
    """The methods need `lock`, unless they say otherwise. `work` is notified when the commit thread has
    something to do, `idle` when a turn has ended. `next_version` gives the version of a new group."""

    def __init__(
        self, catalog: Catalog, *, bodies_max: int, cache_bytes: int, next_version: Callable[[], int]
    ) -> None:
        self.catalog = catalog
        self.cache = Cache(cache_bytes)
        self._bodies_max = bodies_max
        self._next_version = next_version
        self.lock = Lock()
        self.work = Condition(self.lock)
        self.idle = Condition(self.lock)
        self.collecting = Group(next_version())
        self.committing: Group | None = None  # whose turn it is
        self.queued: deque[Member] = deque()
        self.waiting = Waiting()
        self.contention = Contention()
        self._released = False  # the commit thread may take the collecting group
        self._held_last = False  # the last group had waited for locks: a collected one comes next
        self.unsettled = 0  # submitted bodies whose outcome is not posted yet
        self.closed = False
        self.ended = False  # the commit thread ends
        self.broken: str | None = None  # why writes are refused

    def check_usable(self) -> None:
        """Raises StoreClosed, StoreOutgrown, CommitFailed."""
        if self.closed:
            raise StoreClosed
        self.catalog.check()
        if self.broken is not None:
            raise commit_failed(self.broken)

    @property
    def full(self) -> bool:
        """Whether the collecting group has no room for another body."""
        return len(self.collecting.members) >= self._bodies_max or self.collecting.bytes >= GROUP_BYTES_MAX

    def wait_for_room(self) -> None:
        """Wait until the collecting group has room for another body. Raises CommitFailed."""
        while self.full and self.broken is None:
            self.release()
            self.idle.wait()
        if self.broken is not None:
            raise commit_failed(self.broken)

    def perform(self, member: Member) -> bool:
        """Run a body. Returns whether its outcome has to wait for the collecting group. Raises a
        `BaseException` of the body that is not an `Exception`, such as `Missing`."""
        state = self.catalog.state
        if state.version < 0:
            raise Missing([])  # any fetch also returns the state
        below = self.committing
        if below is not None and not below.is_fixed:
            below = None  # a later body of that group could still change what this one would read
        txn = GroupTransaction(self.collecting, below, self.cache, state, self.contention.keys)
        return run_into(
            self.collecting,
            txn,
            member,
            store_is_busy=self.waiting.store_is_busy,
            cautious=self.contention.is_general,
        )

    def release(self) -> None:
        """Let the commit thread take the collecting group when it is its turn."""
        if self.collecting.members:
            self._released = True
            self.work.notify()

    def is_plain(self) -> bool:
        """Whether it is the turn of the collecting group."""
        return (
            bool(self.collecting.members)
            and self.committing is None
            and self.waiting.pause_seconds() > 0
            and self.broken is None
        )

    def begin(self, group: Group, *, by_loop: bool = False) -> None:
        """Give a group its turn. `by_loop`: the event loop waits for the answer, not the commit thread."""
        self.committing = group
        group.by_loop = by_loop
        group.sent_at = monotonic()
        self._held_last = group.state is State.HELD
        if group is self.collecting:
            group.state = State.SENT
            self._collect_anew()

    def begin_next(self) -> Group:
        """Give the next group its turn: on the commit thread, which has something to do."""
        if not self.waiting.pause_seconds() and not (self._held_last and self._released):
            self.contention.age()
            group = Group(self._next_version(), *self.waiting.take())
        else:
            group = self.collecting
        self.begin(group)
        return group

    def _collect_anew(self) -> None:
        self.collecting = Group(self._next_version())
        self._released = False

    def hand_over(self) -> None:
        """Let the commit thread wait for the answer instead of the event loop."""
        if self.committing is not None and self.committing.by_loop:
            self.committing.by_loop = False
            self.work.notify()

    def has_work(self) -> bool:
        """Whether the commit thread has something to do: a group, or a connection to make."""
        if self.committing is not None:
            return not self.committing.by_loop
        return self._released or not self.waiting.pause_seconds() or self.broken is not None

    def wait_for_work(self) -> None:
        """Wait until the commit thread has something to do, or is to end."""
        while not self.ended and not self.has_work():
            self.work.wait(min(LOOP_SECONDS_MAX, self.waiting.pause_seconds()))
            group = self.committing
            if group is not None and monotonic() - group.sent_at >= LOOP_SECONDS_MAX:
                self.hand_over()  # the event loop may no longer be running

    def end(self, *, release: bool) -> None:
        """End a turn. `release` the next group, if there is one."""
        self.committing = None
        self.idle.notify_all()
        # If a thread waits for the next group, it is released at once.
        if release or self.full or any(member.done is None for member in self.collecting.members):
            self.release()
        if self.has_work():  # a needless wake-up of a thread takes the GIL from the loop
            self.work.notify()

    def give_up(self) -> list[Member]:
        """End a turn in which nothing was committed. Returns the bodies that ran over the group."""
        over = self.collecting.members
        self._collect_anew()
        self.end(release=False)
        return over

    def take_all(self) -> list[Member]:
        """All bodies that have not been sent, in a turn or after it."""
        taken = [*self.give_up(), *self.queued, *self.waiting.take_all()]
        self.queued.clear()
        return taken

    def commit_seconds(self) -> float:
        """How long the group whose turn it is has had it; called without the lock."""
        group = self.committing
        return monotonic() - group.sent_at if group is not None else 0.0

    def know(self, group: Group) -> None:
        """A group was committed: everybody reads its records from now on."""
        self.cache.add(group.records, group.version)
        if group.changes_catalog:
            self.catalog.forget()

    def forget(self, group: Group) -> None:
        """Forget what a group may have changed."""
        self.cache.forget(group.records)
        if group.changes_catalog:
            self.catalog.forget()
