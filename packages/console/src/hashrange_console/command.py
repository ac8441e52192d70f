"""`hashrange console`: a new link to the web console of a running server."""

from __future__ import annotations

import click

from hashrange.cli.remote.asking import Plane, ask, plane_options


@click.command("console")
@plane_options
def command(plane: Plane) -> None:
    """Print a link to the web console of a running server.

    The link works once. The browser that opens the link stays logged in for a day, or until it was not used
    for eight hours.
    """
    made = ask(plane, "/v1/console-link", "link", "hashrange serve", {})
    click.echo(f"{plane.url}{made['link']}")
