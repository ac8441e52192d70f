"""The entries that an item has in secondary indexes.

An entry lies at `(index space, partition, sort)`: for a GSI, `partition` belongs to the index's partition
key, for an LSI to the base table's; `sort` is the index's sort key and the tie-break of `encoding`. Its value
is the projected item in stored form, so an index read never touches the table unless it has to fetch.

An item that lacks any key attribute of an index has no entry in it. A write is refused if a key attribute has
the wrong type, is empty or too long, even if the item had this attribute before the index existed.
"""

from __future__ import annotations

from typing import NamedTuple

from hashrange import encoding
from hashrange.errors import INVALID, TopLevelError, ValidationException
from hashrange.limits import PARTITION_KEY_BYTES_MAX, SORT_KEY_BYTES_MAX
from hashrange.storage.api import Transaction
from hashrange.tables.definitions.table import Index, KeyAttribute, Table, Vector
from hashrange.tables.items import records, vectors
from hashrange.tables.items.keys import TOO_LONG_PARTITION_KEY, TOO_LONG_SORT_KEY
from hashrange.values import Item, item_size, kind, value_size

_EMPTY_INDEX_KEY = (
    "One or more parameter values are not valid. A value specified for a secondary index key is not "
    "supported. The AttributeValue for a key attribute cannot contain an empty {what} value. "
    "IndexName: {index}, IndexKey: {name}"
)
_EMPTY_UPDATED_INDEX_KEY = (
    "One or more parameter values are not valid. The update expression attempted to update a secondary "
    "index key to a value that is not supported. The AttributeValue for a key attribute cannot contain an "
    "empty {what} value."
)
# For attributes that the item had before the index existed, or that an update computes from the item. [docs]
# TransactionCanceledException, [report] stackoverflow 58032718; of `SET c = e` dynalite's recordings
_UNSUPPORTED_INDEX_KEY = (
    "The update expression attempted to update the secondary index key to unsupported type"
)
_TOO_LONG_INDEX_KEY = (
    "The update expression attempted to update the secondary index key beyond allowed size limits"
)

_NO_NAMES: frozenset[str] = frozenset()

# UTF-8 takes at most 4 bytes per character, base64 more than one per byte: shorter keys need no measuring.
_SURELY_SHORT = SORT_KEY_BYTES_MAX // 4


# An item may have 100,000 attributes and twenty indexes that project three of them.
_MANY_TIMES = 8


class _TooLong(NamedTuple):
    """A part of an index's key that is too long in an item."""

    part: tuple[KeyAttribute, ...]
    size: int
    maximum: int


class Entry(NamedTuple):
    """An index entry: its address, the projected item in stored form, and its size."""

    partition: bytes
    sort: bytes
    record: bytes
    size: int


def check_item(table: Table, item: Item) -> None:
    """Raise `ValidationException` if `item` has an index key of the wrong type, empty or too long."""
    _check(table, item, None, _EMPTY_INDEX_KEY, _NO_NAMES)


def check_update(
    table: Table, before: Item, after: Item, computed: frozenset[str] = _NO_NAMES
) -> None:
    """Like `check_item`, for an item that an update changed from `before` to `after`.

    If the item already had an unsuitable key attribute before, the error has another text, and an index that
    is being filled or has vectors accepts the item. The error has that text too if the attribute is one of
    `computed`, which the update did not take from its request.
    """
    _check(table, after, before, _EMPTY_UPDATED_INDEX_KEY, computed)


def _check(table: Table, item: Item, before: Item | None, empty: str, computed: frozenset[str]) -> None:
    try:
        for index in table.indexes:
            _check_keys(index, item, before, empty, computed)
    except ValidationException:
        # DynamoDB's error names the index that refuses the item; if there are several, the first by name.
        for index in sorted(table.indexes, key=lambda index: index.name):
            _check_keys(index, item, before, empty, computed)


def _check_keys(
    index: Index, item: Item, before: Item | None, empty: str, computed: frozenset[str]
) -> None:
    length = 0
    for attribute in index.key.attributes():
        value = item.get(attribute.name)
        if value is None:
            continue
        content = value.get(attribute.type)
        if content:
            length += len(content)
            continue
        unchanged = before is not None and before.get(attribute.name) == value
        if unchanged and (index.backfilling or index.vector is not None):
            continue
        if attribute.type in value:
            what = "string" if attribute.type == "S" else "binary"
            raise TopLevelError(empty.format(what=what, index=index.name, name=attribute.name))
        if index.vector is not None:
            raise vectors.mismatch(index, attribute, value)
        if unchanged or attribute.name in computed:
            raise ValidationException(_UNSUPPORTED_INDEX_KEY)
        raise ValidationException(
            f"{INVALID}Type mismatch for Index Key {attribute.name} Expected: {attribute.type} "
            f"Actual: {kind(value)} IndexName: {index.name}"
        )
    if length > _SURELY_SHORT:
        _check_key_size(index, item, before, computed)
    if index.vector is not None:
        vectors.check(index, index.vector, item, before)


def _too_long(index: Index, item: Item) -> _TooLong | None:
    """The part of the index's key, if any, that is too long in `item`."""
    key = index.key
    for part, maximum in ((key.partition, PARTITION_KEY_BYTES_MAX), (key.sort, SORT_KEY_BYTES_MAX)):
        size = sum(value_size(item[name]) for name, _ in part if name in item)
        if size > maximum:
            return _TooLong(part, size, maximum)
    return None


def _check_key_size(index: Index, item: Item, before: Item | None, computed: frozenset[str]) -> None:
    too_long = _too_long(index, item)
    if too_long is None:
        return
    part, size, maximum = too_long
    if before is not None and all(before.get(name) == item.get(name) for name, _ in part):
        if index.backfilling or index.vector is not None:
            return
        raise ValidationException(_TOO_LONG_INDEX_KEY)
    if any(name in computed for name, _ in part):  # [assumed], as of a wrong type
        raise ValidationException(_TOO_LONG_INDEX_KEY)
    if len(part) == 1:
        raise ValidationException(
            f"{INVALID}Size limit exceeded for Index Key {part[0].name} Actual Size: {size} bytes "
            f"Max Size: {maximum} bytes IndexName: {index.name}"
        )
    raise ValidationException(TOO_LONG_PARTITION_KEY if part is index.key.partition else TOO_LONG_SORT_KEY)


def fits(index: Index, item: Item) -> bool:
    """Whether `item` has every key attribute of `index`, each with the right type and an allowed length."""
    length = 0
    for name, type_ in index.key.attributes():
        value = item.get(name)
        content = value.get(type_) if value is not None else None
        if not content:
            return False
        length += len(content)
    if index.vector is not None and not vectors.fits(index.vector, item):
        return False
    return length <= _SURELY_SHORT or _too_long(index, item) is None


def position(index: Index, item: Item, partition: bytes, sort: bytes) -> tuple[bytes, bytes]:
    """The address of an item's entry; the item must fit. `partition` and `sort` are those of the base
    item."""
    if index.is_global:
        index_partition = encoding.partition_of([item[name] for name, _ in index.key.partition])
    else:
        index_partition = partition
    components = [item[name] for name, _ in index.key.sort]
    return index_partition, encoding.pack_index_sort(components, partition, sort)


def projected_names(table: Table, index: Index) -> frozenset[str]:
    """The attributes that an entry of a KEYS_ONLY or INCLUDE index holds."""
    names = table.key_names.union([name for name, _ in index.attributes()], index.included)
    return names if index.vector is None else names.union([index.vector.attribute])


def entry_of(
    table: Table, index: Index, item: Item, partition: bytes, sort: bytes, record: bytes
) -> Entry | None:
    """The entry of an item in an index, or None if it has none. `record` is the item's stored form."""
    if not fits(index, item):
        return None
    index_partition, index_sort = position(index, item, partition, sort)
    vector = index.vector
    if vector is not None:
        item = {**item, vector.attribute: vectors.packed(vector, item[vector.attribute])}
    if index.projection == "ALL":
        if vector is None:
            return Entry(index_partition, index_sort, record, records.size_of(record))
        size = item_size(item)
        return Entry(index_partition, index_sort, records.pack(item, size), size)
    names = projected_names(table, index)
    if len(item) > _MANY_TIMES * len(names):
        projected = {name: item[name] for name in sorted(names) if name in item}
    else:
        projected = {name: value for name, value in item.items() if name in names}
    size = item_size(projected)
    return Entry(index_partition, index_sort, records.pack(projected, size), size)


def replace(txn: Transaction, index: Index, before: Entry | None, after: Entry | None) -> None:
    """Replace the entry `before` by `after` (None: no entry), and update the index's totals."""
    if index.backfilling:
        settle(txn, index, before, after)
        return
    if before is not None and (after is None or before[:2] != after[:2]):
        txn.delete(index.space, before.partition, before.sort)
    if after is not None:
        txn.put(index.space, after.partition, after.sort, after.record)
    txn.count(
        index.space,
        (after is not None) - (before is not None),
        (after.size if after else 0) - (before.size if before else 0),
    )
    if index.vector is not None:
        _note(txn, index.vector, before, after)


def _note(txn: Transaction, vector: Vector, before: Entry | None, after: Entry | None) -> None:
    places: dict[tuple[bytes, bytes], bytes | None] = {}
    if before is not None:
        places[before.partition, before.sort] = None
    if after is not None:
        places[after.partition, after.sort] = after.record
    vectors.note(txn, vector, places)


def settle(txn: Transaction, index: Index, before: Entry | None, after: Entry | None) -> None:
    """Like `replace`, for an index that may lack the entry `before`, because it is still being filled, or may
    already hold `after`. The totals count the entries that really exist."""
    places = {(entry.partition, entry.sort) for entry in (before, after) if entry is not None}
    stored_entries = [stored for place in places if (stored := txn.get(index.space, *place)) is not None]
    if before is not None:
        txn.delete(index.space, before.partition, before.sort)
    if after is not None:
        txn.put(index.space, after.partition, after.sort, after.record)
    txn.count(
        index.space,
        (after is not None) - len(stored_entries),
        (after.size if after else 0) - sum(map(records.size_of, stored_entries)),
    )
    if index.vector is not None:
        _note(txn, index.vector, before, after)
