"""Time to live: the queue of items by expiry time, and the sweep that deletes what has expired.

Each table with time to live has a space of its own, so that switching it off is one `delete_space`. It holds
a queue by time (`queues`), whose names are addresses, and while the queue is being built of the items that
were there before, the state of that build (`builds`), under "cursor".

`items.apply` keeps the queue; the sweep reads it from its mark and never scans the table. An item is
deleted only if it still expires at the time that the queue says.

Source: Developer Guide, "Using time to live (TTL)": a Number of epoch seconds; other types, and times more
than five years ago, never expire.
"""

from __future__ import annotations

from collections.abc import Iterator

from hashrange.encoding import PARTITION_BYTES
from hashrange.limits import TTL_PAST_SECONDS_MAX
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.background import builds, queues
from hashrange.tables.background.bites import AT_ONCE, Limit
from hashrange.tables.background.builds import Build, Found
from hashrange.tables.data import records
from hashrange.tables.definitions.table import Table, TimeToLive
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
    """Move an item's place in the queue as the item changes from one version to the next."""
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
    """The whole queue in its order, behind the place `after`: for the checker."""
    behind = queues.place(after[0], after[1] + after[2]) if after is not None else None
    for seconds, address in queues.walk(reader, ttl.space, behind):
        yield seconds, address[:PARTITION_BYTES], address[PARTITION_BYTES:]


def is_queued(reader: Reader, ttl: TimeToLive, place: tuple[int, bytes, bytes]) -> bool:
    """Whether the queue holds a place: for the checker."""
    seconds, partition, sort = place
    return queues.holds(reader, ttl.space, seconds, partition + sort)


def forget(txn: Transaction, ttl: TimeToLive, place: tuple[int, bytes, bytes]) -> None:
    """Take a place out of the queue whose item no longer expires then."""
    seconds, partition, sort = place
    queues.remove(txn, ttl.space, seconds, partition + sort)


def done(txn: Transaction, ttl: TimeToLive, now: float, place: tuple[int, bytes, bytes]) -> None:
    """Begin behind a place from now on: the transaction dealt with all that was due up to there."""
    seconds, partition, sort = place
    queues.done(txn, ttl.space, now, seconds, partition + sort)


def build_of(ttl: TimeToLive) -> Build:
    """The build of a queue."""
    return Build(ttl.space, _CURSOR)


def cursor(reader: Reader, ttl: TimeToLive) -> bytes:
    """The address of the next item to be queued while the queue is being built; b"" before the first step."""
    return builds.cursor(reader, build_of(ttl))


def look(reader: Reader, table: Table, ttl: TimeToLive, low: bytes, limit: Limit) -> Found:
    """When the items of a bite from the address `low` on expire."""

    def derive(partition: bytes, sort: bytes, record: bytes) -> int | None:
        return expires_at(ttl.attribute, records.item_of(record))

    return builds.look(reader, table.space, low, limit, derive)


def write(txn: Transaction, ttl: TimeToLive, found: Found) -> bool:
    """Queue the items of a bite, but those that changed meanwhile; False if somebody else did."""
    changed = builds.advance(txn, build_of(ttl), found.low, found.high)
    if changed is None:
        return False
    for address, seconds in found.derived:
        if address not in changed:
            queues.add(txn, ttl.space, seconds, address)
    return True


def at_once(txn: Transaction, table: Table, ttl: TimeToLive) -> bool:
    """Build the queue now, if the table is small and nothing there is damaged; whether that was done."""
    if not builds.fit_at_once(txn, table.space):
        return False
    found = look(txn, table, ttl, b"", AT_ONCE)
    return found.high is None and not found.damages and write(txn, ttl, found)
