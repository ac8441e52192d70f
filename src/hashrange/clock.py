"""The only source of time.

Everything that depends on time takes a `Clock`, so that a test (or an operator) can set and advance it.
Nothing else in the package calls `time.time` or `datetime.now`.
"""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Tells the time. Implementations: `SystemClock`, `ManualClock`."""

    def now(self) -> float:
        """Seconds since the Unix epoch, with fraction."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> float:
        return time.time()


class ManualClock:
    """A clock that stands still until it is told to move."""

    __slots__ = ("_now",)

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def set(self, now: float) -> None:
        """Set the time to `now`, in seconds since the epoch."""
        self._now = now

    def advance(self, seconds: float) -> None:
        """Move the time on by `seconds`."""
        self._now += seconds
