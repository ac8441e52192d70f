"""Reads: the present items of many keys, and the pages of a scan. All are consistent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from hashrange_sync.errors import Unavailable
from hashrange_sync.items import Item, digest
from hashrange_sync.sides.calls import Side

T = TypeVar("T")

_KEYS_MAX: Final = 100
_ROUNDS_MAX: Final = 200


def pieces(values: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """Values in pieces of at most `most`."""
    for start in range(0, len(values), most):
        yield values[start : start + most]


def items_of(side: Side, table: str, keys: Mapping[bytes, Item]) -> dict[bytes, Item]:
    """The items with these keys that are there, by the digests of their keys, as in `keys`. Raises
    `SyncError`."""
    names = list(next(iter(keys.values()), ()))
    found = read_items(side, table, list(keys.values()))
    return {digest({name: item[name] for name in names}): item for item in found}


def read_items(side: Side, table: str, keys: Sequence[Item]) -> list[Item]:
    """The items with these keys that are there. Raises `SyncError`."""
    found: list[Item] = []
    for part in pieces(keys, _KEYS_MAX):
        asked: Any = {table: {"Keys": list(part), "ConsistentRead": True}}
        for _ in range(_ROUNDS_MAX):
            answer = side.call("batch_get_item", RequestItems=asked, ReturnConsumedCapacity="TOTAL")
            found += answer["Responses"].get(table, ())
            asked = answer.get("UnprocessedKeys")
            if not asked:
                break
            if not answer["Responses"].get(table):
                side.pace.refused()
        else:
            raise Unavailable(f"the {side.name}'s table {table} keeps leaving keys unread.")
    return found


def scan_page(
    side: Side, start: Item | None, segment: int, segments: int, limit: int
) -> tuple[list[Item], Item | None]:
    """A page of a segment of the table's scan, and where the next begins; None: that was the last."""
    request: dict[str, Any] = {} if start is None else {"ExclusiveStartKey": start}
    answer = side.call(
        "scan",
        TableName=side.table,
        ConsistentRead=True,
        Segment=segment,
        TotalSegments=segments,
        Limit=limit,
        ReturnConsumedCapacity="TOTAL",
        **request,
    )
    return answer["Items"], answer.get("LastEvaluatedKey")
