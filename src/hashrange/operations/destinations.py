"""EnableKinesisStreamingDestination, and the operations that disable, change and describe a destination.

Enabling never looks at the stream: `tables.jobs.deliveries.delivery_runner` does it afterwards, and the
destination becomes ACTIVE or ENABLE_FAILED. A table has at most one destination in another state than
DISABLED and ENABLE_FAILED; those in these states stay listed.

Source: API reference; Developer Guide, "Using Kinesis Data Streams to capture changes to DynamoDB"; [report]
ack-api-quirks DDB-TABLE-234 to 236, 268, 299 to 304, 318 and 319.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hashrange import kinesis
from hashrange.errors import (
    RESOURCE_NOT_FOUND,
    STILL_IN_USE,
    ResourceInUseException,
    ResourceNotFoundException,
    ValidationException,
)
from hashrange.operations.context import Answer, Context, ReadBody, Request, WriteBody, table_name
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Destination, Table
from hashrange.tables.jobs.deliveries import outboxes

LINGERING_MAX: Final = 20
"""How many DISABLED and ENABLE_FAILED destinations stay listed. How many the service lists is not known."""

_WRONG_STATE: Final = "Table is not in a valid state to enable Kinesis Streaming Destination: "
_NOT_FREE: Final = (
    f"{_WRONG_STATE}EnableKinesisStreamingDestination must be DISABLED or ENABLE_FAILED to perform ENABLE "
    "operation."
)
_NOT_DISABLED: Final = (
    f"{_WRONG_STATE}KinesisStreamingDestination must be ACTIVE to perform DISABLE operation."
)
_DISABLED_WITH: Final = "Stream cannot be disabled using EnableKinesisStreamingConfiguration parameters"
_UPDATED_WITHOUT: Final = (
    "Streaming destination cannot be updated with given parameters: UpdateKinesisStreamingConfiguration "
    "cannot be null or contain only null values"
)
_PRECISION: Final = "ApproximateCreationDateTimePrecision"


def prepare_enable(request: Request, context: Context) -> WriteBody:
    """The body of an EnableKinesisStreamingDestination."""
    name = table_name(request["TableName"], context.scope)
    arn, given = request["StreamArn"], request.get("EnableKinesisStreamingConfiguration") or {}
    configuration = {name: given[name] for name in (_PRECISION,) if name in given}
    now, lasts = context.now, context.settings.update_seconds
    wanted = Destination(
        arn,
        "ENABLING",
        now,
        until=now + lasts,
        precision=configuration.get(_PRECISION),
        reason=_problem(arn, context.caller.region),
    )

    def body(txn: Transaction) -> Answer:
        table = _open(txn, name, context)
        if outboxes.live(table) is not None:
            raise ValidationException(_NOT_FREE)
        if table.gone_at is not None:
            # [assumed]; without a destination it is not reported
            raise ResourceInUseException(f"{STILL_IN_USE}Table is being deleted: {name}")
        lingering = [destination for destination in table.destinations if destination.arn != arn]
        table = msgspec.structs.replace(table, destinations=(wanted, *lingering[:LINGERING_MAX]))
        outboxes.begin(txn, table)
        if context.settings.kinesis_endpoint:
            table = outboxes.opened(txn, table, now)
        elif not lasts:
            table = outboxes.concluded(txn, table, wanted)
        catalog.save(txn, table)
        return {
            "TableName": name,
            "StreamArn": arn,
            "DestinationStatus": "ENABLING",
            "EnableKinesisStreamingConfiguration": configuration,
        }

    return body


def prepare_disable(request: Request, context: Context) -> WriteBody:
    """The body of a DisableKinesisStreamingDestination. A destination that is being disabled may be disabled
    again."""
    name = table_name(request["TableName"], context.scope)
    arn = request["StreamArn"]
    if request.get("EnableKinesisStreamingConfiguration"):
        raise ValidationException(_DISABLED_WITH)
    now, lasts = context.now, context.settings.update_seconds

    def body(txn: Transaction) -> Answer:
        table = _open(txn, name, context)
        destination = _find(table, arn)
        status = _status(table, destination) if destination is not None else None
        if destination is None or status not in ("ACTIVE", "DISABLING"):
            raise ValidationException(_NOT_DISABLED)
        if status == "ACTIVE":
            changed = msgspec.structs.replace(
                destination, status="DISABLING", changed=now, until=now + lasts
            )
            if table.outbox is None and not lasts:
                disabled = msgspec.structs.replace(changed, status="DISABLED", until=0.0, precision=None)
                table = outboxes.ended(txn, table, disabled)
            else:
                table = outboxes.closed(outboxes.with_destination(table, changed))
            catalog.save(txn, table)
        return {"TableName": name, "StreamArn": arn, "DestinationStatus": "DISABLING"}

    return body


def prepare_update(request: Request, context: Context) -> WriteBody:
    """The body of an UpdateKinesisStreamingDestination."""
    name = table_name(request["TableName"], context.scope)
    arn, configuration = request["StreamArn"], request.get("UpdateKinesisStreamingConfiguration") or {}
    precision = configuration.get(_PRECISION)
    if precision is None:
        raise ValidationException(_UPDATED_WITHOUT)
    now, lasts = context.now, context.settings.update_seconds

    def body(txn: Transaction) -> Answer:
        table = _open(txn, name, context)
        destination = _find(table, arn)
        if destination is None:
            # The end of the message is [assumed].
            raise ValidationException(
                f"{_WRONG_STATE}No streaming destination with streamArn: {arn} found for table with "
                f"tableName: {name}"
            )
        if destination.status != "ACTIVE":
            # The end of the message is [assumed].
            raise ValidationException(
                f"{_WRONG_STATE}Kinesis streaming is not in ACTIVE state. Updates are only allowed in ACTIVE "
                f"state. TableName: {name}, StreamArn: {arn}"
            )
        if (destination.precision or "MILLISECOND") == precision:
            raise ValidationException(
                f"Invalid Request: Precision is already set to the desired value of {precision} for tableId: "
                f"{table.id}, kdsArn: {arn}"
            )
        changed = msgspec.structs.replace(
            destination, status="UPDATING" if lasts else "ACTIVE", until=now + lasts, precision=precision
        )
        catalog.save(txn, outboxes.with_destination(table, changed))
        return {
            "TableName": name,
            "StreamArn": arn,
            "DestinationStatus": "UPDATING",
            "UpdateKinesisStreamingConfiguration": {_PRECISION: precision},
        }

    return body


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeKinesisStreamingDestination."""
    name = table_name(request["TableName"], context.scope)

    def body(reader: Reader) -> Answer:
        table = catalog.open_any(reader, name, context.scope)
        shown = [_shown(table, destination) for destination in table.destinations]
        return {"TableName": name, "KinesisDataStreamDestinations": shown}

    return body


def _open(reader: Reader, name: str, context: Context) -> Table:
    """The table, which does not exist for these operations while it is CREATING. [report] DDB-TABLE-234"""
    table = catalog.open_any(reader, name, context.scope)
    if table.status == "CREATING":
        raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Table: {name} not found")
    return table


def _problem(arn: str, region: str) -> str | None:
    """Why a stream cannot be enabled, as far as its ARN tells. [report] DDB-TABLE-318"""
    stream = kinesis.parse(arn)
    if stream is None:
        return kinesis.NO_STREAM
    return None if stream.region == region else kinesis.OTHER_REGION


def _find(table: Table, arn: str) -> Destination | None:
    return next((destination for destination in table.destinations if destination.arn == arn), None)


def _status(table: Table, destination: Destination) -> str:
    """The status to show: a table that is being deleted has no ACTIVE destination. [report] DDB-TABLE-236"""
    if destination.status == "ACTIVE" and table.gone_at is not None:
        return "UPDATING"
    return destination.status


def _shown(table: Table, destination: Destination) -> dict[str, Any]:
    shown: dict[str, Any] = {
        "StreamArn": destination.arn,
        "DestinationStatus": _status(table, destination),
    }
    if destination.reason is not None and destination.status == "ENABLE_FAILED":
        shown["DestinationStatusDescription"] = destination.reason
    if destination.precision is not None:
        shown[_PRECISION] = destination.precision
    return shown
