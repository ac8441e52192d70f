"""Fills a restored table with the items that another table had at a moment; this is a build (`builds`).

The new table is CREATING until its last item, and the last entries of its indexes, are written; only then can
the data plane open it. Its `Restore` names the source and the stamp. The restore holds the source's history
under its own name, so that the past stays readable even if recovery is disabled or the source is deleted
meanwhile (`definitions.dropped`). Nothing else writes to the new table, so the build needs no notes.

`write` stands beside `applying.apply`, through which all other items go. A table that is being restored has
no items to replace, no stream, no time to live and no history, so of `apply` only the records, entries and
sums would be left. `write` sums up a bite once, and `derive` makes its entries before the transaction, so
that requests wait only while the bite is stored. It also stores what `apply` would refuse or delay: the
items were admitted when they were written, so no size limit counts, and entries of global indexes do not lag.
"""

from __future__ import annotations

from functools import partial

import msgspec

from hashrange.encoding import PARTITION_BYTES
from hashrange.settings import Settings
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.failures import StorageError
from hashrange.tables.bites import Limit
from hashrange.tables.definitions import states
from hashrange.tables.definitions.spans import STAMP_MAX
from hashrange.tables.definitions.table import Restore, Table
from hashrange.tables.history import sources
from hashrange.tables.history.past import Past
from hashrange.tables.items import indexes, records
from hashrange.tables.spaces import BACKFILL_SPACE
from hashrange.tables.writes import applying, builds
from hashrange.tables.writes.builds import Build, Found, Work


class SourceLost(StorageError):
    """The source of a restore is missing, because the store was damaged."""


def hold_of(table: Table) -> str:
    """The name under which a restored table holds its source."""
    return f"restore:{table.id}"


def build_of(table: Table) -> Build:
    """The build that fills a table."""
    return Build(BACKFILL_SPACE, table.space.to_bytes(4, "big"))


def cursor(reader: Reader, table: Table) -> bytes:
    """The address of the next item to restore; b"" before the first step."""
    return builds.cursor(reader, build_of(table))


def progress(reader: Reader, table: Table) -> float:
    """The share of a table's items that are restored, from 0 to 1."""
    return 1.0 if table.restore is None else builds.progress(reader, build_of(table))


def source_of(reader: Reader, restore: Restore) -> Table:
    """The source of a restore, even if it was deleted meanwhile. Raises `SourceLost`."""
    table = sources.find(reader, restore.source, restore.source_id)
    if table is None:
        raise SourceLost(
            f"Table {restore.source} with the id {restore.source_id}, from which a table is restored, is "
            "missing. Delete the table that is being restored."
        )
    return table


def look(reader: Reader, table: Table, restore: Restore, low: bytes, limit: Limit) -> Found:
    """The items that the source had, with their index entries, from the address `low` on."""
    source = source_of(reader, restore)
    # Nothing changes the items of a deleted table.
    past = reader if restore.stamp == STAMP_MAX else Past(reader, source, restore.stamp)
    return builds.look(past, source.space, low, limit, partial(derive, table))


def derive(
    table: Table, partition: bytes, sort: bytes, record: bytes
) -> tuple[bytes, list[tuple[int, indexes.Entry]], int]:
    """The record to write, the entries with their spaces, and the bytes that the item adds to its
    collection."""
    entries: list[tuple[int, indexes.Entry]] = []
    growth = records.size_of(record)
    if table.indexes:
        item = records.item_of(record)
        for index in table.indexes:
            entry = indexes.entry_of(table, index, item, partition, sort, record)
            if entry is not None:
                entries.append((index.space, entry))
                growth += 0 if index.is_global else entry.size
    return record, entries, growth


def write(txn: Transaction, table: Table, bite: Found) -> bool:
    """Write the items of a bite. Returns False if another transaction has already written this bite."""
    if builds.advance(txn, build_of(table), bite.low, bite.high) is None:
        return False
    totals: dict[int, list[int]] = {}
    collections: dict[bytes, int] = {}
    derived: tuple[bytes, list[tuple[int, indexes.Entry]], int]
    for address, derived in bite.derived:
        record, entries, growth = derived
        partition, sort = address[:PARTITION_BYTES], address[PARTITION_BYTES:]
        txn.put(table.space, partition, sort, record)
        _add(totals, table.space, records.size_of(record))
        for space, entry in entries:
            txn.put(space, entry.partition, entry.sort, entry.record)
            _add(totals, space, entry.size)
        if table.collection_space:
            collections[partition] = collections.get(partition, 0) + growth
    for space, (count, size) in totals.items():
        txn.count(space, count, size)
    for partition, growth in collections.items():
        size = applying.collection_size(txn, table, partition) + growth
        applying.set_collection_size(txn, table, partition, size)
    return True


def _add(totals: dict[int, list[int]], space: int, size: int) -> None:
    total = totals.setdefault(space, [0, 0])
    total[0] += 1
    total[1] += size


def work(table: Table, restore: Restore) -> Work:
    """What fills a table."""

    def look_at_source(reader: Reader, low: bytes, limit: Limit) -> Found:
        return look(reader, table, restore, low, limit)

    def write_bite(txn: Transaction, bite: Found) -> bool:
        return write(txn, table, bite)

    return Work(build_of(table), look_at_source, write_bite)


def at_once(txn: Transaction, table: Table, restore: Restore) -> bool:
    """Restore all items now, if there are few and none is damaged; returns whether it did."""
    return builds.at_once(txn, source_of(txn, restore).space, work(table, restore))


def end(txn: Transaction, table: Table, restore: Restore) -> Table:
    """The table without its restore, which was completed or given up; releases the source."""
    builds.forget(txn, build_of(table))
    if restore.backup is not None:
        return msgspec.structs.replace(table, restore=None)  # a backup needs no hold
    sources.release(txn, restore.source, restore.source_id, hold_of(table))
    return msgspec.structs.replace(table, restore=None)


def completed(txn: Transaction, table: Table, restore: Restore, now: float, settings: Settings) -> Table:
    """The table after its last item: ACTIVE, or CREATING for as long as any new table."""
    until = table.created + settings.create_seconds if settings.create_seconds else 0.0
    filled = msgspec.structs.replace(end(txn, table, restore), creating_until=until)
    return states.settled(filled, now, settings)
