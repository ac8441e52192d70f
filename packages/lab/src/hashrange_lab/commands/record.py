"""`hashrange record …`: recordings of a running server, through its admin plane."""

from __future__ import annotations

from typing import Any, Final

import click

from hashrange.cli.remote.asking import Plane, ask, plane_options
from hashrange_lab.recordings.lines import VALUES

_EPILOG: Final = """\b
Examples:
  hashrange serve --record-dir /var/lib/recordings
  hashrange record start monday.hashrange
  hashrange record start monday.hashrange --values hashed
  hashrange record status
  hashrange record stop

The file is on the server's machine, in the directory that its --record-dir names. `hashrange replay` repeats
a recording. The page "Load and costs" has more."""


@click.group("record", epilog=_EPILOG)
def command() -> None:
    """Record the requests to a running server in a file."""


@command.command("start", short_help="Record all requests in a new file.")
@click.argument("name", metavar="NAME")
@click.option(
    "--values",
    type=click.Choice(VALUES),
    default=VALUES[0],
    show_default=True,
    help="Keep the values of items, or replace each by a hash of the same size.",
)
@click.option(
    "--bytes-max",
    type=click.IntRange(1),
    metavar="BYTES",
    help="Size at which the recording ends.  [default: the server's --record-bytes-max]",
)
@plane_options
def start(plane: Plane, name: str, values: str, bytes_max: int | None) -> None:
    """Record all requests in the new file NAME, until `hashrange record stop`."""
    sent: dict[str, Any] = {"name": name, "values": values}
    _tell(_ask(plane, sent if bytes_max is None else sent | {"bytes_max": bytes_max}))


@command.command("status")
@plane_options
def status(plane: Plane) -> None:
    """Show the recording that is being made, or the last one."""
    _tell(_ask(plane))


@command.command("stop")
@plane_options
def stop(plane: Plane) -> None:
    """End the recording; its file is complete then."""
    _tell(_ask(plane, method="DELETE"))


def _ask(plane: Plane, sent: object = None, method: str | None = None) -> dict[str, Any]:
    return ask(plane, "/recording", "recording", "hashrange serve", sent, method)


def _tell(shown: dict[str, Any]) -> None:
    about = shown["recording"]
    if about is None:
        click.echo("nothing has been recorded")
        return
    click.echo(
        f"{about['state']}  {about['file']}  {about['requests']} requests, {about['dropped']} dropped, "
        f"{about['bytes']} bytes, values {about['values']}"
    )
