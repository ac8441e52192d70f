"""What DynamoDB costs: published prices by region, and exact arithmetic with them.

    rates  the names of the rates, what each is for, and the sums in dollars
    money  sums of which a part may have no price
    book   the prices of regions: those of the package, or those of a file

    region = published().region("us-east-1")
    region.standard.cost("write_requests", 1_000_000)    # Decimal("0.625")

`published.toml` has the figures, their date and their sources. A price that no source has is None, never a
guess. Refuses to know who consumed what.
"""

from __future__ import annotations

from hashrange.prices.book import Book, Region, UnknownRegion, WrongPrices, load, on_demand, published
from hashrange.prices.rates import RATES, Rate, Rates, Reservation, dollars

__all__ = [
    "RATES",
    "Book",
    "Rate",
    "Rates",
    "Region",
    "Reservation",
    "UnknownRegion",
    "WrongPrices",
    "dollars",
    "load",
    "on_demand",
    "published",
]
