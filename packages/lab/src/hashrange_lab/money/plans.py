"""What a load costs on demand, provisioned with auto scaling, at a fixed capacity, and reserved.

A load is the units of each minute, of each table and global index (`money.counts.Series`): those that a meter
has counted, or those of a file. Tables and indexes scale on their own. Reserved capacity is bought for an
account and a region, in blocks of 100 units, so it is compared for all of them together: the number of blocks
is the one with which the load costs least. Refuses to know where a load comes from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hashrange.prices import Region, Reservation
from hashrange.prices.money import Money, priced
from hashrange.prices.rates import HOURS_OF_A_MONTH, Rates
from hashrange_lab.money.counts import Series
from hashrange_lab.money.scaling import Policy, Scaled, hourly, scale

MINUTES_MAX: Final = 45 * 1_440
"""The longest load, 45 days. A longer one is refused where it is read."""
ON_DEMAND: Final = "on demand"
_SCALED: Final = "provisioned, auto scaling"
_FIXED: Final = "provisioned, fixed"
PLANS: Final = (ON_DEMAND, _SCALED, _FIXED)
"""The names of the plans that each table and index has."""
_BLOCK: Final = 100
_HOUR_MINUTES: Final = 60


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to pay for the load. `minutes` are those that the cost is for: all those of a billed hour, where
    hours are billed. `throttled` are the units that it would have refused, `about` says what was provisioned
    or reserved."""

    name: str
    cost: Money
    minutes: int
    throttled: float = 0.0
    about: str = ""

    @property
    def a_month(self) -> Money:
        """What a month of such loads costs."""
        return Money(self.cost.amount * HOURS_OF_A_MONTH * _HOUR_MINUTES / self.minutes, self.cost.missing)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The plans for a load of this many `minutes`, of all its tables together, the one with the cheapest
    month first; `places` are those of each table and index, without reserved capacity."""

    minutes: int
    plans: list[Plan]
    places: dict[tuple[str, str], list[Plan]]


@dataclass(frozen=True, slots=True)
class _Side:
    """The reads or the writes of a place: what was asked in each minute, and how it would be scaled."""

    asked: list[float]
    scaled: Scaled


@dataclass(frozen=True, slots=True)
class _Load:
    """The reads and the writes of a place, from the minute `first` on."""

    first: int
    rates: Rates
    reads: _Side
    writes: _Side


def compare(
    series: Sequence[Series],
    region: Region,
    rates_of: Callable[[str], Rates] | None = None,
    policy: Policy = Policy(),  # noqa: B008 (immutable)
) -> Comparison:
    """Compare the ways to pay for a load. `rates_of` has the rates of a table's class. Raises ValueError for
    a load without minutes, and for one of more than `MINUTES_MAX`."""
    used = [part for part in series if part.minutes]
    if not used:
        raise ValueError("The load has no minutes: nothing was consumed in it.")
    first = min(part.minutes[0].at for part in used) // 60
    last = max(part.minutes[-1].at for part in used) // 60
    if last - first >= MINUTES_MAX:
        raise ValueError(
            f"The load is {(last - first) // 1_440:,} days long; at most {MINUTES_MAX // 1_440} can be "
            "compared. Give a part of it."
        )
    loads = {}
    for part in used:
        rates = rates_of(part.table) if rates_of is not None else region.standard
        loads[part.table, part.index] = _load(part, first, last, rates, policy)
    places = {place: sorted(_plans(load), key=_by_month) for place, load in loads.items()}
    plans = [_sum(name, places) for name in PLANS]
    pooled = [load for load in loads.values() if load.rates is region.standard]
    if pooled:
        # Only the table class Standard can use reserved capacity; the other tables pay as without it.
        rest = [_scaled(load) for load in loads.values() if load.rates is not region.standard]
        plans += [_reserved(term, pooled, sum(rest, Money()), plans[1]) for term in region.reservations]
    return Comparison(last - first + 1, sorted(plans, key=_by_month), places)


def _by_month(plan: Plan) -> tuple[bool, Decimal, str]:
    return (bool(plan.cost.missing), plan.a_month.amount, plan.name)


def _load(part: Series, first: int, last: int, rates: Rates, policy: Policy) -> _Load:
    reads, writes = [0.0] * (last - first + 1), [0.0] * (last - first + 1)
    for minute in part.minutes:
        reads[minute.at // 60 - first] += minute.reads
        writes[minute.at // 60 - first] += minute.writes
    scaled = scale([reads, writes], first, policy)
    return _Load(first, rates, *[_Side(*side) for side in zip((reads, writes), scaled, strict=True)])


def _plans(load: _Load) -> list[Plan]:
    reads, writes = load.reads, load.writes
    demand = priced(load.rates, "read_requests", sum(reads.asked))
    demand += priced(load.rates, "write_requests", sum(writes.asked))
    highest = [max(1, -int(-max(side.asked) // 60)) for side in (reads, writes)]
    hours = len(_billed(load, reads))
    fixed = _hours(load.rates, [highest[0]] * hours, [highest[1]] * hours)
    changes = sum(side.scaled.raised + side.scaled.lowered for side in (reads, writes))
    capacities = [side.scaled.capacities for side in (reads, writes)]
    spans = " and ".join(
        f"{_span(units)} {way}" for units, way in zip(capacities, ("read", "write"), strict=True)
    )
    return [
        Plan(ON_DEMAND, demand, len(reads.asked)),
        Plan(
            _SCALED,
            _scaled(load),
            hours * _HOUR_MINUTES,
            reads.scaled.throttled + writes.scaled.throttled,
            f"{spans} units, {_times(changes)}",
        ),
        Plan(
            _FIXED,
            fixed,
            hours * _HOUR_MINUTES,
            0.0,
            f"{highest[0]:,} read, {highest[1]:,} write units, as in the highest minute",
        ),
    ]


def _times(changes: int) -> str:
    return f"changed {changes:,} time{'' if changes == 1 else 's'}" if changes else "never changed"


def _span(units: Sequence[int]) -> str:
    least, most = min(units), max(units)
    return f"{most:,}" if least == most else f"{least:,} to {most:,}"


def _scaled(load: _Load) -> Money:
    """The cost of a place with auto scaling."""
    return _hours(load.rates, _billed(load, load.reads), _billed(load, load.writes))


def _billed(load: _Load, side: _Side) -> list[int]:
    return hourly(side.scaled.capacities, load.first)


def _hours(rates: Rates, reads: Sequence[int], writes: Sequence[int]) -> Money:
    """The cost of this many provisioned units in each hour."""
    return priced(rates, "read_capacity", sum(reads)) + priced(rates, "write_capacity", sum(writes))


def _sum(name: str, places: dict[tuple[str, str], list[Plan]]) -> Plan:
    plans = [plan for of_place in places.values() for plan in of_place if plan.name == name]
    cost = sum((plan.cost for plan in plans), Money())
    about = plans[0].about if len(plans) == 1 else ""
    return Plan(name, cost, plans[0].minutes, sum(plan.throttled for plan in plans), about)


def _reserved(reservation: Reservation, loads: list[_Load], cost: Money, scaled: Plan) -> Plan:
    """Auto scaling, with as many blocks of reserved capacity as make `loads` cheapest, which have the same
    rates. `cost` is that of the other tables."""
    parts, is_used = [], False
    for writes, word in ((False, "read"), (True, "write")):
        sides = [(load, load.writes if writes else load.reads) for load in loads]
        hours = [sum(units) for units in zip(*[_billed(load, side) for load, side in sides], strict=True)]
        rate = loads[0].rates.of(f"{word}_capacity")
        if rate is None:
            cost += Money(missing=frozenset([f"{word}_capacity"]))
            continue
        block = reservation.hourly(writes=writes)
        costs = {
            blocks: blocks * block * len(hours) + rate * sum(max(0, unit - blocks * _BLOCK) for unit in hours)
            for blocks in range(max(hours) // _BLOCK + 2)
        }
        best = min(costs, key=lambda blocks: (costs[blocks], blocks))
        cost += Money(costs[best])
        is_used = is_used or best > 0
        parts.append(f"{best * _BLOCK:,} {word}")
    years = f"{reservation.years} year{'' if reservation.years == 1 else 's'}"
    about = f"{' and '.join(parts)} units reserved" if is_used else "no reservation would pay"
    return Plan(f"reserved for {years}, auto scaling", cost, scaled.minutes, scaled.throttled, about)
