"""Fills a new global index with the entries of existing items; this is a build (see `builds`).

Items whose key attributes are absent or of the wrong type are left out, as in DynamoDB. A record that cannot
be decoded is left out too, and reported.
"""

from __future__ import annotations

from functools import partial

from hashrange.storage.api import Reader, Transaction
from hashrange.tables.bites import Limit
from hashrange.tables.definitions.table import Index, Table
from hashrange.tables.items import indexes, records
from hashrange.tables.spaces import BACKFILL_SPACE
from hashrange.tables.writes import builds
from hashrange.tables.writes.builds import Build, Found, Work


def build_of(index: Index) -> Build:
    """The build that fills an index."""
    return Build(BACKFILL_SPACE, index.space.to_bytes(4, "big"))


def work(table: Table, index: Index) -> Work:
    """What fills an index of a table."""

    def look(reader: Reader, low: bytes, limit: Limit) -> Found:
        return builds.look(reader, table.space, low, limit, partial(_entry, table, index))

    return Work(build_of(index), look, partial(_write, index))


def _entry(table: Table, index: Index, partition: bytes, sort: bytes, record: bytes) -> indexes.Entry | None:
    return indexes.entry_of(table, index, records.item_of(record), partition, sort, record)


def _write(index: Index, txn: Transaction, bite: Found) -> bool:
    """Write the entries of a bite, except those of items that changed since they were read."""
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


def progress(reader: Reader, index: Index) -> float:
    """The share of an index that is filled, from 0 to 1."""
    return builds.progress(reader, build_of(index)) if index.backfilling else 1.0
