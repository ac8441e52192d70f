"""Bodies that wait for locks because they read records that other engines change all the time.

A record that another engine changed under two groups within CONTENDED_SECONDS counts as contended for another
CONTENDED_SECONDS. A body that reads it does not run over known records, which would be out of date again: it
waits, with the addresses of everything it reads. The commit thread then locks the records of all waiting
bodies, in the order of their addresses, fetches them, runs the bodies, and commits. A body that reads more
than it has locked waits again. So one hot record neither starves nor slows down the other bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum
from time import monotonic
from typing import Final

from hashrange import pace
from hashrange.storage.postgres.bodies import Contended, GroupTransaction, Missing, NeedsAlone
from hashrange.storage.postgres.cache import CATALOG_SPACE, Cache, Key, Known
from hashrange.storage.postgres.groups import Group
from hashrange.storage.postgres.members import LOSSES_MAX, Member, run_into

CONTENDED_SECONDS: Final = 2.0


class Contention:
    """The contended records of an engine, each with the time when that ends; and the records that were lost
    once."""

    __slots__ = ("_lost", "keys")

    def __init__(self) -> None:
        self.keys: dict[Key, float] = {}
        self._lost: dict[Key, float] = {}

    def add(self, keys: Iterable[Key]) -> None:
        """Note that another engine has changed these records."""
        now = monotonic()
        for key in keys:
            if self._lost.get(key, 0.0) > now or key in self.keys:
                self.keys[key] = now + CONTENDED_SECONDS
            else:
                self._lost[key] = now + CONTENDED_SECONDS

    def age(self) -> None:
        """Forget records that no other engine has changed for a while."""
        now = monotonic()
        for ends in (self.keys, self._lost):
            for key in [key for key, end in ends.items() if end <= now]:
                del ends[key]


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


def covered_by(locked: Mapping[Key, Known], waiting: Sequence[Member]) -> tuple[list[Member], list[Member]]:
    """The waiting bodies that need only these locks, and the others.

    Another engine may have held the locks during its commit, and many bodies may have arrived since.
    """
    covered: list[Member] = []
    others: list[Member] = []
    for member in waiting:
        (covered if member.locks.keys() <= locked.keys() else others).append(member)
    return covered, others


class Locked(Enum):
    """The result of a run under locks: the body ended, waits for more locks, or has to run in another way."""

    ENDED = 1
    WAITS = 2
    OTHERWISE = 3


def run_locked(group: Group, txn: GroupTransaction, member: Member, limited: bool) -> Locked:
    """Run a body over locked records. `limited`: for one turn only, as an event loop would."""
    turn = pace.turn()
    turn.begin(pace.TURN_SECONDS if limited else pace.WITHOUT_END)
    try:
        run_into(group, txn, member)
    except (Contended, Missing) as more:
        if not any(key[0] == CATALOG_SPACE for key in more.keys):
            member.locks.update(dict.fromkeys(more.keys))
            return Locked.WAITS
        member.missing = more.keys  # taking locks does not fetch the catalog
        return Locked.OTHERWISE
    except NeedsAlone:
        member.losses = LOSSES_MAX + 1
        return Locked.OTHERWISE
    except BaseException as error:  # it concerns only this body; the others still run
        member.stopped = error
        return Locked.OTHERWISE
    finally:
        turn.end()
    return Locked.ENDED
