"""Builds: the entries of a new index, or the places in an expiry queue, for existing items.

    (space, name, "")      → the cursor: the address of the next item to read
    (space, name, address) → "", a note: this item changed since the build began, and the cursor has not
                             reached it yet

`look` reads a bite of items on a snapshot, so that no write waits for it. One transaction then writes the
entries that were derived from these items, and moves the cursor. A transaction that changes an item before
the cursor reaches it writes the item's entry itself, and notes the item (`note`). The build leaves noted
items alone. So a step of the build may run again, and the build goes on after a crash.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from hashrange.encoding import PARTITION_BYTES
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.failures import StorageError
from hashrange.tables.bites import AT_ONCE, Damage, Limit

_HASH_BYTES: Final = 8


class Build(NamedTuple):
    """The place of a build's cursor and notes."""

    space: int
    name: bytes


Derive = Callable[[bytes, bytes, bytes], Any]
"""Derives the value to build (an entry, a time) from the record at a partition and sort; None: nothing."""


class Found(NamedTuple):
    """The derived values by the item's address, for the items from `low` to `high` (None: the end)."""

    low: bytes
    high: bytes | None
    derived: list[tuple[bytes, Any]]
    damages: list[Damage]
    bytes: int


class Work(NamedTuple):
    """What a build does. `look` derives the values for items from an address on. `write` writes a bite of
    them, and returns False if another transaction has already written this bite."""

    build: Build
    look: Callable[[Reader, bytes, Limit], Found]
    write: Callable[[Transaction, Found], bool]


def cursor(reader: Reader, build: Build) -> bytes:
    """The address of the next item to read; b"" before the first step."""
    return reader.get(build.space, build.name, b"") or b""


def progress(reader: Reader, build: Build) -> float:
    """The share of the items that a build in progress has read, from 0 to 1."""
    return share_before(cursor(reader, build))


def share_before(address: bytes) -> float:
    """The share of a space that comes before an address, from 0 to 1.

    Items are stored in the order of their partition keys' hashes, which are spread evenly. So the hash at the
    beginning of the address tells the share, and no item need be counted.
    """
    hashed = address[:_HASH_BYTES].ljust(_HASH_BYTES, b"\x00")
    return float(int.from_bytes(hashed) / 2 ** (8 * _HASH_BYTES))


def look(reader: Reader, space: int, low: bytes, limit: Limit, derive: Derive) -> Found:
    """Call `derive` for a bite of the items of `space`, from the address `low` on.

    A damaged record is skipped and reported.
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
    """Whether `space` has few enough items for the request that begins a build to do the whole build."""
    records, bytes_ = reader.totals(space)
    return records <= AT_ONCE.items and bytes_ <= AT_ONCE.bytes


def at_once(txn: Transaction, space: int, work: Work) -> bool:
    """Do a build now, if `space`, whose items it reads, is small and has no damaged record; returns whether
    it did."""
    if not fit_at_once(txn, space):
        return False
    bite = work.look(txn, b"", AT_ONCE)
    return bite.high is None and not bite.damages and work.write(txn, bite)


def joined(first: Found, second: Found) -> Found:
    """Two bites as one; the second begins where the first ends."""
    derived, damages = first.derived + second.derived, first.damages + second.damages
    return Found(first.low, second.high, derived, damages, first.bytes + second.bytes)


def note(txn: Transaction, build: Build, partition: bytes, sort: bytes) -> None:
    """Note that this transaction itself writes the built entry of an item, unless the cursor has passed the
    item."""
    address = partition + sort
    if address >= cursor(txn, build):
        txn.put(build.space, build.name, address, b"")


def forget(txn: Transaction, build: Build) -> None:
    """Drop the cursor and all notes of a build."""
    for place in [place for place, _ in txn.scan(build.space, build.name)]:
        txn.delete(build.space, build.name, place)


def advance(txn: Transaction, build: Build, low: bytes, high: bytes | None) -> set[bytes] | None:
    """Move the cursor from `low` to `high` (None: to the end). Returns the addresses of the noted items
    between them; None if the cursor is no longer at `low`, because another transaction has done this step."""
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
