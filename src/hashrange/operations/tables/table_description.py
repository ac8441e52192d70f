"""DescribeTable, ListTables, and the description of a table in the answers of other operations.

Source: API reference, DescribeTable, ListTables, TableDescription.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from hashrange.limits import LIST_TABLES_MAX
from hashrange.operations.context import (
    Answer,
    Caller,
    Context,
    ReadBody,
    Request,
    stream_arn,
    table_arn,
    table_name,
)
from hashrange.operations.tables import definition, vector_definitions
from hashrange.operations.tables import throughput as throughput_rules
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog, replicas
from hashrange.tables.definitions.table import (
    Index,
    KeySchema,
    Replica,
    Restore,
    Table,
    Throughput,
    Vector,
)

# The other modes are for global tables of several accounts.
_SETTINGS_REPLICATION = "ENABLED_WITH_OVERRIDES"


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeTable."""
    name = table_name(request["TableName"], context.scope)

    def body(reader: Reader) -> Answer:
        table = catalog.open_any(reader, name, context.scope, context.caller.region, restoring=True)
        return {"Table": describe(reader, table, context.caller, context.now)}

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListTables, which names the tables in order, in pages of up to 100."""
    limit = request.get("Limit") or LIST_TABLES_MAX
    after, region = request.get("ExclusiveStartTableName"), context.caller.region

    def body(reader: Reader) -> Answer:
        names = list(islice(catalog.names(reader, context.scope, after, region), limit + 1))
        answer: Answer = {"TableNames": names[:limit]}
        if len(names) > limit:
            answer["LastEvaluatedTableName"] = names[limit - 1]
        return answer

    return body


def billing_mode(summary: dict[str, Any]) -> dict[str, Any]:
    """The members that show a billing mode. One of them is not in the API model.

    [report] extenddb pull 320
    """
    same = {**summary, "TableThroughputMode": summary["BillingMode"]}
    del same["BillingMode"]
    return {"BillingModeSummary": summary, "TableThroughputModeSummary": same}


def describe(
    reader: Reader, table: Table, caller: Caller, now: float, *, status: str | None = None
) -> dict[str, Any]:
    """The TableDescription of `table` in the caller's region.

    `status` replaces the current status in the answer.
    """
    whole, table = table, replicas.seen_from(table, caller.region)
    status = status or table.status
    arn = table_arn(caller, table.name)
    totals = reader.totals(table.space)
    shown: dict[str, Any] = {
        # Sorted by name, as NonKeyAttributes are; indexes stay in the order of the request.
        # [report] ack-api-quirks DDB-TABLE-125
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": table.attribute_types[name]}
            for name in sorted(table.attribute_types)
        ],
        "TableName": table.name,
        "KeySchema": _key_schema(table.key),
        "TableStatus": status,
        "CreationDateTime": _moment(table.created),
        "ProvisionedThroughput": _throughput(table.throughput, now),
        "TableSizeBytes": totals.bytes,
        "ItemCount": totals.records,
        "TableArn": arn,
        "TableId": table.id,
    }
    if table.billing_mode == "PAY_PER_REQUEST" or table.billing_changed is not None:
        summary: dict[str, Any] = {"BillingMode": table.billing_mode}
        if table.billing_changed is not None and status != "CREATING":
            summary["LastUpdateToPayPerRequestDateTime"] = _moment(table.billing_changed)
        shown |= billing_mode(summary)
    shown |= _indexes(reader, table, arn, status, now)
    if table.stream is not None:
        shown["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": table.stream.view_type}
    if table.stream_label is not None:
        shown["LatestStreamLabel"] = table.stream_label
        shown["LatestStreamArn"] = stream_arn(caller, table.name, table.stream_label)
    if table.on_demand is not None:
        shown["OnDemandThroughput"] = table.on_demand
    if table.encrypting_until:
        shown["SSEDescription"] = {**(table.sse or {}), "Status": "UPDATING"}
    elif table.sse is not None:
        shown["SSEDescription"] = table.sse
    if table.table_class is not None:
        summary = {"TableClass": table.table_class}
        if table.class_changed is not None:
            summary["LastUpdateDateTime"] = _moment(table.class_changed)
        shown["TableClassSummary"] = summary
    if table.restore is not None:
        shown["RestoreSummary"] = _restore(table.restore)
        for kind in ("GlobalSecondaryIndexes", "VectorIndexes"):
            for index in shown.get(kind, ()):
                del index["IndexStatus"]  # [report] ack-api-quirks DDB-TABLE-282
    shown["DeletionProtectionEnabled"] = table.deletion_protection
    shown["WarmThroughput"] = _warm(table, table.billing_mode, status)
    if whole.replicas:
        shown |= _global_table(whole, table, caller, now)
    elif table.settings_replication is not None:
        shown["GlobalTableSettingsReplicationMode"] = table.settings_replication
    return shown


def _indexes(reader: Reader, table: Table, arn: str, status: str, now: float) -> dict[str, Any]:
    """The members that list the indexes, one for each kind that the table has."""
    listed: dict[str, list[dict[str, Any]]] = {
        "LocalSecondaryIndexes": [
            _index(reader, index, arn) for index in table.indexes if index.kind == "local"
        ],
        "GlobalSecondaryIndexes": [
            _global_index(reader, table, index, arn, status, now)
            for index in table.indexes
            if index.kind == "global"
        ],
        "VectorIndexes": [
            _vector_index(reader, index, index.vector, arn, status)
            for index in table.indexes
            if index.vector is not None
        ],
    }
    return {member: indexes for member, indexes in listed.items() if indexes}


def _restore(restore: Restore) -> dict[str, Any]:
    shown = {
        "SourceTableArn": restore.source_arn,
        "RestoreDateTime": _moment(restore.moment),
        "RestoreInProgress": True,
    }
    return shown if restore.backup_arn is None else {"SourceBackupArn": restore.backup_arn, **shown}


def _global_table(whole: Table, here: Table, caller: Caller, now: float) -> dict[str, Any]:
    """The members that only a global table has; `here` is the table in the caller's region.

    A replica never lists itself. [report] ack-api-quirks DDB-TABLE-201, 229, 259
    """
    shown: dict[str, Any] = {
        "GlobalTableVersion": "2019.11.21",
        "Replicas": [
            _replica(whole, here, replica, now) for replica in replicas.others(whole, caller.region)
        ],
        "GlobalTableSettingsReplicationMode": _SETTINGS_REPLICATION,
    }
    local = replicas.local(whole, caller.region)
    if whole.strongly_consistent:
        shown["MultiRegionConsistency"] = "STRONG"
    elif local is not None:
        shown["DisassociationProtectionEnabled"] = local.disassociation_protection
    if whole.witness is not None:
        state = replicas.status(whole.witness)
        shown["GlobalTableWitnesses"] = [{"RegionName": whole.witness.region, "WitnessStatus": state}]
    return shown


def _replica(whole: Table, here: Table, replica: Replica, now: float) -> dict[str, Any]:
    """A ReplicaDescription. Members that are equal in the caller's region are left out."""
    there, status = replicas.seen_by(whole, replica), replicas.status(replica)
    mode = whole.billing_mode
    shown: dict[str, Any] = {"RegionName": replica.region, "ReplicaStatus": status}
    if there.sse is not None:
        shown["KMSMasterKeyId"] = there.sse["KMSMasterKeyArn"]
    shown |= _overrides(here, there, mode)
    shown["WarmThroughput"] = _warm(there, mode, status)
    pairs = [pair for pair in zip(here.indexes, there.indexes, strict=True) if pair[0].kind == "global"]
    if pairs:
        shown["GlobalSecondaryIndexes"] = [
            {
                "IndexName": theirs.name,
                **_overrides(mine, theirs, mode),
                "WarmThroughput": _warm(theirs, mode, status),
            }
            for mine, theirs in pairs
        ]
    if there.table_class is not None:
        summary: dict[str, Any] = {"TableClass": there.table_class}
        if there.class_changed is not None:
            summary["LastUpdateDateTime"] = _moment(there.class_changed)
        shown["ReplicaTableClassSummary"] = summary
    shown["GlobalTableSettingsReplicationMode"] = _SETTINGS_REPLICATION
    return shown


def _overrides(here: Table | Index, there: Table | Index, billing_mode: str) -> dict[str, Any]:
    """Another region's read capacity, if it differs from that of the caller's region. [report]
    DDB-TABLE-250, 422"""
    units = there.throughput.read_units
    if billing_mode == "PROVISIONED" and units != here.throughput.read_units:
        return {"ProvisionedThroughputOverride": {"ReadCapacityUnits": units}}
    ceiling = (there.on_demand or {}).get("MaxReadRequestUnits")
    if ceiling is not None and ceiling != (here.on_demand or {}).get("MaxReadRequestUnits"):
        return {"OnDemandThroughputOverride": {"MaxReadRequestUnits": ceiling}}
    return {}


def _moment(seconds: float) -> float:
    """A time as AWS shows it, to the millisecond."""
    return round(seconds, 3)


def _key_schema(schema: KeySchema) -> list[dict[str, str]]:
    return [{"AttributeName": attribute.name, "KeyType": "HASH"} for attribute in schema.partition] + [
        {"AttributeName": attribute.name, "KeyType": "RANGE"} for attribute in schema.sort
    ]


def _throughput(throughput: Throughput, now: float) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if throughput.last_increase is not None:
        shown["LastIncreaseDateTime"] = _moment(throughput.last_increase)
    if throughput.last_decrease is not None:
        shown["LastDecreaseDateTime"] = _moment(throughput.last_decrease)
    shown["NumberOfDecreasesToday"] = throughput.decreases_today(now)
    shown["ReadCapacityUnits"] = throughput.read_units
    shown["WriteCapacityUnits"] = throughput.write_units
    return shown


def _index(reader: Reader, index: Index, table_arn_: str) -> dict[str, Any]:
    totals = reader.totals(index.space)
    return {
        "IndexName": index.name,
        "KeySchema": _key_schema(index.key),
        "Projection": definition.described_projection(index),
        "IndexSizeBytes": totals.bytes,
        "ItemCount": totals.records,
        "IndexArn": f"{table_arn_}/index/{index.name}",
    }


def _global_index(
    reader: Reader, table: Table, index: Index, table_arn_: str, table_status: str, now: float
) -> dict[str, Any]:
    shown = _index(reader, index, table_arn_)
    # The indexes of a new table become ACTIVE with the table.
    status = "CREATING" if table_status == "CREATING" else index.status
    shown["IndexStatus"] = status
    if index.status == "CREATING":
        shown["Backfilling"] = index.backfilling
    shown["ProvisionedThroughput"] = _throughput(index.throughput, now)
    if index.on_demand is not None:
        shown["OnDemandThroughput"] = index.on_demand
    shown["WarmThroughput"] = _warm(index, table.billing_mode, status)
    return shown


def _vector_index(
    reader: Reader, index: Index, vector: Vector, table_arn_: str, table_status: str
) -> dict[str, Any]:
    shown = vector_definitions.described(index, vector)
    shown["IndexStatus"] = "CREATING" if table_status == "CREATING" else index.status
    if index.status == "CREATING":
        shown["Backfilling"] = not vector.allocated_at
    totals = reader.totals(index.space)
    return shown | {
        "IndexSizeBytes": totals.bytes,
        "ItemCount": totals.records,
        "IndexArn": f"{table_arn_}/index/{index.name}",
    }


def _warm(owner: Table | Index, billing_mode: str, status: str) -> dict[str, Any]:
    """WarmThroughput of a table or index in the state `status`; while it is being raised, the old values."""
    return {
        **throughput_rules.current_warm(owner.warm, owner.throughput, billing_mode),
        "Status": "ACTIVE" if status != "CREATING" and owner.warming is None else "UPDATING",
    }
