"""`hashrange faults …`: list, add and remove the fault rules of a running server, through its admin plane."""

from __future__ import annotations

from typing import Any, Final

import click

from hashrange.cli.forms import JSON, format_option, print_lines
from hashrange.cli.remote.asking import Plane, ask, plane_options

_EPILOG: Final = """\b
Examples:
  hashrange faults list
  hashrange faults add PutItem table=orders nth=3 throttle
  hashrange faults add BatchWriteItem unprocessed share=0.5
  hashrange faults add 'Query,Scan probability=0.1 seed=7 latency seconds=2s'
  hashrange faults remove 1
  hashrange faults clear

docs/faults.md describes the rules."""


@click.group("faults", epilog=_EPILOG)
def command() -> None:
    """List, add and remove the fault rules of a running server."""


@command.command("list")
@format_option("How each rule is printed: as a line of text, or as a JSON object on a line.")
@plane_options
def list_(plane: Plane, format_: str) -> None:
    """List the rules.

    For each rule, the list shows how many requests matched it, and how often it fired.
    """
    shown = _ask(plane)
    if format_ == JSON:
        print_lines(shown["faults"])
    else:
        _tell(shown)


@command.command("add")
@click.argument("rule", nargs=-1, required=True)
@plane_options
def add(plane: Plane, rule: tuple[str, ...]) -> None:
    """Add RULE, which applies until it is removed or the server stops."""
    _tell(_ask(plane, sent={"rule": " ".join(rule)}))


@command.command("remove")
@click.argument("number", type=int)
@plane_options
def remove(plane: Plane, number: int) -> None:
    """Remove the rule with NUMBER."""
    _tell(_ask(plane, f"/v1/faults/{number}", method="DELETE"))


@command.command("clear")
@plane_options
def clear(plane: Plane) -> None:
    """Remove all rules."""
    _tell(_ask(plane, method="DELETE"))


def _ask(
    plane: Plane, path: str = "/v1/faults", sent: object = None, method: str | None = None
) -> dict[str, Any]:
    return ask(plane, path, "faults", "hashrange serve", sent, method)


def _tell(shown: dict[str, Any]) -> None:
    for fault in shown["faults"]:
        click.echo(f"{fault['number']}  {fault['rule']}  matched {fault['matched']}, fired {fault['fired']}")
    if not shown["faults"]:
        click.echo("no faults")
