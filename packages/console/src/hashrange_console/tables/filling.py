"""Demo tables at one click: the table is made, and then filled in steps, so that a page can show how far it
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
from hashrange_console.tables.demo import DEMOS, Demo
from hashrange_console.tables.details import tags_of

TAG: Final = "hashrange-demo"
_LOADING: Final = {"Key": TAG, "Value": "is being filled"}
_STEP_ITEMS: Final = 100
_BATCH_ITEMS: Final = 25
_FOREIGN: Final = "This table was not made here, or it is full already, so nothing was written into it."


class Fill(msgspec.Struct, forbid_unknown_fields=True):
    """A demo by the name of its table, and the number of its first item to write; None: make the table."""

    demo: str
    next: int | None = None


async def choices(view: View) -> list[dict[str, Any]]:
    """The demos for a page to offer, and their states: whether there is a table of the same name already, or
    one that was left half full."""
    shown = []
    for demo in DEMOS.values():
        about = {"table": demo.table, "title": demo.title, "about": demo.about, "count": len(demo.items())}
        try:
            described = (await view.read("DescribeTable", {"TableName": demo.table}))["Table"]
        except Refused as error:
            if error.code != "ResourceNotFoundException":
                raise
            state = "none"
        else:
            tags = await tags_of(view, described["TableArn"])
            state = "half full" if _LOADING in tags else "there"
        shown.append(about | {"state": state})
    return shown


async def fill(view: View) -> Response:
    """One step: make the table, or write some of its items. The answer says which item is next, whether the
    table is `ready`, and whether the next step `waits` for it."""
    sent = await read_json(view.request, Fill)
    demo = DEMOS.get(sent.demo)
    if demo is None:
        raise Refused(f"There is no demo {sent.demo!r}. There are: {', '.join(DEMOS)}.")
    if sent.next is None:
        await view.change("CreateTable", demo.create | {"Tags": [_LOADING]})
        return _step(view, demo, 0)
    if not 0 <= sent.next < len(demo.items()):
        raise Refused(f"The demo has {len(demo.items())} items, so there is no item {sent.next}.")
    described = (await view.read("DescribeTable", {"TableName": demo.table}))["Table"]
    if _LOADING not in await tags_of(view, described["TableArn"]):
        raise Refused(_FOREIGN)
    if described["TableStatus"] != "ACTIVE":
        return _step(view, demo, sent.next, waits=True)
    items = demo.items()[sent.next :][:_STEP_ITEMS]
    for first in range(0, len(items), _BATCH_ITEMS):
        puts = [{"PutRequest": {"Item": item}} for item in items[first : first + _BATCH_ITEMS]]
        answer = await view.change("BatchWriteItem", {"RequestItems": {demo.table: puts}})
        if answer.get("UnprocessedItems"):
            # (puts may be repeated, so the whole batch is sent again)
            return _step(view, demo, sent.next + first, waits=True)
    if sent.next + len(items) < len(demo.items()):
        return _step(view, demo, sent.next + len(items))
    if demo.expires:
        setting = {"AttributeName": demo.expires, "Enabled": True}
        await view.change("UpdateTimeToLive", {"TableName": demo.table, "TimeToLiveSpecification": setting})
    await view.change("UntagResource", {"ResourceArn": described["TableArn"], "TagKeys": [TAG]})
    return _step(view, demo, len(demo.items()), ready=True)


def _step(view: View, demo: Demo, following: int, *, waits: bool = False, ready: bool = False) -> Response:
    href = looks.href(f"/console/t/{demo.table}", scope=view.scope)
    count = len(demo.items())
    return json({"next": following, "count": count, "waits": waits, "ready": ready, "href": href})
