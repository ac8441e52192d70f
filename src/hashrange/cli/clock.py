"""`hashrange clock …`: show and change the virtual clock of a running server, through its admin plane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import click

from hashrange.cli.forms import JSON, format_option, print_json
from hashrange.cli.remote.asking import Plane, ask, plane_options
from hashrange.clock import REAL_CLOCKS

_EPILOG: Final = """\b
Examples, with a server that was started with --virtual-clock:
  hashrange clock show
  hashrange clock freeze --at 2026-01-01
  hashrange clock advance 7d
  hashrange clock resume

Each change returns when all work that it made due is done: expired items are deleted, stream records past
their retention are trimmed, indexes are up to date."""


@click.group("clock", epilog=_EPILOG)
def command() -> None:
    """Show, freeze, set, advance and resume the clock of a running server."""


@command.command("show")
@format_option("The output format.")
@plane_options
def show(plane: Plane, format_: str) -> None:
    """Show the time of the database's clock."""
    clock = _ask(plane)
    if format_ == JSON:
        print_json(clock)
    else:
        _tell(clock)


def _moment_option(text: str) -> Callable[[Any], Any]:
    return click.option("--at", metavar="TIME", help=text)


@command.command("freeze")
@_moment_option("Also set the clock to this time: ISO 8601, or epoch seconds.")
@plane_options
def freeze(plane: Plane, at: str | None) -> None:
    """Stop the clock."""
    _tell(_ask(plane, frozen=True, **({} if at is None else {"set": at})))


@command.command("set")
@click.argument("time")
@plane_options
def set_(plane: Plane, time: str) -> None:
    """Set the clock to TIME.

    TIME is ISO 8601 (UTC if it names no zone), or epoch seconds.
    """
    _tell(_ask(plane, set=time))


@command.command("advance")
@click.argument("duration")
@plane_options
def advance(plane: Plane, duration: str) -> None:
    """Advance the clock by DURATION.

    DURATION is a number of seconds, or a text such as 15m, 24h, 7d or 1d12h.
    """
    _tell(_ask(plane, advance=duration))


@command.command("resume")
@plane_options
def resume(plane: Plane) -> None:
    """Let a frozen clock run on from the time that it shows."""
    _tell(_ask(plane, frozen=False))


def _ask(plane: Plane, **change: str | bool) -> dict[str, Any]:
    """The clock as the admin plane shows it, after `change` if there is one."""
    return ask(plane, "/v1/clock", "time", "hashrange serve --virtual-clock", change or None)


def _tell(clock: dict[str, Any]) -> None:
    state = REAL_CLOCKS.get(clock["source"]) or ("frozen" if clock["frozen"] else "running")
    click.echo(f"{clock['time']}  {state}")
