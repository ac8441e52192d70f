"""INSERT, UPDATE, DELETE and EXISTS: turns statements into the writes that `tables` performs.

Rules: INSERT refuses an item that exists; UPDATE refuses an item that does not exist; DELETE of a missing
item does nothing; EXISTS is a condition check. The terms of the WHERE clause that do not bind the key are
the write's condition.

Source: Developer Guide, "PartiQL insert statements", "update statements", "delete statements" and "Using the
EXISTS function".
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from hashrange.errors import (
    ITEM_TOO_LARGE,
    ConditionalCheckFailedException,
    DuplicateItemException,
    ValidationException,
)
from hashrange.expressions import updates
from hashrange.expressions.memo import forgetting
from hashrange.limits import ITEM_BYTES_MAX
from hashrange.partiql import access as accesses
from hashrange.partiql.prepared import Bound
from hashrange.partiql.statements import DeleteFrom, Exists, Insert, Update
from hashrange.storage.api import Transaction
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import keys, records
from hashrange.tables.items.item_change import ItemChange, Occasion
from hashrange.tables.writes import read_modify_write
from hashrange.tables.writes.read_modify_write import Write
from hashrange.values import Item, item_size

DUPLICATE: Final = "Duplicate primary key exists in table"
_MISSING_KEY: Final = "Key attribute should be present in the item: Key {}"


def write_of(table: Table, bound: Bound, *, return_item_on_failure: bool = False) -> Write:
    """The write of a statement. Raises `ValidationException` if it does not fit the table."""
    statement = bound.prepared.statement
    if isinstance(statement, Insert):
        return _insert(table, bound, statement)
    access = accesses.plan(bound.prepared, table.key)
    key = accesses.key_of(access, table.key, bound.values)
    if access.repeated is not None:
        raise ValidationException(accesses.REPEATED.format(access.repeated))
    test = _bound_test(access, bound)
    match statement:
        case Update():
            assert bound.prepared.changes is not None
            update = updates.Update(
                bound.prepared.changes,
                bound.values,
                frozenset(str(name) for name in bound.prepared.changes),
                bound.prepared.computed,
            )
            condition = _present_and(test)
            return Write("update", statement.table, key, None, condition, update, return_item_on_failure)
        case DeleteFrom():
            removable = None if test is None else _absent_or(test)
            return Write("delete", statement.table, key, None, removable, None, return_item_on_failure)
        case Exists():
            return Write(
                "check", statement.table, key, None, _present_and(test), None, return_item_on_failure
            )
    raise AssertionError(f"no write: {statement}")


def check_paths(table: Table, bound: Bound, write: Write | None = None) -> None:
    """Raise `ValidationException` if a path of the statement leads into a key attribute.

    A SET or REMOVE of a path in the table's own key gets the error for changes of the key instead. Outside a
    transaction the caller passes `write`, because the errors of `read_modify_write.check_given` then come
    first.
    """
    nested = bound.prepared.nested
    if nested:
        changed = bound.prepared.changes or {}
        try:
            keys.check_scalars(table, nested - table.key_names.intersection(map(str, changed)))
        except ValidationException:
            if write is not None:
                read_modify_write.check_given(table, write)
            raise


def _insert(table: Table, bound: Bound, statement: Insert) -> Write:
    item = {name: bound.values[value.name] for name, value in statement.item}
    for attribute in table.key.attributes():
        value = item.get(attribute.name)
        if value is None:
            raise ValidationException(_MISSING_KEY.format(attribute.name))
        accesses.check_type(attribute, value)
    size = item_size(item)
    if size > ITEM_BYTES_MAX:
        raise ValidationException(ITEM_TOO_LARGE)
    return Write("put", statement.table, item, records.pack(item, size), _absent)


def _absent(item: Item) -> bool:
    return not item


def _bound_test(access: accesses.Access, bound: Bound) -> Callable[[Item], bool] | None:
    if access.rest is None:
        return None
    rest, values = forgetting(access.rest), bound.values
    return lambda item: rest(item, values)


def _present_and(test: Callable[[Item], bool] | None) -> Callable[[Item], bool]:
    if test is None:
        return bool
    return lambda item: bool(item) and test(item)


def _absent_or(test: Callable[[Item], bool]) -> Callable[[Item], bool]:
    return lambda item: not item or test(item)


def perform(txn: Transaction, table: Table, bound: Bound, write: Write, occasion: Occasion) -> ItemChange:
    """Run the write of a statement.

    Raises what `tables.writes.read_modify_write.perform` raises, and `DuplicateItemException` for an INSERT.
    """
    try:
        return read_modify_write.perform(txn, table, write, occasion)
    except ConditionalCheckFailedException as error:
        if isinstance(bound.prepared.statement, Insert):
            raise _duplicate(error.units) from None
        raise


def _duplicate(units: int) -> DuplicateItemException:
    error = DuplicateItemException(DUPLICATE)
    error.units = units
    return error


def returned(bound: Bound, write: Write, outcome: ItemChange) -> Any | None:
    """The item that a RETURNING clause asks for (a fragment or a dict), or None."""
    statement = bound.prepared.statement
    if not isinstance(statement, Update | DeleteFrom):
        return None
    match statement.returning:
        case "ALL OLD":
            return None if outcome.old is None else records.fragment_of(outcome.old)
        case "ALL NEW":
            return None if outcome.new is None else records.fragment_of(outcome.new)
        case "MODIFIED OLD" if write.update is not None:
            return write.update.changed_paths(outcome.old_item or {}) or None
        case "MODIFIED NEW" if write.update is not None:
            # The current values at the paths, even at the path of a removed list element.
            return write.update.changed_paths(outcome.new_item or {}) or None
    return None
