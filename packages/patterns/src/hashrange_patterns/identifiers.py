"""Identifiers that sort by time: unique everywhere, and greater than all that were made here before.

The text of a UUIDv7 (RFC 9562): 48 bits of milliseconds, a counter of 42 bits, 32 random bits. As text it
sorts as its bits do.

- Bursts: within a millisecond the counter goes up from its start, a random number in its lower half.
- A clock that steps back: the milliseconds of the last identifier stay, and the counter goes up.
- Processes: 32 random bits and the counter's random start keep their identifiers distinct. The order of the
  identifiers of two processes is as exact as their clocks. If a process knows an identifier of another
  process, `next(after=...)` is always above it.

packages/patterns/docs/feeds.md compares this with ticks, nanoseconds, KSUID and ULID.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable
from typing import Final
from uuid import UUID

_COUNTER_BITS: Final = 42
_COUNTER_END: Final = 1 << _COUNTER_BITS
_RANDOM_BITS: Final = 32
_MILLIS: Final = 1_000
_FORM: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")

FIRST: Final = "00000000-0000-7000-8000-000000000000"
"""Not above any identifier."""
LAST: Final = "ffffffff-ffff-7fff-bfff-ffffffffffff"
"""Not below any identifier."""


class Identifiers:
    """Makes identifiers, each above the previous one; threads may share it.

    `now` returns seconds since the epoch, `bits` a random number with the given number of bits.
    """

    def __init__(
        self, now: Callable[[], float] = time.time, bits: Callable[[int], int] = secrets.randbits
    ) -> None:
        self._now = now
        self._bits = bits
        self._lock = threading.Lock()
        self._last = (-1, 0)

    def next(self, *, after: str = FIRST) -> str:
        """A new identifier, above `after` and above all that this object gave without `after`."""
        with self._lock:
            now_millis = int(self._now() * _MILLIS)
            if now_millis > self._last[0]:
                self._last = (now_millis, self._bits(_COUNTER_BITS - 1))
            else:
                self._last = _successor(*self._last)
            # (not stored: otherwise a clock that is far ahead would spread to every process that saw its
            # identifiers)
            millis, counter = max(self._last, _successor(*parts(after)))
        return compose(millis, counter, self._bits(_RANDOM_BITS))


def _successor(millis: int, counter: int) -> tuple[int, int]:
    return (millis, counter + 1) if counter + 1 < _COUNTER_END else (millis + 1, 0)


def compose(millis: int, counter: int, random: int) -> str:
    """The identifier of these parts."""
    high, low = counter >> 30, counter & ((1 << 30) - 1)
    bits = millis << 80 | 7 << 76 | high << 64 | 2 << 62 | low << 32 | random
    return str(UUID(int=bits))


def parts(identifier: str) -> tuple[int, int]:
    """The milliseconds since the epoch and the counter. Raises ValueError for a text that is not such an
    identifier."""
    if not _FORM.fullmatch(identifier):
        raise ValueError(f"{identifier!r} is not a UUIDv7 in small letters")
    bits = UUID(identifier).int
    return bits >> 80, (bits >> 64 & 0xFFF) << 30 | bits >> 32 & ((1 << 30) - 1)


def just_below(identifier: str) -> str:
    """A text below `identifier`, and above all identifiers that are below it."""
    millis, counter = parts(identifier)
    random = int(identifier[-8:], 16)
    if random:
        return compose(millis, counter, random - 1)
    if counter:
        return compose(millis, counter - 1, (1 << _RANDOM_BITS) - 1)
    return compose(millis - 1, _COUNTER_END - 1, (1 << _RANDOM_BITS) - 1) if millis else FIRST
