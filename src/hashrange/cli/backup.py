"""`hashrange backup`: back up tables of a running server, through its admin plane."""

from __future__ import annotations

from typing import Any, Final

import click

from hashrange.cli.asking import Plane, ask, plane_options
from hashrange.cli.waiting import wait
from hashrange.clock import SystemClock, show_moment

START: Final = "hashrange serve"

_EPILOG: Final = """\b
Examples:
  hashrange backup orders                  one table; tells the folder of the backup
  hashrange backup orders users --name before-migration
  hashrange backup --all                   every table of the server
  hashrange backup --list                  the backups that there are
  aws dynamodb delete-backup --backup-arn ARN --endpoint-url http://localhost:8000

A backup is fixed when the command begins: what is written later is not in it. With several tables each has a
moment of its own. The server writes the files, to `--backup-dir` of `hashrange serve`, and goes on with them
if this command or the server is stopped. A backup is a folder: copy it to another machine, and restore it
there with `hashrange restore FOLDER`. docs/backups.md tells more."""


@click.command("backup", epilog=_EPILOG)
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--all", "every", is_flag=True, help="Back up all tables.")
@click.option("--name", help="The name of the backups; without it the present time.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the files are complete.")
@click.option("--list", "listing", is_flag=True, help="Show the backups, and begin none.")
@plane_options
def command(
    plane: Plane, tables: tuple[str, ...], every: bool, name: str | None, no_wait: bool, listing: bool
) -> None:
    """Back up tables of a running server into folders of files."""
    if listing:
        for one in listed(plane):
            _show(one)
        return
    if every == bool(tables):
        raise click.UsageError("Name the tables to back up, or give --all.")
    if every:
        found = ask(plane, "/tables", "tables", START)["tables"]
        tables = tuple(one["name"] for one in found if one["status"] in ("ACTIVE", "UPDATING"))
    name = name or show_moment(SystemClock().now()).replace(":", ".")
    # All of them are begun before the first is waited for, so that their moments are close together.
    begun = [_begin(plane, table, name) for table in tables]
    for table, id_ in zip(tables, begun, strict=True):
        if no_wait:
            click.echo(f"{table}: {id_} is being written")
            continue
        wait(table, lambda id_=id_: _progress(plane, id_))  # type: ignore[misc]
        _show(find(plane, id_))


def listed(plane: Plane) -> list[dict[str, Any]]:
    """The backups of a server, as its admin plane shows them."""
    found: list[dict[str, Any]] = ask(plane, "/backups", "backups", START)["backups"]
    return found


def find(plane: Plane, id_: str) -> dict[str, Any]:
    """The backup with this id. Raises click.ClickException."""
    for one in listed(plane):
        if one["id"] == id_:
            return one
    raise click.ClickException(f"The server has no backup {id_}; `hashrange backup --list` shows all.")


def _begin(plane: Plane, table: str, name: str) -> str:
    answer = ask(plane, "/backups", "backup", START, {"table": table, "name": name})
    return str(answer["backup"])


def _progress(plane: Plane, id_: str) -> float | None:
    found = find(plane, id_)
    failing = ask(plane, "/health", "status", START).get("failing", ())
    for one in failing:
        if one["unit"] == f"backup {id_}":
            raise click.ClickException(
                f"The backup {id_} of {found['table']} cannot be written now: {one['error']}. The server "
                "tries again; delete-backup gives it up."
            )
    return float(found["progress"]) if found["status"] == "CREATING" else None


def _show(one: dict[str, Any]) -> None:
    state = one["status"] if one["problem"] is None else f"damaged: {one['problem']}"
    click.echo(f"{one['table']}  {one['id']}  {one['name']}  {state}  {one['items']} items  {one['folder']}")
