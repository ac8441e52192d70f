"""`hashrange as-of …`: read the past of a running server's tables, and bring old states back, through its
admin plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import click
import orjson

from hashrange.cli.asking import admin_url_option, ask

_EPILOG: Final = """\b
Examples, for a table whose point-in-time recovery is on:
  hashrange as-of get orders 2026-11-22T12:00:00Z '{"pk": {"S": "order#1"}}'
  hashrange as-of scan orders 2026-11-22 --max 10
  hashrange as-of query orders 1795348800 '{"KeyConditionExpression": "pk = :p",
      "ExpressionAttributeValues": {":p": {"S": "order#1"}}}'
  hashrange as-of versions orders '{"pk": {"S": "order#1"}}'
  hashrange as-of diff orders 2026-11-22T12:00:00Z 2026-11-22T13:00:00Z
  hashrange as-of undo orders 2026-11-22T12:00:00Z '{"pk": {"S": "order#1"}}'
  hashrange as-of undo orders 2026-11-22T12:00:00Z --all

A moment is ISO 8601 (UTC where it names no zone) or epoch seconds; a key is DynamoDB's JSON. Each item,
version or difference is a line of JSON. docs/history.md tells more."""

_START: Final = "hashrange serve"


class _Json(click.ParamType):  # type: ignore[type-arg]  # generic in new versions of click only
    """A JSON object."""

    name = "JSON"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, dict):
            return value
        try:
            found = orjson.loads(value)
        except orjson.JSONDecodeError as error:
            self.fail(f"{value!r} is not JSON: {error}", param, ctx)
        if not isinstance(found, dict):
            self.fail(f"{value!r} is no JSON object, as {{\"pk\": {{\"S\": \"a\"}}}} is", param, ctx)
        return found


_JSON: Final = _Json()


def _max_option(what: str) -> Callable[[Any], Any]:
    return click.option("--max", "most", type=click.IntRange(min=1), help=f"The most {what} to show.")


@click.group("as-of", epilog=_EPILOG)
def command() -> None:
    """Read the past of a running server's tables, and bring old states of items back."""


@command.command("get")
@click.argument("table")
@click.argument("moment")
@click.argument("key", type=_JSON)
@admin_url_option
def get(admin_url: str, table: str, moment: str, key: dict[str, Any]) -> None:
    """Show the item with KEY as it was at MOMENT."""
    answer = _read(admin_url, "GetItem", {"TableName": table, "Key": key}, moment)
    if "Item" not in answer:
        raise click.ClickException(f"Table {table} had no such item at {moment}.")
    _line(answer["Item"])


@command.command("query")
@click.argument("table")
@click.argument("moment")
@click.argument("request", type=_JSON)
@_max_option("items")
@admin_url_option
def query(admin_url: str, table: str, moment: str, request: dict[str, Any], most: int | None) -> None:
    """Show the items of a Query as of MOMENT. REQUEST has the parameters of the API's Query."""
    _items(admin_url, "Query", {**request, "TableName": table}, moment, most)


@command.command("scan")
@click.argument("table")
@click.argument("moment")
@click.argument("request", type=_JSON, default="{}")
@_max_option("items")
@admin_url_option
def scan(admin_url: str, table: str, moment: str, request: dict[str, Any], most: int | None) -> None:
    """Show the items of a Scan as of MOMENT. REQUEST has the parameters of the API's Scan, such as a
    filter."""
    _items(admin_url, "Scan", {**request, "TableName": table}, moment, most)


@command.command("versions")
@click.argument("table")
@click.argument("key", type=_JSON)
@_max_option("versions")
@admin_url_option
def versions(admin_url: str, table: str, key: dict[str, Any], most: int | None) -> None:
    """Show what the item with KEY was, the newest version first, and who made each version."""
    _pages(admin_url, "/past/versions", "Versions", {"table": table, "key": key}, most)


@command.command("diff")
@click.argument("table")
@click.argument("since")
@click.argument("until", required=False)
@_max_option("differences")
@admin_url_option
def diff(admin_url: str, table: str, since: str, until: str | None, most: int | None) -> None:
    """Show the items that were not the same at SINCE and at UNTIL (at first now)."""
    sent = {"table": table, "since": since, "until": until}
    _pages(admin_url, "/past/differences", "Differences", sent, most)


@command.command("undo")
@click.argument("table")
@click.argument("moment")
@click.argument("keys", type=_JSON, nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Bring all items of the table back.")
@admin_url_option
def undo(admin_url: str, table: str, moment: str, keys: tuple[dict[str, Any], ...], everything: bool) -> None:
    """Write back what the items with KEYS were at MOMENT: as ordinary writes, all of them or none.

    With --all, all items that differ are written back, a few at a time, while others go on writing.
    """
    if everything == bool(keys):
        raise click.UsageError("Name the keys of the items, or say --all.")
    sent = {"table": table, "to": moment, "keys": list(keys), "all": everything}
    answer = ask(admin_url, "/past/undo", "Counts" if everything else "Undone", _START, sent)
    if everything:
        _line(answer["Counts"])
    for one in answer.get("Undone", ()):
        _line(one)


def _read(admin_url: str, operation: str, request: dict[str, Any], moment: str) -> dict[str, Any]:
    sent = {"operation": operation, "request": request, "at": moment}
    return ask(admin_url, "/past/read", "Answer", _START, sent)["Answer"]  # type: ignore[no-any-return]


def _items(admin_url: str, operation: str, request: dict[str, Any], moment: str, most: int | None) -> None:
    shown = 0
    while True:
        answer = _read(admin_url, operation, request, moment)
        for item in answer.get("Items", ()):
            if shown == most:
                return
            _line(item)
            shown += 1
        if "LastEvaluatedKey" not in answer:
            return
        request = {**request, "ExclusiveStartKey": answer["LastEvaluatedKey"]}


def _pages(admin_url: str, path: str, member: str, sent: dict[str, Any], most: int | None) -> None:
    for shown, one in enumerate(_paged(admin_url, path, member, sent)):
        if shown == most:
            return
        _line(one)


def _paged(admin_url: str, path: str, member: str, sent: dict[str, Any]) -> Iterator[Any]:
    position: str | None = None
    while True:
        answer = ask(admin_url, path, member, _START, {**sent, "next": position})
        yield from answer[member]
        position = answer["Next"]
        if position is None:
            return


def _line(value: Any) -> None:
    click.echo(orjson.dumps(value))
