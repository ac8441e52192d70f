"""The search: says what a pasted text means here, and leads there.

An item or a key leads to the item, or to a Query on the table or index whose key it has; an ARN or a name to
the table; a statement to its page; other words to the tables and pages that have them in their names, and to
the partitions that have them as their key. At most TABLES_MAX tables are looked into.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from starlette.responses import RedirectResponse, Response

from hashrange import limits
from hashrange.operations.context import scope_of
from hashrange.server.admin.application import json, read_json, subject_of
from hashrange.server.admin.tables import TABLES_PER_PAGE
from hashrange_console import looks
from hashrange_console.ask.pasted import Arn, Attributes, Statement, Unreadable, Words, meaning_of
from hashrange_console.ask.places import TABLES_MAX, pages
from hashrange_console.items.sources import TableOrIndex, sources_of
from hashrange_console.reach import Refused, View, text_of
from hashrange_console.values import Item, cell

_READINGS_MAX: Final = 40
_EXAMPLES: Final = 5


@dataclass(frozen=True, slots=True)
class Reading:
    """What a text may mean here: the place, why it fits, its address; `exact`: it leads there at once."""

    title: str
    why: str
    href: str
    exact: bool = False


@dataclass(frozen=True, slots=True)
class Found:
    """What a text was understood as, and the places that fit, the best one first."""

    understood: str
    readings: list[Reading]
    advice: str = ""


class Find(msgspec.Struct, forbid_unknown_fields=True):
    """A text that is too long for an address."""

    text: str


async def page(view: View) -> Response:
    """The place that a text leads to, or the choice among several."""
    text = view.given("text")
    if not text:
        return RedirectResponse(looks.href("/console/ask", scope=view.scope), 303, looks.HEADERS)
    meaning = await _found(view, text)
    if (place := _only(meaning)) is not None:
        return RedirectResponse(place.href, 303, looks.HEADERS)
    return await looks.page("ask/found.html", view=view, searched=text, meaning=meaning)


async def find(view: View) -> Response:
    """The same for a text of any length: an address to go to, or the words for nothing found."""
    sent = await read_json(view.request, Find, limits.REQUEST_BODY_BYTES_MAX)
    meaning = await _found(view, sent.text)
    if not meaning.readings:
        raise Refused(f"{meaning.understood} {meaning.advice}".strip())
    return json({"href": meaning.readings[0].href})


def _only(meaning: Found) -> Reading | None:
    """The place that is certainly meant."""
    exact = [reading for reading in meaning.readings if reading.exact]
    if len(exact) == 1:
        return exact[0]
    return meaning.readings[0] if len(meaning.readings) == 1 else None


async def _found(view: View, text: str) -> Found:
    meaning = await asyncio.to_thread(meaning_of, text)
    match meaning:
        case Unreadable(problem):
            return Found("This looks like an item, but it cannot be read.", [], f"Why: {problem}.")
        case Statement(statement):
            href = looks.href("/console/ask", statement=statement, scope=view.scope)
            return Found("A PartiQL statement.", [Reading("The statement", "", href, exact=True)])
    sources = await _sources(view)
    return await _in_tables(view, meaning, sources)


async def _in_tables(
    view: View, meaning: Arn | Attributes | Words, sources: list[tuple[str, TableOrIndex]]
) -> Found:
    match meaning:
        case Arn():
            return _of_arn(view, meaning, sources)
        case Attributes(item, table):
            if table and any(source.table == table for _, source in sources):
                sources = [pair for pair in sources if pair[1].table == table]
            return await _of_item(view, item, sources)
        case Words(text):
            return await _of_words(view, text, sources)


async def _sources(view: View) -> list[tuple[str, TableOrIndex]]:
    """The scopes and sources of the tables that the page is about."""
    database = subject_of(view.request).database
    pairs: list[tuple[str, TableOrIndex]] = []
    after, count = "", 0
    while count < TABLES_MAX and (tables := database.overview(after, TABLES_PER_PAGE)):
        after = tables[-1]["name"]
        count += len(tables)
        for table in tables:
            scope, _, name = table["name"].rpartition("/")
            if view.scope and scope != view.scope:
                continue
            try:
                described = await View(view.request, scope).read("DescribeTable", {"TableName": name})
            except Refused:
                continue  # (deleted meanwhile)
            pairs += [(scope, source) for source in sources_of(described["Table"])]
        await asyncio.sleep(0)
    return pairs


def _of_arn(view: View, arn: Arn, sources: list[tuple[str, TableOrIndex]]) -> Found:
    scope = scope_of(arn.account, arn.region, subject_of(view.request).database.settings)
    what = f"The index {arn.index} of the table {arn.table}" if arn.index else f"The table {arn.table}"
    for own_scope, source in sources:
        if (own_scope, source.table, source.index) == (scope, arn.table, arn.index):
            return Found(f"{what}, by its ARN.", [_all_items(scope, source)])
    return Found(f"{what}, by its ARN.", [], "This server has none of this name.")


def _all_items(scope: str, source: TableOrIndex) -> Reading:
    href = looks.href(f"/console/t/{source.table}", index=source.index, scope=scope)
    return Reading(_named(source), "by its name", href, exact=True)


async def _of_item(view: View, item: Item, sources: list[tuple[str, TableOrIndex]]) -> Found:
    named = ", ".join(f"{name} ({next(iter(value))})" for name, value in [*item.items()][:_EXAMPLES])
    more = f" and {len(item) - _EXAMPLES} more" if len(item) > _EXAMPLES else ""
    understood = f"Attributes of an item: {named}{more}."
    readings = []
    for scope, source in sources:
        reading = await _place_of(View(view.request, scope), source, item)
        readings += [reading] if reading is not None else []
    readings.sort(key=lambda reading: not reading.exact)
    keys = "; ".join(
        f"{source.table}: {' and '.join(f'{name} ({kind})' for name, kind in source.keys)}"
        for _, source in sources[:_EXAMPLES]
        if not source.index
    )
    advice = f"No table has a key among these attributes. Keys of tables here: {keys}."
    if readings:
        return Found(understood, readings[:_READINGS_MAX])
    return Found(understood, [], advice if keys else _NO_TABLES)


_NO_TABLES: Final = "There are no tables here."


async def _place_of(view: View, source: TableOrIndex, item: Item) -> Reading | None:
    """Where an item, or a part of it, leads in a table or an index; None if it has no partition key there."""
    if not source.index and source.holds(item):
        key = {name: item[name] for name, _ in source.keys}
        is_there = await _is_there(view, source.table, key)
        href = looks.href(f"/console/t/{source.table}/item", key=text_of(key), scope=view.scope)
        why = _words_of(key) + ("" if is_there else ": there is no such item now")
        return Reading(f"Item of {source.table}", why, href, exact=is_there)
    if not all(kind in item.get(name, ()) for name, kind in source.partition):
        return None
    return _partition(view.scope, source, item)


async def _is_there(view: View, table: str, key: Item) -> bool:
    names = {f"#k{number}": name for number, name in enumerate(key)}
    sent = {
        "TableName": table,
        "Key": key,
        "ProjectionExpression": ", ".join(names),
        "ExpressionAttributeNames": names,
    }
    try:
        return "Item" in await view.read("GetItem", sent)
    except Refused:
        return False  # (the values cannot be a key, such as an empty text)


def _partition(scope: str, source: TableOrIndex, item: Item) -> Reading:
    """The Query for the part of a key that an item has."""
    given: dict[str, Any] = {name: item[name] for name, _ in source.partition}
    parameters: dict[str, Any] = {"pk": [item[name][kind] for name, kind in source.partition]}
    if len(source.sort) == 1 and source.sort[0][1] in item.get(source.sort[0][0], ()):
        name, kind = source.sort[0]
        given[name] = item[name]
        parameters |= {"op": "=", "sk": item[name][kind]}
    href = looks.href(f"/console/t/{source.table}", index=source.index, scope=scope, **parameters)
    return Reading(f"Query on {_named(source)}", _words_of(given), href)


async def _of_words(view: View, text: str, sources: list[tuple[str, TableOrIndex]]) -> Found:
    tables = [(scope, source) for scope, source in sources if not source.index]
    named = [(scope, source) for scope, source in tables if source.table == text]
    if named:
        return Found("The name of a table.", [_all_items(*pair) for pair in named])
    readings = [
        Reading(source.table, "a table whose name contains this", _all_items(scope, source).href)
        for scope, source in tables
        if text.lower() in source.table.lower()
    ]
    readings += [
        Reading(place.title, "a page of the console", place.href, exact=place.title.lower() == text.lower())
        for place in pages()
        if len(text) > 1 and place.title.lower().startswith(text.lower())
    ]
    for scope, source in sources:
        if len(source.partition) == 1:
            item = {source.partition[0][0]: {source.partition[0][1]: text}}
            if await _has_items(View(view.request, scope), source, item):
                readings.append(_partition(scope, source, item))
    advice = "" if readings else _NOTHING if tables else _NO_TABLES
    return Found(
        "A word: a part of a name of a table or page, or the value of a key.",
        readings[:_READINGS_MAX],
        advice,
    )


_NOTHING: Final = (
    "No table and no page has this in its name, and no item has it as its partition key. Paste an item, a "
    "whole key, an ARN, or a PartiQL statement."
)


async def _has_items(view: View, source: TableOrIndex, item: Item) -> bool:
    [(name, value)] = item.items()
    sent: dict[str, Any] = {
        "TableName": source.table,
        "KeyConditionExpression": "#k = :k",
        "ExpressionAttributeNames": {"#k": name},
        "ExpressionAttributeValues": {":k": value},
        "Select": "COUNT",
        "Limit": 1,
    }
    if source.index:
        sent["IndexName"] = source.index
    try:
        return bool((await view.read("Query", sent))["Count"])
    except Refused:
        return False  # (the text is not a number, for example)


def _named(source: TableOrIndex) -> str:
    return f"{source.index} of {source.table}" if source.index else source.table


def _words_of(key: Item) -> str:
    """A key in words: pk = a, sk = 1."""
    return ", ".join(f"{name} = {shown.text}" for name, value in key.items() if (shown := cell(value)))
