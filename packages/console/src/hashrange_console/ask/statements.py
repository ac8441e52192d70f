"""PartiQL statements. Opening the page runs a statement that only reads, unless it only plans it; a change is
run by a button."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.responses import Response

from hashrange import limits
from hashrange.server.admin.application import json, read_json
from hashrange.server.admin.data import writes
from hashrange_console import looks
from hashrange_console.ask import saved
from hashrange_console.ask.statement_plans import StatementPlan, planned
from hashrange_console.items.grid import COLUMNS_MAX
from hashrange_console.items.requests import PAGE_ITEMS, consumed_units
from hashrange_console.reach import Refused, View, text_of
from hashrange_console.values import Item, cell, columns, number_columns


class Run(msgspec.Struct, forbid_unknown_fields=True):
    """A statement that changes something."""

    statement: str


async def page(view: View) -> Response:
    """The box for a statement, how it reads and what that costs, and a page of its answer."""
    statement = view.given("statement")
    about: dict[str, Any] = {"statement": statement, "is_write": False, "code": []}
    about |= {"answer": None, "problem": None, "plan": None, "page_items": PAGE_ITEMS}
    about |= await saved.shown(view)
    if statement:
        is_write = writes("ExecuteStatement", {"Statement": statement})
        sent = _change(statement) if is_write else _request(statement, view.given("start"))
        about |= {"is_write": is_write, "code": view.code("ExecuteStatement", sent)}
        if not is_write:
            try:
                about["plan"] = plan = await planned(view, statement)
                if not view.given("plan"):
                    about["answer"] = await _answer(view, sent, plan)
            except Refused as error:
                about["problem"] = str(error)
    return await looks.page("ask/statements.html", 400 if about["problem"] else 200, view=view, **about)


async def run(view: View) -> Response:
    """Run a statement that changes something, and say what it cost."""
    sent = await read_json(view.request, Run, limits.REQUEST_BODY_BYTES_MAX)
    answer = await view.change("ExecuteStatement", _change(sent.statement))
    return json({"units": consumed_units(answer)})


def _change(statement: str) -> dict[str, Any]:
    return {"Statement": statement, "ReturnConsumedCapacity": "TOTAL"}


def _request(statement: str, start: str) -> dict[str, Any]:
    sent: dict[str, Any] = {"Statement": statement, "Limit": PAGE_ITEMS, "ReturnConsumedCapacity": "INDEXES"}
    if start:
        sent["NextToken"] = start
    return sent


async def _answer(view: View, sent: dict[str, Any], plan: StatementPlan | None) -> dict[str, Any]:
    answer = await view.read("ExecuteStatement", sent)
    items = answer.get("Items", [])
    keys = plan.keys if plan and all(set(plan.keys) <= set(item) for item in items) else ()
    names, hidden = columns(items, list(keys), COLUMNS_MAX)

    def href(item: Item) -> str:
        key = text_of({name: item[name] for name in keys})
        return looks.href(f"/console/t/{plan.table}/item", key=key, scope=view.scope) if plan and keys else ""

    following = None
    kept = {"statement": sent["Statement"], "scope": view.scope}
    if token := answer.get("NextToken"):
        following = looks.href("/console/ask", **kept, start=token)
    return {
        "rows": [{"href": href(item), "cells": [cell(item.get(name)) for name in names]} for item in items],
        "columns": names,
        "numbers": number_columns(items, names),
        "hidden": hidden,
        "units": consumed_units(answer),
        "first_page": looks.href("/console/ask", **kept) if view.given("start") else None,
        "next_page": following,
    }
