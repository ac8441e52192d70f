"""One item: its attributes as a tree and as JSON, the form that changes it, its versions.

`?view=` is `tree`, `json`, `dynamodb`, `edit` or `history`; `?at=` shows the item as of a moment.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from hashrange.console import code, looks
from hashrange.console.reach import Refused, View, key_of, text_of
from hashrange.console.requests import consumed_units
from hashrange.console.shown import Cell, Item, cell, plain_json, tree, typed_json
from hashrange.console.table import recovery
from hashrange.console.tables import keys_of

VIEWS: Final = {
    "tree": "Tree",
    "json": "JSON",
    "dynamodb": "DynamoDB JSON",
    "edit": "Edit",
    "history": "History",
}
VERSIONS_MAX: Final = 50


@dataclass(frozen=True, slots=True)
class Difference:
    """An attribute that two versions of an item do not share."""

    name: str
    before: Cell | None
    after: Cell | None

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


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
    found, at, units = await _found(view, table, sent)
    names = [name for name, _, _ in keys_of(described)]
    about: dict[str, Any] = {
        "table": table,
        "key": key,
        "key_text": text_of(key),
        "key_cells": [(name, cell(key.get(name))) for name in names],
        "found": found,
        "at": at,
        "units": units,
        "chosen": chosen,
        "views": offered,
        "code": code.snippets("GetItem", sent, view.endpoint),
        "history": None,
    }
    if chosen == "history":
        about["history"] = await _history(view, table, key)
        about["code"] = []
    elif found is not None:
        about |= {"tree": tree(found, names), "json": plain_json(found), "typed": typed_json(found)}
    status = 200 if found is not None or chosen == "history" else 404
    return await looks.page("item.html", status, view=view, **about)


async def new(view: View) -> Response:
    """The form for a new item, which begins with the table's keys."""
    table = view.request.path_params["table"]
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    begin = {name: {kind: ""} for name, _, kind in keys_of(described)}
    return await looks.page("new.html", view=view, table=table, typed=typed_json(begin))


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
    moments = [version["Moment"] for version in versions]
    after = view.given("after") or (moments[0] if moments else "")
    before = view.given("before") or (moments[1] if len(moments) > 1 else after)
    states = {version["Moment"]: version["Item"] for version in reversed(versions)}
    for moment in (before, after):
        if moment and moment not in states:
            states[moment] = await _past(view, table, key, view.moment(moment)[0])
    return {
        "versions": versions,
        "before": before,
        "after": after,
        "differences": differences(states.get(before), states.get(after)),
        "next": page["Next"],
    }


def differences(before: Item | None, after: Item | None) -> list[Difference]:
    """The attributes that differ between two states of an item, by name."""
    old, new = before or {}, after or {}
    return [
        Difference(name, cell(old.get(name)), cell(new.get(name)))
        for name in sorted({*old, *new})
        if old.get(name) != new.get(name)
    ]
