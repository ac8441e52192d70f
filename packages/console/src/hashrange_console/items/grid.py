"""The items of a table: a page of a Scan or a Query, now or as of a moment."""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response

from hashrange_console import looks
from hashrange_console.items.bulk import digest
from hashrange_console.items.estimates import of_all, of_query
from hashrange_console.items.exports import FORMATS
from hashrange_console.items.forms import MAKES
from hashrange_console.items.requests import OPERATORS, PAGE_ITEMS, Key, asked, consumed_units, sorts
from hashrange_console.items.sources import TableOrIndex, sources_of
from hashrange_console.reach import Refused, View, key_of, text_of
from hashrange_console.tables.listing import indexes_of, keys_of
from hashrange_console.values import MEMBERS, Item, Value, cell, columns, number_columns, plain_text

COLUMNS_MAX: Final = 24
CHOSEN_MAX: Final = 100
OFFERED_MAX: Final = 200
"""The most columns that a user may choose, and that are offered."""
WHOLE_MAX: Final = 3_000
"""The most characters of a value that a cell opens to."""
_BACK_MAX: Final = 12
"""The most earlier pages to which the address remembers the way."""
_FIELDS: Final = ("filter", "names", "values", "order")


async def page(view: View) -> Response:
    """The grid of a table, and what it cost."""
    table = view.request.path_params["table"]
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    index = view.given("index")
    keys, own_keys = keys_of(described, index), keys_of(described)
    about: dict[str, Any] = {
        "table": table,
        "described": described,
        "index": index,
        "indexes": list(indexes_of(described)),
        "keys": keys,
        "operators": OPERATORS,
        "recovery": await recovery(view, table),
        "estimate": None,
        "page_items": PAGE_ITEMS,
        "at": "",
        "at_given": view.given("at"),
        "columns_given": view.request.query_params.getlist("col"),
        "formats": FORMATS,
        "makes": MAKES,
        "whole_max": WHOLE_MAX,
        "pks": [*view.request.query_params.getlist("pk"), "", "", "", ""],
        "sorts": sorts(view, sum(role == "RANGE" for _, role, _ in keys)),
        "form": {name: view.given(name) for name in _FIELDS},
    }
    source = next(source for source in sources_of(described) if source.index == index)
    if view.given("plan"):
        about |= await _plan(view, source, keys)
        return await looks.page("items/plan.html", view=view, **about)
    about["estimate"] = None if any(about["pks"]) else of_all(source)
    try:
        about |= await _grid(view, described, index, keys, own_keys)
    except Refused as error:
        about |= {"problem": str(error), "rows": None}
        return await looks.page("items/grid.html", 400, view=view, **about)
    return await looks.page("items/grid.html", view=view, problem=None, **about)


async def _plan(view: View, source: TableOrIndex, keys: list[Key]) -> dict[str, Any]:
    """What the request of the form will cost, or what is wrong with it."""
    try:
        operation, sent = asked(view, source.table, source.index, keys)
        estimate = await of_query(view, source, sent) if operation == "Query" else of_all(source)
    except Refused as error:
        return {"problem": str(error)}
    return {"problem": "", "estimate": estimate}


async def recovery(view: View, table: str) -> bool:
    """Whether the past of a table's items is kept."""
    answer = await view.read("DescribeContinuousBackups", {"TableName": table})
    states = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    return bool(states.get("PointInTimeRecoveryStatus") == "ENABLED")


async def _grid(
    view: View, described: dict[str, Any], index: str, keys: list[Key], own_keys: list[Key]
) -> dict[str, Any]:
    table = view.request.path_params["table"]
    operation, sent = asked(view, table, index, keys)
    at = ""
    if given := view.given("at"):
        moment, at = view.moment(given)
        past = {**sent, "TableName": view.full_name(table)}
        answer = await view.travel(lambda travel: travel.read(operation, past, moment))
    else:
        answer = await view.read(operation, sent)
    items: list[Item] = answer["Items"]
    key_names = list(dict.fromkeys(key[0] for key in (*own_keys, *keys)))
    usual, hidden = columns(items, key_names, COLUMNS_MAX)
    names = list(dict.fromkeys(view.request.query_params.getlist("col")))[:CHOSEN_MAX] or usual
    every, _ = columns(items, [*names, *(name for name in key_names if name not in names)], OFFERED_MAX)
    seals = not index or indexes_of(described)[index]["Projection"].get("ProjectionType") == "ALL"

    def rows() -> list[dict[str, Any]]:
        return [_row(view, table, item, own_keys, names, at, seals) for item in items]

    return {
        "at": at,
        "operation": operation,
        # (values may be large, and other requests are not to wait for them)
        "rows": await asyncio.to_thread(rows),
        "offered": every,
        "chosen_columns": len(names) if names is not usual else 0,
        "columns": names,
        "types": {name: kind for name, _, kind in (*keys, *own_keys)},
        "numbers": number_columns(items, names),
        "hidden": hidden if names is usual else 0,
        "read": answer["ScannedCount"],
        "units": consumed_units(answer),
        "code": view.code(operation, sent),
        **_pages(view, table, answer.get("LastEvaluatedKey"), at),
    }


def _row(
    view: View, table: str, item: Item, own_keys: list[Key], names: list[str], at: str, seals: bool
) -> dict[str, Any]:
    """A row of the grid. `seals`: the item has all its attributes, so its digest tells whether it changed."""
    key = text_of({name: item[name] for name, _, _ in own_keys if name in item})
    return {
        "href": looks.href(f"/console/t/{table}/item", key=key, scope=view.scope, at=at),
        "key": key,
        "seen": digest(item) if seals else "",
        "label": ", ".join(shown.text for name, _, _ in own_keys if (shown := cell(item.get(name)))),
        "cells": [(cell(item.get(name)), _whole(item.get(name))) for name in names],
    }


def _whole(value: Value | None) -> str:
    """A value that has members, or that a cell cuts, as JSON of a bounded length; "" for others."""
    shown = cell(value)
    if value is None or shown is None or (shown.kind not in ("L", "M", *MEMBERS) and not shown.title):
        return ""
    text = str(value[shown.kind]) if shown.kind in ("S", "B") else plain_text(value)
    return text if len(text) <= WHOLE_MAX else f"{text[:WHOLE_MAX]}…"


def _pages(view: View, table: str, last: dict[str, Any] | None, at: str) -> dict[str, Any]:
    """The addresses of the first, the previous and the next page, and of this one with the usual columns.

    The address of a page has the starts of the pages before it in `back`, because DynamoDB reads forwards
    only.
    """
    parameters = view.request.query_params
    kept: dict[str, Any] = {name: parameters.getlist(name) for name in parameters}
    for name in ("start", "back"):
        kept.pop(name, None)
    if at:
        kept["at"] = at
    start, back = view.given("start"), parameters.getlist("back")
    path = f"/console/t/{table}"
    pages: dict[str, Any] = dict.fromkeys(("first_page", "previous_page", "next_page"))
    usual = {name: values for name, values in kept.items() if name != "col"}
    pages["usual_columns"] = looks.href(path, **usual, start=start, back=back)
    if start:
        pages["first_page"] = looks.href(path, **kept)
        if back:
            pages["previous_page"] = looks.href(path, **kept, start=_known(back[-1]), back=back[:-1])
    if last:
        following = [*back, start or "-"][-_BACK_MAX:]
        pages["next_page"] = looks.href(path, **kept, start=text_of(last), back=following)
    return pages


def _known(start: str) -> str:
    """The start of an earlier page: "" for the first page, which `back` calls "-"."""
    if start == "-":
        return ""
    return text_of(key_of(start))
