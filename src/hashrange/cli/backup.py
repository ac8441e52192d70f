"""`hashrange backup …`: back up tables of a running server, through its admin plane."""

from __future__ import annotations

from typing import Any, Final

import click

from hashrange.cli.forms import JSON, format_option, print_lines
from hashrange.cli.remote.asking import Plane, ask, plane_options
from hashrange.cli.remote.progress import wait
from hashrange.clock import SystemClock, show_moment

START: Final = "hashrange serve"

_EPILOG: Final = """\b
Examples:
  hashrange backup create orders           one table; prints the folder of the backup
  hashrange backup create orders users --name before-migration
  hashrange backup create --all            every table of the server
  hashrange backup list                    the existing backups
  aws dynamodb delete-backup --backup-arn ARN --endpoint-url http://localhost:8000

A backup has the state when the command begins, without later writes. If there are several tables,
each has its own moment. The server writes the files, to `--backup-dir` of `hashrange serve`, and finishes
them even if this command or the server is stopped meanwhile. A backup is a folder: copy the folder to another
machine, and restore it there with `hashrange restore FOLDER`. See docs/backups.md."""


@click.group("backup", epilog=_EPILOG)
def command() -> None:
    """Back up tables of a running server, and list its backups."""


@command.command("list")
@format_option("How each backup is printed: as a line of text, or as a JSON object on a line.")
@plane_options
def list_(plane: Plane, format_: str) -> None:
    """Show the existing backups."""
    backups = listed(plane)
    if format_ == JSON:
        print_lines(backups)
        return
    for backup in backups:
        _show(backup)
    if not backups:
        click.echo("no backups", err=True)


@command.command("create", short_help="Back up tables into folders of files.")
@click.argument("tables", nargs=-1, metavar="[TABLE]...")
@click.option("--all", "every", is_flag=True, help="Back up all tables.")
@click.option("--name", help="The name of the backups; by default the current time.")
@click.option("--no-wait", is_flag=True, help="Do not wait for the files to be complete.")
@plane_options
def create(plane: Plane, tables: tuple[str, ...], every: bool, name: str | None, no_wait: bool) -> None:
    """Back up TABLES into folders of files, and print the folders."""
    if every == bool(tables):
        raise click.UsageError("Name the tables to back up, or give --all.")
    if every:
        all_tables = ask(plane, "/v1/tables", "tables", START)["tables"]
        tables = tuple(table["name"] for table in all_tables if table["status"] in ("ACTIVE", "UPDATING"))
    name = name or show_moment(SystemClock().now()).replace(":", ".")
    # All backups are started before the first is waited for, so that their moments are close together.
    begun = [_begin(plane, table, name) for table in tables]
    for table, id_ in zip(tables, begun, strict=True):
        if no_wait:
            click.echo(f"{table}: writing {id_}")
            continue
        wait(table, lambda id_=id_: _progress(plane, id_))  # type: ignore[misc]
        _show(find(plane, id_))


def listed(plane: Plane) -> list[dict[str, Any]]:
    """The backups of a server, as its admin plane shows them."""
    backups: list[dict[str, Any]] = ask(plane, "/v1/backups", "backups", START)["backups"]
    return backups


def find(plane: Plane, id_: str) -> dict[str, Any]:
    """The backup with this id. Raises click.ClickException."""
    for backup in listed(plane):
        if backup["id"] == id_:
            return backup
    raise click.ClickException(f"The server has no backup {id_}; `hashrange backup list` shows all backups.")


def _begin(plane: Plane, table: str, name: str) -> str:
    answer = ask(plane, "/v1/backups", "backup", START, {"table": table, "name": name})
    return str(answer["backup"])


def _progress(plane: Plane, id_: str) -> float | None:
    backup = find(plane, id_)
    failing = ask(plane, "/health", "status", START).get("failing", ())
    for failure in failing:
        if failure["unit"] == f"backup {id_}":
            raise click.ClickException(
                f"The backup {id_} of {backup['table']} cannot be written now: {failure['error']}. "
                "The server tries again; delete-backup cancels the backup."
            )
    return float(backup["progress"]) if backup["status"] == "CREATING" else None


def _show(backup: dict[str, Any]) -> None:
    state = backup["status"] if backup["problem"] is None else f"damaged: {backup['problem']}"
    columns = [
        backup["table"],
        backup["id"],
        backup["name"],
        state,
        f"{backup['items']} items",
        backup["folder"],
    ]
    click.echo("  ".join(columns))
