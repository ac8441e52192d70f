"""GlobalSecondaryIndexUpdates of an UpdateTable: create, delete and re-provision indexes of a live table.

A new index of a small table is filled at once; that of a large one by the sweep, and it stays CREATING
until then. A deleted index is gone at once.

Source: Developer Guide, "Managing Global Secondary Indexes in DynamoDB".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from hashrange.errors import (
    INVALID,
    RESOURCE_NOT_FOUND,
    LimitExceededException,
    ResourceNotFoundException,
    ValidationException,
)
from hashrange.limits import GSI_KEY_ATTRIBUTES_MAX
from hashrange.operations import table_definition as definition
from hashrange.operations.context import Request
from hashrange.storage.api import Transaction
from hashrange.tables import backfill, catalog
from hashrange.tables.sweeps import with_index
from hashrange.tables.table import Index, KeySchema, KeyType, Table

_ACTIONS = ("Update", "Create", "Delete")
_AT_ONCE_ITEMS = 1_000
_ONE_AT_A_TIME = (
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
)


class Changed(NamedTuple):
    """A table after the change of its indexes: as it is stored, and as the answer shows it."""

    stored: Table
    shown: Table


def check(updates: list[Request]) -> None:
    """The rules that need no table. Raises `ValidationException` and `LimitExceededException`."""
    slow = 0
    names: list[str] = []
    for update in updates:
        given = [(action, update[action]) for action in _ACTIONS if update.get(action) is not None]
        if len(given) != 1:
            raise ValidationException(
                f"{INVALID}One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
                "GlobalSecondaryIndexUpdate.Delete must not be null"
            )
        action, part = given[0]
        names.append(part["IndexName"])
        slow += action != "Update"
    if len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValidationException(
            f"{INVALID}Only one global secondary index update per index is allowed simultaneously. "
            f"Index: {repeated}"
        )
    if slow > 1:
        raise LimitExceededException(_ONE_AT_A_TIME)


def apply(txn: Transaction, table: Table, request: Request, *, at_once: bool, now: float) -> Changed:
    """Change the indexes of `table` as a checked request says."""
    given = definition.attribute_types(request.get("AttributeDefinitions") or [])
    types: dict[str, KeyType] = {**table.attribute_types, **given}
    _check_same_types(table, types)
    stored = shown = table
    for update in request["GlobalSecondaryIndexUpdates"]:
        if update.get("Create") is not None:
            # The request itself must define the keys of its new index, whatever the table knows already.
            # [report] dynoxide issue 144
            name, schema = update["Create"]["IndexName"], update["Create"]["KeySchema"]
            definition.index_key_schema(name, schema, given, keys_max=GSI_KEY_ATTRIBUTES_MAX)
            stored, shown = _create(txn, stored, update["Create"], types, at_once=at_once)
        elif update.get("Delete") is not None:
            stored, shown = _delete(txn, stored, update["Delete"]["IndexName"])
        else:
            stored = shown = _reprovision(stored, update["Update"], now)
    used = {attribute.name for attribute in stored.key.attributes()}
    used.update(attribute.name for index in stored.indexes for attribute in index.key.attributes())
    unused = [name for name in types if name not in used and name not in table.attribute_types]
    if unused:
        raise ValidationException(
            f"{INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: "
            f"[{', '.join(types)}], keys used: [{', '.join(sorted(used))}]"
        )
    kept = {name: type_ for name, type_ in types.items() if name in used}
    return Changed(
        msgspec.structs.replace(stored, attribute_types=kept),
        msgspec.structs.replace(shown, attribute_types=types if stored is not shown else kept),
    )


def _check_same_types(table: Table, types: dict[str, KeyType]) -> None:
    """Refuse a request that gives an attribute of the table another type."""
    for schema in (table.key, *(index.key for index in table.indexes)):
        attributes = schema.attributes()
        if any(types[attribute.name] != attribute.type for attribute in attributes):
            old, new = _shown(schema, {one.name: one.type for one in attributes}), _shown(schema, types)
            raise ValidationException(
                f"{INVALID}Attributes cannot be redefined. Please check that your attribute has the same "
                f"type as previously defined. Existing schema: {old} New schema: {new}"
            )


def _shown(schema: KeySchema, types: Mapping[str, KeyType]) -> str:
    elements = [(one.name, "HASH") for one in schema.partition] + [(one.name, "RANGE") for one in schema.sort]
    shown = ", ".join(f"SchemaElement: key{{{name}:{types[name]}:{kind}}}" for name, kind in elements)
    return f"Schema:[{shown}]"


def _create(
    txn: Transaction, table: Table, request: Request, types: dict[str, KeyType], *, at_once: bool
) -> Changed:
    if table.index(request["IndexName"]) is not None:
        raise ValidationException("Attempting to create an index which already exists")
    new = definition.global_index(request, types, table.billing_mode, 0, keys_max=GSI_KEY_ATTRIBUTES_MAX)
    definition.check_indexes((*table.indexes, new))
    index = msgspec.structs.replace(
        new, space=catalog.new_space(txn), status="CREATING", backfilling=True
    )
    shown = msgspec.structs.replace(table, indexes=(*table.indexes, index))
    small = txn.totals(table.space).records <= _AT_ONCE_ITEMS
    if at_once and small and backfill.step(txn, shown, index, _AT_ONCE_ITEMS + 1):
        active = msgspec.structs.replace(index, status="ACTIVE", backfilling=False)
        return Changed(with_index(shown, active), shown)
    return Changed(shown, shown)


def _delete(txn: Transaction, table: Table, name: str) -> Changed:
    index = _existing(table, name)
    txn.delete_space(index.space)
    rest = tuple(one for one in table.indexes if one.space != index.space)
    deleting = msgspec.structs.replace(index, status="DELETING")
    return Changed(msgspec.structs.replace(table, indexes=rest), with_index(table, deleting))


def _reprovision(table: Table, request: Request, now: float) -> Table:
    index = _existing(table, request["IndexName"])
    changes: dict[str, Any] = {}
    given = request.get("ProvisionedThroughput")
    if given is not None:
        changes["throughput"] = definition.changed_throughput(
            index.throughput, given, now, of=f"the index {index.name}"
        )
    if request.get("OnDemandThroughput") is not None:
        changes["on_demand"] = definition.on_demand(request["OnDemandThroughput"])
    if request.get("WarmThroughput") is not None:
        changes["warm"] = definition.warm(request["WarmThroughput"])
    return with_index(table, msgspec.structs.replace(index, **changes))


def _existing(table: Table, name: str) -> Index:
    index = table.index(name)
    if index is None or not index.is_global:
        raise ResourceNotFoundException(RESOURCE_NOT_FOUND)
    return index
