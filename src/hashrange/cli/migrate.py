"""`hashrange migrate DIR`: upgrade a data directory of an older version to the current format."""

from __future__ import annotations

import os
from pathlib import Path

import click

from hashrange.cli.remote.progress import Progress
from hashrange.clock import SystemClock
from hashrange.storage.failures import StorageError


@click.command(
    "migrate",
    epilog="""\b
Exit codes: 0 the directory has the current format, 1 it could not be upgraded, 2 wrong usage.

\b
Examples:
  hashrange migrate ./hashrange-data
  hashrange migrate /var/lib/hashrange --keep-old""",
)
@click.argument("directory", type=click.Path(exists=True, file_okay=False, path_type=Path), metavar="DIR")
@click.option(
    "--keep-old",
    is_flag=True,
    help="Keep the old store as a separate data directory, DIR/format-N, for the older version.",
)
@click.option(
    "--leave-out",
    "leaves_out",
    is_flag=True,
    help="Leave out records that cannot be converted because they are damaged, print a line for each, and "
    "keep the old store. Without this option the first such record ends the migration.",
)
def command(directory: Path, keep_old: bool, leaves_out: bool) -> None:
    """Upgrade the data directory DIR of an older version to the current format.

    A new store is made beside the old one, which is only read until the new store is complete and replaces
    it; so the disk needs room for both. The command may be stopped or killed at any moment: run it again, and
    it continues where it was. No server may have the directory open.
    """
    from hashrange.storage.embedded.offline.migration import migrate
    from hashrange.tables import formats

    os.umask(0o077)  # only the owner may read the files that RocksDB writes
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
