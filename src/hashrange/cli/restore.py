"""`hashrange restore`: make tables of backups, also of folders from another machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import click

from hashrange.cli.asking import Plane, ask, plane_options
from hashrange.cli.backup import START, find, listed
from hashrange.cli.waiting import wait
from hashrange.durable_files import make_directory
from hashrange.tables.backups import files
from hashrange.tables.backups.files import Damaged, Manifest

_EPILOG: Final = """\b
Examples:
  hashrange restore 01763812345678-1a2b3c4d                  into a table with the name that it had
  hashrange restore 01763812345678-1a2b3c4d --to orders-before
  hashrange restore /mnt/usb/orders-01763812345678-1a2b3c4d  a folder from another machine
  hashrange restore --all                                    the newest backup of each table
  hashrange restore --all --name before-migration            those with this name
  hashrange restore --all /mnt/usb/backups                   those of another machine's directory

A backup is named by its id, its ARN or its folder; `hashrange backup --list` shows those of the server. A
folder that the server does not have is compared with its checksums and copied into the server's directory of
backups. The new table cannot be used until it has all items. If this command or the server is stopped, the
server goes on. A table that exists is left alone. docs/backups.md tells more."""


@click.command("restore", epilog=_EPILOG)
@click.argument("backups", nargs=-1, metavar="[BACKUP]...")
@click.option("--to", "target", help="The name of the new table, for one backup.")
@click.option("--all", "every", is_flag=True, help="Restore the newest backup of each table.")
@click.option("--name", help="With --all: only backups with this name.")
@plane_options
def command(
    plane: Plane, backups: tuple[str, ...], target: str | None, every: bool, name: str | None
) -> None:
    """Make tables of backups."""
    if not every and not backups:
        raise click.UsageError("Name the backups to restore, or give --all.")
    if target is not None and (every or len(backups) != 1):
        raise click.UsageError("--to is for one backup.")
    if every:
        wanted = _newest(plane, [Path(one) for one in backups], name)
    else:
        wanted = [_known(plane, one) for one in backups]
    taken = {one["name"] for one in _tables(plane)}
    failed = False
    begun: list[tuple[str, dict[str, Any]]] = []
    for one in wanted:
        if target is None and one["table"] in taken:
            click.echo(f"{one['table']}: a table with this name exists, and is left alone", err=True)
            failed = True
            continue
        asked = {"backup": one["id"], **({"table": target} if target is not None else {})}
        answer = ask(plane, "/restores", "table", START, asked)
        begun.append((str(answer["table"]), one))
    for table, one in begun:
        wait(table, lambda table=table: _progress(plane, table))  # type: ignore[misc]
        problem = find(plane, one["id"])["problem"]
        if problem is not None or all(known["name"] != table for known in _tables(plane)):
            click.echo(f"{table}: not restored: {problem or 'somebody has deleted the table'}", err=True)
            failed = True
        else:
            click.echo(f"{table}: restored {one['items']} items from {one['id']}")
    if failed:
        raise click.exceptions.Exit(1)


def _tables(plane: Plane) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = ask(plane, "/tables", "tables", START)["tables"]
    return found


def _progress(plane: Plane, table: str) -> float | None:
    """How far a restore is; None: it has ended."""
    shown = next((one for one in _tables(plane) if one["name"] == table), None)
    if shown is None or shown["restore"] is None:
        return None
    for one in ask(plane, "/health", "status", START).get("failing", ()):
        if one["unit"] == f"restore of {table}":
            raise click.ClickException(
                f"Table {table} cannot be restored now: {one['error']} The server tries again; delete the "
                "table to give it up."
            )
    return float(shown["restore"]["progress"])


def _newest(plane: Plane, directories: list[Path], name: str | None) -> list[dict[str, Any]]:
    """The newest backup of each table: of the server, or of directories."""
    if directories:
        folders = [one for directory in directories for one in sorted(directory.iterdir()) if _is_backup(one)]
        newest: dict[str, tuple[Manifest, Path]] = {}
        for folder in folders:
            manifest = _manifest(folder)
            known = newest.get(manifest.table_name)
            is_wanted = name is None or manifest.name == name
            if is_wanted and (known is None or known[0].created < manifest.created):
                newest[manifest.table_name] = manifest, folder
        found = [_of_folder(plane, folder) for _, folder in newest.values()]
    else:
        available = [one for one in listed(plane) if one["status"] == "AVAILABLE"]
        by_table = {
            one["table"]: one
            for one in sorted(available, key=lambda one: (one["created"], one["id"]))
            if name is None or one["name"] == name
        }
        found = list(by_table.values())
    if not found:
        where = ", ".join(map(str, directories)) if directories else "the server's directory of backups"
        raise click.ClickException(f"There is no such backup in {where}.")
    return found


def _known(plane: Plane, given: str) -> dict[str, Any]:
    """The backup that an argument names, after it was copied if need be."""
    path = Path(given)
    if path.is_dir():
        return _of_folder(plane, path)
    return find(plane, given.rpartition("/")[2])


def _is_backup(folder: Path) -> bool:
    return not folder.name.startswith(".") and (folder / files.MANIFEST).is_file()


def _manifest(folder: Path) -> Manifest:
    try:
        return files.read_manifest(folder)
    except (Damaged, OSError) as error:
        raise click.ClickException(str(error)) from None


def _of_folder(plane: Plane, folder: Path) -> dict[str, Any]:
    """The backup in a folder, which is copied to the server if it does not have it."""
    manifest = _manifest(folder)
    shown = ask(plane, "/backups", "backups", START)
    for one in shown["backups"]:
        if one["id"] == manifest.id:
            return dict(one)
    if shown["directory"] is None:
        raise click.ClickException("The server has no directory of backups; start it with --backup-dir.")
    directory = Path(shown["directory"])
    # A folder with a dot before its name is not looked at until it is whole.
    name = f"{manifest.table_name}-{manifest.id}"
    copy = directory / f".{name}.copy"
    try:
        files.check_sizes(folder, manifest)
        for file in manifest.files:
            files.check_content(folder, file, lambda: None)
        make_directory(directory)
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(folder, copy)
        files.publish(copy, directory / name)
    except (Damaged, OSError) as error:
        shutil.rmtree(copy, ignore_errors=True)
        raise click.ClickException(f"{folder} cannot be restored: {error}") from None
    ids: list[str] = []

    def is_found() -> float | None:
        ids[:] = [one["id"] for one in listed(plane)]
        return None if manifest.id in ids else 0.0

    wait(f"copying {name}", is_found)
    return find(plane, manifest.id)
