"""When a deferred commit of the embedded engine begins.

A commit costs nearly the same for few bodies as for many. While each round of the submitting loop brings
more of them, a commit that was deferred to the next round waits for one more, a bounded number of times.
"""

from __future__ import annotations

from typing import Final

BODIES_MAX: Final = 64
ROUNDS_MAX: Final = 8


class Gathering:
    """Counts the rounds of one batch."""

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
