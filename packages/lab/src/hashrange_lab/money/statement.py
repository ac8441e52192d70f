"""Counts, priced: what the requests cost on demand, by any of table, index, operation and caller; and what
each month costs that does not depend on requests.

Sums are exact. A kind of units whose price is not known adds nothing, and is named in `missing`. Refuses to
know where counts come from.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final

from hashrange.prices import Region
from hashrange.prices.money import Money, priced
from hashrange.prices.rates import GB, HOURS_OF_A_MONTH, Rates
from hashrange_lab.money.counts import Counted, Stored, Usage

GROUPS: Final = ("table", "index", "operation", "caller")
"""How lines can be grouped."""
_NOTHING: Final = Decimal(0)
_HOUR_SECONDS: Final = 3_600


@dataclass(frozen=True, slots=True)
class StatementLine:
    """What some of the requests consumed and cost: `names` has a value for each name that it was grouped
    by."""

    names: tuple[str, ...]
    requests: int
    read_units: float
    write_units: float
    reads: Money
    writes: Money
    other: Money

    @property
    def total(self) -> Money:
        """All of it together."""
        return self.reads + self.writes + self.other


@dataclass(frozen=True, slots=True)
class Monthly:
    """Something that a table costs each month, whatever is asked of it."""

    table: str
    what: str
    cost: Money


@dataclass(frozen=True, slots=True)
class Statement:
    """Counts with the prices of a region. `places` are the rows of each table and index."""

    counted: Counted
    region: Region
    places: dict[tuple[str, str], list[Usage]] = field(init=False, repr=False)
    _rates: dict[str, Rates] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        places: dict[tuple[str, str], list[Usage]] = {}
        for row in self.counted.rows:
            places.setdefault((row.table, row.index), []).append(row)
        object.__setattr__(self, "places", places)
        rates = {stored.table: self.region.rates(stored.table_class) for stored in self.counted.stored}
        object.__setattr__(self, "_rates", rates)

    def lines(self, by: Sequence[str] = ("table", "operation")) -> list[StatementLine]:
        """The costs grouped by some of `GROUPS`, the most expensive first."""
        groups: dict[tuple[str, ...], list[Usage]] = {}
        for row in self.counted.rows:
            groups.setdefault(tuple([getattr(row, name) for name in by]), []).append(row)
        lines = [self._line(names, rows) for names, rows in groups.items()]
        return sorted(lines, key=lambda line: (-line.total.amount, -line.requests, line.names))

    @property
    def total(self) -> StatementLine:
        """All requests together."""
        return self._line((), self.counted.rows)

    @property
    def missing(self) -> Money:
        """What the requests and each month cost, with the rates that have no price and are left out."""
        return sum((part.cost for part in self.monthly()), self.total.total)

    def rates_of(self, table: str) -> Rates:
        """The rates of a table, which depend on its class."""
        return self._rates.get(table, self.region.standard)

    def monthly(self) -> list[Monthly]:
        """What the tables cost each month without any request, the most expensive first."""
        parts = [part for stored in self.counted.stored for part in self._monthly(stored)]
        return sorted(parts, key=lambda part: (-part.cost.amount, part.table, part.what))

    def a_month(self, money: Money) -> Money | None:
        """What `money` of the time that was counted makes in a month, at the same rate; None if it was
        counted for less than ten minutes."""
        if self.counted.seconds < 600:
            return None
        share = Decimal(HOURS_OF_A_MONTH * _HOUR_SECONDS) / Decimal(self.counted.seconds)
        return Money(money.amount * share, money.missing)

    def _line(self, names: tuple[str, ...], rows: Iterable[Usage]) -> StatementLine:
        requests, read_units, write_units = 0, 0.0, 0.0
        reads = writes = other = Money()
        for row in rows:
            rates = self.rates_of(row.table)
            requests += row.requests
            read_units += row.read_units
            write_units += row.write_units
            reads += priced(rates, "read_requests", row.read_units)
            writes += priced(rates, "write_requests", row.write_units)
            other += priced(rates, "stream_reads", row.stream_reads)
            other += priced(rates, "vector_writes", row.vector_bytes_written / GB)
            other += priced(rates, "vector_searches", row.vector_bytes_searched / GB)
        return StatementLine(names, requests, read_units, write_units, reads, writes, other)

    def _monthly(self, stored: Stored) -> Iterator[Monthly]:
        rates = self.region.rates(stored.table_class)
        for what, rate, bytes_ in (
            ("storage", "storage", stored.bytes_),
            ("point-in-time recovery", "recovery", stored.recovery_bytes),
        ):
            if bytes_:
                yield Monthly(stored.table, what, priced(rates, rate, Decimal(bytes_) / GB))
        units = list(stored.provisioned.values())
        reads, writes = sum(unit[0] for unit in units), sum(unit[1] for unit in units)
        if reads or writes:
            hours = HOURS_OF_A_MONTH
            cost = priced(rates, "read_capacity", reads * hours)
            cost += priced(rates, "write_capacity", writes * hours)
            yield Monthly(stored.table, f"provisioned: {reads:,} read, {writes:,} write units", cost)
