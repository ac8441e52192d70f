"""How long requests took: counts in buckets that are 2 % wide, so that any number needs little memory."""

from __future__ import annotations

import math
from typing import Final

_LOG_WIDTH: Final = math.log(1.02)
_LEAST_SECONDS: Final = 1e-6


class Latencies:
    """The latencies of some requests, in seconds; `percentile` is right to 2 %."""

    __slots__ = ("_buckets", "count", "longest", "seconds")

    def __init__(self) -> None:
        self._buckets: dict[int, int] = {}
        self.count = 0
        self.seconds = 0.0
        self.longest = 0.0

    def add(self, seconds: float) -> None:
        """Count a request."""
        bucket = int(math.log(max(seconds, _LEAST_SECONDS) / _LEAST_SECONDS) / _LOG_WIDTH)
        self._buckets[bucket] = self._buckets.get(bucket, 0) + 1
        self.count += 1
        self.seconds += seconds
        self.longest = max(self.longest, seconds)

    def percentile(self, percent: float) -> float:
        """The seconds within which this percentage of the requests ended; 0 without requests."""
        wanted = math.ceil(self.count * percent / 100)
        seen = 0
        for bucket, count in sorted(self._buckets.items()):
            seen += count
            if seen >= wanted:
                return min(_LEAST_SECONDS * math.exp((bucket + 0.5) * _LOG_WIDTH), self.longest)
        return 0.0
