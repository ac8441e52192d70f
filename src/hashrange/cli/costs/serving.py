"""What `--costs` and `--prices` of `hashrange serve` mean."""

from __future__ import annotations

from pathlib import Path

import click

from hashrange.database import Database
from hashrange.prices import Book, WrongPrices, load, published


def book_of(prices: Path | None) -> Book:
    """The prices of a file, or of the package. Raises click.UsageError."""
    try:
        return published() if prices is None else load(prices)
    except WrongPrices as error:
        raise click.UsageError(str(error)) from None


def count(database: Database, costs: bool, prices: Path | None) -> None:
    """Count what requests cost from now on, if the options say so. Raises click.UsageError."""
    if not costs and prices is None:
        return
    from hashrange.money import meter

    # A server with prices of its own counts: the prices would be of no use otherwise.
    meter.begin(database, book_of(prices))
