"""What a request will cost, said before it runs.

The units follow from the number of items and their average size, and for a Query from a count of the items
with its key: one page of a Query with Select COUNT, which reads at most COUNTED_MAX items and says what it
cost itself.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from hashrange.tables.items.capacity import read_units
from hashrange_console.items.requests import PAGE_ITEMS, consumed_units
from hashrange_console.items.sources import TableOrIndex
from hashrange_console.reach import View

COUNTED_MAX: Final = 100
_KEPT: Final = ("TableName", "IndexName", "KeyConditionExpression")


@dataclass(frozen=True, slots=True)
class Estimate:
    """The cost of a request.

    It reads `items` in all, or more if there are `more`; `items` is None if that is unknown. `page_units` are
    the most that a page of PAGE_ITEMS costs, `all_units` what a program pays that reads all of them without a
    limit; `counting_units`, what the count of the items has cost.
    """

    items: int | None
    more: bool
    page_units: float
    all_units: float | None
    counting_units: float | None = None


async def of_query(view: View, source: TableOrIndex, request: dict[str, Any]) -> Estimate:
    """The cost of a Query, whose items are counted. Raises `Refused`."""
    condition = request["KeyConditionExpression"]
    sent: dict[str, Any] = {name: request[name] for name in _KEPT if name in request}
    # (a request must use all names and values that it has)
    used = re.findall(r"[#:]\w+", condition)
    for member in ("ExpressionAttributeNames", "ExpressionAttributeValues"):
        sent[member] = {name: value for name, value in request[member].items() if name in used}
    sent |= {"Select": "COUNT", "Limit": COUNTED_MAX, "ReturnConsumedCapacity": "TOTAL"}
    answer = await view.read("Query", sent)
    return of_items(source, answer["Count"], "LastEvaluatedKey" in answer, consumed_units(answer))


def of_all(source: TableOrIndex) -> Estimate:
    """The cost of reading all items."""
    return of_items(source, source.items)


def of_some(source: TableOrIndex) -> Estimate:
    """The most that a page costs, of items whose number is unknown."""
    return Estimate(None, False, _page(source, min(PAGE_ITEMS, source.items)), None)


def of_items(
    source: TableOrIndex, items: int, more: bool = False, counting_units: float | None = None
) -> Estimate:
    """The cost of reading some items, and maybe more."""
    page = _page(source, min(items, PAGE_ITEMS))
    return Estimate(items, more, page, None if more else _page(source, items), counting_units)


def _page(source: TableOrIndex, items: int) -> float:
    return read_units(round(items * source.average), consistent=False)
