"""The items of a table: a page of a Scan or a Query, now or as of a moment."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from hashrange.console import code, looks
from hashrange.console.reach import Refused, View, key_of, text_of
from hashrange.console.requests import OPERATORS, PAGE_ITEMS, asked, consumed_units
from hashrange.console.shown import Item, cell, columns, number_columns
from hashrange.console.tables import indexes_of, keys_of

COLUMNS_MAX: Final = 24
_BACK_MAX: Final = 12
"""The most earlier pages to which the address remembers the way."""
_UNIT_BYTES: Final = 4_096
_FIELDS: Final = ("op", "sk", "sk2", "filter", "names", "values", "order")


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
        "scan_units": described["TableSizeBytes"] / _UNIT_BYTES / 2,
        "at": view.given("at"),
        "pks": [*view.request.query_params.getlist("pk"), "", "", "", ""],
        "form": {name: view.given(name) for name in _FIELDS},
    }
    try:
        about |= await _grid(view, table, index, keys, own_keys)
    except Refused as error:
        about |= {"problem": str(error), "rows": None}
        return await looks.page("table.html", 400, view=view, **about)
    return await looks.page("table.html", view=view, problem=None, **about)


async def recovery(view: View, table: str) -> bool:
    """Whether the past of a table's items is kept."""
    answer = await view.read("DescribeContinuousBackups", {"TableName": table})
    states = answer["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
    return bool(states.get("PointInTimeRecoveryStatus") == "ENABLED")


async def _grid(
    view: View, table: str, index: str, keys: list[tuple[str, str, str]], own_keys: list[tuple[str, str, str]]
) -> dict[str, Any]:
    operation, sent = asked(view, table, index, keys)
    at = ""
    if given := view.given("at"):
        moment, at = view.moment(given)
        past = {**sent, "TableName": view.full_name(table)}
        answer = await view.travel(lambda travel: travel.read(operation, past, moment))
    else:
        answer = await view.read(operation, sent)
    items: list[Item] = answer["Items"]
    names, hidden = columns(items, list(dict.fromkeys(key[0] for key in (*own_keys, *keys))), COLUMNS_MAX)
    return {
        "at": at,
        "operation": operation,
        "page_items": PAGE_ITEMS,
        "rows": [_row(view, table, item, own_keys, names, at) for item in items],
        "columns": names,
        "types": {name: kind for name, _, kind in (*keys, *own_keys)},
        "numbers": number_columns(items, names),
        "hidden": hidden,
        "read": answer["ScannedCount"],
        "units": consumed_units(answer),
        "code": code.snippets(operation, sent, view.endpoint),
        **_pages(view, table, answer.get("LastEvaluatedKey"), at),
    }


def _row(
    view: View, table: str, item: Item, own_keys: list[tuple[str, str, str]], names: list[str], at: str
) -> dict[str, Any]:
    key = text_of({name: item[name] for name, _, _ in own_keys if name in item})
    return {
        "href": looks.href(f"/console/t/{table}/item", key=key, scope=view.scope, at=at),
        "cells": [cell(item.get(name)) for name in names],
    }


def _pages(view: View, table: str, last: dict[str, Any] | None, at: str) -> dict[str, Any]:
    """The addresses of the first, the previous and the next page. The address of a page has the starts of the
    pages before it in `back`, because DynamoDB reads forwards only."""
    parameters = view.request.query_params
    kept: dict[str, Any] = {name: parameters.getlist(name) for name in parameters}
    for name in ("start", "back"):
        kept.pop(name, None)
    if at:
        kept["at"] = at
    start, back = view.given("start"), parameters.getlist("back")
    path = f"/console/t/{table}"
    pages: dict[str, Any] = dict.fromkeys(("first_page", "previous_page", "next_page"))
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
