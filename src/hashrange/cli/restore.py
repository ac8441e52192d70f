"""`hashrange restore`: make tables from backups, including folders from another machine."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any, Final

import click

from hashrange.cli.backup import START, find, listed
from hashrange.cli.remote.asking import Plane, ask, plane_options
from hashrange.cli.remote.progress import wait
from hashrange.files.durable import make_directory
from hashrange.tables.jobs.backups import files
from hashrange.tables.jobs.backups.files import Damaged, Manifest

_EPILOG: Final = """\b
Examples:
  hashrange restore 01763812345678-1a2b3c4d                  into a table with its old name
  hashrange restore 01763812345678-1a2b3c4d --to orders-before
  hashrange restore /mnt/usb/orders-01763812345678-1a2b3c4d  a folder from another machine
  hashrange restore --all                                    the newest backup of each table
  hashrange restore --all --name before-migration            only backups with this name
  hashrange restore --all /mnt/usb/backups                   the backups in another machine's directory

A backup is named by its id, its ARN or its folder; `hashrange backup list` shows the server's backups. A
folder that the server does not have is verified by its checksums and copied into the server's directory of
backups. The new table cannot be used until it has all items. The server finishes it even if this command or
the server is stopped meanwhile. Existing tables are not changed. See docs/backups.md."""


@click.command("restore", epilog=_EPILOG)
@click.argument("backups", nargs=-1, metavar="[BACKUP]...")
@click.option("--to", "target", help="The name of the new table, if one backup is restored.")
@click.option("--all", "every", is_flag=True, help="Restore the newest backup of each table.")
@click.option("--name", help="With --all: only backups with this name.")
@plane_options
def command(
    plane: Plane, backups: tuple[str, ...], target: str | None, every: bool, name: str | None
) -> None:
    """Restore tables from backups."""
    if not every and not backups:
        raise click.UsageError("Name the backups to restore, or give --all.")
    if target is not None and (every or len(backups) != 1):
        raise click.UsageError("--to needs exactly one backup.")
    if every:
        chosen = _newest(plane, [Path(directory) for directory in backups], name)
    else:
        chosen = [_backup_of(plane, argument) for argument in backups]
    existing = {table["name"] for table in _tables(plane)}
    failed = False
    begun: list[tuple[str, dict[str, Any]]] = []
    for backup in chosen:
        if target is None and backup["table"] in existing:
            click.echo(f"{backup['table']}: a table with this name exists, and is left alone", err=True)
            failed = True
            continue
        request = {"backup": backup["id"], **({"table": target} if target is not None else {})}
        answer = ask(plane, "/v1/restores", "table", START, request)
        begun.append((str(answer["table"]), backup))
    for table_name, backup in begun:
        wait(table_name, lambda table_name=table_name: _progress(plane, table_name))  # type: ignore[misc]
        problem = find(plane, backup["id"])["problem"]
        if problem is not None or all(table["name"] != table_name for table in _tables(plane)):
            click.echo(f"{table_name}: not restored: {problem or 'somebody has deleted the table'}", err=True)
            failed = True
        else:
            click.echo(f"{table_name}: restored {backup['items']} items from {backup['id']}")
    if failed:
        raise click.exceptions.Exit(1)


def _tables(plane: Plane) -> list[dict[str, Any]]:
    tables: list[dict[str, Any]] = ask(plane, "/v1/tables", "tables", START)["tables"]
    return tables


def _progress(plane: Plane, table: str) -> float | None:
    """The share of a restore that is done; None: it has ended."""
    description = next((each for each in _tables(plane) if each["name"] == table), None)
    if description is None or description["restore"] is None:
        return None
    for failure in ask(plane, "/health", "status", START).get("failing", ()):
        if failure["unit"] == f"restore of {table}":
            raise click.ClickException(
                f"Table {table} cannot be restored now: {failure['error']} The server tries again; "
                "delete the table to cancel the restore."
            )
    return float(description["restore"]["progress"])


def _newest(plane: Plane, directories: list[Path], name: str | None) -> list[dict[str, Any]]:
    """The newest backup of each table, on the server or in directories."""
    if directories:
        paths = [path for directory in directories for path in sorted(directory.iterdir())]
        newest: dict[str, tuple[Manifest, Path]] = {}
        for folder in filter(_is_backup, paths):
            manifest = _manifest(folder)
            earlier = newest.get(manifest.table_name)
            is_chosen = name is None or manifest.name == name
            if is_chosen and (earlier is None or earlier[0].created < manifest.created):
                newest[manifest.table_name] = manifest, folder
        backups = [_of_folder(plane, folder) for _, folder in newest.values()]
    else:
        available = [backup for backup in listed(plane) if backup["status"] == "AVAILABLE"]
        by_table = {
            backup["table"]: backup
            for backup in sorted(available, key=lambda backup: (backup["created"], backup["id"]))
            if name is None or backup["name"] == name
        }
        backups = list(by_table.values())
    if not backups:
        where = ", ".join(map(str, directories)) if directories else "the server's directory of backups"
        raise click.ClickException(f"There is no such backup in {where}.")
    return backups


def _backup_of(plane: Plane, argument: str) -> dict[str, Any]:
    """The backup that an argument names, which is copied to the server if necessary."""
    path = Path(argument)
    if path.is_dir():
        return _of_folder(plane, path)
    return find(plane, argument.rpartition("/")[2])


def _is_backup(folder: Path) -> bool:
    return not folder.name.startswith(".") and (folder / files.MANIFEST).is_file()


def _manifest(folder: Path) -> Manifest:
    try:
        return files.read_manifest(folder)
    except (Damaged, OSError) as error:
        raise click.ClickException(str(error)) from None


def _of_folder(plane: Plane, folder: Path) -> dict[str, Any]:
    """The backup in a folder, which is copied to the server if the server does not have it."""
    manifest = _manifest(folder)
    shown = ask(plane, "/v1/backups", "backups", START)
    for backup in shown["backups"]:
        if backup["id"] == manifest.id:
            return dict(backup)
    if shown["directory"] is None:
        raise click.ClickException("The server has no directory for backups; start it with --backup-dir.")
    directory = Path(shown["directory"])
    # The server ignores a folder whose name begins with a dot, so the copy gets its name when it is complete.
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
        ids[:] = [backup["id"] for backup in listed(plane)]
        return None if manifest.id in ids else 0.0

    wait(f"copying {name}", is_found)
    return find(plane, manifest.id)
