"""The throughput of a table or a global index: its limits, what was consumed, and its partitions.

Provisioned: the units of each second, and what was not used of the last 300 seconds. On demand: the warm
throughput (4,000 writes and 12,000 reads at first, and what the table had when it was provisioned), or twice
the highest peak that is at least 30 minutes old, whichever is more; a maximum of the table's own, or the
account's of 40,000. Beyond these, each partition has its limit.

The module knows no requests. Times are epoch seconds.
Source: Developer Guide, "Burst and adaptive capacity", "On-demand capacity mode" and "Warm throughput".
"""

from __future__ import annotations

from collections import deque
from typing import Final

from hashrange.limits import (
    ACCOUNT_UNITS_MAX,
    BURST_SECONDS,
    PARTITION_READ_UNITS_MAX,
    PARTITION_WRITE_UNITS_MAX,
    PEAK_SECONDS,
)
from hashrange.operations.tables import throughput
from hashrange.operations.throttling import ACCOUNT, KEY_RANGE, MAX_ON_DEMAND, PROVISIONED
from hashrange.tables.definitions.table import Index, Table
from hashrange_lab.behaviour.buckets import Bucket
from hashrange_lab.behaviour.partitions import Partitions

READS: Final = 0
WRITES: Final = 1

_PER_PARTITION: Final = (PARTITION_READ_UNITS_MAX, PARTITION_WRITE_UNITS_MAX)
_WARM: Final = ("ReadUnitsPerSecond", "WriteUnitsPerSecond")
_CEILING: Final = ("MaxReadRequestUnits", "MaxWriteRequestUnits")
_SAVED_SECONDS: Final = BURST_SECONDS + 1
"""The second that runs, and those that were saved."""
_PEAK_STEP: Final = 1.01
"""Smaller growth of a peak is not noted."""


class Peak:
    """The highest traffic of an on-demand table: `units` a second, once it is 30 minutes old."""

    __slots__ = ("_in_second", "_second", "_waiting", "units")

    def __init__(self) -> None:
        self.units = 0.0
        self._second = 0
        self._in_second = 0.0
        self._waiting: deque[tuple[int, float]] = deque()

    def add(self, units: float, now: float) -> None:
        """Note consumed units."""
        second = int(now)
        if second != self._second:
            self._close()
            self._second = second
        self._in_second += units

    def look(self, now: float) -> bool:
        """Count the peaks that are old enough by now. Returns whether the highest one changed."""
        if int(now) > self._second:
            self._close()
        before = self.units
        while self._waiting and self._waiting[0][0] + PEAK_SECONDS <= now:
            self.units = max(self.units, self._waiting.popleft()[1])
        return self.units != before

    def _close(self) -> None:
        highest = self._waiting[-1][1] if self._waiting else self.units
        if self._in_second > highest * _PEAK_STEP:
            self._waiting.append((self._second, self._in_second))
        self._in_second = 0.0


class Side:
    """The reads, or the writes, of a table or an index. `consumed` and `throttled` (by limit) are counts
    since the start, for metrics."""

    __slots__ = ("_level", "_limits", "_peak", "_way", "consumed", "throttled", "warm")

    def __init__(self, way: int) -> None:
        self._way = way
        self._peak = Peak()
        self._level = 0.0
        self._limits: dict[str, Bucket] = {}
        self.warm = 0.0
        self.consumed = 0.0
        self.throttled: dict[str, int] = {}

    def use(self, table: Table, owner: Table | Index, now: float) -> None:
        """Follow a definition, which is that of a new table or index, or has changed."""
        warm = throughput.current_warm(owner.warm, owner.throughput, table.billing_mode)
        self.warm = max(self.warm, float(warm[_WARM[self._way]]))
        rates: dict[str, tuple[float, float]] = {}
        if table.billing_mode == "PROVISIONED":
            units = (owner.throughput.read_units, owner.throughput.write_units)
            rates[PROVISIONED] = (float(units[self._way]), _SAVED_SECONDS)
        else:
            ceiling = (owner.on_demand or {}).get(_CEILING[self._way])
            rates[MAX_ON_DEMAND if ceiling else ACCOUNT] = (float(ceiling or ACCOUNT_UNITS_MAX), 1)
            self._level = self.level
            rates[KEY_RANGE] = (self._level, 1)
        idle = max(0.0, now - table.created)
        kept = self._limits
        self._limits = {}
        for limit, (rate, seconds) in rates.items():
            bucket = kept.get(limit)
            if bucket is None:
                bucket = Bucket(rate, seconds, now, rate * min(seconds, 1 + idle))
            else:
                bucket.change(rate, seconds, now)
            self._limits[limit] = bucket

    @property
    def level(self) -> float:
        """What an on-demand table or index bears without growing."""
        return max(self.warm, 2 * self._peak.units)

    @property
    def partitions(self) -> int:
        """How many partitions the throughput needs."""
        return int(-(-max(self.warm, self._level) // _PER_PARTITION[self._way]))

    def exceeded(self, now: float) -> str | None:
        """The limit that refuses requests now; None: no limit does."""
        refusing = None
        for limit, bucket in self._limits.items():
            bucket.fill(now)
            if refusing is None and bucket.is_empty:
                refusing = limit
        return refusing

    def grew(self, now: float) -> bool:
        """Whether an earlier peak allows more from now on."""
        bucket = self._limits.get(KEY_RANGE)
        if bucket is None or not self._peak.look(now) or self.level <= self._level:
            return False
        self._level = self.level
        bucket.change(self._level, 1, now)
        return True

    def spend(self, units: float) -> None:
        """Take units from the limits, or give them back if they are negative."""
        for bucket in self._limits.values():
            bucket.units -= units

    def charge(self, units: float, now: float) -> None:
        """Like `spend`, for units that were consumed."""
        self.consumed += units
        self.spend(units)
        if KEY_RANGE in self._limits:
            self._peak.add(units, now)


class Resource:
    """A table, or a global index of it: `index` is "" for the table. `sides` are its reads and writes."""

    __slots__ = ("_definition", "index", "parts", "sides", "table", "whole")

    def __init__(self, table: Table, owner: Table | Index, now: float) -> None:
        self.table = table.full_name
        self.index = owner.name if isinstance(owner, Index) else ""
        self.whole = owner is table and table.has_local_indexes
        self.sides = (Side(READS), Side(WRITES))
        self._definition = table
        for side in self.sides:
            side.use(table, owner, now)
        self.parts = Partitions(self._needed(), now, whole_collections=self.whole)

    def use(self, table: Table, owner: Table | Index, now: float) -> None:
        """Follow the current definition, and the traffic of the past."""
        if table is not self._definition:
            self._definition = table
            for side in self.sides:
                side.use(table, owner, now)
            self.parts.grow(self._needed(), now)
        elif self.sides[READS].grew(now) or self.sides[WRITES].grew(now):
            self.parts.grow(self._needed(), now)

    @property
    def is_provisioned(self) -> bool:
        """Whether the table has provisioned capacity."""
        return self._definition.billing_mode == "PROVISIONED"

    def fit(self, size: int, partition_bytes: int, now: float) -> None:
        """Have at least as many partitions as `size` bytes need."""
        if size > partition_bytes * len(self.parts):
            self.parts.grow(-(-size // partition_bytes), now)

    def _needed(self) -> int:
        return max(1, *[side.partitions for side in self.sides])
