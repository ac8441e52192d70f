"""Moments and durations as a test writes them, and the clock of a database in this process.

    clock.freeze()                       stands still from now on
    clock.freeze("2026-01-31T12:00:00Z") stands still there
    clock.advance(90), clock.advance("15m"), clock.advance(timedelta(days=1))
    clock.set(moment), clock.resume(), clock.now(), clock.datetime()

A clock that was not touched shows the time of this process. So freezegun and time-machine, which change what
`time.time` returns, change it, too.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from hashrange.clock import VirtualClock, parse_duration, parse_moment

Moment = float | str | datetime
"""Seconds since the epoch, a text of ISO 8601, or a datetime; UTC where it names no zone."""

Duration = float | str | timedelta
"""Seconds, a text as ``15m`` or ``1d12h``, or a timedelta."""


def seconds_of(duration: Duration) -> float:
    """A duration in seconds. Raises ValueError for a text that is none."""
    if isinstance(duration, timedelta):
        return duration.total_seconds()
    return parse_duration(duration) if isinstance(duration, str) else float(duration)


def epoch_of(moment: Moment) -> float:
    """A moment in seconds since the epoch. Raises ValueError for a text that is none."""
    if isinstance(moment, datetime):
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    return parse_moment(moment) if isinstance(moment, str) else float(moment)


class LocalClock:
    """The clock of one database. After each move the work that became due is done before the call returns:
    expired items go, tables become ACTIVE, stream records and tokens age."""

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
        """Make the clock stand still, at `at` if it is given. Raises ValueError for what is no moment."""
        self._virtual.change(epoch_of(at) if at is not None else None, frozen=True)
        self._settle()

    def resume(self) -> None:
        """Make the clock run on from the time that it shows."""
        self._virtual.resume()

    def set(self, moment: Moment) -> None:
        """Set the time; the clock goes on to stand still or to run. Raises ValueError for what is no moment,
        and outside of the years 1970 to 9999."""
        self._virtual.set(epoch_of(moment))
        self._settle()

    def advance(self, duration: Duration) -> None:
        """Move the time on. Raises ValueError for less than nothing, and past the year 9999."""
        self._virtual.advance(seconds_of(duration))
        self._settle()
