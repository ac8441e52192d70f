"""Time to live: the queue of items by expiry time, and the sweep that deletes what has expired.

Each table with time to live has a space of its own, so that switching it off is one `delete_space`:

    ("queue", expiry time as 8 bytes big-endian + the item's partition + sort) → ""
    ("cursor", "") → how far the items that were there before have been added

`items.apply` keeps the queue; the sweep reads it from the front and never scans the table. An item is
deleted only if it still expires at the time that the queue says.

Source: Developer Guide, "Using time to live (TTL)": a Number of epoch seconds; other types, and times more
than five years ago, never expire.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from hashrange.encoding import PARTITION_BYTES
from hashrange.limits import TTL_PAST_SECONDS_MAX
from hashrange.storage.api import Reader, Transaction
from hashrange.tables import records
from hashrange.tables.table import Table, TimeToLive
from hashrange.values import Item, numbers

_QUEUE = b"queue"
_CURSOR = b"cursor"
_TIME_BYTES = 8
_TIME_MAX = 2**63 - 1


def expires_at(attribute: str, item: Item | None) -> int | None:
    """The epoch second at which an item expires, or None if it never does."""
    text = item.get(attribute, {}).get("N") if item else None
    if text is None:
        return None
    seconds = int(numbers.parse(text))
    return seconds if 0 < seconds <= _TIME_MAX else None


def requeue(
    txn: Transaction,
    ttl: TimeToLive,
    partition: bytes,
    sort: bytes,
    old_item: Item | None,
    new_item: Item | None,
) -> None:
    """Move an item's place in the queue as the item changes from one version to the next."""
    before = expires_at(ttl.attribute, old_item)
    after = expires_at(ttl.attribute, new_item)
    if before == after:
        return
    if before is not None:
        txn.delete(ttl.space, _QUEUE, _place(before, partition, sort))
    if after is not None:
        txn.put(ttl.space, _QUEUE, _place(after, partition, sort), b"")


def _place(seconds: int, partition: bytes, sort: bytes) -> bytes:
    return seconds.to_bytes(_TIME_BYTES) + partition + sort


def due(reader: Reader, ttl: TimeToLive, now: float, limit: int) -> list[tuple[int, bytes, bytes]]:
    """Up to `limit` items that have expired, as `(expiry time, partition, sort)`, oldest first."""
    oldest = max(0, int(now) - TTL_PAST_SECONDS_MAX)
    low, high = oldest.to_bytes(_TIME_BYTES), (int(now) + 1).to_bytes(_TIME_BYTES)
    places = islice(reader.scan(ttl.space, _QUEUE, low, high), limit)
    start = _TIME_BYTES + PARTITION_BYTES
    return [
        (int.from_bytes(place[:_TIME_BYTES]), place[_TIME_BYTES:start], place[start:]) for place, _ in places
    ]


def queued(
    reader: Reader, ttl: TimeToLive, after: tuple[int, bytes, bytes] | None = None
) -> Iterator[tuple[int, bytes, bytes]]:
    """The whole queue in its order, behind the place `after`: for the checker."""
    low = _place(*after) + b"\x00" if after is not None else b""
    start = _TIME_BYTES + PARTITION_BYTES
    for place, _ in reader.scan(ttl.space, _QUEUE, low):
        yield int.from_bytes(place[:_TIME_BYTES]), place[_TIME_BYTES:start], place[start:]


def is_queued(reader: Reader, ttl: TimeToLive, place: tuple[int, bytes, bytes]) -> bool:
    """Whether the queue holds a place: for the checker."""
    return reader.get(ttl.space, _QUEUE, _place(*place)) is not None


def forget(txn: Transaction, ttl: TimeToLive, place: tuple[int, bytes, bytes]) -> None:
    """Take a place out of the queue whose item no longer expires then."""
    txn.delete(ttl.space, _QUEUE, _place(*place))


def cursor(reader: Reader, ttl: TimeToLive) -> bytes:
    """The address of the next item to be queued while the queue is being built; b"" before the first step."""
    return reader.get(ttl.space, _CURSOR, b"") or b""


def build_step(txn: Transaction, table: Table, ttl: TimeToLive, limit: int) -> bool:
    """Add up to `limit` of the items that were there before to the queue; whether all are in now."""
    cursor = txn.get(ttl.space, _CURSOR, b"")
    low = (cursor[:PARTITION_BYTES], cursor[PARTITION_BYTES:]) if cursor else (b"", b"")
    last: bytes | None = None
    for seen, (partition, sort, record) in enumerate(txn.scan_space(table.space, low)):
        if seen == limit:
            # The cursor is the next item to add: adding one twice does no harm, missing one would.
            txn.put(ttl.space, _CURSOR, b"", partition + sort)
            return False
        seconds = expires_at(ttl.attribute, records.item_of(record))
        if seconds is not None:
            txn.put(ttl.space, _QUEUE, _place(seconds, partition, sort), b"")
        last = partition
    if last is not None or cursor:
        txn.delete(ttl.space, _CURSOR, b"")
    return True
