"""`perform`: the one read-modify-write behind put, update, delete and condition check.

An operation makes a `Write` from a request, before it uses the storage. `perform` runs the `Write` in a
transaction, and may run again if the engine repeats the transaction. The single-item operations, batches,
transactions and statements all call it. It reads the item, tests the condition, and ends in `applying.apply`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol

from hashrange.errors import (
    CONDITION_FAILED,
    INVALID,
    TOO_DEEP,
    UPDATED_ITEM_TOO_LARGE,
    ConditionalCheckFailedException,
    TopLevelError,
    ValidationException,
)
from hashrange.limits import ITEM_BYTES_MAX
from hashrange.storage.api import Transaction
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import indexes, keys, records, vectors
from hashrange.tables.items.capacity import NO_INDEXES, WriteUnits, write_units
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.writes import applying, holds
from hashrange.values import Item, item_size, size_within

_NO_NAMES: frozenset[str] = frozenset()


class Update(Protocol):
    """An update of an item, from an update expression or from the legacy parameter AttributeUpdates."""

    @property
    def attributes(self) -> frozenset[str]:
        """The top-level attributes that it changes."""
        ...

    @property
    def computed(self) -> frozenset[str]:
        """The attributes whose new value depends on the item."""
        ...

    def given(self) -> Item:
        """The attributes that the update sets to values of its request, whatever the item is."""
        ...

    def apply(self, item: Item) -> Item:
        """The item after the update; the argument stays as it is."""
        ...

    def changed_paths(self, item: Item) -> Item:
        """A sparse copy of `item`, which is the item before or after the update, with only the paths that the
        update changes."""
        ...

    def create(self, key: Item) -> Item:
        """The item that the update makes if there is none yet; only the key if the update only removes."""
        ...

    def charge(self, item: Item) -> int:
        """The size that DynamoDB charges for the text of the update when it changes `item`."""
        ...


class Write:
    """A write of a request.

    `key` is the request's Key; for a put it is the whole item, and `record` is its stored form. `condition`
    tests the current item (empty if absent). `update` is None for an update that changes nothing; with
    `is_charged`, the charge of its text may not exceed the limit of an item's size. `nested` are the
    top-level attributes of the paths in its expressions that have several parts. `is_too_deep`: the update
    uses a value that is nested more deeply than an item may be.
    """

    __slots__ = (
        "action",
        "condition",
        "is_charged",
        "is_too_deep",
        "key",
        "nested",
        "record",
        "return_item_on_failure",
        "table_name",
        "update",
    )

    def __init__(
        self,
        action: Literal["put", "update", "delete", "check"],
        table_name: str,
        key: Item,
        record: bytes | None = None,
        condition: Callable[[Item], bool] | None = None,
        update: Update | None = None,
        return_item_on_failure: bool = False,
        nested: frozenset[str] = frozenset(),
        is_charged: bool = False,
        is_too_deep: bool = False,
    ) -> None:
        self.action = action
        self.table_name = table_name
        self.key = key
        self.record = record
        self.condition = condition
        self.update = update
        self.return_item_on_failure = return_item_on_failure
        self.nested = nested
        self.is_charged = is_charged
        self.is_too_deep = is_too_deep


def address_of(table: Table, write: Write) -> tuple[bytes, bytes]:
    """The address of a write's item. Raises `ValidationException` if its key does not fit the table."""
    if write.action == "put":
        return keys.address_of_item(table.key, write.key)
    return keys.address_of_key(table.key, write.key)


def check_paths(table: Table, write: Write, *, alone: bool = False) -> None:
    """Raise `ValidationException` if a path of an expression leads into a key attribute.

    `perform` refuses updates of a whole key attribute. For a write that is `alone`, outside a transaction,
    the errors of `check_given` come first.
    """
    nested = write.nested
    if nested:
        if write.update is not None:
            nested -= write.update.attributes & table.key_names
        try:
            keys.check_scalars(table, nested)
        except ValidationException:
            if alone:
                check_given(table, write)
            raise


def check_given(table: Table, write: Write) -> None:
    """Raise `ValidationException` for an update that changes the key, or sets an index key to a value of its
    request that cannot be a key.

    `perform` also reports these errors, but after those of paths into keys; DynamoDB reports them before.
    [report] dynalite's recordings, of UpdateItem.
    """
    if write.update is not None:
        _check_key_stays(table, write.update)
        indexes.check_update(table, {}, write.update.given())


def _check_key_stays(table: Table, update: Update) -> None:
    if not table.key_names.isdisjoint(update.attributes):
        raise ValidationException(_key_update_message(table, update))


def perform(
    txn: Transaction,
    table: Table,
    write: Write,
    occasion: Occasion,
    address: tuple[bytes, bytes] | None = None,
) -> ItemChange:
    """Run `write` on `table`. `address` is the address of its item, if the caller knows it.

    Raises `ConditionalCheckFailedException` (with the item if requested), `ValidationException` and
    `TransactionConflictException`.
    """
    if write.is_too_deep:
        raise ValidationException(TOO_DEEP)
    partition, sort = address or address_of(table, write)
    if table.indexes and write.action == "put":
        # DynamoDB checks the rules that the request alone can break before it tests the condition.
        indexes.check_item(table, write.key)
    if write.update is not None:
        _check_key_stays(table, write.update)
    if occasion.settings.transaction_seconds > 0:
        holds.check(
            txn, table.space, partition, sort, occasion.now, occasion.settings.transaction_seconds
        )
    old = txn.get(table.space, partition, sort)
    old_item = None
    if old is not None and (write.condition is not None or write.action == "update" or table.needs_old_item):
        old_item = records.item_of(old)
    if write.is_charged and write.update is not None and write.update.charge(old_item or {}) > ITEM_BYTES_MAX:
        # Reported before a failed condition.
        raise TopLevelError(UPDATED_ITEM_TOO_LARGE)
    if write.condition is not None and not write.condition(old_item or {}):
        raise _refused(table, write, old)
    if write.action == "check":
        checked = ItemChange(table, partition, sort, old, old_item, old, old_item)
        checked.units = WriteUnits(_units(table, old), NO_INDEXES)
        return checked

    new: bytes | None = write.record
    new_item: Item | None = write.key
    if write.action == "update":
        new, new_item = _updated(write, old, old_item)
        if table.indexes and new_item is not None:
            computed = _NO_NAMES if write.update is None else write.update.computed
            indexes.check_update(table, old_item or {}, new_item, computed)
    if write.action == "delete":
        new, new_item = None, None
    change = ItemChange(table, partition, sort, old, old_item, new, new_item)
    applying.apply(txn, change, occasion)
    return change


def _units(table: Table, record: bytes | None) -> int:
    """The write units of a stored item."""
    if record is None:
        return write_units(0)
    size = records.size_of(record)
    if table.vectors:
        size = vectors.billed_size(table, records.item_of(record), size)
    return write_units(size)


def _refused(table: Table, write: Write, old: bytes | None) -> ConditionalCheckFailedException:
    """The error of a write whose condition failed. It is made here, because a variable of the function that
    raises it would make a reference cycle with its traceback."""
    members = {"Item": records.fragment_of(old)} if write.return_item_on_failure and old else {}
    error = ConditionalCheckFailedException(CONDITION_FAILED, **members)
    # (a write to an item that is not there: 1 unit, whatever it would have put)
    error.units = write_units(0) if old is None else max(_units(table, old), _units(table, write.record))
    return error


def _updated(write: Write, old: bytes | None, old_item: Item | None) -> tuple[bytes | None, Item | None]:
    """The item after an update, in stored form and decoded; None for an item that is absent and stays so.

    An update that only removes makes no item; an update without any action does ([docs]; [report]
    Alternator's authors).
    """
    before = old_item if old_item is not None else write.key
    size = records.size_of(old) if old is not None else item_size(before)
    if write.update is None:
        return (old, before) if old is not None else (records.pack(before, size), before)
    changed = write.update.attributes
    after = write.update.apply(before) if old is not None else write.update.create(before)
    if old is None and changed and len(after) == len(before):
        return None, None
    # Measure only the changed attributes again, because most updates touch one attribute of many.
    grown = _size_of(after, changed)
    if grown <= ITEM_BYTES_MAX:
        size += grown - _size_of(before, changed)
    if grown > ITEM_BYTES_MAX or size > ITEM_BYTES_MAX:
        raise ValidationException(UPDATED_ITEM_TOO_LARGE)
    return records.pack(after, size), after


def _size_of(item: Item, names: frozenset[str]) -> int:
    """The bytes of the attributes with these names; counting stops when the sum is above the limit of an
    item.

    An update may put a large value in hundreds of places; it is refused before all of them are measured.
    """
    size = 0
    for name in names:
        value = item.get(name)
        if value is not None:
            size += len(name.encode())
            size += size_within(value, ITEM_BYTES_MAX - size)
            if size > ITEM_BYTES_MAX:
                break
    return size


def _key_update_message(table: Table, update: Update) -> str:
    name = next(a.name for a in table.key.attributes() if a.name in update.attributes)
    return f"{INVALID}Cannot update attribute {name}. This attribute is part of the key"
