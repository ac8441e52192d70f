"""The items that the Query or Scan of an address finds, page after page, for exports and bulk changes."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

from hashrange_console.items.requests import Key, asked
from hashrange_console.reach import View, key_of
from hashrange_console.tables.listing import indexes_of, keys_of
from hashrange_console.values import Item

PAGE_ITEMS: Final = 200
"""The most items of a page, so that other requests are answered between pages."""


class Finding:
    """The request of an address: of which table and index it is, and its pages. Make it with `of`."""

    def __init__(self, view: View, table: str, described: dict[str, Any]) -> None:
        self._view = view
        self.table = table
        self.index = view.given("index")
        self.own_keys: list[Key] = keys_of(described)
        self.keys: list[Key] = keys_of(described, self.index)
        self.typed = {about["AttributeName"] for about in described["AttributeDefinitions"]}
        """The attributes whose types the table knows: those of its keys and of its indexes' keys."""
        self.operation, self.request = asked(view, table, self.index, self.keys)
        self.request.pop("ExclusiveStartKey", None)
        self.request.pop("ReturnConsumedCapacity")
        self.request["Limit"] = PAGE_ITEMS
        self.whole_items = not self.index or _projects_all(indexes_of(described)[self.index])
        """Whether the items have all their attributes: an index may hold some of them only."""
        self._moment: float | None = None
        if at := view.given("at"):
            self._moment, _ = view.moment(at)

    @staticmethod
    async def of(view: View, table: str) -> Finding:
        """The request of an address. Raises `Refused`."""
        described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
        return Finding(view, table, described)

    @property
    def key_names(self) -> list[str]:
        """The names of the table's key attributes."""
        return [name for name, _, _ in self.own_keys]

    async def page(self, start: Item | None, **members: Any) -> dict[str, Any]:
        """The answer of a page that begins after `start`. Raises `Refused`."""
        request = self.request | members
        if start:
            request["ExclusiveStartKey"] = start
        return await self._read(self.operation, request)

    async def pages(self) -> AsyncIterator[list[Item]]:
        """All items, in pages. Raises `Refused`."""
        start: Item | None = None
        while True:
            answer = await self.page(start)
            yield answer["Items"]
            start = answer.get("LastEvaluatedKey")
            if not start:
                return

    async def item(self, key: str) -> Item | None:
        """The item of a key from an address, None if there is none. Raises `Refused`."""
        request: dict[str, Any] = {"TableName": self.table, "Key": key_of(key)}
        if self._moment is None:
            request["ConsistentRead"] = True
        answer = await self._read("GetItem", request)
        item: Item | None = answer.get("Item")
        return item

    def start_after(self, item: Item) -> Item:
        """The start of a page that begins after an item."""
        return {name: item[name] for name, _, _ in (*self.keys, *self.own_keys)}

    async def _read(self, operation: str, request: dict[str, Any]) -> dict[str, Any]:
        moment = self._moment
        if moment is None:
            return await self._view.read(operation, request)
        past = {**request, "TableName": self._view.full_name(self.table)}
        return await self._view.travel(lambda travel: travel.read(operation, past, moment))


def _projects_all(index: dict[str, Any]) -> bool:
    return bool(index["Projection"].get("ProjectionType") == "ALL")
