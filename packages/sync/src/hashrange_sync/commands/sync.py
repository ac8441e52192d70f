"""`hashrange sync`: keep tables equal with those of the cloud."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
import msgspec

from hashrange.cli import logs
from hashrange.cli.forms import (
    JSON,
    format_option,
    limit_option,
    log_format_option,
    print_json,
    print_lines,
    yes_option,
)
from hashrange.cli.remote.connecting import needed

_EPILOG: Final = """\b
Examples:
  hashrange sync once sync.toml --dry-run     what a first copy will take
  hashrange sync run sync.toml                keep all pairs equal, until Ctrl-C
  hashrange sync status sync.toml
  hashrange sync conflicts list sync.toml

\b
In sync.toml:
  [cloud]
  region = "eu-central-1"
  [edge]
  endpoint = "http://127.0.0.1:8000"
  [[pairs]]
  table = "orders"
  conflicts = "newest: updated"

packages/sync/docs/sync.md has all settings."""

_FILE: Final = click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
_PAIR: Final = click.option("--pair", "name", metavar="NAME", help="Only this pair.  [default: all]")
_DEFINITIONS: Final = click.option(
    "--definitions",
    is_flag=True,
    help="First make a table that is missing, streams, global indexes and times to live.",
)


@click.group("sync", epilog=_EPILOG)
def command() -> None:
    """Keep tables equal with those of the cloud, through outages of either side."""


@contextmanager
def _open(file: Path) -> Iterator[Any]:
    """The sync of a settings file. Its errors become a line."""
    needed()
    from hashrange_sync.commands.following import explained
    from hashrange_sync.settings import load
    from hashrange_sync.sync import Sync

    with explained(), Sync(load(file)) as sync:
        yield sync


def _pairs(sync: Any, name: str | None) -> list[Any]:
    return [sync.pair(name)] if name else list(sync.pairs)


def _begin(sync: Any, *, definitions: bool) -> None:
    """Align the tables if that is asked for, and say what a first copy will take."""
    from hashrange_sync.commands.following import tell_first_copies

    for pair in sync.pairs:
        for done in pair.align() if definitions else ():
            click.echo(f"{pair.settings.title}: {done}", err=True)
    tell_first_copies(sync)


@command.command("run")
@_FILE
@_DEFINITIONS
@click.option(
    "--metrics",
    type=click.IntRange(1, 65_535),
    metavar="PORT",
    help="Serve /metrics on this port of the machine.",
)
@log_format_option
def run(file: Path, definitions: bool, metrics: int | None, log_format: str) -> None:
    """Keep all pairs of FILE equal, until a signal stops the command.

    Nothing is lost if the command is killed. A pair that fails is tried again, and `status` shows the cause.
    """
    from hashrange_sync.commands.following import run_until_signal, young_objects_only

    logs.configure(log_format, "info", sys.stderr)
    with _open(file) as sync, young_objects_only():
        _begin(sync, definitions=definitions)
        if metrics is not None:
            from hashrange_sync.commands.serving import serve

            try:
                serve(sync, metrics)
            except OSError as error:
                raise click.ClickException(f"Port {metrics} cannot be used: {error.strerror}.") from error
        run_until_signal(sync)


@command.command("once")
@_FILE
@_DEFINITIONS
@click.option(
    "--dry-run",
    is_flag=True,
    help="Show what a first copy will take and how definitions differ; copy nothing.",
)
def once(file: Path, definitions: bool, dry_run: bool) -> None:
    """Make all pairs of FILE equal, then end."""
    from hashrange_sync.commands.following import young_objects_only
    from hashrange_sync.commands.shown import status_lines

    with _open(file) as sync, young_objects_only():
        if dry_run:
            for pair in sync.pairs:
                click.echo(f"{pair.settings.title}: first copy: {pair.estimate()}")
                for difference in pair.differences():
                    click.echo(f"  the definitions differ: {difference}")
            return
        _begin(sync, definitions=definitions)
        for status in sync.once():
            for line in status_lines(status):
                click.echo(line)


@command.command("status")
@_FILE
@format_option("How the status is printed.")
def status(file: Path, format_: str) -> None:
    """Show the state of each pair.

    The last process has stored this state at the edge.
    """
    from hashrange_sync.commands.shown import status_lines

    with _open(file) as sync:
        found = [pair.stored_status() for pair in sync.pairs]
    if format_ == JSON:
        print_json({"pairs": msgspec.to_builtins(found)})
        return
    for one in found:
        for line in status_lines(one):
            click.echo(line)


@command.group("conflicts")
def conflicts() -> None:
    """Show conflicts, and restore an image that lost."""


@conflicts.command("list")
@_FILE
@_PAIR
@limit_option("Show at most N, the newest first.")
@format_option("How conflicts are printed: in columns, or as a JSON object on a line.")
def list_(file: Path, name: str | None, limit: int | None, format_: str) -> None:
    """List conflicts with their keys.

    A line has the id, the time, the kind, the winner and the key.
    """
    from hashrange_sync.commands.shown import conflict_document, conflict_line

    with _open(file) as sync:
        found = [entry for pair in _pairs(sync, name) for entry in pair.log.entries()]
    found = sorted(found, key=lambda one: -one.at)[:limit]
    if format_ == JSON:
        print_lines(conflict_document(one, images=False) for one in found)
        return
    for one in found:
        click.echo(conflict_line(one))


@conflicts.command("show")
@_FILE
@click.argument("conflict")
def show(file: Path, conflict: str) -> None:
    """Print both images of a CONFLICT.

    The images are in DynamoDB's JSON.
    """
    from hashrange_sync.commands.shown import conflict_document

    with _open(file) as sync:
        _, found = sync.conflict(conflict)
    print_json(conflict_document(found, images=True))


@conflicts.command("restore")
@_FILE
@click.argument("conflict")
@click.option(
    "--side",
    type=click.Choice(["cloud", "edge"]),
    help="The side whose image is restored.  [default: the side that lost]",
)
@yes_option
def restore(file: Path, conflict: str, side: Any, yes: bool) -> None:
    """Restore an image of CONFLICT.

    The next sync copies the image to the other side.
    """
    from hashrange_sync.commands.shown import text_of

    with _open(file) as sync:
        pair, found = sync.conflict(conflict)
        side = side or ("cloud" if found.winner == "edge" else "edge")
        if not yes:
            click.confirm(f"Write {text_of(found.image(side))} to {pair.settings.title}?", abort=True)
        where = pair.restore(found, side)
    click.echo(f"The {side}'s image is in the {where}'s table again.")


@command.command("verify")
@_FILE
@_PAIR
@limit_option("Print at most N keys that differ, for each pair.", default=20, show_default=True)
def verify(file: Path, name: str | None, limit: int) -> None:
    """Compare both tables of each pair.

    Every item is compared. The exit code is 1 if the tables differ.

    Both tables are read in full. Items that differ are read again, because they may just have been written.
    """
    from hashrange_sync.commands.shown import comparison_lines

    equal = True
    with _open(file) as sync:
        for pair in _pairs(sync, name):
            found = pair.verify(limit)
            equal = equal and found.is_equal
            for line in comparison_lines(pair.settings.title, found):
                click.echo(line)
    if not equal:
        raise click.exceptions.Exit(1)


@command.command("reset")
@_FILE
@_PAIR
@yes_option
def reset(file: Path, name: str | None, yes: bool) -> None:
    """Forget what both sides agreed on.

    The next run compares both tables as for a first copy: nothing is deleted, and items that differ are
    conflicts.
    """
    with _open(file) as sync:
        pairs = _pairs(sync, name)
        names = ", ".join(pair.settings.title for pair in pairs)
        if not yes:
            click.confirm(f"Forget the state of {names}?", abort=True)
        for pair in pairs:
            click.echo(f"{pair.settings.title}: {pair.reset()} items forgotten")


@command.command("policy")
@_FILE
@click.option(
    "--side",
    type=click.Choice(["cloud", "edge"]),
    default="cloud",
    show_default=True,
    help="The side that the policy is for.",
)
@click.option("--definitions", is_flag=True, help="Include what `run --definitions` needs.")
def policy(file: Path, side: Any, definitions: bool) -> None:
    """Print the least IAM policy of a side."""
    from hashrange_sync import rights
    from hashrange_sync.errors import SettingsError
    from hashrange_sync.settings import load

    try:
        settings = load(file)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error
    print_json(rights.policy(settings, side, definitions=definitions))
