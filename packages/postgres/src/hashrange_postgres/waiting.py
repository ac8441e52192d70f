"""The bodies that wait for the lock of the store, because they read more than records. Each has a commit of
its own.

Refuses to know: threads, connections.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable
from time import monotonic
from typing import Final

from hashrange_postgres.members import Member

STORE_MS_MIN: Final = 100
STORE_MS_MAX: Final = 1_600


class Waiting:
    """The waiting bodies, in order.

An engine that waits for the store's lock keeps the commits of all engines waiting. So it gives up soon, and
    tries again after as long a pause; each try waits twice as long as the one before.
    """

    __slots__ = ("_bodies", "_from", "_tries")

    def __init__(self) -> None:
        self._bodies: deque[Member] = deque()
        self._tries = 0  # to get the store's lock, since that was last possible
        self._from = 0.0  # the time of the next try

    def add(self, members: Iterable[Member]) -> None:
        self._bodies.extend(members)

    def try_later(self) -> None:
        """The store's lock could not be had."""
        self._from = monotonic() + self.wait_ms() / 1000
        self._tries += 1

    def got_lock(self) -> None:
        """The store's lock could be had."""
        self._tries = 0

    def wait_ms(self) -> int:
        """How long the next try waits for the lock."""
        return min(STORE_MS_MIN << self._tries, STORE_MS_MAX)

    def pause_seconds(self) -> float:
        """How long until it is a body's turn: 0 if it is now, infinity if no body waits."""
        if not self._bodies:
            return math.inf
        return max(self._from - monotonic(), 0.0) if self._tries else 0.0

    def take(self) -> Member:
        """The body whose turn it is."""
        return self._bodies.popleft()

    def take_all(self) -> list[Member]:
        taken = list(self._bodies)
        self._bodies.clear()
        return taken
