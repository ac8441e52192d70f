"""Token buckets on the database's clock.

A request is admitted while the bucket is not empty, and is charged with what it really cost. So the last
request that is admitted may leave a debt, which has to be made good before the next one.
"""

from __future__ import annotations

from typing import Final

_LEAST: Final = 1e-6
"""Less than any cost: what rounding leaves of a bucket that is empty."""


class Bucket:
    """Units that come at `rate` a second, of which those of `seconds` can be saved. `now`: epoch seconds."""

    __slots__ = ("_at", "_most", "rate", "units")

    def __init__(self, rate: float, seconds: float, now: float, units: float) -> None:
        self.rate = rate
        self.units = units
        self._most = rate * seconds
        self._at = now

    def fill(self, now: float) -> None:
        """Add the units that came since the last call. If the clock was set back, none came."""
        elapsed = now - self._at
        if elapsed:
            self._at = now
            if elapsed > 0:
                self.units = min(self._most, self.units + elapsed * self.rate)

    def change(self, rate: float, seconds: float, now: float) -> None:
        """Set a new rate from now on. What a higher rate adds to this second can be used at once."""
        self.fill(now)
        self.units = min(rate * seconds, self.units + max(0.0, rate - self.rate))
        self.rate = rate
        self._most = rate * seconds

    @property
    def is_empty(self) -> bool:
        """Whether requests have to wait, after `fill`."""
        return self.units < _LEAST
