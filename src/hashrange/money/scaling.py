"""Auto scaling of provisioned capacity, replayed over the units of each minute.

As Application Auto Scaling and CloudWatch do it with a target of 70 %:

- two minutes above the target raise the capacity so that the last minute is at the target;
- fifteen minutes that are 20 points or more below it lower the capacity so that the highest of them is at the
  target [assumed: which of the minutes counts is not published];
- a decrease needs an allowance: four at the start of each UTC day, one more each hour, never more than four.

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

from hashrange.limits import BURST_SECONDS

TARGET: Final = 0.7
TARGETS: Final = range(20, 91)
"""The targets that auto scaling takes, in percent."""
_BELOW: Final = 0.2
_RAISE_MINUTES: Final = 2
_LOWER_MINUTES: Final = 15
_DECREASES: Final = 4
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
        """The capacity at which so many units a second are at the target."""
        wanted = math.ceil(round(units_per_second / self.target, 6))
        return min(max(wanted, self.minimum), self.maximum)


@dataclass(frozen=True, slots=True)
class Scaled:
    """The outcome: the capacity of each minute, how many units were throttled, and how often the capacity was
    raised and lowered."""

    capacities: list[int]
    throttled: float
    raised: int
    lowered: int


class Allowance:
    """The decreases that a table may still make."""

    def __init__(self) -> None:
        self._left = float(_DECREASES)
        self._minute = -1

    def take(self, minute: int) -> bool:
        """Whether a decrease is allowed in this minute; if so, it is taken."""
        if self._minute < 0 or minute // _DAY_MINUTES != self._minute // _DAY_MINUTES:
            self._left = float(_DECREASES)
            self._minute = minute
        hours = (minute - self._minute) // _HOUR_MINUTES
        if hours:
            self._left = min(self._left + hours, _DECREASES)
            self._minute += hours * _HOUR_MINUTES
        if self._left < 1:
            return False
        self._left -= 1
        return True


def scale(asked: Sequence[float], first: int, policy: Policy = Policy()) -> Scaled:
    """Replay auto scaling over the units that are asked in each minute, of which `first` is the number of the
    first one. It begins with the capacity for that minute."""
    capacity = policy.capacity_for(asked[0] / 60) if asked else policy.minimum
    capacities: list[int] = []
    used: list[float] = []
    saved = throttled = 0.0
    since = raised = lowered = 0
    allowance = Allowance()
    for number, units in enumerate(asked):
        capacities.append(capacity)
        available = capacity * 60 + saved
        consumed = min(units, available)
        throttled += units - consumed
        saved = min(max(saved + capacity * 60 - consumed, 0.0), float(capacity * BURST_SECONDS))
        used.append(consumed / 60)
        wanted = _wanted(used[max(since, len(used) - _LOWER_MINUTES) :], capacity, policy)
        if wanted > capacity:
            raised += 1
        elif wanted < capacity and allowance.take(first + number):
            lowered += 1
        else:
            continue
        # The alarms begin anew with the new capacity.
        capacity, since = wanted, number + 1
    return Scaled(capacities, throttled, raised, lowered)


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
