"""ReplicaUpdates of an UpdateTable: adds, changes and removes members of a global table, version 2019.11.21.

`replica_requests.read` checks the rules that need no table, `admit` the rules that precede those about the
table's state, and `apply` makes the changes. `spread` makes any other update of the table for all members.
`leave` is DeleteTable in one of several regions. `tables.definitions.replicas` explains replicas. A table
with provisioned writes can get replicas only while its writes scale (`replica_auto_scaling`).

Source: Developer Guide, "Global tables: how it works"; API reference, UpdateTable; the rules and texts as
ack-api-quirks (DDB-TABLE-201 to 309) measured them in October 2026.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec

from hashrange.errors import INVALID, STILL_IN_USE, ResourceInUseException, ValidationException
from hashrange.operations.context import Context, Request
from hashrange.operations.tables import definition, stream_changes
from hashrange.operations.tables.replica_requests import SEVERAL, WITH_STRONG, ReplicaActions
from hashrange.storage.api import Transaction
from hashrange.tables.definitions import replicas
from hashrange.tables.definitions.table import Override, Replica, Table, Witness

_IN_USE: Final = "The resource which you are attempting to change is in use."
_LOCAL: Final = (
    "Cannot add or delete the local region through ReplicaUpdates. Use CreateTable, DeleteTable, or "
    "UpdateTable as required."
)
_NOT_SCALED: Final = "write capacity should either be Pay-Per-Request or AutoScaled."
_SOURCE: Final = (
    "Replica cannot be deleted because it has acted as a source region for new replica(s) being added to "
    "the table in the last 24 hours."
)
_KEY_MISSING: Final = f"{INVALID}KMSMasterKeyId must be specified for each replica."
_KEYS_MIXED: Final = f"{INVALID}All replica keys must either be Customer Managed CMK or AWS Managed CMK."
_NO_UNITS: Final = (
    "Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode is PAY_PER_REQUEST"
)
_NO_CEILING: Final = (
    "MaxReadRequestUnits for OnDemandThroughput cannot be specified when the table BillingMode is PROVISIONED"
)
_WITNESS_HERE: Final = (
    "Cannot add a witness in the same region as an existing replica when creating a global table with "
    "MultiRegionConsistency set to STRONG."
)
_CONSISTENCY_FIXED: Final = "MultiRegionConsistency parameter is unsupported on existing global table"
_STRONG_COMPLETE: Final = "Cannot add replicas to a global table with strong MultiRegionConsistency"
_STRONG_WHOLE: Final = f"Deletion of only one table replica is not supported for {WITH_STRONG}."
_APART: Final = f"{INVALID}Disassociate is not possible here: all replicas are one table"
# [docs] for the rules, [assumed] for the words
_NO_REPLICA: Final = (
    f"{INVALID}DisassociationProtectionEnabled is only supported for a replica of a global table"
)
_STRONG_STAYS: Final = f"{INVALID}Disassociation is not supported for {WITH_STRONG}"
_WITNESS_LEFT: Final = "Update table delete operation does not include all witnesses."


class Changed(NamedTuple):
    """A table after a change of its members: as it is stored, and as the answer shows it."""

    stored: Table
    shown: Table


def admit(table: Table, wanted: ReplicaActions, caller_region: str) -> None:
    """Check the rules about members that precede those about the table's state. [report] DDB-TABLE-227,
    228"""
    mine = replicas.local(table, caller_region)
    here = caller_region if mine is None else mine.region
    if wanted.kind == "Disassociate":
        _refuse_disassociation(table, mine)
    states = {replica.region: replicas.status(replica) for replica in table.replicas}
    if wanted.kind != "Update" and here in wanted.parts:
        raise ValidationException(_LOCAL)
    if wanted.kind == "Create":
        if wanted.consistency is not None and table.replicas:
            raise ValidationException(_CONSISTENCY_FIXED)
        if table.strongly_consistent:
            raise ValidationException(_STRONG_COMPLETE)
        if any(states.get(region, "CREATING") != "CREATING" for region in wanted.parts):
            raise ValidationException(
                f"Failed to create a the new replica of table with name: ‘{table.name}’ because one or more "
                "replicas already existed as tables."
            )
        if wanted.witness is not None and wanted.witness[1] == here:
            raise ValidationException(_WITNESS_HERE)
        return
    _refuse_strangers("replicas", [region for region in wanted.parts if region not in states])
    if wanted.kind == "Delete":
        _admit_delete(table, wanted)


def _refuse_disassociation(table: Table, mine: Replica | None) -> None:
    """Refuse to make a replica a table of its own: with the error of a protected replica, if it is one."""
    check_disassociable(table)
    if mine is not None and mine.disassociation_protection:
        # [docs] for the rule; [assumed] for the words, which are those of deletion protection
        raise ValidationException(
            f"Cannot disassociate table {table.name} in region {mine.region} because it has disassociation "
            "protection enabled. Disable disassociation protection first."
        )
    raise ValidationException(_APART)


def check_disassociable(table: Table) -> None:
    """Refuse disassociation, and its protection, for what is no replica of an eventually consistent global
    table. Source: API reference, UpdateTable."""
    if table.strongly_consistent:
        raise ValidationException(_STRONG_STAYS)
    if not table.replicas:
        raise ValidationException(_NO_REPLICA)


def _refuse_strangers(plural: str, regions: Sequence[str]) -> None:
    if regions:
        raise ValidationException(
            f"Update global table operation failed because one or more {plural} were not part of the global "
            f"table. Please retry the request without these {plural}: [{', '.join(regions)}]."
        )


def _admit_delete(table: Table, wanted: ReplicaActions) -> None:
    """Refuse to delete only some members of a strongly consistent global table: they are deleted together,
    with the witness. Members of other global tables are deleted one by one."""
    if wanted.witness is not None:
        known = table.witness is not None and wanted.witness[1] == table.witness.region
        _refuse_strangers("witnesses", [] if known else [wanted.witness[1]])
    if not table.strongly_consistent:
        if len(wanted.parts) > 1:
            raise ValidationException(SEVERAL)
        return
    if table.witness is not None and wanted.witness is None:
        raise ValidationException(_WITNESS_LEFT)
    if len(wanted.parts) < len(table.replicas) - 1:
        raise ValidationException(_STRONG_WHOLE)


def check_at_rest(table: Table) -> None:
    """Refuse a change while a replica is CREATING or DELETING. [report] DDB-TABLE-227"""
    if replicas.changing(table):
        raise ResourceInUseException(_IN_USE)


def check_stream(table: Table, specification: Request) -> None:
    """Refuse to disable the stream that replication needs. [report] terraform-provider-aws 20019"""
    if table.replicas and not table.strongly_consistent and not specification["StreamEnabled"]:
        raise ValidationException(f"{INVALID}Disabling Stream is not allowed for a Global Table replica.")


def apply(txn: Transaction, table: Table, wanted: ReplicaActions, context: Context) -> Changed:
    """The table after an admitted change of its members. The answer shows the members as they were."""
    if wanted.kind == "Create":
        return _create(txn, table, wanted, context)
    if wanted.kind == "Delete":
        return Changed(_delete(table, wanted, context), table)
    return Changed(_update(table, wanted, context.now), table)


def _create(txn: Transaction, table: Table, wanted: ReplicaActions, context: Context) -> Changed:
    if table.billing_mode == "PROVISIONED":
        _check_scaled(table)
    if wanted.strong:
        _check_fit_for_strong(txn, table)
    elif table.stream is None:
        # The service enables a stream, and leaves an existing stream with another view type unchanged.
        # [report] DDB-TABLE-305
        table = stream_changes.enable(txn, table, "NEW_AND_OLD_IMAGES", context)
    first = replicas.local(table, context.caller.region) or _first(table, context.caller.region)
    members = table.replicas or (first,)
    ready = context.now + context.settings.update_seconds
    new = tuple(_new(table, part, wanted, first, context, ready) for part in wanted.parts.values())
    left = tuple(region for region in table.left_regions if region not in wanted.parts)
    shown = msgspec.structs.replace(
        table, replicas=members, left_regions=left, strongly_consistent=wanted.strong
    )
    witness = None if wanted.witness is None else Witness(wanted.witness[1], ready)
    return Changed(msgspec.structs.replace(shown, replicas=members + new, witness=witness), shown)


def _check_scaled(table: Table) -> None:
    """Refuse a replica of a table with provisioned writes that do not scale. [report] DDB-TABLE-249 and
    288"""
    if "" not in table.scaling:
        raise ValidationException(f"Table {_NOT_SCALED}")
    if any(index.is_global and index.name not in table.scaling for index in table.indexes):
        raise ValidationException(f"GSI {_NOT_SCALED}")


def _check_fit_for_strong(txn: Transaction, table: Table) -> None:
    """Check the Developer Guide's rules for strong consistency; the wording of the errors is [assumed]."""
    if txn.totals(table.space).records:
        raise ValidationException(f"The table must be empty to be made one of {WITH_STRONG}.")
    if table.has_local_indexes:
        raise ValidationException(f"Local secondary indexes are not supported for {WITH_STRONG}.")
    if table.ttl is not None:
        raise ValidationException(f"Time to live is not supported for {WITH_STRONG}.")


def _first(table: Table, region: str) -> Replica:
    """The first member of a new global table: the table itself."""
    return Replica(
        region,
        table.id,
        table.created,
        deletion_protection=table.deletion_protection,
        key=_customer_key(table),
    )


def _new(
    table: Table, part: Request, wanted: ReplicaActions, first: Replica, context: Context, ready: float
) -> Replica:
    region = part["RegionName"]
    replica = Replica(
        region,
        wanted.ids[region],
        context.now,
        source=first.region,
        creating_until=ready,
        key=_new_key(table, part, context),
    )
    return _with_settings(table, replica, part, context.now)


def _customer_key(table: Table) -> str | None:
    """The ARN of the customer's KMS key of a table."""
    arn = table.sse["KMSMasterKeyArn"] if table.sse is not None else None
    return arn if arn is not None and not definition.is_service_key(arn) else None


def _new_key(table: Table, part: Request, context: Context) -> str | None:
    """The KMS key of a new replica: a customer's key if the table has one, otherwise none. [report]
    DDB-TABLE-313"""
    given = part.get("KMSMasterKeyId")
    if table.sse is None and given is None:
        return None
    if table.sse is None or (given is None and _customer_key(table) is not None):
        raise ValidationException(_KEY_MISSING)
    if given is None:
        return None
    arn = definition.key_arn(given, part["RegionName"], context.caller.account_id)
    if definition.is_service_key(arn) != (_customer_key(table) is None):
        raise ValidationException(_KEYS_MIXED)
    return None if definition.is_service_key(arn) else arn


def _delete(table: Table, wanted: ReplicaActions, context: Context) -> Table:
    now = context.now
    gone_at = now + context.settings.update_seconds
    for region in wanted.parts:
        _check_deletable(table, region, now)
    members = tuple(
        msgspec.structs.replace(replica, gone_at=gone_at) if replica.region in wanted.parts else replica
        for replica in table.replicas
    )
    witness = table.witness
    if witness is not None and wanted.witness is not None:
        witness = msgspec.structs.replace(witness, gone_at=gone_at)
    return msgspec.structs.replace(table, replicas=members, witness=witness)


def _check_deletable(table: Table, region: str, now: float) -> None:
    """Refuse to delete a protected replica, and a replica from which another was added in the last 24
    hours."""
    if any(replica.region == region and replica.deletion_protection for replica in table.replicas):
        raise ValidationException(
            f"Cannot delete table {table.name} in region {region} because it has deletion protection "
            "enabled. Disable deletion protection first."
        )
    if replicas.was_source(table, region, now):
        raise ValidationException(_SOURCE)


def leave(table: Table, context: Context) -> Table:
    """The global table after DeleteTable in the caller's region, which deletes only the replica there."""
    now, gone_at = context.now, context.now + context.settings.delete_seconds
    if table.strongly_consistent:
        raise ValidationException(_STRONG_WHOLE)
    local = replicas.local(table, context.caller.region)
    assert local is not None
    _check_deletable(table, local.region, now)
    if replicas.status(local) == "CREATING":
        raise ResourceInUseException(f"{STILL_IN_USE}Table: {table.name} is being used.")
    check_at_rest(table)
    members = tuple(
        msgspec.structs.replace(replica, gone_at=gone_at) if replica is local else replica
        for replica in table.replicas
    )
    return msgspec.structs.replace(table, replicas=members, updating_until=gone_at)


def _update(table: Table, wanted: ReplicaActions, now: float) -> Table:
    members = []
    for replica in table.replicas:
        part = wanted.parts.get(replica.region)
        if part is not None:
            _check_update(table, part)
            replica = _with_settings(table, replica, part, now)
        members.append(replica)
    return msgspec.structs.replace(table, replicas=tuple(members))


def _check_update(table: Table, part: Request) -> None:
    if part.get("KMSMasterKeyId") is not None:
        # For every key. [report] DDB-TABLE-309
        raise ValidationException(_KEY_MISSING)
    provisioned = table.billing_mode == "PROVISIONED"
    for member in (part, *(part.get("GlobalSecondaryIndexes") or ())):
        if member.get("ProvisionedThroughputOverride") and not provisioned:
            raise ValidationException(_NO_UNITS)
        if member.get("OnDemandThroughputOverride") and provisioned:
            raise ValidationException(_NO_CEILING)


def _with_settings(table: Table, replica: Replica, part: Request, now: float) -> Replica:
    """The replica with the overrides of a Create or Update, without those for indexes that the table
    lacks."""
    base = (table.throughput.read_units, (table.on_demand or {}).get("MaxReadRequestUnits"))
    changes: dict[str, Any] = {"throughput": _override(replica.throughput, part, *base)}
    if part.get("TableClassOverride") is not None:
        changes["table_class"], changes["class_changed"] = part["TableClassOverride"], now
    own = dict(replica.indexes)
    for setting in part.get("GlobalSecondaryIndexes") or ():
        index = table.index(setting["IndexName"])
        if index is not None and index.vector is None:
            base = (index.throughput.read_units, (index.on_demand or {}).get("MaxReadRequestUnits"))
            own[index.name] = _override(own.get(index.name, Override()), setting, *base)
    return msgspec.structs.replace(replica, indexes=own, **changes)


def _override(current: Override, part: Request, base_units: int, base_ceiling: int | None) -> Override:
    """An override after a request. A value equal to the table's own removes it; so does -1 for a maximum."""
    units, ceiling = current.read_units, current.read_ceiling
    given = (part.get("ProvisionedThroughputOverride") or {}).get("ReadCapacityUnits")
    if given is not None:
        units = None if given == base_units else given
    given = (part.get("OnDemandThroughputOverride") or {}).get("MaxReadRequestUnits")
    if given is not None:
        ceiling = None if given in (-1, base_ceiling) else given
    return Override(units, ceiling)


def spread(table: Table, request: Request, caller_region: str) -> Table:
    """A global table after an update by a client in one region, which is made for all members.

    Deletion protection and a customer's key belong to each region. Class and throughput become the same in
    all regions, except for read capacity that a region overrides.
    """
    local = replicas.local(table, caller_region)
    if local is None:
        return table
    members = []
    for replica in table.replicas:
        changes: dict[str, Any] = {}
        if request.get("TableClass") is not None:
            changes["table_class"] = changes["class_changed"] = None
        if request.get("SSESpecification") is not None:
            key = _customer_key(table)
            changes["key"] = key if replica is local or key is None else replica.key
        if replica is local and request.get("DeletionProtectionEnabled") is not None:
            changes["deletion_protection"] = request["DeletionProtectionEnabled"]
        if replica is local and request.get("DisassociationProtectionEnabled") is not None:
            changes["disassociation_protection"] = request["DisassociationProtectionEnabled"]
        if replica is local and request.get("ProvisionedThroughput") is not None:
            changes["throughput"] = msgspec.structs.replace(replica.throughput, read_units=None)
        if replica is local and request.get("OnDemandThroughput") is not None:
            changes["throughput"] = msgspec.structs.replace(replica.throughput, read_ceiling=None)
        members.append(msgspec.structs.replace(replica, **changes))
    return msgspec.structs.replace(table, replicas=tuple(members))
