"""UpdateTable: throughput, billing mode, global indexes, streams, protection, class, encryption, replicas.

The answer often shows the table as it was before; the next DescribeTable shows the table as it is now.

Source: API reference, UpdateTable; for the contents of answers the measurements of ack-api-quirks of October
2026 (its DDB-TABLE-055 to 064, 152, 165, 178, 179, 361, 370, 410).
"""

from __future__ import annotations

from typing import Any

import msgspec

from hashrange.errors import INVALID, STILL_IN_USE, ResourceInUseException, ValidationException
from hashrange.operations.context import Answer, Context, Request, WriteBody, table_name
from hashrange.operations.tables import (
    account_limits,
    definition,
    index_changes,
    replica_changes,
    replica_requests,
    stream_changes,
    table_description,
    throughput,
    update_combinations,
    vector_changes,
)
from hashrange.storage.api import Transaction
from hashrange.tables.definitions import catalog, replicas, states
from hashrange.tables.definitions.table import Table, Warming
from hashrange.tables.jobs.bulk import bulk_records

# [report] ack-api-quirks DDB-TABLE-015. MultiRegionConsistency is not in the list, though it may be a
# request's only member.
_NOTHING = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, "
    "SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, {consistency}"
    "DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required"
)
# [docs] for the rule, [assumed] for the words
_BULK = "A bulk operation on the table is in progress."
# A change of these members does not make the table UPDATING, even if it is made later in the background.
_AT_ONCE = frozenset(
    (
        "DeletionProtectionEnabled",
        "DisassociationProtectionEnabled",
        "OnDemandThroughput",
        "SSESpecification",
        "WarmThroughput",
    )
)


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of an UpdateTable."""
    name, request = table_name(request["TableName"], context.scope), throughput.with_billing_mode(request)
    nothing = all(request.get(change) in (None, []) for change in update_combinations.CHANGES)
    wanted = replica_requests.read(request, context, alone=nothing)
    if nothing and wanted is None:
        consistency = "MultiRegionConsistency, " if request.get("MultiRegionConsistency") is None else ""
        raise ValidationException(_NOTHING.format(consistency=consistency))
    definition.check_settings_replication(request.get("GlobalTableSettingsReplicationMode"))
    throughput.check_bounds(request.get("ProvisionedThroughput"))
    update_combinations.check(request)
    if request.get("BillingMode") == "PROVISIONED" and request.get("ProvisionedThroughput") is None:
        # [report] crossplane-contrib/provider-aws issue 946
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
        )
    if request.get("BillingMode") is not None:
        throughput.check_billing(request["BillingMode"], request.get("ProvisionedThroughput"))
    stream_changes.updated_view_type(request.get("StreamSpecification"))
    definition.check_class(request.get("TableClass"))
    definition.check_encryption(request.get("SSESpecification"))
    if request.get("GlobalSecondaryIndexUpdates"):
        index_changes.check(request["GlobalSecondaryIndexUpdates"])
    vector_changes.check(request)
    now, delay, region = context.now, context.settings.update_seconds, context.caller.region

    def body(txn: Transaction) -> Answer:
        table = catalog.open_any(txn, name, context.scope, region)
        if wanted is not None:
            replica_changes.admit(table, wanted, region)
            if wanted.kind == "Create" and bulk_records.writes_to(txn, table):
                raise ResourceInUseException(f"{STILL_IN_USE}{_BULK}")
        index_changes.check_bounds(table, request.get("GlobalSecondaryIndexUpdates"))
        if request.get("StreamSpecification") is not None:
            replica_changes.check_stream(table, request["StreamSpecification"])
        replica_changes.check_at_rest(table)
        vector_changes.check_allocated(table, request)
        _check_at_rest(table, request)
        vector_changes.check_switch(table, request)
        if request.get("DisassociationProtectionEnabled") is not None:
            replica_changes.check_disassociable(table)
        account_limits.check(txn, context)
        before, table = table, _changed(table, request, context)
        if request.get("StreamSpecification") is not None:
            table = stream_changes.apply(txn, table, request["StreamSpecification"], context)
        table = replica_changes.spread(table, request, region)
        if wanted is not None or (_is_slow(request) and table != before):
            table = msgspec.structs.replace(table, updating_until=now + delay)
        stored = shown = table
        if wanted is not None:
            stored, shown = replica_changes.apply(txn, stored, wanted, context)
        if request.get("GlobalSecondaryIndexUpdates"):
            switching = table.billing_mode != before.billing_mode
            stored, shown = index_changes.apply(
                txn, stored, request, switching=switching, delay=delay, now=now
            )
            if _is_slow(request):
                stored = msgspec.structs.replace(stored, updating_until=now + delay)
        if request.get("VectorIndexUpdates"):
            stored, shown = vector_changes.apply(txn, stored, request, context)
            stored = msgspec.structs.replace(stored, updating_until=now + delay)
        catalog.save(txn, states.settled(stored, now, context.settings))
        status = "UPDATING" if _is_slow(request) or wanted is not None else table.status
        old, new = (
            table_description.describe(txn, version, context.caller, now, status=status)
            for version in (before, shown)
        )
        return {"TableDescription": _echoed(old, new, request)}

    return body


def _check_at_rest(table: Table, request: Request) -> None:
    """Refuse changes that the table's current state does not allow."""
    status = table.status
    # New ceilings do not make the table UPDATING, but are refused while it is UPDATING. [report]
    # ack-api-quirks DDB-TABLE-119, 369
    waits = _is_slow(request) or request.get("OnDemandThroughput") is not None
    if status == "ACTIVE" or (status == "UPDATING" and not waits):
        return
    if status == "UPDATING" and _changes_units(request):
        problem = f"Table IOPS are currently being updated. Table: {table.name}"
    else:
        what = {"CREATING": "created", "DELETING": "deleted", "UPDATING": "updated"}[status]
        problem = f"Table is being {what}: {table.name}"
    raise ResourceInUseException(f"{STILL_IN_USE}{problem}")


def _changes_units(request: Request) -> bool:
    return request.get("ProvisionedThroughput") is not None or request.get("BillingMode") is not None


def _is_slow(request: Request) -> bool:
    """Whether the table is UPDATING while the changes are made."""
    updates = request.get("GlobalSecondaryIndexUpdates")
    return index_changes.slow(updates) or any(
        request.get(change) is not None
        for change in update_combinations.CHANGES
        if change not in _AT_ONCE and change != "GlobalSecondaryIndexUpdates"
    )


def _echoed(old: dict[str, Any], new: dict[str, Any], request: Request) -> dict[str, Any]:
    """The description in the answer, made from the table before and after the update."""
    mode, ceilings = request.get("BillingMode"), request.get("OnDemandThroughput")
    before = old.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED")
    if mode is not None and mode != before:
        new |= table_description.billing_mode({"BillingMode": mode})
    elif request.get("ProvisionedThroughput") is not None:
        stale = ("NumberOfDecreasesToday", "ReadCapacityUnits", "WriteCapacityUnits")
        new["ProvisionedThroughput"] |= {name: old["ProvisionedThroughput"][name] for name in stale}
    new["WarmThroughput"] = old["WarmThroughput"]
    if throughput.warm(request.get("WarmThroughput")) is not None:
        new["WarmThroughput"]["Status"] = "UPDATING"
    index_changes.mark_warming(new, request.get("GlobalSecondaryIndexUpdates"))
    if ceilings is not None and throughput.ceilings(ceilings) is not None:
        new["OnDemandThroughput"] = throughput.echoed_ceilings(old.get("OnDemandThroughput"), ceilings)
    if request.get("SSESpecification") is not None:
        new["SSEDescription"] = {**old.get("SSEDescription", {}), "Status": "UPDATING"}
    if request.get("TableClass") is not None:
        new.pop("TableClassSummary", None)
        if "TableClassSummary" in old:
            new["TableClassSummary"] = old["TableClassSummary"]
    return new


def _changed(table: Table, request: Request, context: Context) -> Table:
    table = _with_throughput(table, request, context)
    changes: dict[str, Any] = {}
    if request.get("DeletionProtectionEnabled") is not None:
        changes["deletion_protection"] = request["DeletionProtectionEnabled"]
    if request.get("TableClass", table.table_class or "STANDARD") != (table.table_class or "STANDARD"):
        changes["table_class"] = request["TableClass"]
        changes["class_changed"] = context.now
    if request.get("SSESpecification") is not None:
        seen = replicas.seen_from(table, context.caller.region)
        wanted = definition.changed_encryption(seen.sse, request["SSESpecification"], context.caller)
        if table.encrypting_until and wanted != seen.sse:
            # [report] ack-api-quirks DDB-TABLE-065
            raise ResourceInUseException(f"{STILL_IN_USE}Server-Side Encryption is still being updated")
        changes["sse"] = wanted
        changes["encrypting_until"] = context.now + context.settings.update_seconds
    if request.get("GlobalTableSettingsReplicationMode") is not None:
        changes["settings_replication"] = request["GlobalTableSettingsReplicationMode"]
    return msgspec.structs.replace(table, **changes)


def _with_throughput(table: Table, request: Request, context: Context) -> Table:
    """The table with its new billing mode, units, ceilings and warm throughput."""
    now = context.now
    before, mode = table.billing_mode, request.get("BillingMode") or table.billing_mode
    given, ceilings = request.get("ProvisionedThroughput"), request.get("OnDemandThroughput")
    changes: dict[str, Any] = {}
    if mode != before:
        if mode == "PROVISIONED":
            index_changes.check_switch(table, request.get("GlobalSecondaryIndexUpdates"))
        else:
            changes["billing_changed"] = now
        changes["billing_mode"] = mode
        changes["throughput"] = throughput.switched(table.throughput, given)
        changes["indexes"] = tuple(
            index_changes.switched(index, before) if index.kind == "global" else index
            for index in table.indexes
        )
        if mode == "PROVISIONED":
            changes["on_demand"] = None
    elif given is not None:
        if mode == "PAY_PER_REQUEST":
            throughput.check_billing(mode, given)
        changes["throughput"] = throughput.changed(table.throughput, given, now)
    if "throughput" in changes:
        changes["warm"] = throughput.current_warm(table.warm, table.throughput, before)
    if ceilings is not None and throughput.ceilings(ceilings) is not None:
        throughput.check_ceilings(ceilings, mode, updating=True)
        changes["on_demand"] = throughput.changed_ceilings(table.on_demand, ceilings)
    if throughput.warm(request.get("WarmThroughput")) is not None:
        units = throughput.changed_warm(table, mode, request["WarmThroughput"])
        changes["warming"] = Warming(units, now + context.settings.update_seconds)
    return msgspec.structs.replace(table, **changes)
