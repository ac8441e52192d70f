"""`hashrange check DIR`: verify that a data directory holds together."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from hashrange.storage.api import Engine, StorageError
from hashrange.tables.check import check


@click.command(
    "check",
    epilog="""\b
Example:
  hashrange check ./hashrange-data""",
)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
def command(directory: Path) -> None:
    """Verify the data directory DIR: every index entry has its item and the reverse, and sizes match.

    Nothing may be serving it meanwhile. Exits with 1 if there is damage, and prints one line for each.
    """
    if not any(directory.iterdir()):
        raise click.ClickException(f"{directory} is empty: there is nothing to check")
    click.echo(f"checking {directory}", err=True)
    try:
        engine = _open(directory)
    except StorageError as error:
        raise click.ClickException(str(error)) from error
    try:
        damaged = 0
        for problem in check(engine, progress=_progress):
            damaged += 1
            click.echo(str(problem))
    finally:
        engine.close()
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)
    if damaged:
        raise click.ClickException(f"{damaged} problems found in {directory}")
    click.echo(f"no damage in {directory}", err=True)


def _progress(what: str, records: int) -> None:
    """Show a person how far it has got; a log file needs to know only the end."""
    if sys.stderr.isatty():
        click.echo(f"\r{what}: {records} records\x1b[K", nl=False, err=True)


def _open(directory: Path) -> Engine:
    from hashrange.storage.embedded import EmbeddedEngine

    return EmbeddedEngine(directory)
