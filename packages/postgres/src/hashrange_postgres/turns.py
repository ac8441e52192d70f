"""Whose turn it is to commit, and what bodies run over until then: what the only lock of an engine guards.

One group at a time has its turn. Meanwhile the next one collects, other bodies wait for the store's lock, and
submitted bodies for which the collecting group has no room wait in a queue.

Refuses to know: threads, connections.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Condition, Lock
from time import monotonic
from typing import Final

from hashrange.storage.failures import StoreClosed
from hashrange.storage.loops import Loop, Queue
from hashrange_postgres.bodies import GroupTransaction, Missing
from hashrange_postgres.cache import Cache, Catalog, Key
from hashrange_postgres.groups import Group, State
from hashrange_postgres.members import Member, commit_failed
from hashrange_postgres.running import run_into
from hashrange_postgres.waiting import Waiting
from hashrange_postgres.wire.loop_connections import LOOP_SECONDS_MAX

GROUP_BYTES_MAX: Final = 4 * 1024 * 1024
LOCK_FIRST_SHARE: Final = 1 / 8
"""If the bodies of more groups than this share run again, because other engines have changed what they read,
groups lock their records first. That takes another round trip, and so costs more than a few groups that are
overtaken."""
ALWAYS, NEVER = -1.0, 1.0
"""What tests put in the place of this share."""
_GROUPS: Final = 16
"""The share is one of about as many groups."""


class Turns:
    """The methods need `lock`, unless they say otherwise. `work` is notified when the commit thread has
    something to do, `idle` when a turn has ended. `next_version` gives the version of a new group;
    `run_queued` is called when there is room for a queued body."""

    def __init__(
        self,
        catalog: Catalog,
        loop: Loop,
        *,
        bodies_max: int,
        cache_bytes: int,
        next_version: Callable[[], int],
        run_queued: Callable[[Member], Callable[[], None] | None],
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
        self.queue: Queue[Member] = Queue(loop, self.lock, self.is_full, run_queued)
        self.waiting = Waiting()
        self.lock_first_share = LOCK_FIRST_SHARE
        self._changed_share = 0.0
        self._released = False  # the commit thread may take the collecting group
        self._store_last = False  # the last group had the store's lock: a collected one comes next
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

    def is_full(self) -> bool:
        """Whether the collecting group has no room for another body."""
        return len(self.collecting.members) >= self._bodies_max or self.collecting.bytes >= GROUP_BYTES_MAX

    def wait_for_room(self) -> None:
        """Wait until the collecting group has room for another body. Raises CommitFailed."""
        while self.is_full() and self.broken is None:
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
        txn = GroupTransaction(self.collecting, below, self.cache, state)
        return run_into(self.collecting, txn, member)

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
        self._store_last = group.under_store
        if group is self.collecting:
            # Its bodies cannot have run at one moment (-1).
            group.state = State.LOCKING if self.locks_first or group.catalog == -1 else State.SENT
            self._collect_anew()

    def begin_next(self) -> Group:
        """Give the next group its turn: on the commit thread, which has something to do."""
        group = self.collecting
        if not self.waiting.pause_seconds() and not (self._store_last and self._released):
            group = Group(self._next_version(), self.waiting.take(), self.waiting.wait_ms())
        self.begin(group)
        return group

    @property
    def locks_first(self) -> bool:
        """Whether groups lock their records before they write, because other engines change the same ones."""
        return self._changed_share > self.lock_first_share

    def note(self, *, changed: bool) -> None:
        """Note that another engine has changed what a group has read, or that a group was committed."""
        self._changed_share += (changed - self._changed_share) / _GROUPS

    def take_covered(self, locked: Mapping[Key, int]) -> list[Member]:
        """The collected bodies, if they need no other records than these."""
        group = self.collecting
        if not group.reads.keys() | group.records.keys() <= locked.keys():
            return []
        self._collect_anew()
        return group.members

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
        if release or self.is_full() or any(member.done is None for member in self.collecting.members):
            self.release()
        if self.has_work():  # a needless wake-up of a thread takes the GIL from the loop
            self.work.notify()

    def take_all(self) -> list[Member]:
        """All bodies that have not been sent, in a turn or after it."""
        taken = [*self.collecting.members, *self.queue.bodies, *self.waiting.take_all()]
        self.queue.bodies.clear()
        self._collect_anew()
        self.end(release=False)
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
