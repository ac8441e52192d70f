"""The single-table view: the entities of a table, how they share partitions, what can be asked of them.

`?view=` is `list`, `graph`, `access` or `items`. A correction of the list is kept for all browsers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.responses import Response

from hashrange.server.admin.application import json, read_json
from hashrange_console import looks, stored
from hashrange_console.ask.builder import href_of
from hashrange_console.entities import recorded
from hashrange_console.entities.graph import graph_of
from hashrange_console.entities.sampling import Entity, Sample, Use, beginning, conditions_of, sampled
from hashrange_console.items.grid import COLUMNS_MAX
from hashrange_console.reach import Refused, View
from hashrange_console.stored import EntityRule
from hashrange_console.values import cell, columns, number_columns

VIEWS: Final = {"list": "Entities", "graph": "Graph", "access": "Access patterns", "items": "Items"}
RULES_MAX: Final = 60
_PATTERN_CHARACTERS_MAX: Final = 200
_ITEMS_MAX: Final = 100


class Keep(msgspec.Struct, forbid_unknown_fields=True):
    """The entities of a table, as a user corrected them; none: they are proposed again."""

    table: str
    rules: tuple[EntityRule, ...]


@dataclass(frozen=True, slots=True)
class Access:
    """What can be asked of an entity: in words, the operation, the request in short, the page that asks."""

    entity: Entity
    words: str
    operation: str
    request: str
    href: str


async def page(view: View) -> Response:
    """The entities of a table."""
    table = view.request.path_params["table"]
    chosen = view.given("view") or "list"
    if chosen not in VIEWS:
        raise Refused(f"There is no view {chosen!r} of the entities.")
    sample = await sampled(view, table)
    about: dict[str, Any] = {
        "table": table,
        "sample": sample,
        "chosen": chosen,
        "views": VIEWS,
        "corrected": any(entity.corrected for entity in sample.entities),
        "sort_key": sample.table.sort[0][0] if sample.table.sort else "",
        **dict.fromkeys(("graph", "access", "grid", "recorded")),
    }
    match chosen:
        case "graph":
            about["graph"] = graph_of(sample)
        case "access":
            about["access"] = [*_accesses(view, sample)]
            about["recorded"] = recorded.shown(view, table, tuple(name for name, _ in sample.table.keys))
        case "items":
            about["grid"] = _grid(view, sample)
    return await looks.page("entities/overview.html", view=view, **about)


async def keep(view: View) -> Response:
    """Keep a user's entities of a table, or forget them."""
    sent = await read_json(view.request, Keep)
    described = (await view.read("DescribeTable", {"TableName": sent.table}))["Table"]
    if len(sent.rules) > RULES_MAX:
        raise Refused(f"A table has at most {RULES_MAX} entities here.")
    has_sort = len(described["KeySchema"]) > 1
    await stored.save_entities(view, sent.table, tuple(_checked(rule, has_sort) for rule in sent.rules))
    return json({"href": looks.href(f"/console/t/{sent.table}/entities", scope=view.scope)})


def _checked(rule: EntityRule, has_sort: bool) -> EntityRule:
    """A rule that may be kept. Raises `Refused`."""
    texts = (rule.partition, rule.sort, rule.attribute, rule.value, *rule.has)
    if max(map(len, texts)) > _PATTERN_CHARACTERS_MAX:
        raise Refused(f"A pattern has at most {_PATTERN_CHARACTERS_MAX} characters.")
    return msgspec.structs.replace(
        rule,
        name=stored.named(rule.name),
        partition=rule.partition.strip() or "*",
        sort=(rule.sort.strip() or "*") if has_sort else "",
    )


def _accesses(view: View, sample: Sample) -> Iterator[Access]:
    """What the keys of the table and its indexes allow to ask of each entity."""
    for entity in sample.entities:
        for use in entity.uses:
            if not use.source.index:
                yield _access(view, entity, use, f"one {entity.rule.name}", whole=True)
                if not use.source.sort or beginning(use.sort) == use.sort != "":
                    continue  # (the partition has one such item)
            yield _access(view, entity, use, f"each {entity.rule.name} of one {use.partition}", whole=False)


def _access(view: View, entity: Entity, use: Use, words: str, *, whole: bool) -> Access:
    conditions = conditions_of(use, whole=whole)
    href = href_of(use.source.table, conditions, scope=view.scope, source=use.source.index or "table")
    request = " and ".join(condition.text for condition in conditions)
    order = f", in the order of {use.source.sort[0][0]}" if use.source.sort and not whole else ""
    where = f" on {use.source.index}" if use.source.index else ""
    return Access(entity, f"{words}{order}", "GetItem" if whole else f"Query{where}", request, href)


def _grid(view: View, sample: Sample) -> dict[str, Any]:
    """The first items of the sample, each with its entity; `?entity=` shows only those of one."""
    wanted = view.given("entity")
    items = sample.items
    if wanted:
        items = [item for entity in sample.entities if entity.rule.name == wanted for item in entity.items]
    shown = items[:_ITEMS_MAX]
    names, hidden = columns(shown, [name for name, _ in sample.table.keys], COLUMNS_MAX)
    return {
        "rows": [
            {
                "href": sample.href(view, item),
                "entity": sample.of(item),
                "cells": [cell(item.get(name)) for name in names],
            }
            for item in shown
        ],
        "columns": names,
        "numbers": number_columns(shown, names),
        "hidden": hidden,
        "left": len(items) - len(shown),
        "wanted": wanted,
    }
