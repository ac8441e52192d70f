"""CreateTable.

Source: API reference, CreateTable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange.errors import INVALID, STILL_IN_USE, ResourceInUseException, ValidationException
from hashrange.operations.context import Answer, Context, Request, WriteBody, table_arn, table_name
from hashrange.operations.tables import (
    account_limits,
    definition,
    stream_changes,
    table_description,
    tags,
    throughput,
    vector_definitions,
)
from hashrange.storage.api import Transaction
from hashrange.tables.definitions import catalog, states
from hashrange.tables.definitions.table import Index, KeySchema, KeyType, Policy, Table

# The service makes a replica of a table of another account.
_OTHER_ACCOUNT = f"{INVALID}GlobalTableSourceArn is not possible here: replicas share one account"


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a CreateTable."""
    name, request = table_name(request["TableName"], context.scope), throughput.with_billing_mode(request)
    build = check(request, context)
    view_type = stream_changes.view_type(request.get("StreamSpecification"))
    now = context.now

    def body(txn: Transaction) -> Answer:
        existing = catalog.find(txn, name, context.scope)
        if existing is not None and existing.restore is not None:
            # [report] ack-api-quirks DDB-TABLE-219
            raise ResourceInUseException(f"Table is being used: {name}")
        if existing is not None:
            raise ResourceInUseException(
                # [report] ack-api-quirks DDB-TABLE-005
                f"{STILL_IN_USE}Table is being created: {name}"
                if existing.status == "CREATING"
                else f"Table already exists: {name}"
            )
        account_limits.check(txn, context, adds=True)
        table = build(lambda: catalog.new_space(txn))
        if view_type is not None:
            table = stream_changes.enable(txn, table, view_type, context)
        catalog.save(txn, table)
        shown = table_description.describe(txn, table, context.caller, now, status="CREATING")
        _leave_out_warm(shown, request)
        return {"TableDescription": shown}

    return body


def _leave_out_warm(shown: Answer, request: Request) -> None:
    """Remove warm throughput from the answer, which shows the table's only if the request gave it, and never
    an index's.

    [report] ack-api-quirks DDB-TABLE-033, 138
    """
    if throughput.warm(request.get("WarmThroughput")) is None:
        del shown["WarmThroughput"]
    for index in shown.get("GlobalSecondaryIndexes", ()):
        del index["WarmThroughput"]


def check(request: Request, context: Context) -> Callable[[Callable[[], int]], Table]:
    """Check a request that makes a table. Returns a function that makes the table, given a source of
    spaces."""
    billing_mode: Any = request.get("BillingMode") or "PROVISIONED"
    given, warm = request.get("ProvisionedThroughput"), request.get("WarmThroughput")
    throughput.check_bounds(given)
    for index in request.get("GlobalSecondaryIndexes") or ():
        throughput.check_bounds(index.get("ProvisionedThroughput"), index["IndexName"])
    throughput.check_billing(billing_mode, given)
    throughput.check_ceilings(request.get("OnDemandThroughput"), billing_mode)
    types = definition.attribute_types(request["AttributeDefinitions"])
    key = definition.key_schema(request["KeySchema"], types)
    _check_index_lists(request, has_sort_key=bool(key.sort))
    vector_definitions.check_list(request.get("VectorIndexes"), billing_mode)
    indexes = _indexes(request, types, key, billing_mode)
    throughput.check_new_warm(warm, throughput.provisioned(given), billing_mode)
    definition.check_class(request.get("TableClass"))
    definition.check_encryption(request.get("SSESpecification"))
    table_tags = tags.parse(request.get("Tags") or [])
    definition.check_settings_replication(request.get("GlobalTableSettingsReplicationMode"))
    if request.get("GlobalTableSourceArn") is not None:
        raise ValidationException(_OTHER_ACCOUNT)
    policies = _policies(request, context)
    settings, now = context.settings, context.now
    table_id = context.new_id()

    def build(new_space: Callable[[], int]) -> Table:
        return Table(
            name=table_name(request["TableName"], context.scope),
            id=table_id,
            space=new_space(),
            created=now,
            key=key,
            attribute_types=types,
            indexes=tuple(
                states.begun_with_table(index.placed(new_space), now, settings) for index in indexes
            ),
            collection_space=new_space() if request.get("LocalSecondaryIndexes") else 0,
            billing_mode=billing_mode,
            billing_changed=now if billing_mode == "PAY_PER_REQUEST" else None,
            throughput=throughput.provisioned(given),
            on_demand=throughput.ceilings(request.get("OnDemandThroughput")),
            warm=throughput.warm(warm),
            table_class=request.get("TableClass"),
            deletion_protection=request.get("DeletionProtectionEnabled") is True,
            sse=definition.encryption(request.get("SSESpecification"), context.caller),
            creating_until=now + settings.create_seconds if settings.create_seconds else 0.0,
            tags=table_tags,
            policies=policies,
            settings_replication=request.get("GlobalTableSettingsReplicationMode"),
            scope=context.scope,
        )

    return build


def _policies(request: Request, context: Context) -> dict[str, Policy]:
    if (document := request.get("ResourcePolicy")) is None:
        return {}
    # Imported here because few tables have a policy.
    from hashrange.operations.policies import resource_policies

    arn = table_arn(context.caller, table_name(request["TableName"], context.scope))
    return resource_policies.of_new_table(document, arn, context)


def _indexes(request: Request, types: dict[str, KeyType], key: KeySchema, billing_mode: str) -> list[Index]:
    """The indexes. The keys of all are checked before their other parts. [report] ack-api-quirks
    DDB-TABLE-127"""
    local = [
        (index, definition.index_key_schema(index["KeySchema"], types, is_global=False))
        for index in request.get("LocalSecondaryIndexes") or ()
    ]
    global_ = [
        (index, definition.index_key_schema(index["KeySchema"], types, is_global=True))
        for index in request.get("GlobalSecondaryIndexes") or ()
    ]
    vectors = [vector_definitions.index(given, types) for given in request.get("VectorIndexes") or ()]
    schemas = [KeySchema(index.attributes()) for index in vectors]
    definition.check_all_used(types, [key, *(index_key for _, index_key in (*local, *global_)), *schemas])
    for index, index_key in local:
        definition.check_local_key(index["IndexName"], index_key, key)
    indexes = [
        *(definition.local_index(index, index_key) for index, index_key in local),
        *(definition.global_index(index, index_key, billing_mode) for index, index_key in global_),
        *vectors,
    ]
    definition.check_indexes(indexes)
    vector_definitions.check_together(indexes)
    return indexes


def _check_index_lists(request: Request, *, has_sort_key: bool) -> None:
    local, global_ = request.get("LocalSecondaryIndexes"), request.get("GlobalSecondaryIndexes")
    if local is not None and not local:
        raise ValidationException(f"{INVALID}List of LocalSecondaryIndexes is empty")
    if global_ is not None and not global_:
        raise ValidationException(f"{INVALID}List of GlobalSecondaryIndexes is empty")
    if local and not has_sort_key:
        raise ValidationException(
            f"{INVALID}Table KeySchema does not have a range key, which is required when specifying a "
            "LocalSecondaryIndex"
        )
