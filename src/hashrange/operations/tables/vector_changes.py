"""VectorIndexUpdates of an UpdateTable: create and delete vector indexes of a live table.

A new index passes through the phases of the service. While it is allocated, the table is UPDATING, the index
CREATING, and it cannot be deleted. Then it is filled: the table is ACTIVE, the index CREATING and
Backfilling, and deleting it cancels it. Then it is ACTIVE, and for a while still refuses searches. Each phase
takes as long as the settings say, by default no time; an index of a large table is filled by the sweep.

Source: Developer Guide, "Creating and searching vector indexes"; [report] dynoxide pull request 175 for the
phases. Words without a source there are [assumed].
"""

from __future__ import annotations

import msgspec

from hashrange.errors import (
    INVALID,
    RESOURCE_NOT_FOUND,
    STILL_IN_USE,
    LimitExceededException,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from hashrange.limits import VECTOR_INDEXES_MAX
from hashrange.operations.context import Context, Request
from hashrange.operations.tables import definition, index_changes, vector_definitions
from hashrange.operations.tables.index_changes import Changed
from hashrange.storage.api import Transaction
from hashrange.tables.definitions import catalog, states
from hashrange.tables.definitions.table import Index, Table
from hashrange.tables.writes import backfill, builds


def check(request: Request) -> None:
    """Check the rules that need no table. Raises `ValidationException` and `LimitExceededException`."""
    updates = request.get("VectorIndexUpdates")
    if updates is None:
        return
    if not updates:
        raise ValidationException(f"{INVALID}List of VectorIndexUpdates is empty")
    for update in updates:
        given = [action for action in ("Create", "Delete") if update.get(action) is not None]
        if not given:
            raise ValidationException(
                f"{INVALID}One of VectorIndexUpdate.Create, VectorIndexUpdate.Delete must not be null"
            )
        if len(given) > 1:
            raise ValidationException(
                f"{INVALID}Only one vector index action is allowed per VectorIndexUpdate object"
            )
    secondary = request.get("GlobalSecondaryIndexUpdates") or []
    if len(updates) + sum(update.get("Update") is None for update in secondary) > 1:
        raise LimitExceededException(index_changes.ONE_AT_A_TIME)


def check_switch(table: Table, request: Request) -> None:
    """Refuse a switch to provisioned capacity of a table with vector indexes, also while it deletes the last.

    [report] dynoxide's captures of August 2026; for a switch alone extenddb has the words of CreateTable.
    """
    if request.get("BillingMode") == "PROVISIONED" and any(own.vector is not None for own in table.indexes):
        raise ValidationException(f"{INVALID}Tables with vector indexes must be in PAY_PER_REQUEST mode")


def check_allocated(table: Table, request: Request) -> None:
    """Refuse to create or delete a vector index while another is being allocated, or this one.

    [report] paritysuite's captures, extenddb's measurements
    """
    if not request.get("VectorIndexUpdates"):
        return
    allocated = next((own.name for own in table.indexes if own.vector and own.vector.allocated_at), None)
    if allocated is None:
        return
    update = request["VectorIndexUpdates"][0]
    name = (update.get("Create") or update["Delete"])["IndexName"]
    if name != allocated:
        raise LimitExceededException(index_changes.ONE_AT_A_TIME)
    if update.get("Create") is not None:
        raise _being_created(table, name)
    raise ResourceInUseException(
        f"{STILL_IN_USE}Index creation is in resource allocation phase. Retry deletion during backfilling "
        f"phase or when the index is active. Table: {table.name} Index: {name}"
    )


def _being_created(table: Table, name: str) -> ResourceInUseException:
    # [report] extenddb's measurements, with two spaces
    return ResourceInUseException(f"{STILL_IN_USE}Index is being created.  Table: {table.name} Index: {name}")


def apply(txn: Transaction, table: Table, request: Request, context: Context) -> Changed:
    """Create or delete the index of a checked request. `table` already has its new billing mode."""
    update = request["VectorIndexUpdates"][0]
    if update.get("Create") is not None:
        changed = _create(txn, table, update["Create"], request, context)
    else:
        changed = _delete(txn, table, update["Delete"]["IndexName"])
    return Changed(
        index_changes.with_types(changed.stored, request), index_changes.with_types(changed.shown, request)
    )


def _create(txn: Transaction, table: Table, part: Request, request: Request, context: Context) -> Changed:
    name, now, settings = part["IndexName"], context.now, context.settings
    vector_definitions.check_billing(table.billing_mode)
    given = definition.attribute_types(request.get("AttributeDefinitions") or [])
    # The request must define the attributes of its SearchSchema, even if the table defines them already.
    # [report] extenddb, measured in August 2026
    new = vector_definitions.index(part, given)
    index_changes.check_same_types(table, new.key, new.vector)
    existing = table.index(name)
    if existing is not None and existing.status == "CREATING":
        raise _being_created(table, name)
    if existing is not None:
        raise ValidationException("Attempting to create an index which already exists")
    index_changes.check_alone(table, name)
    if sum(index.kind == "vector" for index in table.indexes) >= VECTOR_INDEXES_MAX:
        # [report] extenddb's measurements; dynoxide has CreateTable's words instead.
        raise LimitExceededException(
            "Subscriber limit exceeded: Number of vector secondary indexes exceeds per-table limit of "
            f"{VECTOR_INDEXES_MAX}"
        )
    vector_definitions.check_together((*table.indexes, new))
    new = new.placed(lambda: catalog.new_space(txn))
    new = msgspec.structs.replace(new, status="CREATING", backfilling=True)
    begun = states.begun(new, now, settings)
    stored = msgspec.structs.replace(table, indexes=(*table.indexes, begun))
    work = backfill.work(stored, begun)
    if settings.update_seconds == 0 and builds.at_once(txn, stored.space, work):
        stored = stored.with_index(msgspec.structs.replace(begun, backfilling=False))
        stored = states.settled(stored, now, settings)
    # The answer shows the first phase.
    return Changed(stored, msgspec.structs.replace(table, indexes=(*table.indexes, _allocated(new, now))))


def _allocated(index: Index, now: float) -> Index:
    """An index as it is shown while it is being allocated."""
    if index.vector is None:
        return index
    return msgspec.structs.replace(index, vector=msgspec.structs.replace(index.vector, allocated_at=now))


def _delete(txn: Transaction, table: Table, name: str) -> Changed:
    index = table.index(name)
    if index is None:
        raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Index {name} for table {table.name}")
    if index.vector is None:
        raise ValidationException(f"Cannot delete an index that is not a VectorIndex: {name}")
    index_changes.check_alone(table, name)
    for space in index.spaces():
        txn.delete_space(space)
    builds.forget(txn, backfill.build_of(index))
    rest = tuple(own for own in table.indexes if own.space != index.space)
    deleting = table.with_index(msgspec.structs.replace(index, status="DELETING"))
    return Changed(msgspec.structs.replace(table, indexes=rest), deleting)
