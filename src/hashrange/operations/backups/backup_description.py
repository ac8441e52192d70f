"""A backup as answers show it, and a table as a backup stores it.

A backup stores its table in the API's own form. So the manifest of a backup can be read without this program,
and a restore checks the table as a CreateTable is checked.

Source: API reference, BackupDescription; ack-api-quirks DDB-BACKUP-004, 006, 009, 012, 015,
021.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hashrange import shapes
from hashrange.operations.backups import names
from hashrange.operations.context import Caller, Context, table_arn
from hashrange.operations.tables import create_table, table_description
from hashrange.storage.api import Reader
from hashrange.tables.definitions.dropped import Dropped
from hashrange.tables.definitions.table import Table
from hashrange.tables.jobs.backups.backup_records import Backup

_UNITS: Final = ("ReadCapacityUnits", "WriteCapacityUnits")
_LOCAL: Final = ("IndexName", "KeySchema", "Projection")
_GLOBAL: Final = (*_LOCAL, "ProvisionedThroughput", "OnDemandThroughput")
_VECTOR: Final = (
    *("IndexName", "VectorAttribute", "SearchSchema", "Projection"),
    *("Dimensions", "DistanceFunction"),
)


def kept(reader: Reader, table: Table, caller: Caller, now: float) -> dict[str, Any]:
    """A table as a backup stores it."""
    shown = table_description.describe(reader, table, caller, now)
    details: dict[str, Any] = {
        "TableName": table.name,
        "TableId": shown["TableId"],
        "TableArn": shown["TableArn"],
        "TableSizeBytes": shown["TableSizeBytes"],
        "KeySchema": shown["KeySchema"],
        "TableCreationDateTime": shown["CreationDateTime"],
        "ProvisionedThroughput": _units(shown["ProvisionedThroughput"]),
        "ItemCount": shown["ItemCount"],
        "BillingMode": table.billing_mode,
    }
    if "OnDemandThroughput" in shown:
        details["OnDemandThroughput"] = shown["OnDemandThroughput"]
    features: dict[str, Any] = {}
    local, globals_ = shown.get("LocalSecondaryIndexes"), shown.get("GlobalSecondaryIndexes")
    if local:
        features["LocalSecondaryIndexes"] = [_picked(index, _LOCAL) for index in local]
    if globals_:
        features["GlobalSecondaryIndexes"] = [
            _picked(index, _GLOBAL) | {"ProvisionedThroughput": _units(index["ProvisionedThroughput"])}
            for index in globals_
        ]
    if "VectorIndexes" in shown:
        features["VectorIndexes"] = [_picked(index, _VECTOR) for index in shown["VectorIndexes"]]
    if "StreamSpecification" in shown:
        features["StreamDescription"] = shown["StreamSpecification"]
    if table.ttl is not None:
        status = "ENABLED" if table.ttl.built else "ENABLING"
        features["TimeToLiveDescription"] = {"TimeToLiveStatus": status, "AttributeName": table.ttl.attribute}
    encryption = shown.get("SSEDescription", {})
    if "KMSMasterKeyArn" in encryption:
        # Without the state of a change in progress, because a restored table has this encryption.
        features["SSEDescription"] = {**encryption, "Status": "ENABLED"}
    return {
        "SourceTableDetails": details,
        "SourceTableFeatureDetails": features,
        "AttributeDefinitions": shown["AttributeDefinitions"],
    }


def _units(shown: dict[str, Any]) -> dict[str, Any]:
    return {member: shown[member] for member in _UNITS}


def _picked(shown: dict[str, Any], members: tuple[str, ...]) -> dict[str, Any]:
    return {member: shown[member] for member in members if member in shown}


def table_of(backup: Backup, context: Context) -> Table:
    """The table in a backup. Raises `ServiceError` for a description that no table can have."""
    details, features = backup.table["SourceTableDetails"], backup.table["SourceTableFeatureDetails"]
    mode = details.get("BillingMode") or "PROVISIONED"
    request: dict[str, Any] = {
        "TableName": backup.table_name,
        "KeySchema": details["KeySchema"],
        "AttributeDefinitions": backup.table["AttributeDefinitions"],
        "BillingMode": mode,
    }
    on_demand = mode == "PAY_PER_REQUEST"
    if not on_demand:
        request["ProvisionedThroughput"] = details["ProvisionedThroughput"]
    elif details.get("OnDemandThroughput"):
        request["OnDemandThroughput"] = details["OnDemandThroughput"]
    if features.get("LocalSecondaryIndexes"):
        request["LocalSecondaryIndexes"] = features["LocalSecondaryIndexes"]
    if features.get("GlobalSecondaryIndexes"):
        unused = "ProvisionedThroughput" if on_demand else "OnDemandThroughput"
        request["GlobalSecondaryIndexes"] = [
            {member: value for member, value in index.items() if member != unused}
            for index in features["GlobalSecondaryIndexes"]
        ]
    if features.get("VectorIndexes"):
        request["VectorIndexes"] = features["VectorIndexes"]
    request = msgspec.json.decode(
        msgspec.json.encode(request)
    )  # a copy, because the check changes its argument
    shapes.check("CreateTable", request)
    table = create_table.check(request, context)(lambda: 0)
    return msgspec.structs.replace(table, sse=features.get("SSEDescription"))


def describe(reader: Reader, backup: Backup | Dropped, name: names.Name, context: Context) -> dict[str, Any]:
    """The BackupDescription of a backup, with the ARN that the request gave."""
    caller = context.caller
    if isinstance(backup, Dropped):
        table = kept(reader, backup.table, caller, context.now)
        summary = summary_of_deleted(reader, backup, caller)
    else:
        table, summary = backup.table, summary_of(backup, caller)
    details = table["SourceTableDetails"] | {"TableArn": table_arn(caller, name.table)}
    return {
        "BackupDetails": details_of(summary) | {"BackupArn": name.arn},
        "SourceTableDetails": details,
        "SourceTableFeatureDetails": table["SourceTableFeatureDetails"],
    }


def details_of(summary: dict[str, Any]) -> dict[str, Any]:
    """The BackupDetails of a backup, given its BackupSummary."""
    return {member: value for member, value in summary.items() if not member.startswith("Table")}


def summary_of(backup: Backup, caller: Caller) -> dict[str, Any]:
    """The BackupSummary of a backup."""
    return {
        "TableName": backup.table_name,
        "TableId": backup.table_id,
        "TableArn": table_arn(caller, backup.table_name),
        "BackupArn": names.arn_of(caller, backup.table_name, backup.id),
        "BackupName": backup.name,
        "BackupCreationDateTime": backup.created,
        "BackupStatus": backup.status,
        "BackupType": "USER",
        "BackupSizeBytes": backup.table["SourceTableDetails"].get("TableSizeBytes", backup.bytes),
    }


def summary_of_deleted(reader: Reader, deleted: Dropped, caller: Caller) -> dict[str, Any]:
    """The BackupSummary of the backup of a deleted table that had recovery."""
    table = deleted.table
    return {
        "TableName": table.name,
        "TableId": table.id,
        "TableArn": table_arn(caller, table.name),
        "BackupArn": names.arn_of(caller, table.name, names.system_id(deleted)),
        "BackupName": f"{table.name}$DeletedTableBackup",
        "BackupCreationDateTime": round(deleted.at, 3),
        "BackupExpiryDateTime": round(deleted.expires, 3),
        "BackupStatus": "AVAILABLE",
        "BackupType": "SYSTEM",
        "BackupSizeBytes": reader.totals(table.space).bytes,
    }
