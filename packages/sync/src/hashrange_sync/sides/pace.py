"""How many capacity units a second a side may be asked for: what the settings say, and less while the service
throttles."""

from __future__ import annotations

import threading
from typing import Final

from hashrange.clock import Clock

_LEAST: Final = 1.0
_GROWTH_SECONDS: Final = 10.0
_UNKNOWN: Final = 2_000.0
"""What is tried first where the settings have no limit and a request was throttled."""
_PLENTY: Final = 100_000.0
"""Such a limit is lifted above so many units a second."""


class Pace:
    """A bucket of units. `most` is the limit in units a second, 0 for none.

    Each throttled request halves the limit, down to one unit a second; without more of them it doubles each
    ten seconds. What was used is only known afterwards, so the bucket may go below nothing.
    """

    def __init__(self, most: float, clock: Clock) -> None:
        self._most = most
        self._clock = clock
        self._limit = most
        self._units = most
        self._at = clock.now()
        self._lock = threading.Lock()
        self.throttled = 0
        self.used = 0.0

    @property
    def limit(self) -> float:
        """The units a second at the moment, 0 for no limit."""
        return self._limit

    def wait_seconds(self) -> float:
        """How long the next request has to wait."""
        with self._lock:
            self._fill()
            return -self._units / self._limit if self._limit and self._units < 0 else 0.0

    def spent(self, units: float) -> None:
        """A request has used so many units."""
        with self._lock:
            self._fill()
            self.used += units
            self._units -= units

    def refused(self) -> None:
        """A request was throttled."""
        with self._lock:
            self.throttled += 1
            self._limit = max(_LEAST, (self._limit or _UNKNOWN) / 2)
            self._units = min(self._units, 0.0)

    def _fill(self) -> None:
        now = self._clock.now()
        seconds, self._at = max(0.0, now - self._at), now
        if self._limit == self._most:
            self._units = min(self._most, self._units + self._limit * seconds)
            return
        self._units = min(self._limit, self._units + self._limit * seconds)
        self._limit *= 2.0 ** (seconds / _GROWTH_SECONDS)
        if self._most and self._limit >= self._most:
            self._limit = self._most
        elif not self._most and self._limit > _PLENTY:
            self._limit, self._units = 0.0, 0.0
