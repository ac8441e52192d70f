"""Fills a new global index with the entries of existing items; this is a build (see `builds`).

Items whose key attributes are absent or of the wrong type are left out, as in DynamoDB. A record that cannot
be decoded is left out too, and reported.
"""

from __future__ import annotations

from functools import partial

from hashrange.storage.api import Reader, Transaction
from hashrange.tables.bites import AT_ONCE, Limit
from hashrange.tables.definitions.table import Index, Table
from hashrange.tables.items import indexes, records
from hashrange.tables.spaces import BACKFILL_SPACE
from hashrange.tables.writes import builds
from hashrange.tables.writes.builds import Build, Found


def build_of(index: Index) -> Build:
    """The build that fills an index."""
    return Build(BACKFILL_SPACE, index.space.to_bytes(4, "big"))


def look(reader: Reader, table: Table, index: Index, low: bytes, limit: Limit) -> Found:
    """The entries of a bite of items, from the address `low` on."""
    return builds.look(reader, table.space, low, limit, partial(_entry, table, index))


def _entry(table: Table, index: Index, partition: bytes, sort: bytes, record: bytes) -> indexes.Entry | None:
    return indexes.entry_of(table, index, records.item_of(record), partition, sort, record)


def write(txn: Transaction, index: Index, bite: Found) -> bool:
    """Write the entries of a bite, except those of items that changed since `look`.

    Returns False if another transaction has already written this bite.
    """
    changed = builds.advance(txn, build_of(index), bite.low, bite.high)
    if changed is None:
        return False
    space, count, size = index.space, 0, 0
    for address, entry in bite.derived:
        if address not in changed:
            txn.put(space, entry.partition, entry.sort, entry.record)
            count += 1
            size += entry.size
    txn.count(space, count, size)
    return True


def at_once(txn: Transaction, table: Table, index: Index) -> bool:
    """Fill an index now, if its table is small and has no damaged record; returns whether it did."""
    if not builds.fit_at_once(txn, table.space):
        return False
    bite = look(txn, table, index, b"", AT_ONCE)
    return bite.high is None and not bite.damages and write(txn, index, bite)


def cursor(reader: Reader, index: Index) -> bytes:
    """The address of the next item to read while the index is being filled; b"" before the first step."""
    return builds.cursor(reader, build_of(index))


def progress(reader: Reader, index: Index) -> float:
    """The share of an index that is filled, from 0 to 1."""
    return builds.progress(reader, build_of(index)) if index.backfilling else 1.0
