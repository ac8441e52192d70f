"""A table as of a moment: the items that have changed since, or until another moment, and the items then.

`?at=` and `?until=` are the moments (an hour ago, and now), `?show=items` shows the items as of the first.
"""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange_console import looks
from hashrange_console.differences import changes
from hashrange_console.items.grid import COLUMNS_MAX
from hashrange_console.past.slider import OFF, Slider, slider
from hashrange_console.reach import Refused, View, key_of, text_of
from hashrange_console.tables.listing import keys_of
from hashrange_console.values import Item, cell, columns, number_columns

PAGE_ITEMS: Final = 25


async def page(view: View) -> Response:
    """The past of a table."""
    table = view.request.path_params["table"]
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    names = [name for name, _, _ in keys_of(described)]
    about: dict[str, Any] = {"table": table, "slider": None, "problem": "", "next": None, "code": []}
    about |= {"at": "", "at_given": "", "until": view.given("until"), "rows": None, "items": None}
    about["shows_items"] = view.given("show") == "items"
    try:
        stands = about["slider"] = await slider(view, table)
        about["at"] = show_moment(stands.moment)
        if stands.problem:
            raise Refused(stands.problem)
        read = _items if about["shows_items"] else _differences
        about |= await read(view, table, names, stands)
    except Refused as error:
        about |= {"problem": str(error), "at_given": view.given("at")}
    about["has_recovery"] = about["problem"] != OFF
    if not about["has_recovery"]:
        sent = {
            "TableName": table,
            "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True},
        }
        about["code"] = view.code("UpdateContinuousBackups", sent)
    status = 400 if about["problem"] and about["slider"] is not None else 200
    return await looks.page("past/table.html", status, view=view, **about)


async def _differences(view: View, table: str, names: list[str], stands: Slider) -> dict[str, Any]:
    """A page of the items that differ between the two moments."""
    name, position = view.full_name(table), view.given("next") or None
    until = view.moment(view.given("until"))[0] if view.given("until") else None
    page = await view.travel(
        lambda travel: travel.differences(name, stands.moment, until, PAGE_ITEMS, position)
    )
    return {
        "rows": [_row(view, table, names, difference) for difference in page["Differences"]],
        "next": _here(view, table, stands, next=page["Next"]) if page["Next"] else None,
    }


def _row(view: View, table: str, names: list[str], difference: dict[str, Any]) -> dict[str, Any]:
    key, before, after = difference["Key"], difference["Before"], difference["After"]
    kind = "added" if before is None else "removed" if after is None else "changed"
    return {
        "kind": kind,
        "key": [cell(key.get(name)) for name in names],
        "key_text": text_of(key),
        "href": looks.href(f"/console/t/{table}/item", key=text_of(key), scope=view.scope, view="history"),
        "moment": difference["Moment"],
        "changes": changes(before, after, frozenset(key)),
    }


async def _items(view: View, table: str, names: list[str], stands: Slider) -> dict[str, Any]:
    """A page of the items as of the first moment."""
    sent: dict[str, Any] = {"TableName": view.full_name(table), "Limit": PAGE_ITEMS}
    if start := view.given("next"):
        sent["ExclusiveStartKey"] = key_of(start)
    answer = await view.travel(lambda travel: travel.read("Scan", sent, stands.moment))
    items: list[Item] = answer["Items"]
    shown, hidden = columns(items, names, COLUMNS_MAX)
    last = answer.get("LastEvaluatedKey")
    at = show_moment(stands.moment)
    rows = [
        {
            "href": looks.href(
                f"/console/t/{table}/item",
                key=text_of({name: item[name] for name in names}),
                scope=view.scope,
                at=at,
            ),
            "cells": [cell(item.get(name)) for name in shown],
        }
        for item in items
    ]
    return {
        "items": {"rows": rows, "columns": shown, "numbers": number_columns(items, shown), "hidden": hidden},
        "next": _here(view, table, stands, show="items", next=text_of(last)) if last else None,
    }


def _here(view: View, table: str, stands: Slider, **more: Any) -> str:
    """The address of this page, at the same moments."""
    at, until = show_moment(stands.moment), view.given("until")
    return looks.href(f"/console/t/{table}/past", at=at, until=until, scope=view.scope, **more)
