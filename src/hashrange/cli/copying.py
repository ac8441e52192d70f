"""`hashrange copy FROM TO`: copy a store from a directory or PostgreSQL to another."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hashrange.cli.forms import counted
from hashrange.cli.remote.asking import Plane, ask, plane_options
from hashrange.cli.remote.progress import Progress
from hashrange.cli.stores import is_url, schema_option, stores_of
from hashrange.clock import SystemClock, show_moment
from hashrange.storage.failures import DataDirectoryLocked, StorageError
from hashrange.storage.store_copy import CopySource, CopyTarget, copy

if TYPE_CHECKING:
    from hashrange.storage.embedded.offline.directory_copy import DirectorySource

START: Final = "hashrange serve"


@click.command(
    "copy",
    epilog="""\b
Exit codes: 0 the copy is complete, 1 it is incomplete, 2 wrong usage.

\b
Examples:
  hashrange copy ./hashrange-data postgresql://hashrange@db.example/hashrange
  hashrange copy postgresql://hashrange@db.example/hashrange ./hashrange-data
  hashrange copy ./hashrange-data /mnt/new-disk/hashrange-data

\b
To switch without losing a write: try the copy while the servers run, then
  1. stop all servers of FROM
  2. hashrange copy FROM TO, with TO as new as for the first copy
  3. start servers on TO

The copy has no later writes to FROM. Backups, and the buckets of imports and exports, are folders beside the
store: move these folders yourself. See packages/postgres/docs/postgresql.md.""",
)
@click.argument("origin", type=click.Path(), metavar="FROM")
@click.argument("target", type=click.Path(), metavar="TO")
@schema_option("--from-schema", "Schema of FROM in PostgreSQL.")
@schema_option("--to-schema", "Schema of TO in PostgreSQL, created if it is missing.")
@plane_options
def command(origin: str, target: str, from_schema: str, to_schema: str, plane: Plane) -> None:
    """Copy the store FROM to the new store TO.

    FROM and TO are data directories, or URLs such as postgresql://user@host/database. The servers of FROM
    may keep running: the copy has the state of one moment, with tables, indexes, streams and history. The
    server of a directory makes a checkpoint for the copy, through its admin plane. The copy is read back and
    compared before servers can open TO. If the command is stopped or killed, servers refuse TO; run the
    command again, which starts from the beginning.
    """
    os.umask(0o077)  # only the owner may read the files that RocksDB writes
    _check_different(origin, target)
    progress = Progress("copying", "verifying")
    try:
        with ExitStack() as stack:
            source, name = stack.enter_context(_source(origin, from_schema, plane))
            stack.callback(source.close)
            moment = show_moment(SystemClock().now())
            writer = _target(target, to_schema, name)
            stack.callback(writer.close)
            copied = copy(source, writer, progress)
    except StorageError as error:
        progress.end()
        raise click.ClickException(str(error)) from error
    progress.end()
    records = counted(copied.records, "record")
    click.echo(f"copied and compared {records} of {name}, as it was at {moment}", err=True)


def _check_different(origin: str, target: str) -> None:
    if is_url(origin) or is_url(target):
        return
    if Path(target).resolve().is_relative_to(Path(origin).resolve()):
        raise click.UsageError(f"TO is FROM, or a folder in FROM: {target}")


@contextmanager
def _source(origin: str, schema: str, plane: Plane) -> Iterator[tuple[CopySource, str]]:
    """The store FROM at one moment, and its name."""
    if is_url(origin):
        snapshot = stores_of(origin).snapshot(origin, schema)
        yield snapshot, snapshot.place
        return
    directory = Path(origin)
    if not directory.is_dir():
        raise click.ClickException(
            f"There is no directory {origin}, and it is not a URL such as postgresql://..."
        )
    try:
        source = _directory_source(directory)
    except DataDirectoryLocked:
        with _checkpoint(directory, plane) as checkpoint:
            yield _directory_source(checkpoint), origin
        return
    yield source, origin


def _directory_source(directory: Path) -> DirectorySource:
    from hashrange.storage.embedded.offline.directory_copy import DirectorySource
    from hashrange.tables.inspection.numbering import find_logs

    return DirectorySource(directory, find_logs)


@contextmanager
def _checkpoint(directory: Path, plane: Plane) -> Iterator[Path]:
    """A checkpoint of a directory, made by the server that has it open."""
    from hashrange.storage.embedded.files.mark import DamagedMark
    from hashrange.storage.embedded.offline.directory_copy import is_same_store, remove_checkpoint

    try:
        checkpoint = Path(ask(plane, "/v1/checkpoints", "checkpoint", START, {})["checkpoint"])
    except click.ClickException as error:
        raise click.ClickException(
            f"{directory} is in use, so its server has to make a checkpoint. {error.message}"
        ) from None
    try:
        try:
            same = is_same_store(directory, checkpoint)
        except (OSError, DamagedMark) as error:
            raise click.ClickException(
                f"The checkpoint {checkpoint} of the server at {plane.server} cannot be read: {error}. Run "
                "this command on that server's machine, and as its user."
            ) from None
        if not same:
            raise click.ClickException(
                f"The server at {plane.server} has another store: it made a checkpoint in {checkpoint}. Name "
                f"the server of {directory} with --endpoint-url."
            )
        yield checkpoint
    finally:
        with suppress(OSError):
            remove_checkpoint(checkpoint)


def _target(target: str, schema: str, origin: str) -> CopyTarget:
    if is_url(target):
        return stores_of(target).target(target, schema)
    from hashrange.storage.embedded.offline.directory_copy import DirectoryTarget

    return DirectoryTarget(Path(target), origin)
