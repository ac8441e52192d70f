"""CreateTable.

Source: API reference, CreateTable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from hashrange.errors import INVALID, ResourceInUseException, ValidationException
from hashrange.limits import GSI_KEY_ATTRIBUTES_MAX
from hashrange.operations import stream_changes, table_description, tags
from hashrange.operations import table_definition as definition
from hashrange.operations.context import Answer, Context, Request, WriteBody, table_name
from hashrange.storage.api import Transaction
from hashrange.tables import catalog
from hashrange.tables.table import Table

_NO_CEILINGS = "cannot be specified when table BillingMode is PROVISIONED."


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a CreateTable."""
    name = table_name(request["TableName"])
    build = _definition(request, context)
    view_type = stream_changes.view_type(request.get("StreamSpecification"))
    now = context.now

    def body(txn: Transaction) -> Answer:
        if catalog.find(txn, name, now) is not None:
            raise ResourceInUseException(f"Table already exists: {name}")
        table = build(lambda: catalog.new_space(txn))
        if view_type is not None:
            table = stream_changes.enable(txn, table, view_type, context)
        catalog.save(txn, table)
        shown = table_description.describe(txn, table, context.caller, now, status="CREATING")
        return {"TableDescription": shown}

    return body


def _definition(request: Request, context: Context) -> Callable[[Callable[[], int]], Table]:
    """Check the request; the answer makes the table once it is given a source of spaces."""
    billing_mode: Any = request.get("BillingMode") or "PROVISIONED"
    definition.check_billing(billing_mode, request.get("ProvisionedThroughput"))
    definition.check_on_demand(request.get("OnDemandThroughput"), billing_mode, _NO_CEILINGS)
    types = definition.attribute_types(request["AttributeDefinitions"])
    key = definition.key_schema(request["KeySchema"], types)
    local, global_ = request.get("LocalSecondaryIndexes"), request.get("GlobalSecondaryIndexes")
    _check_index_lists(request, has_sort_key=bool(key.sort))
    indexes = [definition.local_index(one, types, key, 0) for one in local or ()]
    indexes += [
        definition.global_index(one, types, billing_mode, 0, keys_max=GSI_KEY_ATTRIBUTES_MAX)
        for one in global_ or ()
    ]
    definition.check_indexes(indexes)
    definition.check_all_used(types, key, indexes)
    table_tags = tags.parse(request.get("Tags") or [])
    settings, now = context.settings, context.now
    table_id = context.new_id()

    def build(new_space: Callable[[], int]) -> Table:
        return Table(
            name=table_name(request["TableName"]),
            id=table_id,
            space=new_space(),
            created=now,
            active_at=now + settings.create_seconds,
            key=key,
            attribute_types=types,
            indexes=tuple(msgspec.structs.replace(index, space=new_space()) for index in indexes),
            collection_space=new_space() if local else 0,
            billing_mode=billing_mode,
            billing_changed=now if billing_mode == "PAY_PER_REQUEST" else None,
            throughput=definition.throughput(request.get("ProvisionedThroughput")),
            on_demand=definition.on_demand(request.get("OnDemandThroughput")) or None,
            warm=definition.warm(request.get("WarmThroughput")),
            table_class=request.get("TableClass"),
            deletion_protection=request.get("DeletionProtectionEnabled") is True,
            sse=definition.encryption(request.get("SSESpecification"), context.caller),
            tags=table_tags,
            policy=request.get("ResourcePolicy"),
        )

    return build


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
