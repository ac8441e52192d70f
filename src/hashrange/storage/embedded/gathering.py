"""Decides when a deferred commit of the embedded engine begins.

A commit of many bodies costs hardly more than a commit of a few. So while each round of the event loop
submits more bodies, the commit waits for one more round, up to a fixed number of rounds.
"""

from __future__ import annotations

from typing import Final

BODIES_MAX: Final = 64
ROUNDS_MAX: Final = 8


class Gathering:
    """Counts the rounds of the event loop in which one batch collects."""

    __slots__ = ("_bodies", "_rounds")

    def __init__(self) -> None:
        self._bodies = self._rounds = 0

    def goes_on(self, bodies: int) -> bool:
        """Whether to wait another round, with `bodies` collected so far."""
        if self._bodies < bodies < BODIES_MAX and self._rounds < ROUNDS_MAX:
            self._bodies = bodies
            self._rounds += 1
            return True
        return False

    def reset(self) -> None:
        """Begin to count for the next batch."""
        self._bodies = self._rounds = 0
