"""`hashrange faults …`: list, add and remove the fault rules of a running server, through its admin plane."""

from __future__ import annotations

from typing import Any, Final

import click

from hashrange.cli.asking import admin_url_option, ask

_EPILOG: Final = """\b
Examples:
  hashrange faults list
  hashrange faults add PutItem table=orders nth=3 throttle
  hashrange faults add BatchWriteItem unprocessed share=0.5
  hashrange faults add 'Query,Scan probability=0.1 seed=7 latency seconds=2'
  hashrange faults remove 1
  hashrange faults clear

docs/faults.md lists what a rule can say."""


@click.group("faults", epilog=_EPILOG)
def command() -> None:
    """List, add and remove the fault rules of a running server."""


@command.command("list")
@admin_url_option
def list_(admin_url: str) -> None:
    """List the rules, with the requests that they matched and those that they fired on."""
    _tell(_ask(admin_url))


@command.command("add")
@click.argument("rule", nargs=-1, required=True)
@admin_url_option
def add(admin_url: str, rule: tuple[str, ...]) -> None:
    """Put RULE in force until it is removed, or the server stops."""
    _tell(_ask(admin_url, sent={"rule": " ".join(rule)}))


@command.command("remove")
@click.argument("number", type=int)
@admin_url_option
def remove(admin_url: str, number: int) -> None:
    """Remove the rule with NUMBER."""
    _tell(_ask(admin_url, f"/faults/{number}", method="DELETE"))


@command.command("clear")
@admin_url_option
def clear(admin_url: str) -> None:
    """Remove all rules."""
    _tell(_ask(admin_url, method="DELETE"))


def _ask(
    admin_url: str, path: str = "/faults", sent: object = None, method: str | None = None
) -> dict[str, Any]:
    return ask(admin_url, path, "faults", "hashrange serve", sent, method)


def _tell(shown: dict[str, Any]) -> None:
    for fault in shown["faults"]:
        click.echo(f"{fault['number']}  {fault['rule']}  matched {fault['matched']}, fired {fault['fired']}")
    if not shown["faults"]:
        click.echo("no faults")
