"""`hashrange lab …`: throttling and late reads of a running server, through its admin plane."""

from __future__ import annotations

from typing import Any, Final
from urllib.parse import urlencode

import click

from hashrange.cli.forms import JSON, Duration, format_option, print_json, show_duration
from hashrange.cli.remote.asking import Plane, ask, plane_options
from hashrange_lab.commands.tables import table

_START: Final = "hashrange serve"
_EPILOG: Final = """\b
Examples:
  hashrange lab show
  hashrange lab throttling start                  throttle every table
  hashrange lab throttling stop --table orders    but not this one
  hashrange lab throttling reset --table orders   the setting for all tables applies again
  hashrange lab partitions orders                 which partitions take its load
  hashrange lab eventual start 2s                 reads show the state of two seconds ago
  hashrange lab eventual start 2s --seed 7        random lags, the same in every run
  hashrange lab eventual stop

The settings hold until the server ends; `hashrange serve --throttle` and `--eventual-reads` have them from
the start. See packages/lab/docs/lab.md."""


@click.group("lab", epilog=_EPILOG)
def command() -> None:
    """Throttle requests and let reads lag, as AWS does, on a running server."""


@command.command("show")
@format_option("The output format.")
@plane_options
def show(plane: Plane, format_: str) -> None:
    """Show the settings, and what tables and indexes consumed."""
    shown = ask(plane, "/v1/lab", "throttle", _START)
    if format_ == JSON:
        print_json(shown)
    else:
        _tell(shown)


@command.command("partitions")
@click.argument("table_name", metavar="TABLE")
@click.option("--index", metavar="NAME", help="Show the partitions of this index.")
@format_option("How the partitions are printed.")
@plane_options
def partitions(plane: Plane, table_name: str, index: str | None, format_: str) -> None:
    """Show the partitions of TABLE and the consumption of each."""
    query = urlencode({"table": table_name, "index": index or ""})
    shown = ask(plane, f"/v1/lab/partitions?{query}", "partitions", _START)
    if format_ == JSON:
        print_json(shown)
        return
    rows = [
        [
            part["from"],
            f"{part['consumed_read_units']:,.1f}",
            f"{part['consumed_write_units']:,.1f}",
            f"{part['throttled']:,}",
        ]
        for part in shown["partitions"]
    ]
    for line in table(["from the hash", "read units", "write units", "throttled"], rows):
        click.echo(line)


@command.group("throttling")
def throttling() -> None:
    """Throttle requests to all tables or to one."""


def _table_option(function: Any) -> Any:
    return click.option(
        "--table", "table_name", metavar="NAME", help="Only this table, which then has its own setting."
    )(function)


@throttling.command("start")
@_table_option
@plane_options
def start(plane: Plane, table_name: str | None) -> None:
    """Throttle requests as AWS does."""
    _throttle(plane, True, table_name)


@throttling.command("stop")
@_table_option
@plane_options
def stop(plane: Plane, table_name: str | None) -> None:
    """Throttle no requests."""
    _throttle(plane, False, table_name)


@throttling.command("reset")
@click.option("--table", "table_name", metavar="NAME", required=True, help="The table.")
@plane_options
def reset(plane: Plane, table_name: str) -> None:
    """Let the setting for all tables apply to a table again."""
    _throttle(plane, None, table_name)


@command.group("eventual")
def eventual() -> None:
    """Make reads without ConsistentRead lag."""


@eventual.command("start")
@click.argument("lag", type=Duration(0.001), metavar="DURATION")
@click.option(
    "--seed", help="Give each read a random lag of up to DURATION; the same seed gives the same lags."
)
@click.option("--monotonic", is_flag=True, help="With --seed: no caller sees an older state than before.")
@plane_options
def start_eventual(plane: Plane, lag: float, seed: str | None, monotonic: bool) -> None:
    """Make reads without ConsistentRead show the state of DURATION ago."""
    sent = {"seconds": lag, "seed": seed or "", "monotonic": monotonic}
    _tell(ask(plane, "/v1/lab/eventual", "throttle", _START, sent))


@eventual.command("stop")
@plane_options
def stop_eventual(plane: Plane) -> None:
    """Make every read show the current state."""
    _tell(ask(plane, "/v1/lab/eventual", "throttle", _START, {"seconds": 0}))


def _throttle(plane: Plane, throttle: bool | None, table_name: str | None) -> None:
    sent = {"throttle": throttle, "table": table_name}
    _tell(ask(plane, "/v1/lab/throttling", "throttle", _START, sent))


def _tell(shown: dict[str, Any]) -> None:
    """Print the lab's settings, and the tables and indexes that were used."""
    click.echo(f"throttling      {_on(shown['throttle'])}")
    for name, throttle in sorted(shown["tables"].items()):
        click.echo(f"  of {name}: {_on(throttle)}")
    lag = shown["eventual"]
    text = "off"
    if lag["seconds"]:
        text = show_duration(lag["seconds"])
        text += f", seed {lag['seed']}" if lag["seed"] else ""
        text += ", monotonic" if lag["monotonic"] else ""
    click.echo(f"eventual reads  {text}")
    rows = [_row(resource) for resource in shown["resources"]]
    heads = ["table", "partitions", "read units", "write units", "throttled reads", "throttled writes"]
    for line in table(heads, rows) if rows else ():
        click.echo(line)


def _on(throttle: bool | None) -> str:
    return "on" if throttle else "off"


def _row(resource: dict[str, Any]) -> list[str]:
    name = str(resource["table"]) + (f"/{resource['index']}" if resource["index"] else "")
    counts = [
        f"{resource['partitions']:,}",
        *(f"{resource[f'consumed_{kind}_units']:,.1f}" for kind in ("read", "write")),
        *(f"{sum(resource[f'throttled_{kind}s'].values()):,}" for kind in ("read", "write")),
    ]
    return [name, *counts]
