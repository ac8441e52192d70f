"""The only source of time, and the text forms of moments and durations.

Code that depends on time takes a `Clock`, so that a test (or an operator) can set and advance the time. No
other module of the package calls `time.time` or `datetime.now`.

A clock only tells the time. `Database.sweep` does the work that is due. After changing a clock, call
`Database.settle` to do all of this work at once.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple, Protocol

__all__ = ["Clock", "ManualClock", "SystemClock", "VirtualClock"]

MOMENT_MIN: Final = 0.0
MOMENT_MAX: Final = 253_402_300_799.0  # the end of the year 9999
_MILLIS: Final = 1_000

REAL_CLOCKS: Final = {"machine": "the machine's clock", "postgresql": "PostgreSQL's clock"}
"""The time sources that the admin plane reports, except "virtual", with their descriptions for people."""

BEHIND_SECONDS_MAX: Final = 60.0
"""A request or a sweep reads the clock once, when it begins, so its time may be this far behind the clock,
and stored times may be later than its own. Only a stored time that is further ahead than this shows that the
clock was set back."""


class Clock(Protocol):
    """Tells the time. Implementations: `SystemClock`, `StoreClock`, `ManualClock`, `VirtualClock`."""

    def now(self) -> float:
        """Seconds since the Unix epoch, with fraction."""
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    def now(self) -> float:
        return time.time()


_ROUNDING_SECONDS: Final = 5e-7
"""Epoch seconds of this century are exact to a quarter of a microsecond."""


class StoreClock:
    """The clock of the program that stores the records, so that all servers of a store agree on the time,
    whatever their machines' clocks show.

    `ask` asks that program for its time. Between two calls of `measure` this clock follows the machine's
    steady clock, which nobody sets.
    """

    __slots__ = ("_ahead", "_ask", "_measured", "_steady")

    def __init__(self, ask: Callable[[], float], steady: Callable[[], float] = time.monotonic) -> None:
        """Raises what `ask` raises."""
        self._ask = ask
        self._steady = steady
        self._ahead = self._measured = -math.inf
        self.measure()

    def now(self) -> float:
        return self._steady() + self._ahead

    def measure(self, pause_seconds: float = 0.0) -> None:
        """Compare this clock with the store's, unless this was done in the last `pause_seconds`. Raises what
        `ask` raises; the clock then continues unchanged."""
        before = self._steady()
        if before - self._measured < pause_seconds:
            return
        store_time = self._ask()
        after = self._steady()
        self._measured = after
        # The store read its clock at some moment in between. If this clock agrees with such a moment, it is
        # not changed, so that it does not go back and forth. (Sums of such times are rounded.)
        low, high = store_time - after - _ROUNDING_SECONDS, store_time - before + _ROUNDING_SECONDS
        if not low <= self._ahead <= high:
            self._ahead = store_time - (before + after) / 2


def is_real(clock: Clock) -> bool:
    """Whether a clock leaps only by mistake: nobody sets it to let time pass."""
    return isinstance(clock, (SystemClock, StoreClock))


class ManualClock:
    """A clock that stands still until it is set."""

    __slots__ = ("_now",)

    def __init__(self, now: float = 1_700_000_000.0) -> None:
        self._now = now

    def now(self) -> float:
        return self._now

    def set(self, now: float) -> None:
        """Set the time to `now`, in seconds since the epoch."""
        self._now = now

    def advance(self, seconds: float) -> None:
        """Advance the time by `seconds`."""
        self._now += seconds


class FastClock:
    """A clock that runs `rate` times as fast as `real`, from the time that `real` shows now on."""

    __slots__ = ("_began", "_rate", "_real")

    def __init__(self, real: Clock, rate: float) -> None:
        self._real = real
        self._rate = rate
        self._began = real.now()

    def now(self) -> float:
        return self._began + (self._real.now() - self._began) * self._rate


class _Course(NamedTuple):
    """How a virtual clock runs: it is `offset` ahead of the real clock, or stands still at `frozen`."""

    offset: float
    frozen: float | None


class VirtualClock:
    """A clock that runs like the real clock, and can be frozen, set, advanced and resumed.

    Any thread may read it. Its course is one value and is replaced as a whole, so no thread reads half a
    change. Only one thread at a time may change it (the admin plane does so on its event loop).
    """

    __slots__ = ("_course", "_real")

    def __init__(
        self,
        start: float | None = None,
        *,
        frozen: bool = False,
        real: Clock = SystemClock(),  # noqa: B008 (stateless)
    ) -> None:
        self._real = real
        self._course = _Course(0.0, None)
        self.change(start, frozen=frozen)

    def now(self) -> float:
        offset, frozen = self._course
        return self._real.now() + offset if frozen is None else frozen

    @property
    def frozen(self) -> bool:
        """Whether the clock stands still."""
        return self._course.frozen is not None

    @property
    def offset(self) -> float:
        """How many seconds the clock is ahead of the real one."""
        return self.now() - self._real.now()

    def freeze(self) -> None:
        """Stop the clock."""
        self.change(frozen=True)

    def resume(self) -> None:
        """Make the clock run from the time that it shows."""
        self.change(frozen=False)

    def set(self, now: float) -> None:
        """Set the time to `now`, in seconds since the epoch. Raises ValueError outside 1970 to 9999.

        The clock may go back; work that was done is not undone by this.
        """
        self.change(now)

    def advance(self, seconds: float) -> None:
        """Advance the time by `seconds`. Raises ValueError for less than 0, and past the year 9999."""
        self.change(advance=seconds)

    def change(
        self, now: float | None = None, *, advance: float = 0.0, frozen: bool | None = None
    ) -> None:
        """Set the clock, then advance it, then freeze (True) or resume (False) it, in one step."""
        if not advance >= 0.0:
            raise ValueError("a clock is advanced by 0 seconds or more; set it to go back")
        target = (self.now() if now is None else now) + advance
        if not MOMENT_MIN <= target <= MOMENT_MAX:
            raise ValueError("a clock shows a time from the year 1970 to the year 9999")
        if self.frozen if frozen is None else frozen:
            self._course = _Course(0.0, target)
        elif now is not None or self.frozen:
            self._course = _Course(target - self._real.now(), None)
        else:
            # Change the offset, not the time: setting the time would lose the time between reading and
            # setting the clock, and many calls would add up these losses.
            self._course = _Course(self._course.offset + advance, None)


def has_come(moment: float, now: float, ahead_seconds_max: float) -> bool:
    """Whether a stored moment has come. When it was stored, it was at most `ahead_seconds_max` in the future.

    If it is further in the future now, the clock has been set back. Waiting for the moment would then take
    longer than it ever should, so it counts as come.
    """
    return not now < moment <= now + ahead_seconds_max


_DURATION: Final = re.compile(r"(?:(\d+)w)?(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+(?:\.\d+)?)s)?")
_UNITS_SECONDS: Final = (7 * 86_400, 86_400, 3_600, 60, 1)


def parse_duration(text: str) -> float:
    """The seconds of a text such as ``90``, ``1.5``, ``45s``, ``15m``, ``24h``, ``7d``, ``1w`` or ``1d12h``.

    Raises ValueError.
    """
    text = text.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII):
        return float(text)
    match = _DURATION.fullmatch(text)
    if not text or match is None:
        raise ValueError(f"{text!r} is not a duration, as 90, 15m, 24h, 7d and 1d12h are")
    return sum(float(n) * unit for n, unit in zip(match.groups(), _UNITS_SECONDS, strict=True) if n)


def parse_moment(text: str, now: float | None = None) -> float:
    """The epoch seconds of an ISO 8601 date or time (UTC if it names no zone), or of a number of epoch
    seconds.

    With `now`, in epoch seconds, also of ``now``, and of a duration before it: ``10m``, ``1d12h``.
    Raises ValueError.
    """
    text = text.strip()
    if now is not None:
        if text == "now":
            return now
        if text and _DURATION.fullmatch(text):
            return now - parse_duration(text)
    try:
        if re.fullmatch(r"\d+(\.\d+)?", text, re.ASCII) and len(text) != len("20260131"):
            return float(text)
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        relative = ", 10m (ago) and now" if now is not None else ""
        forms = f"2026-01-31T12:00:00Z{',' if relative else ' and'} 1769860800{relative}"
        raise ValueError(f"{text!r} is not a time, as {forms} are") from None


def show_moment(moment: float) -> str:
    """A moment as ISO 8601 in UTC with milliseconds: ``2026-01-31T12:00:00.000Z``."""
    whole, millis = divmod(round(moment * _MILLIS), _MILLIS)
    return f"{datetime.fromtimestamp(whole, UTC):%Y-%m-%dT%H:%M:%S}.{millis:03}Z"
