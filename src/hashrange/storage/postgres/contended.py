"""Bodies that wait for locks: those that read what other engines change all the time.

A record that another engine changed under two groups within CONTENDED_SECONDS is contended for as long. A
body that reads it does not run over what is known, which will be out of date again: it waits, with the
addresses of all that it reads. The commit thread then locks the records of all bodies that wait, in the order
of their addresses, fetches them, runs the bodies, and commits. A body that reads more than it has locked
waits again. So one hot record neither starves nor slows the other bodies.
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
    """The contended records of an engine, and when each of them is not any more; and those that were lost
    once."""

    __slots__ = ("_lost", "keys")

    def __init__(self) -> None:
        self.keys: dict[Key, float] = {}
        self._lost: dict[Key, float] = {}

    def add(self, keys: Iterable[Key]) -> None:
        """Another engine has changed these."""
        now = monotonic()
        for key in keys:
            if self._lost.get(key, 0.0) > now or key in self.keys:
                self.keys[key] = now + CONTENDED_SECONDS
            else:
                self._lost[key] = now + CONTENDED_SECONDS

    def age(self) -> None:
        """Let go of what nobody has changed for a while."""
        now = monotonic()
        for ends in (self.keys, self._lost):
            for key in [key for key, end in ends.items() if end <= now]:
                del ends[key]


class LockedRecords:
    """What bodies run over under locks: the records that were locked, then the cache, to find out what else
    they have to lock."""

    __slots__ = ("_cache", "locked")

    def __init__(self, locked: dict[Key, Known], cache: Cache) -> None:
        self.locked = locked
        self._cache = cache

    def get(self, key: Key) -> Known | None:
        known = self.locked.get(key)
        return known if known is not None else self._cache.get(key)


def covered_by(locked: Mapping[Key, Known], waiting: Sequence[Member]) -> tuple[list[Member], list[Member]]:
    """Those of the bodies that wait for no other locks than these, and the others.

    Another engine may have kept the locks for as long as its commit took, and many bodies have come since.
    """
    covered: list[Member] = []
    others: list[Member] = []
    for member in waiting:
        (covered if member.locks.keys() <= locked.keys() else others).append(member)
    return covered, others


class Locked(Enum):
    """What became of a body that ran under locks: it ended; it waits for more locks; it runs otherwise."""

    ENDED = 1
    WAITS = 2
    OTHERWISE = 3


def run_locked(group: Group, txn: GroupTransaction, member: Member, limited: bool) -> Locked:
    """Run a body over records that are locked. `limited`: an event loop would run it, so for a turn only."""
    turn = pace.turn()
    turn.begin(pace.TURN_SECONDS if limited else pace.WITHOUT_END)
    try:
        run_into(group, txn, member)
    except (Contended, Missing) as more:
        if not any(key[0] == CATALOG_SPACE for key in more.keys):
            member.locks.update(dict.fromkeys(more.keys))
            return Locked.WAITS
        member.missing = more.keys  # no lock brings the catalog
        return Locked.OTHERWISE
    except NeedsAlone:
        member.losses = LOSSES_MAX + 1
        return Locked.OTHERWISE
    except BaseException as error:  # it belongs to this body; the others go on
        member.stopped = error
        return Locked.OTHERWISE
    finally:
        turn.end()
    return Locked.ENDED
