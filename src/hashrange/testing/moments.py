"""Moments and durations as a test writes them, and the clock of a database in this process.

    clock.freeze()                       stands still from now on
    clock.freeze("2026-01-31T12:00:00Z") stands still there
    clock.advance(90), clock.advance("15m"), clock.advance(timedelta(days=1))
    clock.set(moment), clock.resume(), clock.now(), clock.datetime()

A clock that was not set shows the time of this process, so freezegun and time-machine, which change what
`time.time` returns, change it too.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hashrange.clock import VirtualClock, parse_duration, parse_moment

Moment = float | str | datetime
"""Seconds since the epoch, a text in ISO 8601, or a datetime; in UTC if it names no zone."""

Duration = float | str | timedelta
"""Seconds, a text such as ``15m`` or ``1d12h``, or a timedelta."""


def seconds_of(duration: Duration) -> float:
    """A duration in seconds. Raises ValueError for a text that is not a duration."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    return parse_duration(duration) if isinstance(duration, str) else float(duration)


def epoch_of(moment: Moment) -> float:
    """A moment in seconds since the epoch. Raises ValueError for a text that is not a moment."""
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return parse_moment(moment) if isinstance(moment, str) else float(moment)


class LocalClock:
    """The clock of a database. Each change of the time does the work that became due before it returns:
    expired items are deleted, tables become ACTIVE, stream records and tokens age."""

    def __init__(self, virtual: VirtualClock, settle: Callable[[], object]) -> None:
        self._virtual = virtual
        self._settle = settle

    def now(self) -> float:
        """The time, in seconds since the epoch."""
        return self._virtual.now()

    def datetime(self) -> datetime:
        """The time, as a datetime in UTC."""
        return datetime.fromtimestamp(self.now(), UTC)

    @property
    def frozen(self) -> bool:
        """Whether the clock stands still."""
        return self._virtual.frozen

    def freeze(self, at: Moment | None = None) -> None:
        """Make the clock stand still, now or at `at`. Raises ValueError if `at` is not a moment."""
        self._virtual.change(epoch_of(at) if at is not None else None, frozen=True)
        self._settle()

    def resume(self) -> None:
        """Make the clock run from the time that it shows."""
        self._virtual.resume()

    def set(self, moment: Moment) -> None:
        """Set the time; a clock that stands still stays frozen. Raises ValueError if `moment` is not a moment
        or outside the years 1970 to 9999."""
        self._virtual.set(epoch_of(moment))
        self._settle()

    def advance(self, duration: Duration) -> None:
        """Advance the time. Raises ValueError for a negative duration, and past the year 9999."""
        self._virtual.advance(seconds_of(duration))
        self._settle()
