"""The rates that DynamoDB bills by, and exact sums of money.

Amounts of units are multiples of a half, which floats hold exactly; money is always `Decimal`. Refuses to
know regions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Context, Decimal
from typing import Final

_MILLION: Final = Decimal(1_000_000)
_EXACT: Final = Context(prec=60)
"""Products of a price and an amount of units have fewer digits than this."""
GB: Final = 1024**3
"""AWS bills storage by the gigabyte of 2^30 bytes."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate of the price list: what it is for, and for how many units at a time its price is given."""

    name: str
    about: str
    per: Decimal = Decimal(1)


RATES: Final[Mapping[str, Rate]] = {
    rate.name: rate
    for rate in (
        Rate("read_requests", "a million read request units, on demand", _MILLION),
        Rate("write_requests", "a million write request units, on demand", _MILLION),
        Rate("read_capacity", "a read capacity unit for an hour, provisioned"),
        Rate("write_capacity", "a write capacity unit for an hour, provisioned"),
        Rate("storage", "a GB stored for a month, indexes included"),
        Rate("recovery", "a GB of a table with point-in-time recovery for a month, local indexes included"),
        Rate("stream_reads", "a million GetRecords of DynamoDB Streams", _MILLION),
        Rate("vector_writes", "a GB written to vector indexes"),
        Rate("vector_searches", "a GB searched in vector indexes"),
    )
}
"""All rates by their names, in the order in which tools show them. Each is a part of a sum that they make."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The prices of one region and table class, by the names of `RATES`; those that no source has are
    missing."""

    prices: Mapping[str, Decimal] = field(default_factory=dict)

    def of(self, rate: str) -> Decimal | None:
        """The price of a rate; None if it is not known."""
        return self.prices.get(rate)

    def cost(self, rate: str, units: float | Decimal) -> Decimal | None:
        """What this many units cost, exactly; None if the price is not known."""
        price = self.prices.get(rate)
        if price is None:
            return None
        amount = _EXACT.multiply(Decimal(units), price)
        return _EXACT.divide(amount, RATES[rate].per)


@dataclass(frozen=True, slots=True)
class Reservation:
    """Reserved capacity for `years`: the dollars at once and for each hour, for 100 units of reading and of
    writing."""

    years: int
    read_upfront: Decimal
    read_hour: Decimal
    write_upfront: Decimal
    write_hour: Decimal

    def hourly(self, *, writes: bool) -> Decimal:
        """What 100 units cost in an hour, with the part of the payment at once that falls on the hour."""
        upfront, hour = (
            (self.write_upfront, self.write_hour) if writes else (self.read_upfront, self.read_hour)
        )
        return hour + upfront / (self.years * HOURS_OF_A_YEAR)


HOURS_OF_A_YEAR: Final = 8_760
HOURS_OF_A_MONTH: Final = 730
"""As AWS's calculator counts a month."""


def dollars(amount: Decimal | None) -> str:
    """An amount of money for people: $1,234.50, or with small amounts the first two digits that are not 0,
    as $0.0000012. "no price" for None."""
    if amount is None:
        return "no price"
    if not amount:
        return "$0"
    if abs(amount) >= 1:
        return f"${amount.quantize(Decimal('0.01'), ROUND_HALF_EVEN):,}"
    # One of 0.000125 is 0.00013: as many places as its second digit needs.
    places = 1 - amount.adjusted()
    return f"${amount.quantize(Decimal(1).scaleb(-places), ROUND_HALF_EVEN):f}"
