"""Saving, deleting and bringing back an item.

Only the paths that the user changed are written, on the condition that all attributes are still as they were
shown. So a change that another client made meanwhile is never overwritten: the save is refused, or, where the
other client added an attribute, the attribute stays. A new item is written on the condition that there is
none. What was saved can be undone, on the condition that nobody has changed it since.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

import msgspec
from starlette.responses import Response

from hashrange import limits
from hashrange.server.admin.application import json, read_json
from hashrange_console import looks
from hashrange_console.differences import differences
from hashrange_console.items import forms
from hashrange_console.items.expressions import creation, deletion, update
from hashrange_console.items.grid import recovery
from hashrange_console.items.texts import admit_all, item_of
from hashrange_console.reach import Refused, View, text_of
from hashrange_console.tables.listing import keys_of
from hashrange_console.values import Item, typed_json

CONFLICT: Final = "ConditionalCheckFailedException"
DIFFERENCES_MAX: Final = 200
"""The most differences that a page lists."""
_CHANGED: Final = (
    "Somebody changed or deleted this item after it was shown here. Nothing was saved. Open the item again "
    "to see what it is now."
)
_EXISTS: Final = "There is an item with this key already. Nothing was saved."
_CHANGED_SINCE: Final = "Somebody changed this item after it was saved here, so the save cannot be undone."


class Edit(msgspec.Struct, forbid_unknown_fields=True):
    """An item as it was shown, in DynamoDB's JSON ("" for a new one), and the text of what it was edited to,
    in one of the forms of editing."""

    table: str
    edited: str
    shown: str = ""
    form: str = "dynamodb"


class Conversion(msgspec.Struct, forbid_unknown_fields=True):
    """An edited item to be shown in another form of editing."""

    table: str
    edited: str
    to: str
    shown: str = ""
    form: str = "dynamodb"


class Delete(msgspec.Struct, forbid_unknown_fields=True):
    """An item to delete, as it was shown."""

    table: str
    shown: str


class Undo(msgspec.Struct, forbid_unknown_fields=True):
    """An item to bring back, by its key, and the moment."""

    table: str
    key: dict[str, Any]
    to: str


class UndoSave(msgspec.Struct, forbid_unknown_fields=True):
    """An item whose newest version, of the moment `since`, is to be undone."""

    table: str
    key: dict[str, Any]
    since: str


async def save(view: View) -> Response:
    """Save an edited or a new item, and answer with its address and what undoes it."""
    sent = await read_json(view.request, Edit, limits.REQUEST_BODY_BYTES_MAX)
    keys, shown, edited = await _edit(view, sent)
    operation, request = _request(sent, keys, shown, edited)
    await _change(view, operation, request, _CHANGED if sent.shown else _EXISTS)
    key = {name: edited[name] for name in keys}
    return json({"href": await _saved_href(view, sent.table, key), "saved": typed_json(edited)})


async def review(view: View) -> Response:
    """What a save would change: the differences by path, and the request as code."""
    sent = await read_json(view.request, Edit, limits.REQUEST_BODY_BYTES_MAX)
    keys, shown, edited = await _edit(view, sent)
    changes = await asyncio.to_thread(differences, shown, edited)
    snippets: list[tuple[str, str]] = []
    problem = ""
    if changes:
        try:
            snippets = view.code(*_request(sent, keys, shown, edited))
        except Refused as error:
            problem = str(error)
    html = await looks.part(
        "items/review.html",
        changes=changes[:DIFFERENCES_MAX],
        more=max(0, len(changes) - DIFFERENCES_MAX),
        is_new=not sent.shown,
        code=snippets,
        problem=problem,
    )
    return json({"count": len(changes), "html": html})


async def convert(view: View) -> Response:
    """The text of an edited item in another form of editing."""
    sent = await read_json(view.request, Conversion, limits.REQUEST_BODY_BYTES_MAX)
    if sent.to not in forms.FORMS:
        raise Refused(f"{sent.to!r} is not a form of editing.")
    keys = await _keys(view, sent.table)
    _, item = await asyncio.to_thread(_read, sent)
    return json({"edited": forms.written(item, sent.to, keys)})


async def delete(view: View) -> Response:
    """Delete an item, and answer with the address of its table."""
    sent = await read_json(view.request, Delete, limits.REQUEST_BODY_BYTES_MAX)
    keys = await _keys(view, sent.table)
    request = deletion(sent.table, keys, admit_all(item_of(sent.shown)))
    await _change(view, "DeleteItem", request, _CHANGED)
    return json({"href": looks.href(f"/console/t/{sent.table}", scope=view.scope)})


async def undo(view: View) -> Response:
    """Bring an item back to a moment, and answer with its address."""
    sent = await read_json(view.request, Undo)
    moment, _ = view.moment(sent.to)
    name = view.full_name(sent.table)
    done = await view.travel(lambda travel: travel.undo(name, [sent.key], moment))
    href = item_href(view, sent.table, sent.key, view="history")
    return json({"href": href, "done": done["Undone"][0]["Done"]})


async def undo_save(view: View) -> Response:
    """Make an item what it was before its newest version, on the condition that this is still the newest."""
    sent = await read_json(view.request, UndoSave)
    name, keys = view.full_name(sent.table), await _keys(view, sent.table)
    page = await view.travel(lambda travel: travel.versions(name, sent.key, 2))
    newest, *older = page["Versions"]
    now: Item | None = newest["Item"]
    if newest["Moment"] != sent.since or now is None or not older:
        raise Refused(_CHANGED_SINCE, CONFLICT)
    before: Item | None = older[0]["Item"]
    if before is None:
        operation, request = "DeleteItem", deletion(sent.table, keys, now)
    else:
        operation, request = "UpdateItem", update(sent.table, keys, now, before)
    await _change(view, operation, request, _CHANGED_SINCE)
    if before is None:
        return json({"href": looks.href(f"/console/t/{sent.table}", scope=view.scope)})
    return json({"href": item_href(view, sent.table, sent.key)})


async def _edit(view: View, sent: Edit) -> tuple[list[str], Item, Item]:
    """The keys of a table, and an item as it was shown and as it was edited. Raises `Refused`."""
    keys = await _keys(view, sent.table)
    # (an item may be large, and other requests are not to wait for it)
    shown, edited = await asyncio.to_thread(_read, sent)
    if missing := [name for name in keys if name not in edited]:
        raise Refused(f"The item needs its key: {', '.join(missing)}.")
    return keys, shown, edited


def _read(sent: Edit | Conversion) -> tuple[Item, Item]:
    shown = admit_all(item_of(sent.shown)) if sent.shown else {}
    return shown, forms.read(sent.edited, sent.form, shown)


def _request(sent: Edit, keys: list[str], shown: Item, edited: Item) -> tuple[str, dict[str, Any]]:
    if sent.shown:
        return "UpdateItem", update(sent.table, keys, shown, edited)
    return "PutItem", creation(sent.table, keys, edited)


async def _keys(view: View, table: str) -> list[str]:
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    return [name for name, _, _ in keys_of(described)]


async def _change(view: View, operation: str, request: dict[str, Any], conflict: str) -> None:
    try:
        await view.change(operation, request)
    except Refused as error:
        if error.code == CONFLICT:
            raise Refused(conflict, CONFLICT) from None
        raise


async def _saved_href(view: View, table: str, key: Item) -> str:
    """The address of an item that was saved. `saved` is the moment of its newest version, by which the save
    can be undone; "now" if the past of the table is not kept."""
    saved = "now"
    if await recovery(view, table):
        name = view.full_name(table)
        page = await view.travel(lambda travel: travel.versions(name, key, 1))
        saved = page["Versions"][0]["Moment"]
    return item_href(view, table, key, saved=saved)


def item_href(view: View, table: str, key: Item, /, **parameters: str) -> str:
    """The address of an item."""
    return looks.href(f"/console/t/{table}/item", key=text_of(key), scope=view.scope, **parameters)
