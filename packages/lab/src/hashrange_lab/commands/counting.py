"""What `--costs` and `--prices` of `hashrange serve` mean."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from hashrange.cli.serving.options import option
from hashrange.database import Database

if TYPE_CHECKING:
    from hashrange.prices import Book


def options(function: Any) -> Any:
    """The two options."""
    function = option(
        "--prices",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Prices that the console shows; a file in TOML, in place of the published ones, see "
        "docs/costs.md. Implies --costs.  [default: none]",
    )(function)
    return option(
        "--costs",
        is_flag=True,
        help="Count what requests cost; `hashrange costs` and the console show it. `hashrange costs start` "
        "begins later; without either, requests pay nothing for it.",
    )(function)


def book_of(prices: Path | None) -> Book:
    """The prices of a file, or of the package. Raises click.UsageError."""
    # Imported here, because a server that counts nothing needs no prices.
    from hashrange.prices import WrongPrices, load, published

    try:
        return published() if prices is None else load(prices)
    except WrongPrices as error:
        raise click.UsageError(str(error)) from None


def count(database: Database, costs: bool, prices: Path | None) -> None:
    """Count what requests cost from now on, if the options say so. Raises click.UsageError."""
    if not costs and prices is None:
        return
    from hashrange_lab.money import meter

    # A server with prices of its own counts: the prices would be of no use otherwise.
    meter.begin(database, book_of(prices))
