"""Fills a new global index with the items that were there before.

    (BACKFILL_SPACE, index space as 4 bytes, "") → the address of the next item to look at

Items that change meanwhile are kept by `items.apply`, so a step only adds entries that are missing; it may
run again, and goes on after a crash where the last step ended. Items whose key attributes are absent or
of the wrong type are left out, as in DynamoDB.
"""

from __future__ import annotations

from hashrange.encoding import PARTITION_BYTES
from hashrange.storage.api import Reader, Transaction
from hashrange.tables import indexes, records
from hashrange.tables.catalog import BACKFILL_SPACE
from hashrange.tables.table import Index, Table


def step(txn: Transaction, table: Table, index: Index, limit: int) -> bool:
    """Look at up to `limit` more items; whether all have been looked at now."""
    name = index.space.to_bytes(4)
    cursor = txn.get(BACKFILL_SPACE, name, b"")
    low = (cursor[:PARTITION_BYTES], cursor[PARTITION_BYTES:]) if cursor else (b"", b"")
    entries: list[indexes.Entry] = []
    done = True
    for seen, (partition, sort, record) in enumerate(txn.scan_space(table.space, low)):
        if seen == limit:
            txn.put(BACKFILL_SPACE, name, b"", partition + sort)
            done = False
            break
        entry = indexes.entry_of(table, index, records.item_of(record), partition, sort, record)
        if entry is not None:
            entries.append(entry)
    for entry in entries:
        if txn.get(index.space, entry.partition, entry.sort) is None:
            indexes.replace(txn, index, None, entry)
    if done and cursor:
        txn.delete(BACKFILL_SPACE, name, b"")
    return done


def cursor(reader: Reader, index: Index) -> bytes:
    """The address of the next item to look at while the index is being filled; b"" before the first step."""
    return reader.get(BACKFILL_SPACE, index.space.to_bytes(4), b"") or b""
