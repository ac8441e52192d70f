"""Sums of money of which a part may have no price."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from hashrange.prices.rates import Rates, dollars

_NOTHING: Final = Decimal(0)


@dataclass(frozen=True, slots=True)
class Money:
    """An amount of dollars; `missing` are the rates that belong to it and have no price."""

    amount: Decimal = _NOTHING
    missing: frozenset[str] = frozenset()

    def __add__(self, other: Money) -> Money:
        return Money(self.amount + other.amount, self.missing | other.missing)

    def __str__(self) -> str:
        if not self.missing:
            return dollars(self.amount)
        return f"{dollars(self.amount)} + ?" if self.amount else "no price"


def priced(rates: Rates, rate: str, units: float | Decimal) -> Money:
    """What this many units cost."""
    if not units:
        return Money()
    cost = rates.cost(rate, units)
    return Money(_NOTHING, frozenset([rate])) if cost is None else Money(cost)
