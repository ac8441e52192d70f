"""One item: its attributes as a tree and as JSON, the form that changes it, its versions.

`?view=` is `tree`, `json`, `dynamodb`, `edit` or `history`; `?at=` shows the item as of a moment.
`?as=` is the form of editing; `?on=` is the attribute at which editing begins.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response

from hashrange_console import looks
from hashrange_console.differences import changes, differences
from hashrange_console.items.forms import FORMS, written
from hashrange_console.items.grid import recovery
from hashrange_console.items.requests import consumed_units
from hashrange_console.reach import Refused, View, key_of, text_of
from hashrange_console.tables.listing import indexes_of, keys_of
from hashrange_console.values import Item, cell, plain_json, tree, typed_json

VIEWS: Final = {
    "tree": "Tree",
    "json": "JSON",
    "dynamodb": "DynamoDB JSON",
    "edit": "Edit",
    "history": "History",
}
VERSIONS_MAX: Final = 50


async def page(view: View) -> Response:
    """The page of an item."""
    table = view.request.path_params["table"]
    key = key_of(view.given("key"))
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    has_past = await recovery(view, table)
    offered = {name: title for name, title in VIEWS.items() if _offered(name, view, has_past)}
    chosen = view.given("view") or "tree"
    if chosen not in offered:
        raise Refused(f"There is no view {chosen!r} of this item.")
    sent = {"TableName": table, "Key": key, "ConsistentRead": True, "ReturnConsumedCapacity": "TOTAL"}
    item, at, units = await _found(view, table, sent)
    names = [name for name, _, _ in keys_of(described)]
    about: dict[str, Any] = {
        "table": table,
        "key": key,
        "key_text": text_of(key),
        "key_cells": [(name, cell(key.get(name))) for name in names],
        "item": item,
        "at": at,
        "units": units,
        "chosen": chosen,
        "views": offered,
        "code": view.code("GetItem", sent),
        "history": None,
        "saved": "" if at else view.given("saved"),
        "index_keys": index_keys(described, item or {}),
    }
    if chosen == "history":
        about["history"] = await _history(view, table, key)
        about["code"] = []
    elif item is not None:
        # (an item may be large, and other requests are not to wait for it)
        about |= await asyncio.to_thread(_shown, view, chosen, item, names)
    status = 200 if item is not None or chosen == "history" else 404
    return await looks.page("items/item.html", status, view=view, **about)


async def new(view: View) -> Response:
    """The form for a new item, which begins with the table's keys."""
    table = view.request.path_params["table"]
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    keys = keys_of(described)
    form = chosen_form(view)
    empty = "0" if form == "json" else ""
    begin = {name: {kind: empty if kind == "N" else ""} for name, _, kind in keys}
    about: dict[str, Any] = {"table": table, "form": form, "forms": FORMS, "saved": ""}
    about["index_keys"] = index_keys(described, begin)
    edited = written(begin, form, [name for name, _, _ in keys])
    return await looks.page("items/new.html", view=view, edited=edited, **about)


def index_keys(described: dict[str, Any], item: Item) -> list[tuple[str, str]]:
    """The attributes of index keys that an item does not have, with their types. The item is in an index only
    with all attributes of its key."""
    keys = [key for index in indexes_of(described) for key in keys_of(described, index)]
    return list(dict.fromkeys((name, kind) for name, _, kind in keys if name not in item))


def chosen_form(view: View) -> str:
    """The form of editing in the address. Raises `Refused`."""
    form = view.given("as") or "form"
    if form not in FORMS:
        raise Refused(f"{form!r} is not a form of editing: use {', '.join(FORMS)}.")
    return form


def _shown(view: View, chosen: str, item: Item, keys: list[str]) -> dict[str, Any]:
    """What a view of an item shows."""
    match chosen:
        case "json":
            return {"json": plain_json(item)}
        case "dynamodb":
            return {"typed": typed_json(item)}
        case "edit":
            form = chosen_form(view)
            shown = {"typed": typed_json(item), "edited": written(item, form, keys)}
            return shown | {"form": form, "forms": FORMS, "at_name": view.given("on")}
        case _:
            return {"tree": tree(item, keys)}


def _offered(name: str, view: View, has_past: bool) -> bool:
    if name == "edit":
        return not view.read_only and not view.given("at")
    return name != "history" or has_past


async def _found(view: View, table: str, sent: dict[str, Any]) -> tuple[Item | None, str, float | None]:
    """The item, the moment of which it is, and the units that reading it took."""
    if not (given := view.given("at")):
        answer = await view.read("GetItem", sent)
        return answer.get("Item"), "", consumed_units(answer)
    moment, at = view.moment(given)
    return await _past(view, table, sent["Key"], moment), at, None


async def _past(view: View, table: str, key: Item, moment: float) -> Item | None:
    sent = {"TableName": view.full_name(table), "Key": key}
    answer = await view.travel(lambda travel: travel.read("GetItem", sent, moment))
    item: Item | None = answer.get("Item")
    return item


async def _history(view: View, table: str, key: Item) -> dict[str, Any]:
    """The versions of an item, and the differences between two of them: the newest two unless the address
    names others."""
    name, position = view.full_name(table), view.given("next") or None
    page = await view.travel(lambda travel: travel.versions(name, key, VERSIONS_MAX, position))
    versions = page["Versions"]
    for version, former in zip(versions, [*versions[1:], None], strict=True):
        before = former["Item"] if former else None
        is_unknown = version["Cause"] == "begin" or (former is None and page["Next"] is not None)
        version["Changes"] = None if is_unknown else changes(before, version["Item"], frozenset(key))
    moments = [version["Moment"] for version in versions]
    after = view.given("after") or (moments[0] if moments else "")
    before = view.given("before") or (moments[1] if len(moments) > 1 else after)
    states = {version["Moment"]: version["Item"] for version in reversed(versions)}
    for moment in (before, after):
        if moment and moment not in states:
            states[moment] = await _past(view, table, key, view.moment(moment)[0])
    return {
        "versions": versions,
        "compares": bool(view.given("after") or view.given("before")),
        "before": before,
        "after": after,
        "differences": differences(states.get(before) or {}, states.get(after) or {}),
        "next": page["Next"],
    }
