"""`hashrange migrate DIR`: bring a data directory of an older version over to the format of this one."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hashrange.cli.progress import Progress
from hashrange.clock import SystemClock
from hashrange.storage.api import StorageError


@click.command(
    "migrate",
    epilog="""\b
Exit codes: 0 the directory has today's format, 1 it could not be brought over, 2 wrong usage.

\b
Examples:
  hashrange migrate ./hashrange-data
  hashrange migrate /var/lib/hashrange --keep-old""",
)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--keep-old",
    is_flag=True,
    help="Keep the old store as a data directory of its own, DIR/format-N, for the older version.",
)
@click.option(
    "--leave-out",
    "leaves_out",
    is_flag=True,
    help="Leave out records that cannot be brought over because they are damaged, print a line for each, and "
    "keep the old store. Without it the first one ends the migration.",
)
def command(directory: Path, keep_old: bool, leaves_out: bool) -> None:
    """Bring the data directory DIR of an older version over to the format of this one.

    A new store is made beside the old one, which is only read until the new one is complete and takes its
    place; so the disk needs room for both. It may be stopped or killed at any moment: run it again, and it
    goes on where it was. No server may have the directory open.
    """
    from hashrange.storage.embedded.migration import migrate
    from hashrange.tables import formats

    os.umask(0o077)  # what RocksDB writes is for its owner only
    progress = Progress("copying")
    try:
        migrated = migrate(
            directory,
            formats.begin,
            SystemClock().now(),
            report=progress,
            leave_out=_tell_left_out if leaves_out else None,
            keep_old=keep_old,
        )
    except StorageError as error:
        progress.end()
        raise click.ClickException(str(error)) from error
    progress.end()
    if migrated is None:
        click.echo(f"{directory} has today's format: there is nothing to do", err=True)
        return
    done = f"{directory} was brought over from format {migrated.version}"
    if migrated.read:
        done += f": {migrated.read} records{progress.rate}"
    if migrated.left_out:
        done += (
            f", {migrated.left_out} left out; `hashrange check --repair {directory}` puts the totals right"
        )
    click.echo(done, err=True)
    if migrated.kept is not None:
        click.echo(f"the old store is kept in {migrated.kept}", err=True)


def _tell_left_out(message: str) -> None:
    click.echo(f"left out: {message}", err=True)
