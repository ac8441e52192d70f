"""`hashrange copy FROM TO`: take a store from a directory or PostgreSQL to another one."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hashrange.cli.asking import Plane, ask, plane_options
from hashrange.cli.progress import Progress
from hashrange.cli.stores import is_url, needs_driver
from hashrange.clock import SystemClock, show_moment
from hashrange.storage.api import DataDirectoryLocked, StorageError
from hashrange.storage.moving import Source, Target, copy

if TYPE_CHECKING:
    from hashrange.storage.embedded.moving import DirectorySource

START: Final = "hashrange serve"


@click.command(
    "copy",
    epilog="""\b
Exit codes: 0 the copy is complete, 1 it is not, 2 wrong usage.

\b
Examples:
  hashrange copy ./hashrange-data postgresql://hashrange@db.example/hashrange
  hashrange copy postgresql://hashrange@db.example/hashrange ./hashrange-data
  hashrange copy ./hashrange-data /mnt/new-disk/hashrange-data

\b
To change over without losing a write: try the copy while the servers run, then
  1. stop all servers of FROM
  2. hashrange copy FROM TO, with TO as new as for the first copy
  3. start servers on TO

The copy is of one moment: what is written to FROM later is not in it. Backups, and the buckets of imports and
exports, are folders beside the store: move them yourself. docs/postgresql.md tells more.""",
)
@click.argument("origin", type=click.Path(), metavar="FROM")
@click.argument("target", type=click.Path(), metavar="TO")
@click.option(
    "--from-schema",
    default="hashrange",
    show_default=True,
    metavar="NAME",
    help="Schema of FROM in PostgreSQL.",
)
@click.option(
    "--to-schema",
    default="hashrange",
    show_default=True,
    metavar="NAME",
    help="Schema of TO in PostgreSQL, made where missing.",
)
@plane_options
def command(origin: str, target: str, from_schema: str, to_schema: str, plane: Plane) -> None:
    """Copy the store FROM to the new store TO.

    Each of them is a data directory, or a URL as postgresql://user@host/database. Servers over FROM may go on
    meanwhile: the copy is of one moment, with tables, indexes, streams, history and all else as they were
    then. A server over a directory makes a checkpoint for it, through its admin plane. Everything is read
    back and compared before TO becomes a store that servers open. If the command is stopped or killed,
    servers refuse TO; run it again, and it begins anew.
    """
    os.umask(0o077)  # what RocksDB writes is for its owner only
    _check_different(origin, target)
    progress = Progress("copying", "verifying")
    try:
        with ExitStack() as stack:
            source, name = stack.enter_context(_source(origin, from_schema, plane))
            stack.callback(source.close)
            moment = show_moment(SystemClock().now())
            made = _target(target, to_schema, name)
            stack.callback(made.close)
            copied = copy(source, made, progress)
    except StorageError as error:
        progress.end()
        raise click.ClickException(str(error)) from error
    progress.end()
    records = "1 record" if copied.records == 1 else f"{copied.records} records"
    click.echo(f"copied and compared {records} of {name}, as it was at {moment}", err=True)


def _check_different(origin: str, target: str) -> None:
    if is_url(origin) or is_url(target):
        return
    if Path(target).resolve().is_relative_to(Path(origin).resolve()):
        raise click.UsageError(f"TO is FROM, or a folder in it: {target}")


@contextmanager
def _source(origin: str, schema: str, plane: Plane) -> Iterator[tuple[Source, str]]:
    """The store FROM at one moment, and its name."""
    if is_url(origin):
        with needs_driver():
            from hashrange.storage.postgres.snapshot import Snapshot

        snapshot = Snapshot(origin, schema)
        yield snapshot, snapshot.place
        return
    directory = Path(origin)
    if not directory.is_dir():
        raise click.ClickException(f"There is no directory {origin}, and it is no URL as postgresql://...")
    try:
        source = _directory_source(directory)
    except DataDirectoryLocked:
        with _checkpoint(directory, plane) as checkpoint:
            yield _directory_source(checkpoint), origin
        return
    yield source, origin


def _directory_source(directory: Path) -> DirectorySource:
    from hashrange.storage.embedded.moving import DirectorySource
    from hashrange.tables.inspection.numbering import find_logs

    return DirectorySource(directory, find_logs)


@contextmanager
def _checkpoint(directory: Path, plane: Plane) -> Iterator[Path]:
    """A checkpoint of a directory, made by the server that holds it."""
    from hashrange.storage.embedded.mark import DamagedMark
    from hashrange.storage.embedded.moving import is_same_store, remove_checkpoint

    try:
        made = Path(ask(plane, "/checkpoints", "checkpoint", START, {})["checkpoint"])
    except click.ClickException as error:
        raise click.ClickException(
            f"{directory} is in use, so the server over it has to make a checkpoint. {error.message}"
        ) from None
    try:
        try:
            same = is_same_store(directory, made)
        except (OSError, DamagedMark) as error:
            raise click.ClickException(
                f"The checkpoint {made} of the server at {plane.server} cannot be read: {error}. Run this "
                "command as the user of that server, and where it runs."
            ) from None
        if not same:
            raise click.ClickException(
                f"The server at {plane.server} is over another store: it made a checkpoint in {made}. Name "
                f"the server over {directory} with --endpoint-url."
            )
        yield made
    finally:
        with suppress(OSError):
            remove_checkpoint(made)


def _target(target: str, schema: str, origin: str) -> Target:
    if is_url(target):
        with needs_driver():
            from hashrange.storage.postgres.moving import SchemaTarget

        return SchemaTarget(target, schema)
    if re.match(r"[a-z]+://", target):
        raise click.ClickException(f"{target} is no URL of PostgreSQL: it begins with postgresql://")
    from hashrange.storage.embedded.moving import DirectoryTarget

    return DirectoryTarget(Path(target), origin)
