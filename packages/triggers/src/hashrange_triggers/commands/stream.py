"""`hashrange stream tail`: follow a table's changes in the terminal."""

from __future__ import annotations

import threading
from typing import Any, Final

import click
import orjson

from hashrange.cli.forms import JSON, Duration, format_option
from hashrange.cli.remote.connecting import attempt, connect_loudly, connection
from hashrange.clock import SystemClock, parse_moment
from hashrange_triggers.commands.trigger import on_signals

_COLOURS: Final[dict[str, dict[str, Any]]] = {
    "time": {"dim": True},
    "event": {"bold": True},
    "key": {"fg": "cyan"},
    "added": {"fg": "green"},
    "removed": {"fg": "red"},
}


@click.group("stream")
def command() -> None:
    """Watch the changes of a table."""


def _since(ctx: click.Context, parameter: click.Parameter, value: str) -> str | float:
    if value in ("TRIM_HORIZON", "LATEST"):
        return value
    try:
        return parse_moment(value, SystemClock().now())
    except ValueError as error:
        raise click.BadParameter(f"{error}, nor TRIM_HORIZON or LATEST.", ctx, parameter) from None


@command.command(
    "tail",
    epilog="""\b
Examples:
  hashrange stream tail orders                          until Ctrl-C
  hashrange stream tail orders --since 10m              with the changes of the last ten minutes
  hashrange stream tail orders --since TRIM_HORIZON --format json | jq .dynamodb.NewImage
  hashrange stream tail orders --endpoint-url aws --region eu-central-1""",
)
@click.argument("table")
@connection
@click.option(
    "--since",
    default="LATEST",
    show_default=True,
    callback=_since,
    metavar="MOMENT|TRIM_HORIZON|LATEST",
    help="Where to start: a duration ago (30s, 10m, 2h, 1d12h), a time, the oldest change, or the next.",
)
@format_option("How each record is printed: as colored lines, or as a JSON object on a line.")
@click.option("--no-color", is_flag=True, envvar="NO_COLOR", help="Print without colors.")
@click.option(
    "--poll-interval",
    type=Duration(0.001),
    default="0.5s",
    show_default=True,
    help="The pause between reads.",
)
@click.option("--until-caught-up", is_flag=True, help="Stop after the latest change.")
def tail(
    table: str,
    endpoint_url: str,
    region: str | None,
    since: Any,
    format_: str,
    no_color: bool,
    poll_interval: float,
    until_caught_up: bool,
) -> None:
    """Follow the changes of TABLE.

    Additions are green, removals are red, and changes are both.
    """
    clients = connect_loudly(endpoint_url, region)
    from hashrange_triggers.source import TriggerError
    from hashrange_triggers.tail import Tail

    stop = threading.Event()
    follower = attempt(lambda: Tail(clients, table, since), endpoint_url, TriggerError)
    on_signals(stop.set)
    while not stop.is_set():
        records = attempt(follower.poll, endpoint_url, TriggerError)
        for record in records:
            _print(record, as_json=format_ == JSON, colour=False if no_color else None)
        if not records and (until_caught_up or stop.wait(poll_interval)):
            return


def _print(record: dict[str, Any], *, as_json: bool, colour: bool | None) -> None:
    from hashrange_triggers import differences

    if as_json:
        click.echo(orjson.dumps(record))
        return
    for line in differences.lines_of(record):
        styled = "".join(click.style(text, **_COLOURS[role]) if role else text for role, text in line)
        click.echo(styled, color=colour)
