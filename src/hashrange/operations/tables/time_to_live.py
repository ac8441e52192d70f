"""UpdateTimeToLive and DescribeTimeToLive.

When time to live is enabled, the existing items are added to the expiry queue: at once for a small table,
otherwise in the background. The status is ENABLING until this is done.

Source: API reference, UpdateTimeToLive.
"""

from __future__ import annotations

import msgspec

from hashrange.clock import has_come
from hashrange.errors import STILL_IN_USE, ResourceInUseException, ValidationException
from hashrange.operations.context import Answer, Context, ReadBody, Request, WriteBody, table_name
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table, TimeToLive
from hashrange.tables.writes import builds, expiry

_HOUR = 3_600


def prepare_update(request: Request, context: Context) -> WriteBody:
    """The body of an UpdateTimeToLive."""
    name = table_name(request["TableName"], context.scope)
    wanted = request["TimeToLiveSpecification"]
    attribute, enabled = wanted["AttributeName"], wanted["Enabled"]
    now = context.now

    def body(txn: Transaction) -> Answer:
        table = catalog.open_any(txn, name, context.scope)
        if table.status in ("CREATING", "DELETING"):
            raise ResourceInUseException(
                f"{STILL_IN_USE}Table is being "
                f"{'created' if table.status == 'CREATING' else 'deleted'}: {name}"
            )
        _check_change(table, attribute, enabled, context)
        if enabled:
            table = _enable(txn, table, attribute, now)
        else:
            if table.ttl is not None:
                txn.delete_space(table.ttl.space)
            table = msgspec.structs.replace(table, ttl=None, ttl_changed=now)
        catalog.save(txn, table)
        return {"TimeToLiveSpecification": {"AttributeName": attribute, "Enabled": enabled}}

    return body


def _check_change(table: Table, attribute: str, enabled: bool, context: Context) -> None:
    current = table.ttl.attribute if table.ttl is not None else None
    if not enabled and current is None:
        raise ValidationException("TimeToLive is already disabled")
    if current is not None and current != attribute:
        raise ValidationException(
            f"TimeToLive is active on a different AttributeName: current AttributeName is {current}"
        )
    if enabled and current is not None:
        raise ValidationException("TimeToLive is already enabled")
    changed = table.ttl_changed
    recent = changed is not None and not has_come(changed + _HOUR, context.now, _HOUR)
    if context.settings.ttl_changes_limited and recent:
        raise ValidationException("Time to live has been modified multiple times within a fixed interval")


def _enable(txn: Transaction, table: Table, attribute: str, now: float) -> Table:
    ttl = TimeToLive(attribute, now, catalog.new_space(txn), built=False)
    built = builds.at_once(txn, table.space, expiry.work(table, ttl))
    return msgspec.structs.replace(table, ttl=msgspec.structs.replace(ttl, built=built), ttl_changed=now)


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeTimeToLive."""
    name = table_name(request["TableName"], context.scope)

    def body(reader: Reader) -> Answer:
        table = catalog.open_any(reader, name, context.scope)
        state = table.status
        if state in ("CREATING", "DELETING"):
            # [report] ack-api-quirks DDB-TABLE-442
            raise ValidationException(
                f"Cannot describe time to live while table is in {state} state: Current table state is "
                f"{state}"
            )
        if table.ttl is None:
            return {"TimeToLiveDescription": {"TimeToLiveStatus": "DISABLED"}}
        status = "ENABLED" if table.ttl.built else "ENABLING"
        return {"TimeToLiveDescription": {"TimeToLiveStatus": status, "AttributeName": table.ttl.attribute}}

    return body
