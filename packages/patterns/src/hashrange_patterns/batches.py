"""Reads and writes of many items: all pages of a Query, and batches that are repeated until nothing is left.

The answer of a batch may be incomplete, and then lists the keys that were not processed; a page of a Query
ends at one megabyte. Programs that ignore either lose items without an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, TypeVar

from hashrange_patterns.flows import Flow
from hashrange_patterns.requests import Runtime, StillUnprocessed, request
from hashrange_patterns.tables import Address, Item, Table

T = TypeVar("T")

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

    def read(keys: list[Item]) -> Flow[list[Item]]:
        parameters = {"RequestItems": {table.name: {"Keys": keys, **options}}}
        answer = yield from request(runtime, "batch_get_item", parameters, repeatable=True)
        # (the answer may use the table's name where the request used its ARN)
        for found in answer["Responses"].values():
            items.update({table.address(item): item for item in found})
        return [key for rest in answer.get("UnprocessedKeys", {}).values() for key in rest["Keys"]]

    yield from _until_none_is_left(runtime, table, waiting, BATCH_KEYS_MAX, read)
    return items


def put_all(runtime: Runtime, table: Table, items: Iterable[Item]) -> Flow[None]:
    """Put `items`, whose keys differ, by BatchWriteItem; raises as `get_all`.

    Safe to repeat with the same items.
    """
    yield from _write_all(runtime, table, [{"PutRequest": {"Item": item}} for item in items])


def delete_all(runtime: Runtime, table: Table, addresses: Iterable[Address]) -> Flow[None]:
    """Delete the items at `addresses`, by BatchWriteItem; raises as `get_all`."""
    keys = (table.key(address) for address in dict.fromkeys(addresses))
    yield from _write_all(runtime, table, [{"DeleteRequest": {"Key": key}} for key in keys])


def _write_all(runtime: Runtime, table: Table, writes: list[Item]) -> Flow[None]:

    def write(batch: list[Item]) -> Flow[list[Item]]:
        parameters = {"RequestItems": {table.name: batch}}
        answer = yield from request(runtime, "batch_write_item", parameters, repeatable=True)
        return [left for rest in answer.get("UnprocessedItems", {}).values() for left in rest]

    yield from _until_none_is_left(runtime, table, writes, BATCH_PUTS_MAX, write)


def _until_none_is_left(
    runtime: Runtime,
    table: Table,
    waiting: list[Item],
    batch_max: int,
    send: Callable[[list[Item]], Flow[list[Item]]],
) -> Flow[None]:
    """Send the members of batches, and again those that `send` returns: they were not processed."""
    idle = 0
    while waiting:
        batch, rest = waiting[:batch_max], waiting[batch_max:]
        left = yield from send(batch)
        if left:
            idle = idle + 1 if len(left) == len(batch) else 0
            if idle >= runtime.attempts_max:
                what = f"{len(left)} keys of {table.name}"
                raise StillUnprocessed(f"{what} were left unprocessed {idle} times")
            yield runtime.pause(idle)
        waiting = left + rest


def query_all(
    runtime: Runtime, parameters: Mapping[str, Any], *, limit: int | None = None
) -> Flow[list[Item]]:
    """All items of a Query, page after page; or the first `limit`."""
    return (yield from query_read(runtime, parameters, lambda item: item, limit=limit))


def query_read(
    runtime: Runtime, parameters: Mapping[str, Any], read: Callable[[Item], T | None], *, limit: int | None
) -> Flow[list[T]]:
    """What `read` makes of all items of a Query, page after page, or the first `limit`; without None."""
    found: list[T] = []
    page = dict(parameters)
    while limit is None or len(found) < limit:
        if limit is not None:
            page["Limit"] = limit - len(found)
        answer = yield from request(runtime, "query", page, repeatable=True)
        found += [one for item in answer["Items"] if (one := read(item)) is not None]
        if "LastEvaluatedKey" not in answer:
            break
        page["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
    return found
