"""Auto scaling of provisioned capacity, replayed over the units of each minute.

As Application Auto Scaling and CloudWatch do it with a target of 70 %:

- two minutes above the target raise the capacity so that the last minute is at the target;
- fifteen minutes that are 20 points or more below it lower the capacity so that the highest of them is at the
  target [assumed: which of the minutes counts is not published];
- a decrease needs an allowance, as UpdateTable gives it to a table or an index: four in each UTC day, and
  then one if the last was an hour ago or more. Those of reads and of writes count together.

What a minute asks beyond its capacity is met from the capacity of up to 300 seconds that was not used, and is
throttled beyond that. The alarms see what was consumed, not what was asked. A change takes effect in the next
minute [assumed: AWS needs some minutes]. Minutes are numbered from the epoch. Refuses to know prices.

Source: Developer Guide, "Managing throughput capacity automatically with DynamoDB auto scaling", "Burst
capacity" and "Quotas in Amazon DynamoDB"; AWS re:Post, "DynamoDB auto scaling".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from hashrange.limits import BURST_SECONDS, DECREASE_INTERVAL_SECONDS, DECREASES_FREELY_MAX

TARGET: Final = 0.7
TARGETS: Final = range(20, 91)
"""The targets that auto scaling takes, in percent."""
_BELOW: Final = 0.2
_RAISE_MINUTES: Final = 2
_LOWER_MINUTES: Final = 15
_DAY_MINUTES: Final = 1_440
_HOUR_MINUTES: Final = 60
CAPACITY_MAX: Final = 40_000


@dataclass(frozen=True, slots=True)
class Policy:
    """The bounds and the target of auto scaling."""

    minimum: int = 1
    maximum: int = CAPACITY_MAX
    target: float = TARGET

    def capacity_for(self, units_per_second: float) -> int:
        """The capacity at which this many units a second are at the target."""
        wanted = math.ceil(round(units_per_second / self.target, 6))
        return min(max(wanted, self.minimum), self.maximum)


@dataclass(slots=True)
class Scaled:
    """The outcome: the capacity of each minute, how many units were throttled, and how often the capacity was
    raised and lowered."""

    capacities: list[int]
    throttled: float
    raised: int
    lowered: int


class Allowance:
    """The decreases that a table or an index may still make (`operations.tables.throughput` has the same
    rule)."""

    def __init__(self) -> None:
        self._day = self._today = self._last = -1

    def take(self, minute: int) -> bool:
        """Whether a decrease is allowed in this minute; if so, it is taken."""
        if minute // _DAY_MINUTES != self._day:
            self._day, self._today = minute // _DAY_MINUTES, 0
        is_soon = (minute - self._last) * 60 < DECREASE_INTERVAL_SECONDS
        if self._today >= DECREASES_FREELY_MAX and is_soon:
            return False
        self._today += 1
        self._last = minute
        return True


class _Side:
    """The reads or the writes of a table or an index, minute by minute."""

    def __init__(self, asked: Sequence[float], policy: Policy) -> None:
        self._policy = policy
        self._capacity = policy.capacity_for(asked[0] / 60) if asked else policy.minimum
        self._used: list[float] = []
        self._saved = 0.0
        self._since = 0
        self.outcome = Scaled([], 0.0, 0, 0)

    def step(self, units: float, minute: int, allowance: Allowance) -> None:
        """A minute in which `units` are asked."""
        capacity, outcome, used = self._capacity, self.outcome, self._used
        outcome.capacities.append(capacity)
        consumed = min(units, capacity * 60 + self._saved)
        outcome.throttled += units - consumed
        left = self._saved + capacity * 60 - consumed
        self._saved = min(max(left, 0.0), float(capacity * BURST_SECONDS))
        used.append(consumed / 60)
        wanted = _wanted(used[max(self._since, len(used) - _LOWER_MINUTES) :], capacity, self._policy)
        if wanted > capacity:
            outcome.raised += 1
        elif wanted < capacity and allowance.take(minute):
            outcome.lowered += 1
        else:
            return
        # The alarms begin again with the new capacity.
        self._capacity, self._since = wanted, len(used)


def scale(asked: Sequence[Sequence[float]], first: int, policy: Policy = Policy()) -> list[Scaled]:
    """Replay auto scaling over the units that are asked in each minute, of which `first` is the number of the
    first one: reads and writes of a table or an index. Each begins with the capacity for that minute."""
    allowance = Allowance()
    sides = [_Side(units, policy) for units in asked]
    for number, minute in enumerate(zip(*asked, strict=True)):
        for side, units in zip(sides, minute, strict=True):
            side.step(units, first + number, allowance)
    return [side.outcome for side in sides]


def _wanted(used: Sequence[float], capacity: int, policy: Policy) -> int:
    """The capacity that the alarms ask for after these minutes at one capacity."""
    above = policy.target * capacity
    if len(used) >= _RAISE_MINUTES and min(used[-_RAISE_MINUTES:]) > above:
        return max(policy.capacity_for(used[-1]), capacity)
    # (0.7 - 0.2 is a little less than 0.5)
    below = round((policy.target - _BELOW) * capacity, 6)
    if len(used) >= _LOWER_MINUTES and max(used[-_LOWER_MINUTES:]) <= below:
        return min(policy.capacity_for(max(used[-_LOWER_MINUTES:])), capacity)
    return capacity


def hourly(capacities: Sequence[int], first: int) -> list[int]:
    """The capacity that each hour is billed for: the highest of its minutes [assumed], also where only a part
    of the hour is known."""
    hours: list[int] = []
    for number, capacity in enumerate(capacities):
        hour = (first + number) // _HOUR_MINUTES - first // _HOUR_MINUTES
        if hour == len(hours):
            hours.append(capacity)
        else:
            hours[hour] = max(hours[hour], capacity)
    return hours
