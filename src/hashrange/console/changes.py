"""Saving, deleting and bringing back an item.

Only the attributes that the user changed are written, on the condition that all attributes are still as they
were shown. So a change that another client made meanwhile is never overwritten: the save is refused, or,
where the other client added an attribute, the attribute stays. A new item is written on the condition that
there is none.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import orjson
from starlette.responses import Response

from hashrange import limits
from hashrange.console import code, looks
from hashrange.console.reach import Refused, View, text_of
from hashrange.console.shown import NAMES, Item
from hashrange.console.tables import keys_of
from hashrange.server.admin.application import json, read_json

TERMS_MAX: Final = 140
"""The most attributes that a condition compares: an expression has at most 300 operators."""
CONFLICT: Final = "ConditionalCheckFailedException"
_CHANGED: Final = (
    "Somebody changed or deleted this item after it was shown here. Nothing was saved. Open the item again "
    "to see what it is now."
)
_EXISTS: Final = "There is an item with this key already. Nothing was saved."


class Save(msgspec.Struct, forbid_unknown_fields=True):
    """An item as it was shown ("" for a new one) and as it was edited, in DynamoDB's JSON; `preview`: only
    say what would be sent."""

    table: str
    edited: str
    shown: str = ""
    preview: bool = False


class Delete(msgspec.Struct, forbid_unknown_fields=True):
    """An item to delete, as it was shown."""

    table: str
    shown: str


class Undo(msgspec.Struct, forbid_unknown_fields=True):
    """An item to bring back, by its key, and the moment."""

    table: str
    key: dict[str, Any]
    to: str


async def save(view: View) -> Response:
    """Save an edited or a new item, and answer with its address."""
    sent = await read_json(view.request, Save, limits.REQUEST_BODY_BYTES_MAX)
    keys = await _keys(view, sent.table)
    edited = item_of(sent.edited)
    if missing := [name for name in keys if name not in edited]:
        raise Refused(f"The item needs its key: {', '.join(missing)}.")
    if sent.shown:
        operation, request = "UpdateItem", update(sent.table, keys, item_of(sent.shown), edited)
    else:
        operation, request = "PutItem", creation(sent.table, keys, edited)
    if sent.preview:
        return json({"code": code.snippets(operation, request, view.endpoint)})
    await _change(view, operation, request, _CHANGED if sent.shown else _EXISTS)
    return json({"href": _href(view, sent.table, {name: edited[name] for name in keys})})


async def delete(view: View) -> Response:
    """Delete an item, and answer with the address of its table."""
    sent = await read_json(view.request, Delete, limits.REQUEST_BODY_BYTES_MAX)
    keys = await _keys(view, sent.table)
    shown = item_of(sent.shown)
    names: dict[str, str] = {}
    values: Item = {}
    request = {
        "TableName": sent.table,
        "Key": {name: shown[name] for name in keys},
        "ConditionExpression": _as_shown(shown, keys, set(), names, values),
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }
    await _change(view, "DeleteItem", request, _CHANGED)
    return json({"href": looks.href(f"/console/t/{sent.table}", scope=view.scope)})


async def undo(view: View) -> Response:
    """Bring an item back to a moment, and answer with its address."""
    sent = await read_json(view.request, Undo)
    moment, _ = view.moment(sent.to)
    name = view.full_name(sent.table)
    done = await view.travel(lambda travel: travel.undo(name, [sent.key], moment))
    return json({"href": _href(view, sent.table, sent.key, "history"), "done": done["Undone"][0]["Done"]})


def update(table: str, keys: list[str], shown: Item, edited: Item) -> dict[str, Any]:
    """The UpdateItem that makes an item as it was shown what it was edited to. Raises `Refused`."""
    if any(shown.get(name) != edited.get(name) for name in keys):
        raise Refused("The key of an item cannot be changed. Make a new item, and delete this one.")
    names: dict[str, str] = {}
    values: Item = {}
    changed = [name for name in {**shown, **edited} if shown.get(name) != edited.get(name)]
    if not changed:
        raise Refused("Nothing was changed, so there is nothing to save.")
    condition = _as_shown(shown, keys, set(changed), names, values)
    sets, removes = [], []
    for name in changed:
        named = _name(names, name)
        if name not in edited:
            removes.append(named)
            continue
        values[f":n{len(values)}"] = edited[name]
        sets.append(f"{named} = :n{len(values) - 1}")
    parts = [f"SET {', '.join(sets)}" if sets else "", f"REMOVE {', '.join(removes)}" if removes else ""]
    return {
        "TableName": table,
        "Key": {name: shown[name] for name in keys},
        "UpdateExpression": " ".join(part for part in parts if part),
        "ConditionExpression": condition,
        "ExpressionAttributeNames": names,
        "ExpressionAttributeValues": values,
    }


def creation(table: str, keys: list[str], item: Item) -> dict[str, Any]:
    """The PutItem of a new item."""
    return {
        "TableName": table,
        "Item": item,
        "ConditionExpression": "attribute_not_exists(#a0)",
        "ExpressionAttributeNames": {"#a0": keys[0]},
    }


def _as_shown(
    shown: Item, keys: list[str], changed: set[str], names: dict[str, str], values: Item
) -> str:
    """The condition that an item is as it was shown. Of an item with very many attributes it compares only
    the changed ones, for which alone an expression has room."""
    terms = []
    compared = [name for name in shown if name not in keys]
    if len(shown) + len(changed) > TERMS_MAX:
        compared = [name for name in compared if name in changed]
    for name in [*keys, *compared]:
        values[f":v{len(values)}"] = shown[name]
        terms.append(f"{_name(names, name)} = :v{len(values) - 1}")
    terms += [f"attribute_not_exists({_name(names, name)})" for name in sorted(changed - set(shown))]
    return " AND ".join(terms)


def _name(names: dict[str, str], name: str) -> str:
    """The placeholder of an attribute's name."""
    known = next((placeholder for placeholder, of in names.items() if of == name), None)
    placeholder = known or f"#a{len(names)}"
    names[placeholder] = name
    return placeholder


def item_of(text: str) -> Item:
    """An item from the form. Raises `Refused` with the place of an error."""
    try:
        item = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise Refused(f"This is not JSON: {error}.") from None
    if not isinstance(item, dict):
        raise Refused("An item is a JSON object of attributes.")
    for name, value in item.items():
        _check(name, value)
    return item


def _check(path: str, value: Any) -> None:
    """Refuse what is no value in DynamoDB's JSON: above all a number that is not text, whose digits a reader
    of JSON may have lost."""
    if not isinstance(value, dict) or len(value) != 1 or next(iter(value)) not in NAMES:
        types = ", ".join(NAMES)
        raise Refused(f'{path}: a value is an object with its type, such as {{"S": "text"}}; types: {types}.')
    kind, inner = next(iter(value.items()))
    expected: type = str
    match kind:
        case "L" | "SS" | "NS" | "BS":
            expected = list
        case "M":
            expected = dict
        case "BOOL" | "NULL":
            expected = bool
    if not isinstance(inner, expected):
        example = '{"N": "12.5"}' if kind == "N" else f"a JSON {expected.__name__}"
        raise Refused(f"{path}: a {NAMES[kind]} is written as {example}.")
    if kind in ("L", "M"):
        members: dict[Any, Any] = value[kind] if kind == "M" else dict(enumerate(value[kind]))
        for name, one in members.items():
            _check(f"{path}.{name}" if kind == "M" else f"{path}[{name}]", one)


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


def _href(view: View, table: str, key: Item, chosen: str = "") -> str:
    return looks.href(f"/console/t/{table}/item", key=text_of(key), scope=view.scope, view=chosen)
