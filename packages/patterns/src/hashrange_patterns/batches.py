"""Reads and writes of many items: all pages of a Query, and batches that are repeated until nothing is left.

The answer of a batch may be incomplete, and then lists the keys that were not processed; a page of a Query
ends at one megabyte. Programs that ignore either lose items without an error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from hashrange_patterns.flows import Flow
from hashrange_patterns.requests import Runtime, StillUnprocessed, request
from hashrange_patterns.tables import Address, Item, Table

BATCH_KEYS_MAX: Final = 100
BATCH_PUTS_MAX: Final = 25


def get_all(
    runtime: Runtime,
    table: Table,
    addresses: Iterable[Address],
    *,
    attributes: Sequence[str] | None = None,
    consistent: bool = False,
) -> Flow[dict[Address, Item]]:
    """The items at `addresses` that exist, whole or only their `attributes`, by BatchGetItem.

    Keys that were not processed because of throttling are requested again. After `attempts_max` attempts
    without any progress it raises `StillUnprocessed`.
    """
    waiting = [table.key(address) for address in dict.fromkeys(addresses)]
    options: dict[str, Any] = {"ConsistentRead": consistent}
    if attributes is not None:
        named = [table.partition_key, table.sort_key, *attributes]
        options["ExpressionAttributeNames"] = {f"#{place}": name for place, name in enumerate(named)}
        options["ProjectionExpression"] = ", ".join(options["ExpressionAttributeNames"])
    items: dict[Address, Item] = {}
    idle = 0
    while waiting:
        keys, rest = waiting[:BATCH_KEYS_MAX], waiting[BATCH_KEYS_MAX:]
        parameters = {"RequestItems": {table.name: {"Keys": keys, **options}}}
        answer = yield from request(runtime, "batch_get_item", parameters, repeatable=True)
        # (the answer may use the table's name where the request used its ARN)
        for found in answer["Responses"].values():
            items |= {table.address(item): item for item in found}
        left = [key for rest in answer.get("UnprocessedKeys", {}).values() for key in rest["Keys"]]
        if left:
            idle = idle + 1 if len(left) == len(keys) else 0
            if idle >= runtime.attempts_max:
                raise StillUnprocessed(f"{len(left)} keys of {table.name} were left unprocessed {idle} times")
            yield runtime.pause(idle)
        waiting = left + rest
    return items


def put_all(runtime: Runtime, table: Table, items: Iterable[Item]) -> Flow[None]:
    """Put `items`, whose keys differ, by BatchWriteItem; raises as `get_all`.

    Safe to repeat with the same items.
    """
    yield from write_all(runtime, table, [{"PutRequest": {"Item": item}} for item in items])


def write_all(runtime: Runtime, table: Table, writes: Iterable[Item]) -> Flow[None]:
    """Perform the members of BatchWriteItem requests, whose keys differ; raises as `get_all`."""
    waiting = list(writes)
    idle = 0
    while waiting:
        batch, rest = waiting[:BATCH_PUTS_MAX], waiting[BATCH_PUTS_MAX:]
        parameters = {"RequestItems": {table.name: batch}}
        answer = yield from request(runtime, "batch_write_item", parameters, repeatable=True)
        left = [write for rest in answer.get("UnprocessedItems", {}).values() for write in rest]
        if left:
            idle = idle + 1 if len(left) == len(batch) else 0
            if idle >= runtime.attempts_max:
                raise StillUnprocessed(
                    f"{len(left)} items of {table.name} were left unprocessed {idle} times"
                )
            yield runtime.pause(idle)
        waiting = left + rest


def query_all(
    runtime: Runtime, parameters: Mapping[str, Any], *, limit: int | None = None
) -> Flow[list[Item]]:
    """All items of a Query, page after page; or the first `limit`."""
    items: list[Item] = []
    page = dict(parameters)
    while limit is None or len(items) < limit:
        if limit is not None:
            page["Limit"] = limit - len(items)
        answer = yield from request(runtime, "query", page, repeatable=True)
        items += answer["Items"]
        if "LastEvaluatedKey" not in answer:
            break
        page["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    return items
