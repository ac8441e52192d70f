"""The definition of a table's history, and moments as stamps.

A history is a sequence of spans. A span has its own space, and holds the images of all changes whose stamps
are above its `after`, up to the `after` of the next span; changes write to the last span. A span that is no
longer needed is removed by deleting its space.

A stamp (`storage.api.Transaction.stamp`) is a time in milliseconds, followed by 16 bits that count the
transactions within that millisecond. So all changes that are made while a clock stands still belong to its
moment, as long as they are fewer than 65,536.

Not compiled, because msgspec decodes its structs (docs/decisions/0007-compiled-hot-path.md).
"""

from __future__ import annotations

import msgspec

from hashrange.storage.api import STAMP_BYTES

_COUNT_BITS = 16
_COUNT_MAX = (1 << _COUNT_BITS) - 1
_MILLIS = 1_000
# A moment that was written as text and read back may be below its millisecond by a rounding error.
_ROUNDING = 0.001

STAMP_MAX = (1 << (8 * STAMP_BYTES)) - 1


def stamp_at(moment: float) -> int:
    """The first stamp of a moment (epoch seconds)."""
    return int(moment * _MILLIS + _ROUNDING) << _COUNT_BITS


def stamp_through(moment: float) -> int:
    """The last stamp of a moment (epoch seconds)."""
    return stamp_at(moment) | _COUNT_MAX


def moment_of(stamp: int) -> float:
    """The moment (epoch seconds) that a stamp belongs to."""
    return (stamp >> _COUNT_BITS) / _MILLIS


class Span(msgspec.Struct, frozen=True):
    """A part of a history: its space, the stamp above which its images lie, and the time of the clock when it
    began (epoch seconds)."""

    space: int
    after: int
    made: float


class Hold(msgspec.Struct, frozen=True):
    """A user of the history, by name: ``pitr``, or a job such as ``restore:ID``.

    The states from the stamp `since` on are needed; with `seconds`, only those of the last `seconds` seconds.
    """

    name: str
    since: int
    seconds: float | None = None


class History(msgspec.Struct, frozen=True):
    """The spans of a table's history, oldest first, and its holds: at least one of each."""

    spans: tuple[Span, ...]
    holds: tuple[Hold, ...]

    @property
    def space(self) -> int:
        """The space in which changes store their images."""
        return self.spans[-1].space

    @property
    def after(self) -> int:
        """The earliest stamp whose state is known."""
        return self.spans[0].after

    def hold(self, name: str) -> Hold | None:
        """The hold with a name, or None."""
        for hold in self.holds:
            if hold.name == name:
                return hold
        return None

    def above(self, stamp: int) -> tuple[Span, ...]:
        """The spans that can hold images above a stamp, oldest first."""
        first = 0
        while first + 1 < len(self.spans) and self.spans[first + 1].after <= stamp:
            first += 1
        return self.spans[first:]
