"""`hashrange costs …`: what the requests of a running server cost, through its admin plane."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from hashrange.cli.forms import JSON, format_option, print_json
from hashrange.cli.remote.asking import Plane, ask, plane_options
from hashrange.prices import Book, Region, UnknownRegion
from hashrange_lab.commands import reports
from hashrange_lab.commands.serving import book_of
from hashrange_lab.money.counts import Counted
from hashrange_lab.money.loads import read, to_csv
from hashrange_lab.money.plans import compare as compare_plans
from hashrange_lab.money.scaling import CAPACITY_MAX, TARGETS, Policy
from hashrange_lab.money.statement import GROUPS, Statement

_EPILOG: Final = """\b
Examples:
  hashrange costs start                       start counting
  hashrange costs show                        what requests cost since then, by table and operation
  hashrange costs show --by caller --reset    by program, then count from zero
  hashrange costs show --region eu-west-1 --format json
                                              with the prices of another region, for programs
  hashrange costs advice                      how to make requests cheaper, with figures
  hashrange costs compare                     on demand, provisioned or reserved, for what was counted
  hashrange costs load > monday.csv           the units of each minute; compare reads such files, and
                                              recordings of hashrange record
  hashrange costs prices eu-west-1            the prices, and their sources

A program is named by the app id of its SDK (AWS_SDK_UA_APP_ID), else by the SDK. Counting is in memory, and
ends with the server; `hashrange serve --costs` counts from the start. See
packages/lab/docs/load.md."""
_RECORD: Final = "hashrange costs start"


def _price_options(function: Any) -> Any:
    """The options that say which prices a command takes."""
    function = click.option(
        "--prices",
        type=click.Path(path_type=Path, dir_okay=False),
        metavar="FILE",
        help="Prices to use instead of the published ones: a TOML file, see docs/costs.md.",
    )(function)
    return click.option(
        "--region", metavar="REGION", default="", help="Region of the prices.  [default: the server's]"
    )(function)


@click.group("costs", epilog=_EPILOG)
def command() -> None:
    """Show what a running server's requests would cost on AWS, and how to save money."""


@command.command("show", short_help="Show what requests cost since counting began.")
@click.option(
    "--by",
    type=click.Choice(GROUPS),
    multiple=True,
    help="Group costs by this; may be given several times.  [default: table, operation]",
)
@click.option("--reset", is_flag=True, help="Show the costs, then count again from zero.")
@format_option("The output format; JSON has amounts as strings with all digits.")
@_price_options
@plane_options
def show(
    plane: Plane, by: tuple[str, ...], reset: bool, format_: str, region: str, prices: Path | None
) -> None:
    """Show the on-demand cost of requests since counting started, the highest first."""
    statement, book = _statement(plane, region, prices)
    if format_ == JSON:
        print_json(reports.as_json(statement, book))
    else:
        _print(reports.costs(statement, book, by or ("table", "operation")))
    if reset:
        _record(plane, reset=True)


@command.command("start")
@plane_options
def start(plane: Plane) -> None:
    """Start counting what requests consume."""
    _record(plane)
    click.echo("counting; `hashrange costs show` shows what requests cost from now on")


@command.command("stop")
@plane_options
def stop(plane: Plane) -> None:
    """Stop counting, and discard the counts."""
    ask(plane, "/v1/costs", "costs", "hashrange serve", {"record": False})
    click.echo("not counting")


@command.command("advice", short_help="Say what would make requests cheaper.")
@_price_options
@plane_options
def advice(plane: Plane, region: str, prices: Path | None) -> None:
    """Recommend how to make requests cheaper, with the figures behind each recommendation."""
    statement, _ = _statement(plane, region, prices)
    _print(reports.advice(statement))


@command.command("load")
@plane_options
def load(plane: Plane) -> None:
    """Print the units of each minute of the last day, as CSV."""
    sys.stdout.write(to_csv(_counted(plane).series))


@command.command("compare")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False)
@click.option(
    "--target",
    type=click.IntRange(TARGETS[0], TARGETS[-1]),
    default=70,
    show_default=True,
    metavar="PERCENT",
    help="Target utilization of auto scaling.",
)
@click.option(
    "--minimum",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="The minimum capacity of auto scaling.",
)
@click.option(
    "--maximum",
    type=click.IntRange(1),
    default=CAPACITY_MAX,
    show_default=True,
    help="The maximum capacity of auto scaling.",
)
@format_option("The output format.")
@_price_options
@plane_options
def compare(
    plane: Plane,
    file: Path | None,
    target: int,
    minimum: int,
    maximum: int,
    format_: str,
    region: str,
    prices: Path | None,
) -> None:
    """Compare on demand, provisioned and reserved capacity for a load.

    FILE is a recording of `hashrange record`, or has the units of each minute as CSV:
    at,table,index,read_units,write_units. Without it the load is what the server has counted in the last
    day. Auto scaling is replayed minute by minute.
    """
    if minimum > maximum:
        raise click.UsageError(f"--minimum {minimum} is more than --maximum {maximum}.")
    book = book_of(prices)
    rates_of = None
    try:
        if file is None:
            counted = _counted(plane)
            statement = Statement(counted, _region(book, region or counted.region))
            series, place, rates_of = counted.series, statement.region, statement.rates_of
        else:
            series = read(file)
            place = _region(book, region or "us-east-1")
        compared = compare_plans(series, place, rates_of, Policy(minimum, maximum, target / 100))
    except (ValueError, OSError) as error:
        raise click.ClickException(str(error)) from None
    if format_ == JSON:
        print_json(reports.comparison_json(compared, place, book))
    else:
        _print(reports.comparison(compared, place, book))


@command.command("prices", short_help="Print the prices of a region and their sources.")
@click.argument("region", required=False, default="")
@click.option(
    "--prices",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Prices to use instead of the published ones.",
)
def show_prices(region: str, prices: Path | None) -> None:
    """Print the prices of REGION and their sources; without REGION, the regions with known prices."""
    book = book_of(prices)
    if region:
        _print(reports.region(_region(book, region), book))
        return
    for code, found in sorted(book.regions.items()):
        on_demand = "on demand" if found.standard.of("read_requests") is not None else ""
        click.echo(f"{code:16}{found.name:28}{on_demand:12}{len(found.standard.prices)} prices")


def _statement(plane: Plane, region: str, prices: Path | None) -> tuple[Statement, Book]:
    book = book_of(prices)
    counted = _counted(plane)
    return Statement(counted, _region(book, region or counted.region)), book


def _region(book: Book, code: str) -> Region:
    try:
        return book.region(code)
    except UnknownRegion as error:
        raise click.ClickException(str(error)) from None


def _counted(plane: Plane) -> Counted:
    shown = ask(plane, "/v1/costs", "costs", "hashrange serve")["costs"]
    if shown is None:
        raise click.ClickException(
            f"{plane.server} does not count what requests cost. Run `{_RECORD}`, or start the server "
            "with --costs."
        )
    return msgspec.convert(shown, Counted)


def _record(plane: Plane, *, reset: bool = False) -> None:
    ask(plane, "/v1/costs", "costs", "hashrange serve", {"record": True, "reset": reset})


def _print(lines: Any) -> None:
    for line in lines:
        click.echo(line)
