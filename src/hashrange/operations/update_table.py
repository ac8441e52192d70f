"""UpdateTable: throughput, billing mode, global indexes, streams, protection, class, encryption, replicas.

Source: API reference, UpdateTable.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hashrange.errors import INVALID, ResourceInUseException, ValidationException
from hashrange.operations import (
    index_changes,
    replica_changes,
    replica_requests,
    stream_changes,
    table_description,
)
from hashrange.operations import table_definition as definition
from hashrange.operations.context import Answer, Context, Request, WriteBody, table_name
from hashrange.storage.api import Transaction
from hashrange.tables import catalog, replicas
from hashrange.tables.table import Table, Throughput

_CHANGES = (
    "ProvisionedThroughput",
    "BillingMode",
    "DeletionProtectionEnabled",
    "TableClass",
    "SSESpecification",
    "OnDemandThroughput",
    "WarmThroughput",
    "GlobalSecondaryIndexUpdates",
    "StreamSpecification",
    "GlobalTableSettingsReplicationMode",
)
# [report] ack-api-quirks DDB-TABLE-015; a mode of consistency that is asked for alone is not listed.
_NOTHING = (
    "At least one of ProvisionedThroughput, BillingMode, UpdateStreamEnabled, GlobalSecondaryIndexUpdates, "
    "SSESpecification, ReplicaUpdates, MultiAccountReplicaReady, ReplicaTransitRoleArn, {consistency}"
    "DeletionProtectionEnabled, OnDemandThroughput, WarmThroughput or TableClass is required"
)
_OWN_MODE = (
    "Value 'ENABLED_WITH_OVERRIDES' at 'GlobalTableSettingsReplicationMode' failed to satisfy constraint: "
    "Only ENABLED and DISABLED settings replication are supported for a Regional Table."
)

_NO_CEILINGS = "cannot be specified when the table BillingMode is PROVISIONED"


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of an UpdateTable."""
    name = table_name(request["TableName"])
    nothing = all(request.get(change) in (None, []) for change in _CHANGES)
    wanted = replica_requests.read(request, context, alone=nothing)
    if nothing and wanted is None:
        consistency = "MultiRegionConsistency, " if request.get("MultiRegionConsistency") is None else ""
        raise ValidationException(_NOTHING.format(consistency=consistency))
    if request.get("GlobalTableSettingsReplicationMode") == "ENABLED_WITH_OVERRIDES":
        raise ValidationException(_OWN_MODE)
    if request.get("BillingMode") == "PROVISIONED" and request.get("ProvisionedThroughput") is None:
        # [report] crossplane-contrib/provider-aws issue 946
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput must be specified when BillingMode is PROVISIONED"
        )
    if request.get("BillingMode") is not None:
        definition.check_billing(request["BillingMode"], request.get("ProvisionedThroughput"))
    if request.get("GlobalSecondaryIndexUpdates"):
        index_changes.check(request["GlobalSecondaryIndexUpdates"])
    now, delay, region = context.now, context.settings.update_seconds, context.caller.region

    def body(txn: Transaction) -> Answer:
        table = catalog.open_any(txn, name, now, region)
        if wanted is not None:
            replica_changes.admit(table, wanted, region, now)
        if request.get("StreamSpecification") is not None:
            replica_changes.check_stream(table, request["StreamSpecification"])
        replica_changes.check_at_rest(table, now)
        if table.status(now) != "ACTIVE":
            what = {"CREATING": "created", "DELETING": "deleted", "UPDATING": "updated"}[table.status(now)]
            raise ResourceInUseException(
                f"Attempt to change a resource which is still in use: Table is being {what}: {name}"
            )
        before = table
        table = _changed(table, request, context)
        if request.get("StreamSpecification") is not None:
            table = stream_changes.apply(txn, table, request["StreamSpecification"], context)
        table = replica_changes.spread(table, request, region)
        stored = shown = msgspec.structs.replace(table, updating_until=now + delay)
        if wanted is not None:
            stored, shown = replica_changes.apply(txn, stored, wanted, context)
        if request.get("GlobalSecondaryIndexUpdates"):
            stored, shown = index_changes.apply(txn, stored, request, at_once=delay == 0, now=now)
        catalog.save(txn, replicas.settled(stored, now))
        # The answer shows the throughput from before, as the API reference's example does.
        shown = msgspec.structs.replace(shown, throughput=before.throughput)
        if request.get("OnDemandThroughput") is not None:
            # A ceiling that goes is shown as it was asked for, once. [report] dynoxide issue 159.
            asked = definition.on_demand(request["OnDemandThroughput"]) or {}
            shown = msgspec.structs.replace(shown, on_demand={**(before.on_demand or {}), **asked})
        return {
            "TableDescription": table_description.describe(
                txn, shown, context.caller, now, status="UPDATING"
            )
        }

    return body


def _changed(table: Table, request: Request, context: Context) -> Table:
    now = context.now
    changes: dict[str, Any] = {}
    mode = request.get("BillingMode")
    if mode is not None and mode != table.billing_mode:
        changes["billing_mode"] = mode
        if mode == "PAY_PER_REQUEST":
            changes["billing_changed"] = now
            changes["throughput"] = Throughput()
    given = request.get("ProvisionedThroughput")
    if given is not None:
        if mode is None and table.billing_mode == "PAY_PER_REQUEST":
            definition.check_billing("PAY_PER_REQUEST", given)
        changes["throughput"] = definition.changed_throughput(table.throughput, given, now, of="the table")
    if request.get("DeletionProtectionEnabled") is not None:
        changes["deletion_protection"] = request["DeletionProtectionEnabled"]
    if request.get("TableClass") is not None:
        changes["table_class"] = request["TableClass"]
        changes["class_changed"] = now
    if request.get("SSESpecification") is not None:
        changes["sse"] = definition.encryption(request["SSESpecification"], context.caller)
    ceilings = request.get("OnDemandThroughput")
    if ceilings is not None:
        definition.check_on_demand(ceilings, mode or table.billing_mode, _NO_CEILINGS, removable=True)
        changes["on_demand"] = definition.changed_on_demand(table.on_demand, ceilings)
    elif mode == "PROVISIONED":
        changes["on_demand"] = None
    if request.get("WarmThroughput") is not None:
        changes["warm"] = definition.warm(request["WarmThroughput"])
    if request.get("GlobalTableSettingsReplicationMode") is not None:
        changes["settings_replication"] = request["GlobalTableSettingsReplicationMode"]
    return msgspec.structs.replace(table, **changes)
