"""GlobalSecondaryIndexUpdates of an UpdateTable: create, delete and re-provision indexes of a live table.

A new index of a small table is filled at once. A new index of a large table is filled by the sweep, and stays
CREATING until then. A deleted index disappears at once.

Source: Developer Guide, "Managing Global Secondary Indexes in DynamoDB"; for messages and the contents of
answers the measurements of ack-api-quirks of October 2026 (its DDB-TABLE-135 to 174, 375, 380, 456).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from hashrange.errors import (
    INVALID,
    RESOURCE_NOT_FOUND,
    LimitExceededException,
    ResourceNotFoundException,
    ValidationException,
)
from hashrange.limits import GSI_MAX
from hashrange.operations.context import Answer, Request
from hashrange.operations.tables import definition, throughput
from hashrange.storage.api import Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, KeySchema, KeyType, Table, Vector, Warming
from hashrange.tables.writes import backfill, builds

_ACTIONS = ("Update", "Create", "Delete")
ONE_AT_A_TIME: Final = (
    "Subscriber limit exceeded: Only 1 online index can be created or deleted simultaneously per table"
)
# [report] dynalite's recordings for the end, [assumed] for the rest
_BLOCKED = (
    "This operation cannot be performed with given input values. Please contact DynamoDB service team for "
    "more info: Action Blocked: IndexUpdate"
)


class Changed(NamedTuple):
    """A table after a change of its indexes: as it is stored, and as the answer shows it."""

    stored: Table
    shown: Table


def slow(updates: list[Request] | None) -> bool:
    """Whether the changes make the table UPDATING: they create or delete an index."""
    return any(update.get("Update") is None for update in updates or ())


def check(updates: list[Request]) -> None:
    """Check the rules that need no table. Raises `ValidationException` and `LimitExceededException`."""
    coming_or_going = 0
    names: list[str] = []
    for update in updates:
        given = [(action, update[action]) for action in _ACTIONS if update.get(action) is not None]
        if not given:
            raise ValidationException(
                f"{INVALID}One of GlobalSecondaryIndexUpdate.Update, GlobalSecondaryIndexUpdate.Create, "
                "GlobalSecondaryIndexUpdate.Delete must not be null"
            )
        if len(given) > 1:
            raise ValidationException(
                f"{INVALID}Only one global secondary index action is allowed per GlobalSecondaryIndexUpdate "
                "object"
            )
        action, part = given[0]
        names.append(part["IndexName"])
        coming_or_going += action != "Update"
        if action == "Update" and part.get("WarmThroughput") == {}:
            raise ValidationException(
                f"{INVALID}WarmThroughput must have at least one of ReadUnitsPerSecond or "
                f"WriteUnitsPerSecond specified for index: {part['IndexName']}"
            )
    if len(set(names)) != len(names):
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValidationException(
            f"{INVALID}Only one global secondary index update per index is allowed simultaneously. "
            f"Index: {repeated}"
        )
    if coming_or_going > 1:
        raise LimitExceededException(ONE_AT_A_TIME)


def check_bounds(table: Table, updates: list[Request] | None) -> None:
    """Refuse units beyond any quota for an index.

    [report] dynalite's recordings: an absent table is reported first, and an absent index has its own message
    """
    for update in updates or ():
        part = update.get("Create") or update.get("Update")
        if part is None:
            continue
        try:
            throughput.check_bounds(part.get("ProvisionedThroughput"), part["IndexName"])
        except ValidationException:
            if update.get("Create") is None and table.index(part["IndexName"]) is None:
                raise ValidationException(_BLOCKED) from None
            raise


def check_switch(table: Table, updates: list[Request] | None) -> None:
    """Refuse a switch to PROVISIONED without throughput for each of the table's indexes."""
    given = {}
    for update in updates or ():
        part = update.get("Update") or update.get("Delete")
        if part is not None:
            given[part["IndexName"]] = update.get("Delete") or part.get("ProvisionedThroughput")
    for index in table.indexes:
        if index.kind == "global" and given.get(index.name) is None:
            raise ValidationException(
                f"{INVALID}ProvisionedThroughput must be specified for index: {index.name}"
            )


def switched(index: Index, before: str) -> Index:
    """A global index after a switch of the billing mode of its table; `before` is the table before the
    switch."""
    return msgspec.structs.replace(
        index,
        throughput=throughput.switched(index.throughput, None),
        on_demand=index.on_demand if before == "PROVISIONED" else None,
        warm=throughput.current_warm(index.warm, index.throughput, before),
    )


def apply(
    txn: Transaction, table: Table, request: Request, *, switching: bool, delay: float, now: float
) -> Changed:
    """Change the indexes of `table` as a checked request says.

    `table` already has its new billing mode; `switching`: it had another mode before. `delay` is how long
    changes take (seconds).
    """
    stored = shown = table
    for update in request["GlobalSecondaryIndexUpdates"]:
        if update.get("Create") is not None:
            made, index = _create(txn, stored, update["Create"], request, at_once=delay == 0)
            stored = made
            shown = msgspec.structs.replace(shown, indexes=(*shown.indexes, index))
        elif update.get("Delete") is not None:
            index = _existing(stored, update["Delete"]["IndexName"], "delete")
            check_alone(stored, index.name)
            txn.delete_space(index.space)
            rest = tuple(kept for kept in stored.indexes if kept.space != index.space)
            stored = msgspec.structs.replace(stored, indexes=rest)
            shown = shown.with_index(msgspec.structs.replace(index, status="DELETING"))
        else:
            before = _existing(stored, update["Update"]["IndexName"], "update")
            after = _reprovisioned(
                stored, before, update["Update"], switching=switching, now=now, ready=now + delay
            )
            stored = stored.with_index(after)
            shown = shown.with_index(_echoed(before, after, update["Update"], switching=switching))
    return Changed(with_types(stored, request), with_types(shown, request))


def with_types(table: Table, request: Request) -> Table:
    """The table with the types of the attributes that its keys use; the request's other definitions are
    ignored."""
    given = definition.attribute_types(request.get("AttributeDefinitions") or [])
    types: dict[str, KeyType] = {**given, **table.attribute_types}
    used = {attribute.name for index in table.indexes for attribute in index.attributes()} | table.key_names
    return msgspec.structs.replace(
        table, attribute_types={name: type_ for name, type_ in types.items() if name in used}
    )


class _Schema(NamedTuple):
    """The types of the attributes of a schema, and its text in messages."""

    types: dict[str, str]
    shown: str


def _schemas(key: KeySchema, vector: Vector | None) -> list[_Schema]:
    """The schemas of a table or an index: of a vector index those of its vector and of its searches."""
    found = []
    if vector is not None:
        shown = f"VectorIndexSchema:[VectorAttribute: key{{{vector.attribute}:L:{vector.dimensions}}}]"
        found.append(_Schema({vector.attribute: "L"}, shown))
        key = KeySchema(key.partition + vector.filters)
    elements = [(part, "HASH") for part in key.partition] + [(part, "RANGE") for part in key.sort]
    shown = ", ".join(f"SchemaElement: key{{{part.name}:{part.type}:{kind}}}" for part, kind in elements)
    found.append(_Schema({part.name: part.type for part, _ in elements}, f"Schema:[{shown}]"))
    return found


def check_same_types(table: Table, key: KeySchema, vector: Vector | None = None) -> None:
    """Refuse a new index that gives another type to an attribute that the table or an index uses.

    Only the attributes of the new index count: a definition that repeats another attribute with another type
    is ignored. [report] dynoxide's captures of August 2026 in eu-west-2, extenddb; the words for the search
    schema of a vector index are [assumed]
    """
    existing = [(table.key, None), *((index.key, index.vector) for index in table.indexes)]
    for new in _schemas(key, vector):
        for old in (schema for own in existing for schema in _schemas(*own)):
            if any(old.types.get(name, type_) != type_ for name, type_ in new.types.items()):
                raise ValidationException(
                    f"{INVALID}Attributes cannot be redefined. Please check that your attribute has the same "
                    f"type as previously defined. Existing schema: {old.shown} New schema: {new.shown}"
                )


def _create(
    txn: Transaction, table: Table, part: Request, request: Request, *, at_once: bool
) -> tuple[Table, Index]:
    """The table with a new index, and the index as the answer shows it."""
    name = part["IndexName"]
    given = definition.attribute_types(request.get("AttributeDefinitions") or [])
    if not given:
        raise ValidationException(f"{INVALID}AttributeDefinitions is not specified for index: {name}")
    # The request must define the key attributes of its new index, even if the table defines them already.
    # [report] dynoxide issue 144
    key = definition.index_key_schema(part["KeySchema"], given, is_global=True)
    check_same_types(table, key)
    if table.index(name) is not None:
        raise ValidationException("Attempting to create an index which already exists")
    new = definition.global_index(part, key, table.billing_mode, updating=True)
    check_alone(table, name)
    if sum(index.kind == "global" for index in table.indexes) >= GSI_MAX:
        raise LimitExceededException(
            "Subscriber limit exceeded: Number of global secondary indexes exceeds per-table limit of "
            f"{GSI_MAX}"
        )
    definition.check_indexes((*table.indexes, new))
    index = msgspec.structs.replace(new, space=catalog.new_space(txn), status="CREATING", backfilling=True)
    made = msgspec.structs.replace(table, indexes=(*table.indexes, index))
    if at_once and builds.at_once(txn, made.space, backfill.work(made, index)):
        active = msgspec.structs.replace(index, status="ACTIVE", backfilling=False)
        made = made.with_index(active)
    # The answer shows the first phase, in which the service allocates resources.
    return made, msgspec.structs.replace(index, backfilling=False)


def check_alone(table: Table, name: str) -> None:
    """Refuse to create or delete an index while another index is being created or deleted; an index that is
    CREATING may be deleted."""
    if any(index.status != "ACTIVE" and index.name != name for index in table.indexes):
        raise LimitExceededException(ONE_AT_A_TIME)


def _reprovisioned(
    table: Table, index: Index, part: Request, *, switching: bool, now: float, ready: float
) -> Index:
    of, mode = throughput.Of(index.name), table.billing_mode
    given, ceilings, warm = (
        part.get("ProvisionedThroughput"),
        throughput.ceilings(part.get("OnDemandThroughput")),
        throughput.warm(part.get("WarmThroughput")),
    )
    if mode == "PAY_PER_REQUEST" and (given is not None or (ceilings is None and warm is None)):
        raise ValidationException(
            f"{INVALID}The only Updates for index: {index.name} when TableThroughputMode is PAY_PER_REQUEST "
            "can be to OnDemandThroughput, WarmThroughput"
        )
    throughput.check_ceilings(ceilings, mode, of, updating=True)
    if given is None and warm is None and mode == "PROVISIONED":
        throughput.check_index_billing(mode, None, index.name, updating=True)
    changes: dict[str, Any] = {}
    if warm is not None:
        changes["warming"] = Warming(throughput.changed_warm(index, mode, warm, of), ready)
    if given is not None:
        units = index.throughput
        changes["warm"] = throughput.current_warm(index.warm, units, mode)
        changes["throughput"] = (
            throughput.switched(units, given) if switching else throughput.changed(units, given, now, of)
        )
    if ceilings is not None:
        changes["on_demand"] = throughput.changed_ceilings(index.on_demand, ceilings)
    return msgspec.structs.replace(index, **changes)


def _echoed(before: Index, after: Index, part: Request, *, switching: bool) -> Index:
    """An updated index as the answer shows it: with the previous units and warm throughput."""
    ceilings = part.get("OnDemandThroughput")
    busy = part.get("ProvisionedThroughput") is not None or throughput.ceilings(ceilings) is not None
    return msgspec.structs.replace(
        after,
        status="UPDATING" if busy else after.status,
        throughput=after.throughput if switching else before.throughput,
        on_demand=throughput.echoed_ceilings(before.on_demand, ceilings) if ceilings else after.on_demand,
        warm=before.warm,
    )


def mark_warming(shown: Answer, updates: list[Request] | None) -> None:
    """Mark the indexes in an answer whose warm throughput is being raised."""
    warming = {
        update["Update"]["IndexName"]
        for update in updates or ()
        if (update.get("Update") or {}).get("WarmThroughput") is not None
    }
    for index in shown.get("GlobalSecondaryIndexes", ()):
        if index["IndexName"] in warming:
            index["WarmThroughput"]["Status"] = "UPDATING"


def _existing(table: Table, name: str, verb: str) -> Index:
    index = table.index(name)
    if index is None:
        raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Index {name} for table {table.name}")
    if index.kind != "global":
        raise ValidationException(f"Cannot {verb} an index that is not a GlobalSecondaryIndex: {name}")
    return index
