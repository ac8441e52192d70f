"""The only way an item changes.

`apply` writes the item, its index entries, its place in the expiry queue, the totals and the size of its
item collection, all in one engine transaction. Put, Update, Delete, BatchWrite, TransactWrite and the expiry
sweep all end here. Conditions, updates and answers are the caller's business.
"""

from __future__ import annotations

from hashrange.errors import INVALID, ItemCollectionSizeLimitExceededException, ValidationException
from hashrange.limits import ITEM_BYTES_MAX
from hashrange.storage.api import Transaction
from hashrange.tables import expiry, indexes, records
from hashrange.tables.capacity import NO_INDEXES, WriteUnits, write_units
from hashrange.tables.table import Index, Table
from hashrange.values import Item

_COLLECTION_TOO_LARGE = "Collection size exceeded."


def apply(
    txn: Transaction,
    table: Table,
    partition: bytes,
    sort: bytes,
    old: bytes | None,
    old_item: Item | None,
    new: bytes | None,
    new_item: Item | None,
    *,
    collection_bytes_max: int,
) -> WriteUnits:
    """Change the item at `(partition, sort)` from the stored record `old` to `new` (None: absent).

    The items are the decoded records; `old_item` may be None for a plain table, which does not need it.
    Returns the write units. Raises `ValidationException` for an index key of the wrong type, and
    `ItemCollectionSizeLimitExceededException`; the caller's transaction must then be given up.
    """
    old_size = records.size_of(old) if old is not None else 0
    new_size = records.size_of(new) if new is not None else 0
    if new is not None:
        if not table.is_plain and new_item is not None:
            indexes.check_item(table, new_item)
        txn.put(table.space, partition, sort, new)
    elif old is not None:
        txn.delete(table.space, partition, sort)
    if old_size != new_size or (old is None) != (new is None):
        txn.count(table.space, (new is not None) - (old is not None), new_size - old_size)
    units = write_units(max(old_size, new_size))
    if table.is_plain:
        return WriteUnits(units, NO_INDEXES)

    index_units: dict[str, int] = {}
    growth = new_size - old_size
    local_bytes = new_size
    for index in table.indexes:
        before = indexes.entry_of(table, index, old_item, partition, sort, old) if old and old_item else None
        after = indexes.entry_of(table, index, new_item, partition, sort, new) if new and new_item else None
        cost = _move_entry(txn, index, before, after)
        if cost:
            index_units[index.name] = cost
        if not index.is_global:
            growth += (after.size if after else 0) - (before.size if before else 0)
            local_bytes += after.size if after else 0
    if table.has_local_indexes:
        if local_bytes > ITEM_BYTES_MAX:
            raise ValidationException(f"{INVALID}Item size has exceeded the maximum allowed size")
        _grow_collection(txn, table, partition, growth, collection_bytes_max)
    if table.ttl is not None:
        expiry.requeue(txn, table.ttl, partition, sort, old_item, new_item)
    return WriteUnits(units, index_units)


def _move_entry(
    txn: Transaction, index: Index, before: indexes.Entry | None, after: indexes.Entry | None
) -> int:
    """Replace one index entry by another; the write units that it costs."""
    if before == after:
        return 0
    cost = 0
    if before is not None and (after is None or before[:2] != after[:2]):
        txn.delete(index.space, before.partition, before.sort)
        cost += write_units(before.size)
    if after is not None:
        txn.put(index.space, after.partition, after.sort, after.record)
        in_place = before is not None and before[:2] == after[:2]
        cost += write_units(max(after.size, before.size) if before is not None and in_place else after.size)
    txn.count(
        index.space,
        (after is not None) - (before is not None),
        (after.size if after else 0) - (before.size if before else 0),
    )
    return cost


def _grow_collection(txn: Transaction, table: Table, partition: bytes, growth: int, bytes_max: int) -> None:
    """Add `growth` bytes to the size of an item collection; refused where it would grow past the limit."""
    if not growth:
        return
    size = collection_size(txn, table, partition) + growth
    if growth > 0 and size > bytes_max:
        raise ItemCollectionSizeLimitExceededException(_COLLECTION_TOO_LARGE)
    if size:
        txn.put(table.collection_space, partition, b"", str(size).encode())
    else:
        txn.delete(table.collection_space, partition, b"")


def collection_size(txn: Transaction, table: Table, partition: bytes) -> int:
    """The bytes of an item collection, its local index entries included."""
    stored = txn.get(table.collection_space, partition, b"")
    return int(stored) if stored else 0
