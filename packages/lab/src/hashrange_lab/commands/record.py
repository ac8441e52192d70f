"""`hashrange record …`: recordings of a running server, through its admin plane."""

from __future__ import annotations

from typing import Any, Final

import click

from hashrange.cli.forms import JSON, Size, format_option, limit_option, print_json
from hashrange.cli.remote.asking import Plane, ask, plane_options
from hashrange_lab.recordings.lines import VALUES

_EPILOG: Final = """\b
Examples:
  hashrange serve --record-dir /var/lib/recordings
  hashrange record start monday.hashrange
  hashrange record start monday.hashrange --values hashed
  hashrange record show
  hashrange record stop

The file is on the server's machine, in the directory that its --record-dir names. `hashrange replay` repeats
a recording. See packages/lab/docs/load.md."""


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
@limit_option(
    "Stop the recording at this size.  [default: the server's --record-bytes-max]",
    type=Size(),
    metavar="SIZE",
)
@plane_options
def start(plane: Plane, name: str, values: str, limit: int | None) -> None:
    """Record all requests in the new file NAME, until `hashrange record stop`."""
    sent: dict[str, Any] = {"name": name, "values": values}
    _tell(_ask(plane, sent if limit is None else sent | {"bytes_max": limit}))


@command.command("show")
@format_option("The output format.")
@plane_options
def show(plane: Plane, format_: str) -> None:
    """Show the current recording, or the last one."""
    answer = _ask(plane)
    if format_ == JSON:
        print_json(answer["recording"])
    else:
        _tell(answer)


@command.command("stop")
@plane_options
def stop(plane: Plane) -> None:
    """Stop the recording, and complete its file."""
    _tell(_ask(plane, method="DELETE"))


def _ask(plane: Plane, sent: object = None, method: str | None = None) -> dict[str, Any]:
    return ask(plane, "/v1/recording", "recording", "hashrange serve", sent, method)


def _tell(shown: dict[str, Any]) -> None:
    about = shown["recording"]
    if about is None:
        click.echo("nothing has been recorded")
        return
    click.echo(
        f"{about['state']}  {about['file']}  {about['requests']} requests, {about['dropped']} dropped, "
        f"{about['bytes']} bytes, values {about['values']}"
    )
