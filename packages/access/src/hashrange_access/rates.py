"""Limits how many requests a key makes: `Limiter.take`, before any work is done for a request.

A key has room for a burst, which fills again at its rate. It is the generic cell rate algorithm: of each key
one number is kept, the time at which its room will be full again.

The limit of a user in the users file holds for all keys of the user together, and comes before the limit of
the server, which holds for each key. Without verified signatures a key is what the request claims.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Final

from hashrange.errors import ThrottlingException
from hashrange.operations.context import Caller

KEYS_MAX: Final = 10_000
"""The most keys that are remembered; those whose room is full again need no memory."""

_ROUNDING_SECONDS: Final = 1e-9
_EXCEEDED: Final = "Rate exceeded"  # [report] issues of many users of AWS's SDKs


class Limiter:
    """The limits of a server. Thread-safe.

    `per_second` is the rate of each key, None for no limit; `burst` is how many requests a key may make at
    once, by default those of a second. `now` is a monotonic clock in seconds.
    """

    def __init__(self, per_second: float | None, burst: float | None, now: Callable[[], float]) -> None:
        self._per_second = per_second
        self._burst = burst
        self._now = now
        self._full_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def take(self, caller: Caller) -> None:
        """Count a request. Raises ThrottlingException if its caller has made too many."""
        name, per_second = caller.access_key, self._per_second
        identified = caller.identified
        if identified is not None and identified.refuses:
            identity = identified.identity
            if identity.requests_per_second is not None:
                name, per_second = identity.principal.arn, identity.requests_per_second
        if per_second is None:
            return
        burst = max(1.0, per_second if self._burst is None else self._burst)
        seconds = 1.0 / per_second
        with self._lock:
            now = self._now()
            full_at = max(self._full_at.get(name, now), now) + seconds
            if full_at - now > burst * seconds + _ROUNDING_SECONDS:
                raise ThrottlingException(_EXCEEDED)
            if len(self._full_at) >= KEYS_MAX and name not in self._full_at:
                self._forget(now)
            self._full_at[name] = full_at

    def _forget(self, now: float) -> None:
        """Make room: forget keys whose room is full, or all if there is none."""
        kept = {name: full_at for name, full_at in self._full_at.items() if full_at > now}
        self._full_at = kept if len(kept) < KEYS_MAX else {}
