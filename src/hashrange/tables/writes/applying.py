"""The only way an item of a table in use changes. (A table that is being restored gets its items from
`background.restoring.write`, which says why.)

`apply` writes the item, its index entries, its place in the expiry queue, its stream record, its record for
a Kinesis data stream, its image for the history, the totals and the size of its item collection, all in one
engine transaction. Put, Update, Delete, BatchWrite, TransactWrite and the expiry sweep all end here.
Conditions, updates and answers are left to the caller.
"""

from __future__ import annotations

from typing import NamedTuple

from hashrange import pace
from hashrange.errors import INVALID, ItemCollectionSizeLimitExceededException, ValidationException
from hashrange.limits import ITEM_BYTES_MAX
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions.table import Index, Table
from hashrange.tables.history import images
from hashrange.tables.items import indexes, records, vectors
from hashrange.tables.items.capacity import NO_INDEXES, WriteUnits, entry_bytes, write_units
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.writes import backfill, builds, expiry, lag, stream_records
from hashrange.values import equal

_COLLECTION_TOO_LARGE = "Collection size exceeded."


def apply(txn: Transaction, change: ItemChange, occasion: Occasion) -> None:
    """Make a change, and store its cost in `change.units`.

    Raises `ValidationException` if the item with its local index entries is too large, and
    `ItemCollectionSizeLimitExceededException`; nothing is written then.
    """
    table, partition, sort = change.table, change.partition, change.sort
    old, new = change.old, change.new
    old_size, new_size = change.old_size, change.new_size
    moves: list[_Move] = []
    if table.indexes:
        moves = _moves(change)
        if table.has_local_indexes:
            # Refuse before the first write: a batch of statements continues after a refused statement.
            _fit_collection(txn, change, moves, occasion)
    if new is not None:
        txn.put(table.space, partition, sort, new)
    elif old is not None:
        txn.delete(table.space, partition, sort)
    if old_size != new_size or (old is None) != (new is None):
        txn.count(table.space, (new is not None) - (old is not None), new_size - old_size)
    units = write_units(max(old_size, new_size))
    if table.is_plain:
        change.units = WriteUnits(units, NO_INDEXES)
        return
    if table.vectors:
        units = write_units(
            max(
                vectors.billed_size(table, change.old_item or {}, old_size),
                vectors.billed_size(table, change.new_item or {}, new_size),
            )
        )

    index_units: dict[str, int] = {}
    for move in moves:
        cost = _move_entry(txn, table, *move, partition, sort, occasion)
        if cost:
            index_units[move.target.name] = cost
    if table.ttl is not None:
        expiry.requeue(txn, table.ttl, partition, sort, change.old_item, change.new_item)
    if table.stream is not None:
        stream_records.record(txn, table.stream, change, occasion)
    if table.outbox is not None:
        stream_records.record(txn, table.outbox, change, occasion)
    if table.history is not None:
        images.keep(txn, table.history, change, occasion)
    change.units = WriteUnits(units, index_units)


class _Move(NamedTuple):
    """An index, and an item's entry in it before and after a change (None: no entry)."""

    target: Index
    before: indexes.Entry | None
    after: indexes.Entry | None


def _moves(change: ItemChange) -> list[_Move]:
    table, partition, sort = change.table, change.partition, change.sort
    old, old_item, new, new_item = change.old, change.old_item, change.new, change.new_item
    moves: list[_Move] = []
    for index in table.indexes:
        pace.point()
        before = indexes.entry_of(table, index, old_item, partition, sort, old) if old and old_item else None
        after = indexes.entry_of(table, index, new_item, partition, sort, new) if new and new_item else None
        moves.append(_Move(index, before, after))
    return moves


def _fit_collection(
    txn: Transaction, change: ItemChange, moves: list[_Move], occasion: Occasion
) -> None:
    """Add the growth of an item and its local entries to the size of its collection; refuse a size that is
    too large."""
    before = sum(move.before.size for move in moves if move.before and not move.target.is_global)
    after = sum(move.after.size for move in moves if move.after and not move.target.is_global)
    if change.new_size + after > ITEM_BYTES_MAX:
        raise ValidationException(f"{INVALID}Item size has exceeded the maximum allowed size")
    growth = change.new_size + after - change.old_size - before
    _grow_collection(txn, change.table, change.partition, growth, occasion.settings.item_collection_bytes_max)


def _move_entry(
    txn: Transaction,
    table: Table,
    index: Index,
    before: indexes.Entry | None,
    after: indexes.Entry | None,
    partition: bytes,
    sort: bytes,
    occasion: Occasion,
) -> int:
    """Replace an index entry by another, now or after the lag; returns the write units that this costs, for a
    vector index the bytes.

    The item is at `(partition, sort)`.
    """
    if before == after or (before is not None and after is not None and _same(before, after)):
        return 0
    if index.backfilling:
        builds.note(txn, backfill.build_of(index), partition, sort)
    delay = occasion.settings.gsi_delay_seconds
    if index.is_global and (delay > 0 or index.lags):
        lag.enqueue(txn, table.full_name, index, before, after, occasion.now + delay)
    else:
        indexes.replace(txn, index, before, after)
    cost = write_units if index.vector is None else entry_bytes
    if before is None or after is None:
        return cost(max(before.size if before else 0, after.size if after else 0))
    if before[:2] == after[:2]:
        return cost(max(before.size, after.size))
    return cost(before.size) + cost(after.size)


def _same(before: indexes.Entry, after: indexes.Entry) -> bool:
    """Whether two entries are equal, except perhaps in the order of attributes or set members; such a change
    costs nothing.

    [report] dynoxide, changes after version 0.13.0.
    """
    if before[:2] != after[:2] or before.size != after.size:
        return False
    return equal({"M": records.item_of(before.record)}, {"M": records.item_of(after.record)})


def _grow_collection(txn: Transaction, table: Table, partition: bytes, growth: int, bytes_max: int) -> None:
    """Add `growth` bytes to the size of an item collection; refuse growth past the limit."""
    if not growth:
        return
    size = collection_size(txn, table, partition) + growth
    if growth > 0 and size > bytes_max:
        raise ItemCollectionSizeLimitExceededException(_COLLECTION_TOO_LARGE)
    set_collection_size(txn, table, partition, size)


def set_collection_size(txn: Transaction, table: Table, partition: bytes, size: int) -> None:
    """Store the size of an item collection in bytes."""
    if size:
        txn.put(table.collection_space, partition, b"", str(size).encode())
    else:
        txn.delete(table.collection_space, partition, b"")


def collection_size(reader: Reader, table: Table, partition: bytes) -> int:
    """The bytes of an item collection, including its local index entries."""
    stored = reader.get(table.collection_space, partition, b"")
    return int(stored) if stored else 0
