"""Time to live: the queue of items by expiry time, and the sweep that deletes expired items.

Each table with time to live has a separate space for this, so that disabling it is one `delete_space`. The
space holds a queue by time (`queues`), whose names are the addresses of items. While this queue is being
built from existing items, the space also holds the state of the build (`builds`), under "cursor".

`applying.apply` keeps the queue up to date. The sweep reads the queue from its mark and never scans the
table. It deletes an item only if the item still expires at the time in the queue. How soon: every
`settings.sweep_seconds`; how many at a time: `background.sweeps.BITE_ITEMS` at most.

Source: Developer Guide, "Using time to live (TTL)": a Number of epoch seconds; other types, and times more
than five years ago, never expire.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from hashrange.encoding import PARTITION_BYTES
from hashrange.limits import TTL_PAST_SECONDS_MAX
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.bites import Limit
from hashrange.tables.definitions.table import Table, TimeToLive
from hashrange.tables.items import records
from hashrange.tables.writes import builds, queues
from hashrange.tables.writes.builds import Build, Found, Work
from hashrange.values import Item, numbers

_CURSOR = b"cursor"


def expires_at(attribute: str, item: Item | None) -> int | None:
    """The epoch second at which an item expires, or None if it never does."""
    text = item.get(attribute, {}).get("N") if item else None
    if text is None:
        return None
    seconds = int(numbers.parse(text))
    return seconds if 0 < seconds <= queues.TIME_MAX else None


def requeue(
    txn: Transaction,
    ttl: TimeToLive,
    partition: bytes,
    sort: bytes,
    old_item: Item | None,
    new_item: Item | None,
) -> None:
    """Move the item at `(partition, sort)` in the queue, when it changes from `old_item` to `new_item`."""
    before = expires_at(ttl.attribute, old_item)
    after = expires_at(ttl.attribute, new_item)
    if before == after:
        return
    address = partition + sort
    if before is not None:
        queues.remove(txn, ttl.space, before, address)
    if after is not None:
        queues.add(txn, ttl.space, after, address)
    if not ttl.built:
        builds.note(txn, build_of(ttl), partition, sort)


def due(reader: Reader, ttl: TimeToLive, now: float) -> Iterator[tuple[int, bytes, bytes]]:
    """The items that have expired, as `(expiry time, partition, sort)`, oldest first."""
    for seconds, address in queues.due(reader, ttl.space, now, int(now) - TTL_PAST_SECONDS_MAX):
        yield seconds, address[:PARTITION_BYTES], address[PARTITION_BYTES:]


def queued(
    reader: Reader, ttl: TimeToLive, after: tuple[int, bytes, bytes] | None = None
) -> Iterator[tuple[int, bytes, bytes]]:
    """All places of the queue after the place `after`, in order: for the checker."""
    behind = queues.place(after[0], after[1] + after[2]) if after is not None else None
    for seconds, address in queues.walk(reader, ttl.space, behind):
        yield seconds, address[:PARTITION_BYTES], address[PARTITION_BYTES:]


def is_queued(reader: Reader, ttl: TimeToLive, place: tuple[int, bytes, bytes]) -> bool:
    """Whether the queue holds a place: for the checker."""
    seconds, partition, sort = place
    return queues.holds(reader, ttl.space, seconds, partition + sort)


def forget(txn: Transaction, ttl: TimeToLive, place: tuple[int, bytes, bytes]) -> None:
    """Remove a place from the queue, because its item no longer expires at that time."""
    seconds, partition, sort = place
    queues.remove(txn, ttl.space, seconds, partition + sort)


def done(txn: Transaction, ttl: TimeToLive, now: float, place: tuple[int, bytes, bytes]) -> None:
    """Let the queue begin after `place` from now on: this transaction has handled all places up to it."""
    seconds, partition, sort = place
    queues.done(txn, ttl.space, now, seconds, partition + sort)


def build_of(ttl: TimeToLive) -> Build:
    """The build of a queue."""
    return Build(ttl.space, _CURSOR)


def progress(reader: Reader, ttl: TimeToLive) -> float:
    """The share of the queue that is built, from 0 to 1."""
    return 1.0 if ttl.built else builds.progress(reader, build_of(ttl))


def work(table: Table, ttl: TimeToLive) -> Work:
    """What puts the items of a table into its queue."""

    def derive(partition: bytes, sort: bytes, record: bytes) -> int | None:
        return expires_at(ttl.attribute, records.item_of(record))

    def look(reader: Reader, low: bytes, limit: Limit) -> Found:
        return builds.look(reader, table.space, low, limit, derive)

    return Work(build_of(ttl), look, partial(_write, ttl))


def _write(ttl: TimeToLive, txn: Transaction, bite: Found) -> bool:
    """Add the items of a bite to the queue, except those that changed since they were read."""
    changed = builds.advance(txn, build_of(ttl), bite.low, bite.high)
    if changed is None:
        return False
    for address, seconds in bite.derived:
        if address not in changed:
            queues.add(txn, ttl.space, seconds, address)
    return True
