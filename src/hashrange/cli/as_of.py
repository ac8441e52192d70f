"""`hashrange as-of …`: read the past of a running server's tables, and restore old states of items, through
its admin plane."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import click
import orjson

from hashrange.cli.forms import Key, limit_option, yes_option
from hashrange.cli.remote import past
from hashrange.cli.remote.asking import Plane, ask, check_moved, confirm, plane_options

_EPILOG: Final = """\b
Examples, for a table whose point-in-time recovery is on:
  hashrange as-of get orders 2026-11-22T12:00:00Z '{"pk": "order#1"}'
  hashrange as-of scan orders 2026-11-22 --limit 10
  hashrange as-of query orders 1795348800 '{"KeyConditionExpression": "pk = :p",
      "ExpressionAttributeValues": {":p": {"S": "order#1"}}}'
  hashrange as-of versions orders '{"pk": "order#1"}'
  hashrange as-of diff orders 2026-11-22T12:00:00Z 2026-11-22T13:00:00Z
  hashrange as-of diff orders 10m now
  hashrange as-of undo orders 2026-11-22T12:00:00Z '{"pk": "order#1"}'
  hashrange as-of undo orders 10m --all --dry-run         shows what would be restored
  hashrange as-of undo orders 10m --all

A moment is ISO 8601 (UTC if it names no zone), epoch seconds, a time span ago (10m, 2h, 1d12h), or now; a
key is plain JSON, or DynamoDB's JSON: {"pk": {"S": "order#1"}}. Each item, version or difference is a line of
JSON. See docs/history.md."""

_START: Final = "hashrange serve"


class _Json(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A JSON object."""

    name = "JSON"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, dict):
            return value
        try:
            parsed = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            self.fail(f"{value!r} is not JSON: {error}", param, ctx)
        if not isinstance(parsed, dict):
            self.fail(f'{value!r} is not a JSON object, as {{"pk": {{"S": "a"}}}} is', param, ctx)
        return parsed


_JSON: Final = _Json()


@click.group("as-of", epilog=_EPILOG)
def command() -> None:
    """Read the past of a running server's tables, and restore old states of items."""


@command.command("get")
@click.argument("table")
@click.argument("moment")
@click.argument("key", type=Key())
@plane_options
def get(plane: Plane, table: str, moment: str, key: dict[str, Any]) -> None:
    """Show the item with KEY as it was at MOMENT."""
    answer = past.read(plane, "GetItem", {"TableName": table, "Key": key}, _fixed(plane, moment))
    if "Item" not in answer:
        raise click.ClickException(f"Table {table} had no such item at {moment}.")
    _line(answer["Item"])


@command.command("query")
@click.argument("table")
@click.argument("moment")
@click.argument("request", type=_JSON)
@limit_option("Show at most N items.")
@plane_options
def query(plane: Plane, table: str, moment: str, request: dict[str, Any], limit: int | None) -> None:
    """Show the items of a Query as of MOMENT. REQUEST has the parameters of the API's Query."""
    _items(plane, "Query", {**request, "TableName": table}, moment, limit)


@command.command("scan")
@click.argument("table")
@click.argument("moment")
@click.argument("request", type=_JSON, default="{}")
@limit_option("Show at most N items.")
@plane_options
def scan(plane: Plane, table: str, moment: str, request: dict[str, Any], limit: int | None) -> None:
    """Show the items of a Scan as of MOMENT. REQUEST has the parameters of the API's Scan, such as a
    filter."""
    _items(plane, "Scan", {**request, "TableName": table}, moment, limit)


@command.command("versions")
@click.argument("table")
@click.argument("key", type=Key())
@limit_option("Show at most N versions.")
@plane_options
def versions(plane: Plane, table: str, key: dict[str, Any], limit: int | None) -> None:
    """Show the versions of the item with KEY.

    The newest version comes first; each shows who wrote it.
    """
    _pages(plane, "/v1/past/versions", "Versions", {"table": table, "key": key}, limit)


@command.command("diff")
@click.argument("table")
@click.argument("since")
@click.argument("until", required=False)
@limit_option("Show at most N differences.")
@plane_options
def diff(plane: Plane, table: str, since: str, until: str | None, limit: int | None) -> None:
    """Show the items that differ between SINCE and UNTIL.

    Without UNTIL: between SINCE and now.
    """
    sent = {"table": table, "since": _fixed(plane, since), "until": until and _fixed(plane, until)}
    _pages(plane, "/v1/past/differences", "Differences", sent, limit)


@command.command("undo")
@click.argument("table")
@click.argument("moment")
@click.argument("keys", type=Key(), nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Restore all items of the table.")
@click.option("--dry-run", is_flag=True, help="Show what would be written; write nothing.")
@yes_option
@plane_options
def undo(
    plane: Plane,
    table: str,
    moment: str,
    keys: tuple[dict[str, Any], ...],
    everything: bool,
    dry_run: bool,
    yes: bool,
) -> None:
    """Restore the items with KEYS as they were at MOMENT.

    The items are restored by ordinary writes, in one transaction.

    With --all, all items that differ are restored, a few at a time, while other programs may write; the
    command asks first.
    """
    if everything == bool(keys):
        raise click.UsageError("Name the keys of the items, or give --all.")
    at = _fixed(plane, moment)
    if dry_run:
        _show_undo(plane, table, at, keys)
        return
    if everything:
        confirm(f"Write all items of table {table} of {plane.server} back as they were at {moment}?", yes)
    sent = {"table": table, "to": at, "keys": list(keys), "all": everything}
    answer = ask(plane, "/v1/past/undo", "Counts" if everything else "Undone", _START, sent)
    if everything:
        _line(answer["Counts"])
    for entry in answer.get("Undone", ()):
        _line(entry)


def _show_undo(plane: Plane, table: str, at: str, keys: tuple[dict[str, Any], ...]) -> None:
    """Show what the items with `keys`, or all items that differ, would become: the item, or null for none."""
    if keys:
        for key in keys:
            answer = past.read(plane, "GetItem", {"TableName": table, "Key": key}, at)
            _line({"Key": key, "Item": answer.get("Item")})
    else:
        for entry in _paged(plane, "/v1/past/differences", "Differences", {"table": table, "since": at}):
            _line({"Key": entry["Key"], "Item": entry["Before"]})


def _fixed(plane: Plane, moment: str) -> str:
    try:
        return past.fixed(plane, moment)
    except ValueError as error:
        raise click.ClickException(str(error)) from None


def _items(plane: Plane, operation: str, request: dict[str, Any], moment: str, limit: int | None) -> None:
    shown, moment = 0, _fixed(plane, moment)
    while True:
        answer = past.read(plane, operation, request, moment)
        for item in answer.get("Items", ()):
            if shown == limit:
                return
            _line(item)
            shown += 1
        if "LastEvaluatedKey" not in answer:
            return
        check_moved(request.get("ExclusiveStartKey"), answer["LastEvaluatedKey"])
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


def _pages(plane: Plane, path: str, member: str, sent: dict[str, Any], limit: int | None) -> None:
    for shown, entry in enumerate(_paged(plane, path, member, sent)):
        if shown == limit:
            return
        _line(entry)


def _paged(plane: Plane, path: str, member: str, sent: dict[str, Any]) -> Iterator[Any]:
    position: str | None = None
    while True:
        answer = ask(plane, path, member, _START, {**sent, "next": position})
        yield from answer[member]
        if answer["Next"] is None:
            return
        check_moved(position, answer["Next"])
        position = answer["Next"]


def _line(value: Any) -> None:
    click.echo(orjson.dumps(value))
