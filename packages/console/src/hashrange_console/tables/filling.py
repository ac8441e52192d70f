"""The demo table at one click: it is made, and then filled in steps, so that a page can show how far it
is.

A table that exists already is never touched: CreateTable refuses its name, and a later step writes only into
a table with the tag that the first step gave it. The last step takes the tag away.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
from starlette.responses import Response

from hashrange.server.admin.application import json, read_json
from hashrange_console import looks
from hashrange_console.reach import Refused, View
from hashrange_console.tables import demo
from hashrange_console.tables.details import tags_of

TAG: Final = "hashrange-demo"
_LOADING: Final = {"Key": TAG, "Value": "is being filled"}
_STEP_ITEMS: Final = 100
_BATCH_ITEMS: Final = 25
_FOREIGN: Final = "This table was not made here, or it is full already, so nothing was written into it."


class Fill(msgspec.Struct, forbid_unknown_fields=True):
    """The number of the first item to write; None: make the table."""

    next: int | None = None


async def offered(view: View) -> dict[str, Any]:
    """The demo table for a page to offer, and its state: whether there is a table of its name already, or one
    that was left half full."""
    try:
        described = (await view.read("DescribeTable", {"TableName": demo.TABLE}))["Table"]
    except Refused as error:
        if error.code != "ResourceNotFoundException":
            raise
        state = "none"
    else:
        tags = await tags_of(view, described["TableArn"])
        state = "half full" if _LOADING in tags else "there"
    return {"table": demo.TABLE, "count": len(demo.items()), "state": state}


async def fill(view: View) -> Response:
    """One step: make the table, or write some of its items. The answer says which item is next, whether the
    table is `ready`, and whether the next step `waits` for it."""
    sent = await read_json(view.request, Fill)
    items = demo.items()
    if sent.next is None:
        await view.change("CreateTable", demo.CREATE | {"Tags": [_LOADING]})
        return _step(view, 0)
    if not 0 <= sent.next < len(items):
        raise Refused(f"The demo table has {len(items)} items, so there is no item {sent.next}.")
    described = (await view.read("DescribeTable", {"TableName": demo.TABLE}))["Table"]
    if _LOADING not in await tags_of(view, described["TableArn"]):
        raise Refused(_FOREIGN)
    if described["TableStatus"] != "ACTIVE":
        return _step(view, sent.next, waits=True)
    batch = items[sent.next :][:_STEP_ITEMS]
    for first in range(0, len(batch), _BATCH_ITEMS):
        puts = [{"PutRequest": {"Item": item}} for item in batch[first : first + _BATCH_ITEMS]]
        answer = await view.change("BatchWriteItem", {"RequestItems": {demo.TABLE: puts}})
        if answer.get("UnprocessedItems"):
            # (puts may be repeated, so the whole batch is sent again)
            return _step(view, sent.next + first, waits=True)
    if sent.next + len(batch) < len(items):
        return _step(view, sent.next + len(batch))
    await view.change("UntagResource", {"ResourceArn": described["TableArn"], "TagKeys": [TAG]})
    return _step(view, len(items), ready=True)


def _step(view: View, following: int, *, waits: bool = False, ready: bool = False) -> Response:
    href = looks.href(f"/console/t/{demo.TABLE}", scope=view.scope)
    count = len(demo.items())
    return json({"next": following, "count": count, "waits": waits, "ready": ready, "href": href})
