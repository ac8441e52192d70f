"""Restoring items as of a moment: by time travel's undo, after a try that writes nothing.

The try says what each item would become. The undo is one transaction of ordinary writes.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response

from hashrange.operations.travel import Travel
from hashrange.server.admin.application import json, read_json
from hashrange_console import looks
from hashrange_console.past.table import PAGE_ITEMS
from hashrange_console.reach import View

_BODY_BYTES_MAX: Final = 1024 * 1024


class Back(msgspec.Struct, forbid_unknown_fields=True):
    """The items to bring back, by their keys, and the moment."""

    table: str
    keys: list[dict[str, Any]]
    to: str


async def attempt(view: View) -> Response:
    """What bringing the items back would do: how many would be written back, deleted, and stay."""
    sent = await _sent(view)
    moment, at = view.moment(sent.to)
    name = view.full_name(sent.table)

    def then(travel: Travel) -> list[Any]:
        return [_read(travel, name, key, moment) for key in sent.keys]

    counts = {"restored": 0, "deleted": 0, "unchanged": 0}
    for key, before in zip(sent.keys, await view.travel(then), strict=True):
        asked = {"TableName": sent.table, "Key": key, "ConsistentRead": True}
        present = (await view.read("GetItem", asked)).get("Item")
        counts["unchanged" if before == present else "deleted" if before is None else "restored"] += 1
    return json({"at": at, "counts": counts})


async def bring(view: View) -> Response:
    """Bring the items back, and say what was done."""
    sent = await _sent(view)
    moment, at = view.moment(sent.to)
    name = view.full_name(sent.table)
    done = await view.travel(lambda travel: travel.undo(name, sent.keys, moment))
    counts = {"restored": 0, "deleted": 0, "unchanged": 0}
    for outcome in done["Undone"]:
        counts[outcome["Done"]] += 1
    href = looks.href(f"/console/t/{sent.table}/past", at=at, scope=view.scope)
    return json({"at": at, "counts": counts, "href": href})


async def _sent(view: View) -> Back:
    sent = await read_json(view.request, Back, _BODY_BYTES_MAX)
    if not 1 <= len(sent.keys) <= PAGE_ITEMS:
        raise HTTPException(400, f"choose 1 to {PAGE_ITEMS} items")
    return sent


def _read(travel: Travel, name: str, key: dict[str, Any], moment: float) -> Any:
    return travel.read("GetItem", {"TableName": name, "Key": key}, moment).get("Item")
