"""The partitions of a table or a global index: ranges of its keys, each with its own limit.

A key is a pair of the partition key's hash and the bytes of the sort key. The first partitions divide the
hashes evenly; there are as many as the warm throughput and the size ask for, and they are never merged. A
partition that stays hot is split at the median of the keys that were asked for last:

- between two items of one item collection, unless the table has local indexes, whose collections stay whole;
- not if the keys only rise: all further requests would go to the upper half;
- at most down to one item.

How long a partition has to be hot is not published, so the caller says it.

Source: Developer Guide, "Burst and adaptive capacity" and "Designing partition keys"; AWS Database Blog,
"Scaling DynamoDB", parts 1 to 3.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from itertools import pairwise
from typing import Final

from hashrange.limits import PARTITION_READ_UNITS_MAX, PARTITION_WRITE_UNITS_MAX
from hashrange_lab.behaviour.buckets import Bucket

Position = tuple[bytes, bytes]

PARTITIONS_MAX: Final = 4_096
"""The most partitions of a table that are distinguished here."""

_HASH_BITS: Final = 64
_SEEN: Final = 64
_RISING_LEAST: Final = 8
_RATES: Final = (PARTITION_READ_UNITS_MAX, PARTITION_WRITE_UNITS_MAX)


class Partition:
    """The keys from `low` up to the next partition. `buckets` are those of reads and of writes, `seen` the
    keys that were asked for last. `consumed` are units of reads and of writes, and `throttled` refusals, both
    since it was split for the last time."""

    __slots__ = ("_hot_at", "_hot_seconds", "buckets", "consumed", "low", "seen", "throttled")

    def __init__(self, low: Position, now: float) -> None:
        self.low = low
        self.buckets = tuple([Bucket(rate, 1, now, rate) for rate in _RATES])
        self.seen: deque[Position] = deque(maxlen=_SEEN)
        self.consumed = [0.0 for _ in _RATES]
        self.throttled = 0
        self._hot_at = -1
        self._hot_seconds = 0

    def is_hot(self, now: float, seconds: float) -> bool:
        """Note that a request was refused. Returns whether requests were refused in each of the last
        `seconds`, apart from pauses that are not longer."""
        second = int(now)
        if second != self._hot_at:
            if not 0 <= second - self._hot_at <= max(seconds, 1):
                self._hot_seconds = 0
            self._hot_at = second
            self._hot_seconds += 1
        return self._hot_seconds > seconds

    def cooled(self) -> None:
        """Count from zero."""
        self._hot_seconds = 0


class Partitions:
    """The partitions of a table or an index, in the order of their keys. `whole_collections`: no partition
    ends inside an item collection."""

    __slots__ = ("_lows", "_parts", "_whole")

    def __init__(self, count: int, now: float, *, whole_collections: bool) -> None:
        count = min(count, PARTITIONS_MAX)
        self._whole = whole_collections
        starts = [(number << _HASH_BITS) // count for number in range(count)]
        self._lows: list[Position] = [(_hash(start), b"") for start in starts]
        self._parts = [Partition(low, now) for low in self._lows]

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, number: int) -> Partition:
        return self._parts[number]

    def find(self, position: Position) -> int:
        """The number of the partition that holds a key."""
        return bisect_right(self._lows, position) - 1

    def grow(self, count: int, now: float) -> None:
        """Split the widest partitions until there are `count`."""
        while len(self._parts) < min(count, PARTITIONS_MAX):
            starts = [int.from_bytes(low[0][:8]) for low in self._lows] + [1 << _HASH_BITS]
            width, place = max((high - low, -place) for place, (low, high) in enumerate(pairwise(starts)))
            if width < 2:
                return
            middle = starts[-place] + width // 2
            self._insert(-place, (_hash(middle), b""), now)

    def refused(self, number: int, now: float, split_seconds: float) -> None:
        """Note that a partition refused a request, and split it if it has been hot for long enough."""
        part = self._parts[number]
        part.throttled += 1
        if part.is_hot(now, split_seconds) and len(self._parts) < PARTITIONS_MAX:
            part.cooled()
            boundary = self._boundary(number)
            if boundary is not None:
                self._insert(number, boundary, now)

    def _boundary(self, number: int) -> Position | None:
        """Where a hot partition is split; None: a split would be of no use, or is not possible."""
        seen = list(self._parts[number].seen)
        if self._whole:
            seen = [(partition, b"") for partition, _ in seen]
        if not seen or _only_rise(seen):
            return None
        ordered = sorted(seen)
        middle = ordered[len(ordered) // 2]
        after = (middle[0] + b"\0", b"") if self._whole else (middle[0], middle[1] + b"\0")
        best: tuple[int, Position] | None = None
        for boundary in (middle, after):
            below = bisect_left(ordered, boundary)
            if 0 < below < len(ordered) and boundary > self._lows[number]:
                uneven = abs(len(ordered) - 2 * below)
                if best is None or uneven < best[0]:
                    best = (uneven, boundary)
        return None if best is None else best[1]

    def _insert(self, number: int, boundary: Position, now: float) -> None:
        """Split a partition; both halves have the whole limit."""
        lower, upper = self._parts[number], Partition(boundary, now)
        upper.seen.extend(position for position in lower.seen if position >= boundary)
        kept = [position for position in lower.seen if position < boundary]
        lower.seen.clear()
        lower.seen.extend(kept)
        lower.consumed = [0.0 for _ in _RATES]
        lower.throttled = 0
        self._parts.insert(number + 1, upper)
        self._lows.insert(number + 1, boundary)


def _hash(number: int) -> bytes:
    return number.to_bytes(_HASH_BITS // 8) if number else b""


def _only_rise(seen: list[Position]) -> bool:
    """Whether each request was for a higher key than those before it."""
    rising = all(earlier <= later for earlier, later in pairwise(seen))
    return rising and len(set(seen)) >= _RISING_LEAST
