"""Changing many items: deleting them, setting or removing an attribute of each.

The page asks for one step after another, and each step works for a second at most; so the page shows how far
the change has come, and can stop it. An item is changed on the condition that it is as it was found, so a
change that another client makes meanwhile is never overwritten: the item is left alone, and counted.
"""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import orjson
from starlette.responses import Response

from hashrange import limits
from hashrange.server.admin.application import json, read_json
from hashrange_console.items.expressions import deletion, update
from hashrange_console.items.forms import ValueFields, value_of
from hashrange_console.items.found import Finding
from hashrange_console.reach import Refused, View, key_of, text_of
from hashrange_console.values import Item, Value, cell

WORK_SECONDS: Final = 1.0
"""How long a step works, before it answers how far it has come."""
FAILURES_MAX: Final = 20
"""The most failures of a step that are told one by one."""
_CONFLICT: Final = "ConditionalCheckFailedException"
_SLOW: Final = ("ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded")


class Chosen(msgspec.Struct, forbid_unknown_fields=True):
    """A selected row: the text of its key, and the digest of the item that was shown."""

    key: str
    seen: str


class Step(msgspec.Struct, forbid_unknown_fields=True):
    """A step of a change of the selected items (`chosen`), or of those that the Query or Scan in the address
    finds, from `start` on. `action` is delete, set or remove; `name` and `value` are of the attribute."""

    table: str
    action: str
    name: str = ""
    value: ValueFields | None = None
    chosen: list[Chosen] | None = None
    start: str = ""


class Count(msgspec.Struct, forbid_unknown_fields=True):
    """A step of counting the items that the Query or Scan in the address finds, from `start` on."""

    table: str
    start: str = ""


def digest(item: Item) -> str:
    """A text that tells whether an item is still as it was shown."""
    data = orjson.dumps(item, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(data, digest_size=9).hexdigest()


async def count(view: View) -> Response:
    """Count items for a second at most."""
    sent = await read_json(view.request, Count)
    finding = await Finding.of(view, sent.table)
    start = key_of(sent.start) if sent.start else None
    loop = asyncio.get_running_loop()
    until = loop.time() + WORK_SECONDS
    counted = 0
    while True:
        answer = await finding.page(start, Select="COUNT")
        counted += answer["Count"]
        start = answer.get("LastEvaluatedKey")
        if not start or loop.time() > until:
            return json({"count": counted, "start": text_of(start) if start else ""})


async def change(view: View) -> Response:
    """Change items for a second at most, and say what became of them."""
    sent = await read_json(view.request, Step, limits.REQUEST_BODY_BYTES_MAX)
    if view.given("at"):
        raise Refused("The past cannot be changed.")
    finding = await Finding.of(view, sent.table)
    step = _Steps(view, finding, sent, _wanted(finding, sent))
    if sent.chosen is not None:
        await step.chosen(sent.chosen)
    else:
        await step.found(key_of(sent.start) if sent.start else None)
    return json(step.said())


def _wanted(finding: Finding, sent: Step) -> Value | None:
    """The value to set, None to remove the attribute or to delete. Raises `Refused`."""
    if sent.action == "delete":
        return None
    if sent.action not in ("set", "remove"):
        raise Refused(f"{sent.action!r} is not a bulk change: use delete, set or remove.")
    if not sent.name:
        raise Refused("Name the attribute.")
    if sent.name in finding.key_names:
        raise Refused(f"{sent.name} is an attribute of the table's key, which cannot be changed.")
    if sent.chosen is None and any(name == sent.name for name, _, _ in finding.keys):
        raise Refused(
            f"{sent.name} is of the key of the index that is read, so changed items would be found again. "
            "Read from the table instead."
        )
    if sent.action == "remove":
        return None
    if sent.value is None:
        raise Refused("Give the value.")
    return value_of(sent.value, sent.name)


@dataclass
class _Steps:
    """Does a step, and counts what became of the items."""

    view: View
    finding: Finding
    sent: Step
    wanted: Value | None
    done: int = 0
    same: int = 0
    left: int = 0
    failed: int = 0
    failures: list[dict[str, str]] = field(default_factory=list)
    start: Item | None = None
    taken: int = 0
    is_slow: bool = False

    def said(self) -> dict[str, Any]:
        """What the page is told: `start` is where the next step begins, "" at the end; `taken` is how many of
        the selected items were done with."""
        return {
            "done": self.done,
            "same": self.same,
            "left": self.left,
            "failed": self.failed,
            "failures": self.failures,
            "start": text_of(self.start) if self.start else "",
            "taken": self.taken,
            "is_slow": self.is_slow,
        }

    async def chosen(self, rows: list[Chosen]) -> None:
        """Change selected items."""
        loop = asyncio.get_running_loop()
        until = loop.time() + WORK_SECONDS
        for row in rows:
            item = await self.finding.item(row.key)
            if item is None or (row.seen and digest(item) != row.seen):
                self.left += 1
            elif not await self._change(item):
                return
            self.taken += 1
            if loop.time() > until:
                return

    async def found(self, start: Item | None) -> None:
        """Change the items that are found from `start` on."""
        loop = asyncio.get_running_loop()
        until = loop.time() + WORK_SECONDS
        self.start = start
        while True:
            answer = await self.finding.page(self.start)
            for item in answer["Items"]:
                whole = item
                if not self.finding.whole_items:
                    key = {name: item[name] for name in self.finding.key_names}
                    whole = await self.finding.item(text_of(key)) or {}
                if not whole:
                    self.left += 1
                elif not await self._change(whole):
                    return
                self.start = self.finding.start_after(item)
                if loop.time() > until:
                    return
            self.start = answer.get("LastEvaluatedKey")
            if not self.start or loop.time() > until:
                return

    async def _change(self, item: Item) -> bool:
        """Change an item. False if the table takes no more writes now, so that it is to be tried again."""
        edited = {name: value for name, value in item.items() if name != self.sent.name}
        if self.wanted is not None:
            edited[self.sent.name] = self.wanted
        keys = self.finding.key_names
        if self.sent.action != "delete" and item == edited:
            self.same += 1
            return True
        try:
            if self.sent.action == "delete":
                await self.view.change("DeleteItem", deletion(self.sent.table, keys, item))
            else:
                await self.view.change("UpdateItem", update(self.sent.table, keys, item, edited))
        except Refused as error:
            if error.code in _SLOW:
                self.is_slow = True
                return False
            if error.code == _CONFLICT:
                self.left += 1
            else:
                self._tell(item, str(error))
        else:
            self.done += 1
        return True

    def _tell(self, item: Item, why: str) -> None:
        self.failed += 1
        if len(self.failures) < FAILURES_MAX:
            cells = [cell(item[name]) for name in self.finding.key_names]
            key = ", ".join(shown.text for shown in cells if shown)
            self.failures.append({"key": key, "why": why[:500]})
