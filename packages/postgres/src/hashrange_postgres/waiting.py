"""Bodies that wait for locks, and why bodies have to wait for locks at all.

A record that another engine changed under two groups within CONTENDED_SECONDS counts as contended for another
CONTENDED_SECONDS. A body that reads it does not run over known records, which would be out of date again: it
waits, with the addresses of everything it reads. When their turn comes, the records of all waiting bodies are
locked, in the order of their addresses, and fetched; the bodies run, and commit. A body that reads more than
was locked waits again. So one hot record neither starves nor slows down the other bodies. If more than
LOST_SHARE_MAX of the groups fail, all bodies that only update records wait for the locks of these records.

A body that reads more than records waits for the lock of the store. It has a commit of its own.

Refuses to know: threads, connections.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from time import monotonic
from typing import Final

from hashrange_postgres.cache import Cache, Key, Known
from hashrange_postgres.groups import STORE_MS_MIN, Locks
from hashrange_postgres.members import Member

CONTENDED_SECONDS: Final = 2.0
LOST_SHARE_MAX: Final = 0.25
"""If other engines make more groups than this share fail, bodies wait for locks for a while. That takes a
round trip more, and so costs more than some lost groups: two engines that change 100,000 records lose up to a
quarter, and are faster so."""
_LOSSES_MIN: Final = 8
_OUTCOMES_MAX: Final = 64
"""How many outcomes of groups count, about: then older ones count half."""
STORE_MS_MAX: Final = 1_600


class Contention:
    """The contended records of an engine, each with the time when that ends; and the records that were lost
    once. Where several engines change the same few hundred records, hardly any record is lost twice, but one
    lost record fails a whole group: then `is_general`."""

    __slots__ = ("_all_until", "_losses", "_outcomes", "keys", "lost")

    def __init__(self) -> None:
        self.keys: dict[Key, float] = {}
        self.lost: dict[Key, float] = {}
        self._outcomes = self._losses = 0
        self._all_until = 0.0

    @property
    def is_general(self) -> bool:
        """Whether all records count as contended."""
        return self._all_until > 0.0

    def note(self, *, lost: bool) -> None:
        """Note the outcome of a group that had no locks: other engines have changed a record that it read,
        or it was committed."""
        self._outcomes += 1
        if lost:
            self._losses += 1
            if self._losses >= _LOSSES_MIN and self._losses > LOST_SHARE_MAX * self._outcomes:
                self._all_until = monotonic() + CONTENDED_SECONDS
                self._outcomes, self._losses = 0, _LOSSES_MIN // 2  # it will soon be so again
        if self._outcomes >= _OUTCOMES_MAX:
            self._outcomes //= 2
            self._losses //= 2

    def add(self, keys: Iterable[Key]) -> None:
        """Note that another engine has changed these records."""
        now = monotonic()
        for key in keys:
            if self.lost.get(key, 0.0) > now or key in self.keys:
                self.keys[key] = now + CONTENDED_SECONDS
            else:
                self.lost[key] = now + CONTENDED_SECONDS

    def age(self) -> None:
        """Forget records that no other engine has changed for a while."""
        now = monotonic()
        if self._all_until <= now:
            self._all_until = 0.0
        for ends in (self.keys, self.lost):
            for key in [key for key, end in ends.items() if end <= now]:
                del ends[key]


class Waiting:
    """The bodies that wait for locks, in order.

    Whoever waits for the store's lock keeps the commits of all engines waiting. So it gives up soon, and
    tries again after as long a pause; each try waits twice as long as the one before.
    """

    __slots__ = ("_for_records", "_for_store", "_store_from", "_store_last", "_tries")

    def __init__(self) -> None:
        self._for_records: list[Member] = []
        self._for_store: deque[Member] = deque()
        self._store_last = False  # the last turn was that of a body under the store's lock
        self._tries = 0  # to get the store's lock, since that was last possible
        self._store_from = 0.0  # the time of the next try

    def add(self, members: Iterable[Member]) -> None:
        for member in members:
            (self._for_store if member.store else self._for_records).append(member)

    @property
    def store_is_busy(self) -> bool:
        """Whether the store's lock could not be had when it was last tried."""
        return self._tries > 0

    def try_store_later(self) -> None:
        """The store's lock could not be had."""
        self._store_from = monotonic() + self._wait_ms() / 1000
        self._tries += 1

    def got_store(self) -> None:
        """The store's lock could be had."""
        self._tries = 0

    def _wait_ms(self) -> int:
        return min(STORE_MS_MIN << self._tries, STORE_MS_MAX)

    def pause_seconds(self) -> float:
        """How long until it is a body's turn: 0 if it is now, infinity if no body waits."""
        if self._for_records:
            return 0.0
        if not self._for_store:
            return math.inf
        return self._store_from - monotonic() if self._is_early() else 0.0

    def take(self) -> tuple[Locks, list[Member]]:
        """The bodies whose turn it is, and their locks: one that needs the store's, or all that need those of
        records."""
        if self._for_store and not (self._for_records and (self._store_last or self._is_early())):
            self._store_last = True
            return Locks(store=True, wait_ms=self._wait_ms()), [self._for_store.popleft()]
        self._store_last = False
        taken, self._for_records = self._for_records, []
        return Locks(tuple(sorted({key for member in taken for key in member.keys}))), taken

    def _is_early(self) -> bool:
        """Whether it is too early for the next try to get the store's lock."""
        return self._tries > 0 and monotonic() < self._store_from

    def take_covered(self, locked: Mapping[Key, Known]) -> list[Member]:
        """The waiting bodies that need no other locks than these. Another engine may have held the locks
        during its commit, and many bodies may have arrived since."""
        taken: list[Member] = []
        others: list[Member] = []
        for member in self._for_records:
            (taken if member.keys.keys() <= locked.keys() else others).append(member)
        self._for_records = others
        return taken

    def take_all(self) -> list[Member]:
        taken = [*self._for_records, *self._for_store]
        self._for_records.clear()
        self._for_store.clear()
        return taken


class LockedRecords:
    """The records that bodies see under locks: the locked records, then the cache, which serves to find out
    what else they have to lock."""

    __slots__ = ("_cache", "locked")

    def __init__(self, locked: dict[Key, Known], cache: Cache) -> None:
        self.locked = locked
        self._cache = cache

    def get(self, key: Key) -> Known | None:
        known = self.locked.get(key)
        return known if known is not None else self._cache.get(key)
