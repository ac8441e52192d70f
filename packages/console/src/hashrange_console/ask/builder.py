"""The builder: conditions on a table's attributes, the request that serves them, what it will cost, and the
items, with what it did cost.

Everything is in the address. Opening it shows the plan; with `run` it shows the answer as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from hashrange_console import looks
from hashrange_console.ask import saved, statements
from hashrange_console.ask.conditions import OPERATORS, TYPES, Condition, condition_of, quoted
from hashrange_console.ask.plans import AUTOMATIC, Plan, plan
from hashrange_console.items.estimates import COUNTED_MAX, Estimate, of_all, of_items, of_query, of_some
from hashrange_console.items.grid import COLUMNS_MAX
from hashrange_console.items.requests import PAGE_ITEMS, consumed_units
from hashrange_console.items.sources import Key, TableOrIndex, sources_of
from hashrange_console.reach import Refused, View, key_of, text_of
from hashrange_console.values import Item, cell, columns, number_columns

ROWS_MAX: Final = 50
_SAMPLE_ITEMS: Final = 25
_TABLES_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class ConditionFields:
    """A condition as the form has it."""

    attribute: str = ""
    operator: str = "="
    kind: str = "S"
    value: str = ""
    value2: str = ""
    is_blank: bool = False
    """Whether it stands for an attribute of a key that has no value yet, and so is not a condition."""


async def page(view: View) -> Response:
    """The builder, or the page of statements."""
    if view.given("statement") or view.given("tab") == "partiql":
        return await statements.page(view)
    rows = rows_of(view)
    about: dict[str, Any] = {
        "tab": "builder",
        "table": view.given("table"),
        "tables": await tables_of(view),
        "form_rows": [*rows, ConditionFields()],
        "any_of": view.given("match") == "any",
        "chosen": view.given("source") or AUTOMATIC,
        "order": view.given("order"),
        "operators": OPERATORS,
        "types": TYPES,
        "counted_max": COUNTED_MAX,
        "page_items": PAGE_ITEMS,
        **dict.fromkeys(("sources", "attributes", "plan", "estimate", "problem", "answer")),
        "code": [],
        **await saved.shown(view),
    }
    if about["table"]:
        try:
            await _fill(view, about, rows)
        except Refused as error:
            about["problem"] = str(error)
    status = 400 if about["problem"] else 200
    return await looks.page("ask/builder.html", status, view=view, **about)


def rows_of(view: View) -> list[ConditionFields]:
    """The conditions of the address that are not empty."""
    given = view.request.query_params
    lists = [given.getlist(name)[:ROWS_MAX] for name in ("attr", "op", "type", "value", "value2")]
    rows = (
        ConditionFields(attribute.strip(), operator or "=", kind or "S", value, value2)
        for attribute, operator, kind, value, value2 in zip_longest(*lists, fillvalue="")
    )
    return [row for row in rows if row.attribute]


def _with_keys(rows: list[ConditionFields], keys: tuple[Key, ...]) -> list[ConditionFields]:
    """The rows with one for each attribute of the chosen key, all of them first and in the key's order. A row
    of such an attribute without a value is blank: no key is empty."""
    named = {quoted(name): (place, kind) for place, (name, kind) in enumerate(keys)}
    known = [
        replace(row, is_blank=True)
        if row.attribute in named and row.operator in ("=", "between") and not (row.value or row.value2)
        else row
        for row in rows
    ]
    missing = [
        ConditionFields(attribute, kind=kind, is_blank=True)
        for attribute, (_, kind) in named.items()
        if all(row.attribute != attribute for row in rows)
    ]
    return sorted([*known, *missing], key=lambda row: named.get(row.attribute, (len(named), ""))[0])


async def tables_of(view: View) -> list[str]:
    """The names of the first tables, for completion."""
    answer = await view.read("ListTables", {"Limit": _TABLES_MAX})
    names: list[str] = answer["TableNames"]
    return names


async def _fill(view: View, about: dict[str, Any], rows: list[ConditionFields]) -> None:
    """Add what the page shows of a table: the plan, its cost, and the answer if it is run. What was added
    before something is refused is shown as well. Raises `Refused`."""
    described = (await view.read("DescribeTable", {"TableName": about["table"]}))["Table"]
    sources = [*sources_of(described)]
    chosen = "" if about["chosen"] == "table" else about["chosen"]
    about |= {"sources": sources, "attributes": await _attributes(view, sources)}
    rows = _with_keys(rows, next((source.keys for source in sources if source.index == chosen), ()))
    about["form_rows"] = [*rows, ConditionFields()]
    made = plan(
        sources,
        [
            condition_of(row.attribute, row.operator, row.kind, (row.value, row.value2))
            for row in rows
            if not row.is_blank
        ],
        any_of=about["any_of"],
        chosen=chosen,
        descending=about["order"] == "down",
    )
    request = made.request | {"Limit": PAGE_ITEMS, "ReturnConsumedCapacity": "INDEXES"}
    about |= {"plan": made, "code": view.code(made.operation, request)}
    runs = bool(view.given("run"))
    about["estimate"] = await estimated(view, made, counts=not runs)
    if runs:
        about["answer"] = await _answer(view, made, sources[0], request)


async def estimated(view: View, made: Plan, *, counts: bool) -> Estimate:
    """The cost of a plan. `counts`: a Query's items are counted. Raises `Refused`."""
    if made.operation == "Scan":
        return of_all(made.source)
    if made.whole_key:
        return of_items(made.source, 1)
    return await of_query(view, made.source, made.request) if counts else of_some(made.source)


async def _attributes(view: View, sources: list[TableOrIndex]) -> list[str]:
    """The names of attributes for completion: those of keys, and those of some items."""
    names = dict.fromkeys(name for source in sources for name, _ in source.keys)
    answer = await view.read("Scan", {"TableName": sources[0].table, "Limit": _SAMPLE_ITEMS})
    names |= dict.fromkeys(sorted({name for item in answer["Items"] for name in item}))
    return [quoted(name) for name in names]


async def _answer(view: View, made: Plan, table: TableOrIndex, request: dict[str, Any]) -> dict[str, Any]:
    """A page of the request's items, and what it cost."""
    if start := view.given("start"):
        request["ExclusiveStartKey"] = key_of(start)
    answer = await view.read(made.operation, request)
    items: list[Item] = answer["Items"]
    keys = list(dict.fromkeys(name for name, _ in (*table.keys, *made.source.keys)))
    names, hidden = columns(items, keys, COLUMNS_MAX)
    last = answer.get("LastEvaluatedKey")
    return {
        "rows": list(_grid_rows(view, table, items, names)),
        "columns": names,
        "types": dict(table.keys) | dict(made.source.keys),
        "numbers": number_columns(items, names),
        "hidden": hidden,
        "read": answer["ScannedCount"],
        "units": consumed_units(answer),
        "first_page": _href(view, run="1") if start else None,
        "next_page": _href(view, run="1", start=text_of(last)) if last else None,
    }


def _grid_rows(
    view: View, table: TableOrIndex, items: list[Item], names: list[str]
) -> Iterator[dict[str, Any]]:
    for item in items:
        key = text_of({name: item[name] for name, _ in table.keys})
        href = looks.href(f"/console/t/{table.table}/item", key=key, scope=view.scope)
        yield {"href": href, "cells": [cell(item.get(name)) for name in names]}


def _href(view: View, **changed: str) -> str:
    """The address of this page with other parameters. Empty values of conditions stay in their places."""
    parameters = [
        (name, value)
        for name, value in view.request.query_params.multi_items()
        if name not in ("run", "start", *changed)
    ]
    return f"/console/ask?{urlencode([*parameters, *changed.items()])}"


def href_of(table: str, conditions: list[Condition], **parameters: str) -> str:
    """The address of the builder with conditions."""
    pairs = [("table", table), *((name, value) for name, value in parameters.items() if value)]
    for condition in conditions:
        [(kind, text)] = condition.values[0].items() if condition.values else [("S", "")]
        pairs += [("attr", quoted(str(condition.path[0]))), ("op", condition.operator), ("type", kind)]
        pairs += [("value", str(text)), ("value2", "")]
    return f"/console/ask?{urlencode(pairs)}"
