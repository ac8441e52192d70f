"""Which settings a restored table takes from its source, and which the request changes.

A restored table has the key, the indexes, the billing mode, the throughput and the encryption of its source.
It has none of its tags, time to live, stream, recovery, deletion protection, policy, class and replicas.

Source: ack-api-quirks DDB-TABLE-215, 273, 276, 279, 280 and 281, measured in October 2026.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from hashrange.errors import ValidationException
from hashrange.operations.context import Context, Request
from hashrange.operations.tables import definition, throughput, vector_definitions
from hashrange.tables.definitions import replicas
from hashrange.tables.definitions.table import Index, KeyAttribute, Table, Throughput

_NO_MATCH = (
    "Index {name} does not match a secondary index that existed in the source table and cannot be created "
    "during the restore operation"
)
_CEILINGS = ("MaxReadRequestUnits", "MaxWriteRequestUnits")


def check(request: Request) -> None:
    """Check the rules that need no table."""
    definition.check_encryption(request.get("SSESpecificationOverride"))
    throughput.check_bounds(request.get("ProvisionedThroughputOverride"))
    for override in request.get("GlobalSecondaryIndexOverride") or ():
        throughput.check_bounds(override.get("ProvisionedThroughput"), override["IndexName"])
    if request.get("BillingModeOverride") == "PROVISIONED" and not request.get(
        "ProvisionedThroughputOverride"
    ):
        raise ValidationException(
            "Must override ProvisionedThroughput if BillingMode is overridden to PROVISIONED"
        )


def restored(
    source: Table,
    request: Request,
    context: Context,
    name: str,
    table_id: str,
    new_space: Callable[[], int],
) -> Table:
    """The definition of the new table, without items and before the restore begins. Raises
    `ValidationException` for overrides that do not fit the source."""
    seen = replicas.seen_from(source, context.caller.region)
    mode: Any = request.get("BillingModeOverride") or seen.billing_mode
    units, ceilings = _table_throughput(seen, request, mode)
    indexes = [
        *_local_indexes(seen, request),
        *_global_indexes(seen, request, mode),
        *_vector_indexes(seen, request, mode),
    ]
    definition.check_indexes(indexes)
    vector_definitions.check_together(indexes)
    names = {attribute.name for index in indexes for attribute in index.attributes()} | seen.key_names
    now = context.now
    return Table(
        name=name,
        id=table_id,
        space=new_space(),
        created=now,
        key=seen.key,
        attribute_types={used: type_ for used, type_ in seen.attribute_types.items() if used in names},
        indexes=tuple(index.placed(new_space) for index in indexes),
        collection_space=new_space() if any(not index.is_global for index in indexes) else 0,
        billing_mode=mode,
        billing_changed=now if mode == "PAY_PER_REQUEST" else None,
        throughput=units,
        on_demand=ceilings,
        sse=_encryption(seen, request, context),
        scope=context.scope,
    )


def _table_throughput(
    source: Table, request: Request, mode: str
) -> tuple[Throughput, dict[str, int] | None]:
    given, ceilings = request.get("ProvisionedThroughputOverride"), request.get("OnDemandThroughputOverride")
    if given is not None and mode != "PROVISIONED":
        raise ValidationException("Cannot override ProvisionedThroughput unless BillingMode is PROVISIONED")
    named = throughput.ceilings(ceilings) or {}
    for member in named:
        if mode == "PROVISIONED":
            raise ValidationException(
                f"Cannot override {member} for OnDemandThroughput unless BillingModeOverride is "
                "PAY_PER_REQUEST"
            )
    for member, units in named.items():
        if units < 1:
            raise ValidationException(
                f"Requested {member} for OnDemandThroughput is outside of valid range"
            )
    if mode == "PROVISIONED":
        return (throughput.provisioned(given) if given is not None else _units(source.throughput)), None
    return Throughput(), named or source.on_demand


def _units(before: Throughput) -> Throughput:
    """The units, without their history."""
    return Throughput(before.read_units, before.write_units)


def _local_indexes(source: Table, request: Request) -> list[Index]:
    own = [index for index in source.indexes if not index.is_global]
    given = request.get("LocalSecondaryIndexOverride")
    if given is None:
        return [_fresh(index) for index in own]
    return [
        msgspec.structs.replace(_fresh(_matching(own, override)), name=override["IndexName"])
        for override in given
    ]


def _global_indexes(source: Table, request: Request, mode: str) -> list[Index]:
    own = [index for index in source.indexes if index.kind == "global"]
    given = request.get("GlobalSecondaryIndexOverride")
    if given is None:
        return [_global(index, index.name, {}, mode) for index in own]
    made: list[Index] = []
    for override in given:
        index = _matching(own, override)
        name, units = override["IndexName"], override.get("ProvisionedThroughput")
        if mode == "PAY_PER_REQUEST" and units is not None:
            raise ValidationException(
                "Cannot override ProvisionedThroughput if BillingMode is overridden to PAY_PER_REQUEST for "
                f"index {name}"
            )
        if mode == "PROVISIONED" and units is None:
            raise ValidationException(f"Must specify provisioned throughput for index {name}")
        throughput.check_ceilings(override.get("OnDemandThroughput"), mode, throughput.Of(name))
        made.append(_global(index, name, override, mode))
    return made


def _vector_indexes(source: Table, request: Request, mode: str) -> list[Index]:
    """The vector indexes: all of the source, or those that the request lists, which may rename them."""
    own = [index for index in source.indexes if index.vector is not None]
    given = request.get("VectorIndexOverride")
    chosen = own if given is None else [_matching_vector(own, override, source) for override in given]
    if chosen:
        vector_definitions.check_billing(mode)
    names = [index.name for index in own] if given is None else [part["IndexName"] for part in given]
    return [
        msgspec.structs.replace(_fresh(index), name=name) for index, name in zip(chosen, names, strict=True)
    ]


def _matching_vector(own: list[Index], given: Request, source: Table) -> Index:
    """The vector index of the source with the definition of an override."""
    wanted = vector_definitions.index(given, source.attribute_types)
    for index in own:
        if _definition_of(index) == _definition_of(wanted):
            return index
    raise ValidationException(_NO_MATCH.format(name=given["IndexName"]))


def _definition_of(index: Index) -> tuple[Any, ...]:
    """What an override of a vector index must repeat."""
    vector = index.vector
    shape = None if vector is None else (vector.attribute, vector.dimensions, vector.distance)
    return shape, index.key, set(index.attributes()), index.projection, set(index.included)


def _global(index: Index, name: str, given: Mapping[str, Any], mode: str) -> Index:
    units, warm = given.get("ProvisionedThroughput"), throughput.warm(given.get("WarmThroughput"))
    if mode == "PAY_PER_REQUEST":
        throughput.check_new_warm(warm, Throughput(), mode, throughput.Of(name))
        ceilings = throughput.ceilings(given.get("OnDemandThroughput")) or index.on_demand
        return msgspec.structs.replace(
            _fresh(index), name=name, throughput=Throughput(), on_demand=ceilings, warm=warm
        )
    own = throughput.provisioned(units) if units is not None else _units(index.throughput)
    if not own.read_units:
        # The source was PAY_PER_REQUEST, so its indexes have no units to inherit.
        raise ValidationException(f"Must specify provisioned throughput for index {name}")
    throughput.check_new_warm(warm, own, mode, throughput.Of(name))
    return msgspec.structs.replace(_fresh(index), name=name, throughput=own, on_demand=None, warm=warm)


def _fresh(index: Index) -> Index:
    """A new index like this one, without its state."""
    vector = index.vector
    if vector is not None:
        vector = msgspec.structs.replace(
            vector, changes=0, allocated_at=0.0, filled_at=0.0, served_at=0.0
        )
    return Index(
        index.name,
        index.is_global,
        0,
        index.key,
        index.projection,
        index.included,
        index.throughput,
        index.on_demand,
        vector=vector,
    )


def _matching(own: list[Index], given: Mapping[str, Any]) -> Index:
    """The index of the source with the key and the projection of an override, which may rename it."""
    elements = [(element["AttributeName"], element["KeyType"]) for element in given["KeySchema"]]
    kind, included = definition.projection(given)
    for index in own:
        same_key = elements == [*_elements(index.key.partition, "HASH"), *_elements(index.key.sort, "RANGE")]
        if same_key and kind == index.projection and set(included) == set(index.included):
            return index
    raise ValidationException(_NO_MATCH.format(name=given["IndexName"]))


def _elements(attributes: tuple[KeyAttribute, ...], kind: str) -> list[tuple[str, str]]:
    return [(attribute.name, kind) for attribute in attributes]


def _encryption(source: Table, request: Request, context: Context) -> dict[str, str] | None:
    given = request.get("SSESpecificationOverride")
    return source.sse if given is None else definition.encryption(given, context.caller)
