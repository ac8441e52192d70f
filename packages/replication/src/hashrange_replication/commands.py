"""`hashrange replica`: restores, verifies and shows copies; promotes standbys."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import click
import orjson

from hashrange.cli.forms import JSON, format_option
from hashrange.cli.remote.asking import Plane, ask, plane_options
from hashrange.clock import SystemClock, parse_moment, show_moment
from hashrange_replication import costs, status
from hashrange_replication.failures import ERRORS, CopyError
from hashrange_replication.format.sealing import Key, read_key
from hashrange_replication.lease import read_record, register
from hashrange_replication.place import Place, patient, place_of
from hashrange_replication.progress import restoring, show_line, told
from hashrange_replication.restore import restore
from hashrange_replication.standby.telling import forget
from hashrange_replication.state import new_owner
from hashrange_replication.verify import Report, verify

_EPILOG: Final = """\b
Examples:
  hashrange replica restore --copy s3://bucket/orders --data-dir ./restored
  hashrange replica restore --copy s3://bucket/orders --data-dir ./before --at 2026-11-28T09:59:00Z
  hashrange replica verify --copy /mnt/nas/orders
  hashrange replica verify --copy /mnt/nas/orders --restore
  hashrange replica status --copy s3://bucket/orders
  hashrange replica promote --endpoint-url http://127.0.0.1:8001

A copy is what `hashrange serve --copy-to` ships. See packages/replication/docs/replication.md."""
_MIB: Final = 1 << 20

_COPY: Final = click.option(
    "--copy", "where", required=True, metavar="PLACE", help="s3://bucket/prefix or a folder."
)
_KEY: Final = click.option(
    "--copy-key-file",
    "key_file",
    type=click.Path(path_type=Path, dir_okay=False),
    envvar="HASHRANGE_COPY_KEY_FILE",
    metavar="FILE",
    help="The key file of an encrypted copy.",
)
_ENDPOINT: Final = click.option(
    "--s3-endpoint",
    "endpoint",
    default="",
    envvar="HASHRANGE_S3_ENDPOINT",
    metavar="URL",
    help="A store other than AWS that speaks S3's protocol.",
)


@click.group("replica", epilog=_EPILOG)
def command() -> None:
    """Restore, verify and show copies of data directories in buckets; promote standbys."""


@command.command("restore", short_help="Make a data directory from a copy.")
@_COPY
@click.option(
    "--data-dir",
    "directory",
    required=True,
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="A new or an empty directory.",
)
@click.option("--at", metavar="TIME", help="The moment to restore.  [default: the newest]")
@_KEY
@_ENDPOINT
def restore_command(
    where: str, directory: Path, at: str | None, key_file: Path | None, endpoint: str
) -> None:
    """Make a data directory from a copy: all that was committed until a moment, with streams, history and
    backups. `hashrange serve --data-dir DIR --copy-to PLACE` then continues the copy."""
    with _errors():
        place, key = _opened(where, key_file, endpoint)
        until = _moment(at)
        restored = restore(
            place, directory, key, owner=new_owner(os.urandom), until=until, progress=restoring()
        )
    click.echo(f"{directory}: {told(restored)}")


@command.command("verify", short_help="Verify every object of a copy.")
@_COPY
@click.option(
    "--restore",
    "drills",
    is_flag=True,
    help="Also restore to a scratch directory, check that store, and print a digest of each table.",
)
@click.option(
    "--scratch",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="Where --restore makes its directory, which it removes.  [default: that of temporary files]",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="DIR",
    help="With --restore: a data directory, in use by no server, that must have the same tables.",
)
@_KEY
@_ENDPOINT
def verify_command(
    where: str, drills: bool, scratch: Path | None, against: Path | None, key_file: Path | None, endpoint: str
) -> None:
    """Read every object of a copy, and compare digests and chains. Exit code 1: something is lost or
    damaged."""
    if against is not None and not drills:
        raise click.UsageError("--against compares with what --restore has made; give both.")
    with _errors():
        place, key = _opened(where, key_file, endpoint)
        report = verify(place, key, _verifying())
        problems = list(report.problems)
        _print(report)
        if drills:
            problems += _drill(place, key, scratch, against)
    for problem in problems:
        click.echo(problem, err=True)
    if problems:
        raise click.exceptions.Exit(1)
    click.echo("nothing is lost or damaged")


@command.command("status", short_help="Show which server ships to a copy, its progress and its cost.")
@_COPY
@_KEY
@_ENDPOINT
@format_option("How the status is printed: as lines of text, or as a JSON object.")
def status_command(where: str, key_file: Path | None, endpoint: str, format_: str) -> None:
    """Show which server ships to a copy, how far it is, and what the copy costs in a month on S3."""
    with _errors():
        place, key = _opened(where, key_file, endpoint)
        shown = status.status(place, key, SystemClock().now())
    if format_ == JSON:
        click.echo(orjson.dumps(shown))
        return
    standbys = shown.pop("standbys")
    for name, value in shown.items():
        click.echo(f"{name.replace('_', ' '):20} {value}")
    for one in standbys:
        click.echo(f"standby {one['id']}: {_standby(one)}")
    prices = f"${costs.STORAGE_GB_MONTH} a GiB, ${costs.WRITES_1000} a thousand PUTs"
    click.echo(f"(prices of S3 Standard in us-east-1: {prices})")


@command.command("promote", short_help="Make a standby the primary.")
@click.option(
    "--force",
    is_flag=True,
    help="Promote even if the primary has not agreed to this standby. Use this only if the primary is dead "
    "for certain: otherwise both acknowledge writes.",
)
@plane_options
def promote_command(plane: Plane, force: bool) -> None:
    """Make a standby the primary. The standby waits until the lease of the former primary has run out, up to
    18 seconds, applies all that the copy has, and then ships to the copy."""
    done = ask(plane, "/v1/promote", "epoch", "hashrange standby", {"force": force})
    click.echo(f"the primary in epoch {done['epoch']}, from commit {done['batch']} on")


@command.command("withdraw", short_help="Withdraw a standby that is lost.")
@_COPY
@_ENDPOINT
def withdraw_command(where: str, endpoint: str) -> None:
    """Withdraw the registered standby, which is lost or no longer wanted. Then the primary no longer depends
    on the bucket, and another standby may register."""
    with _errors():
        place, _ = _opened(where, None, endpoint)
        found = patient(lambda: read_record(place))
        standby = found[0].standby if found is not None else ""
        if not standby:
            raise CopyError(f"The copy at {place.shown} has no standby.")
        while not register(place, ""):
            continue  # the primary has renewed the lease meanwhile
        forget(place, standby)
    click.echo(f"withdrawn: {standby}; in a few seconds the primary no longer depends on the bucket")


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except ERRORS as error:
        raise click.ClickException(str(error)) from error


def _opened(where: str, key_file: Path | None, endpoint: str) -> tuple[Place, Key | None]:
    place = place_of(where, endpoint)
    place.check()
    return place, read_key(key_file, os.urandom) if key_file is not None else None


def _standby(one: dict[str, Any]) -> str:
    may = "may be promoted" if one["may_be_promoted"] else "not agreed to by the primary"
    lag = f"{one['lag_seconds']} s behind at commit {one['batch']}, {one['seen_seconds_ago']} s ago"
    return f"{one['where']}; {lag}; {may}"


def _moment(at: str | None) -> int | None:
    if at is None:
        return None
    try:
        return int(parse_moment(at, SystemClock().now()) * 1_000)
    except ValueError as error:
        raise click.BadParameter(str(error), param_hint="--at") from None


def _verifying() -> Callable[[int, int], None]:
    return lambda done, total: show_line(
        f"verified: {done / _MIB:.0f} of {total / _MIB:.0f} MiB", done >= total
    )


def _print(report: Report) -> None:
    click.echo(
        f"{report.objects} objects, {report.bytes / _MIB:.1f} MiB: {len(report.bases)} bases, "
        f"{report.segments} segments"
    )
    if report.moment:
        click.echo(f"restores up to {show_moment(report.moment / 1_000)}")
    if report.unneeded:
        click.echo(f"{len(report.unneeded)} objects that no base needs, which the retention deletes")


def _drill(place: Place, key: Key | None, scratch: Path | None, against: Path | None) -> list[str]:
    """Restore, check and compare; returns what is wrong."""
    from hashrange_replication.drill import examine

    with tempfile.TemporaryDirectory(prefix="hashrange-drill-", dir=scratch) as folder:
        restored = restore(place, Path(folder) / "data", key, owner="drill", progress=restoring())
        click.echo(told(restored))
        tables, problems = examine(Path(folder) / "data")
    for table in tables:
        click.echo(f"{table.digest}  {table.items:>12} items  {table.table}")
    if against is None:
        return problems
    others: dict[str, Any] = {table.table: table for table in examine(against)[0]}
    found = {table.table: table for table in tables}
    return problems + [
        f"{name}: the copy differs from {against}"
        for name in sorted(others.keys() | found.keys())
        if others.get(name) != found.get(name)
    ]
