"""`hashrange check STORE`: verify a store in a data directory or in PostgreSQL, and repair a directory."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import orjson

from hashrange.cli.forms import TEXT, counted, format_option
from hashrange.cli.stores import is_url, schema_option, stores_of
from hashrange.files.durable import private, sync, sync_directory
from hashrange.storage.api import Reader
from hashrange.storage.failures import StorageError, StoreDamaged
from hashrange.storage.store_copy import Numbers
from hashrange.tables.inspection.check import check
from hashrange.tables.inspection.mending import kept_lines, mend
from hashrange.tables.inspection.owners import owners
from hashrange.tables.inspection.problems import Problem

if TYPE_CHECKING:
    from hashrange.storage.embedded.offline.salvage import StoredRecords

_SOUND: Final = 0
_DAMAGED: Final = 1
_NOT_CHECKED: Final = 2


class _NotChecked(click.ClickException):
    """The store could not be checked."""

    exit_code = _NOT_CHECKED


@click.command(
    "check",
    epilog="""\b
Exit codes: 0 sound, 1 damage found, 2 not checked (not a store, in use, or wrong usage).

\b
Examples:
  hashrange check ./hashrange-data
  hashrange check ./hashrange-data --format json | jq -r .message
  hashrange check ./hashrange-data --repair
  hashrange check postgresql://hashrange@db.example/hashrange""",
)
@click.argument("store", type=click.Path())
@schema_option("--postgres-schema", "Schema in PostgreSQL.")
@format_option("How each problem is printed: as a line of text, or as a JSON object on a line.")
@click.option(
    "--repair",
    "repairs",
    is_flag=True,
    help="Accept the loss: make a sound store of the readable records, correct index entries, totals, sizes "
    "and expiry queues, delete records that no table owns, then check again. DIR/damaged-N keeps changed "
    "files and these records.",
)
def command(store: str, postgres_schema: str, format_: str, repairs: bool) -> None:
    """Verify STORE, a data directory or a URL such as postgresql://user@host/database, and print a line for
    each problem.

    The problems: missing and damaged files, records that cannot be read or decoded, index entries without
    items and items without entries, gaps between the shards of streams, wrong sizes and totals.

    No server may have the directory open. Without --repair nothing is changed, so the check also works on a
    copy or a read-only disk. A store in PostgreSQL is read in one snapshot, while its servers keep running.
    """
    on_postgres = is_url(store)
    if on_postgres and repairs:
        raise click.UsageError(
            "--repair is for directories. Restore a store in PostgreSQL from a backup of the database, or "
            "its tables from backups."
        )
    if not on_postgres:
        _check_directory(Path(store))
    try:
        if repairs:
            _repair(Path(store))
        shown = f"schema {postgres_schema}" if on_postgres else store
        click.echo(f"checking {shown}", err=True)
        count = 0
        problems = _on_postgres(store, postgres_schema) if on_postgres else _problems(Path(store))
        for problem in problems:
            count += 1
            if format_ == TEXT:
                click.echo(problem)
            else:
                click.echo(orjson.dumps(_fields(problem)))
    except (StorageError, click.ClickException) as error:
        raise _NotChecked(str(error)) from error
    finally:
        if sys.stderr.isatty():
            click.echo("\r\x1b[K", nl=False, err=True)
    if count:
        click.echo(f"{counted(count, 'problem')} found in {shown}", err=True)
        sys.exit(_DAMAGED)
    click.echo(f"no damage in {shown}", err=True)
    sys.exit(_SOUND)


def _check_directory(directory: Path) -> None:
    if not directory.is_dir():
        raise click.BadParameter(f"Directory {str(directory)!r} does not exist.", param_hint="STORE")
    if not any(directory.iterdir()):
        raise _NotChecked(f"{directory} is empty")


def _on_postgres(url: str, schema: str) -> Iterator[Problem]:
    """The problems of a store in PostgreSQL: in the engine's own tables, then in and between records."""
    snapshot = stores_of(url).snapshot(url, schema)
    try:
        yield from (Problem("", message) for message in snapshot.problems())
        yield from check(
            snapshot,
            progress=_progress,
            numbers_of=lambda logs: snapshot.numbers(),
            cleared=snapshot.cleared,
        )
    finally:
        snapshot.close()


def _problems(directory: Path) -> Iterator[Problem]:
    """The problems of the files, then of single records, then between records."""
    from hashrange.storage.embedded.files.damage import Damage
    from hashrange.storage.embedded.offline.salvage import StoredRecords

    store = StoredRecords(directory)
    try:
        for problem in store.verify(_progress):
            if isinstance(problem, Damage):
                yield Problem("", problem.message)
            else:
                yield Problem("", f"{problem.cause}; lost: {_lost(store, *problem.spaces)}")
        if not store.readable:
            yield Problem("", "no record can be read")
        else:
            numbers_of = partial(_numbers_of, store)
            yield from check(store, progress=_progress, numbers_of=numbers_of, cleared=store.cleared)
    finally:
        store.close()


def _numbers_of(store: StoredRecords, logs: set[int]) -> Numbers:
    from hashrange.storage.embedded.offline.directory_copy import Content

    try:
        return Content(store.directory, store.db, store.cleared).numbers(logs)
    except Exception as error:  # rocksdict raises plain Exception for damaged blocks
        raise StoreDamaged(str(error)) from error


def _lost(store: StoredRecords, first: int, last: int) -> str:
    """A description of the records in some spaces: the tables and indexes that they belong to."""
    names = [text for space, text in store.read(owners) if first <= space <= last]
    return "some records of " + (", ".join(names) if names else f"the spaces {first} to {last}")


def _repair(directory: Path) -> None:
    from hashrange.storage.embedded import EmbeddedEngine
    from hashrange.storage.embedded.offline.repair import aside, repair

    for done in repair(directory):
        click.echo(done, err=True)
    engine = EmbeddedEngine(directory)
    kept = aside(directory)
    try:
        for problem in mend(engine, progress=_progress):
            if problem.orphan is not None:
                engine.read(partial(_keep_records, space=problem.orphan, folder=kept))
            click.echo(f"repaired: {problem}", err=True)
    finally:
        engine.close()


def _keep_records(reader: Reader, space: int, folder: Path) -> None:
    """Write the records of a space, which are about to be deleted, to a file."""
    folder.mkdir(mode=0o700, exist_ok=True)
    path = folder / f"space-{space}.jsonl"
    with open(path, "wb", opener=private) as file:
        file.writelines(kept_lines(reader, space))
        file.flush()
        sync(file.fileno())
    sync_directory(folder)
    click.echo(f"the records of space {space} are kept in {path}", err=True)


def _fields(problem: Problem) -> dict[str, str | None]:
    return {
        "table": problem.table or None,
        "index": problem.index,
        "partition": problem.partition.hex() if problem.partition is not None else None,
        "sort": problem.sort.hex() if problem.sort is not None else None,
        "message": problem.message,
    }


def _progress(noun: str, records: int) -> None:
    """Show the progress, if stderr is a terminal: a log file need not have it."""
    if sys.stderr.isatty():
        click.echo(f"\r{noun}: {records} records\x1b[K", nl=False, err=True)
