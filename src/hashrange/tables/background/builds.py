"""Builds over the items that were there before: the entries of a new index, the places in an expiry queue.

    (space, name, "")      → the cursor: the address of the next item to look at
    (space, name, address) → "", for an item before which the cursor is, and of which something else is to be
                             built since the build began

A bite of items is looked at on a snapshot, so that no write waits meanwhile; one transaction then writes what
was derived from them and moves the cursor. An item for which that changed in between, or any time since the
build began, was noted by `note` in the transaction that changed it, and that transaction wrote what is being
built for it. So the bite leaves noted items alone, and a step may run again, or go on after a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from hashrange.encoding import PARTITION_BYTES
from hashrange.storage.api import Reader, StorageError, Transaction
from hashrange.tables.background.bites import AT_ONCE, Damage, Limit


class Build(NamedTuple):
    """Where a build keeps its cursor and its notes."""

    space: int
    name: bytes


Derive = Callable[[bytes, bytes, bytes], Any]
"""What is to be built of the record at a partition and sort; None: nothing."""


class Found(NamedTuple):
    """What was derived from the items between two addresses (`high` None: the end), by the item's address."""

    low: bytes
    high: bytes | None
    derived: list[tuple[bytes, Any]]
    damages: list[Damage]
    bytes: int


def cursor(reader: Reader, build: Build) -> bytes:
    """The address of the next item to look at; b"" before the first step."""
    return reader.get(build.space, build.name, b"") or b""


def look(reader: Reader, space: int, low: bytes, limit: Limit, derive: Derive) -> Found:
    """Derive what is to be built of the items of `space` from the address `low` on.

    A record of which nothing can be derived, because it is damaged, is passed over and reported.
    """
    derived: list[tuple[bytes, Any]] = []
    damages: list[Damage] = []
    count, bytes_ = 0, 0
    items_max, bytes_max = limit
    start = (low[:PARTITION_BYTES], low[PARTITION_BYTES:]) if low else (b"", b"")
    for partition, sort, record in reader.scan_space(space, start):
        address = partition + sort
        if count == items_max or bytes_ >= bytes_max:
            return Found(low, address, derived, damages, bytes_)
        count += 1
        bytes_ += len(record)
        try:
            result = derive(partition, sort, record)
        except StorageError:
            raise
        except Exception as error:
            damages.append(Damage(partition, sort, repr(error)))
            continue
        if result is not None:
            derived.append((address, result))
    return Found(low, None, derived, damages, bytes_)


def fit_at_once(reader: Reader, space: int) -> bool:
    """Whether the items of `space` are so few that a request may build what it asks for by itself."""
    records, bytes_ = reader.totals(space)
    return records <= AT_ONCE.items and bytes_ <= AT_ONCE.bytes


def joined(first: Found, second: Found) -> Found:
    """Two bites, of which the second goes on where the first ends."""
    derived, damages = first.derived + second.derived, first.damages + second.damages
    return Found(first.low, second.high, derived, damages, first.bytes + second.bytes)


def note(txn: Transaction, build: Build, partition: bytes, sort: bytes) -> None:
    """Note that the transaction writes itself what is built of an item, if the cursor is not past it."""
    address = partition + sort
    if address >= cursor(txn, build):
        txn.put(build.space, build.name, address, b"")


def advance(txn: Transaction, build: Build, low: bytes, high: bytes | None) -> set[bytes] | None:
    """Move the cursor from `low` to `high` (None: to the end). The addresses of the items between them that
    changed meanwhile; None if the cursor is not at `low` any more, because somebody else took the step."""
    if cursor(txn, build) != low:
        return None
    changed = {place for place, _ in txn.scan(build.space, build.name, low or b"\x00", high)}
    for place in changed:
        txn.delete(build.space, build.name, place)
    if high is not None:
        txn.put(build.space, build.name, b"", high)
    elif low:
        txn.delete(build.space, build.name, b"")
    return changed
