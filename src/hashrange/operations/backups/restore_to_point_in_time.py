"""RestoreTableToPointInTime: a new table with the items that a table had at a moment.

The request makes the new table and holds the source's history. A small table is filled at once, a larger
table by the sweep (`tables.background.restoring`); the new table is CREATING until it has all items.

Source: API reference, RestoreTableToPointInTime; for the order of checks, the messages and the contents
ack-api-quirks DDB-TABLE-086, 100, 215 to 219, 272 to 282, measured in October 2026.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from hashrange.errors import (
    PointInTimeRecoveryUnavailableException,
    TableNotFoundException,
    ValidationException,
)
from hashrange.operations.backups import overrides, recovery, targets
from hashrange.operations.context import Answer, Context, Request, WriteBody, scope_of, table_arn
from hashrange.operations.tables import table_description
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.background import restoring
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import UNTIL_FILLED, Restore, Table
from hashrange.tables.history import recording

_ARN = re.compile(r"arn:aws[a-z-]*:dynamodb:([a-z0-9-]+):([0-9]+):table/([a-zA-Z0-9_.-]{3,255})").fullmatch

_BOTH_TIMES = (
    "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time "
    "restore request. Please use only one of them."
)
_NO_TIME = (
    "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not "
    "both"
)
_BOTH_SOURCES = "Must provide exactly one of: sourceTableArn, sourceTableName"
_NO_SOURCE = "The parameter 'TableName' is required but was not present in the request"
_NO_ARN = "sourceTableArn is not a valid ARN"
_OTHER_ACCOUNT = "This action is only supported by accounts that match the resource owner's account"
_OTHER_REGION = "Invalid Request: sseSpecificationOverride must be provided for cross-region restores"

class _Source(NamedTuple):
    name: str
    scope: str
    arn: str


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a RestoreTableToPointInTime."""
    latest, moment = request.get("UseLatestRestorableTime") is True, request.get("RestoreDateTime")
    if latest and moment is not None:
        raise ValidationException(_BOTH_TIMES)
    if not latest and moment is None:
        raise ValidationException(_NO_TIME)
    source, target = _source(request, context), request["TargetTableName"]
    overrides.check(request)
    table_id, now, settings = context.new_id(), context.now, context.settings

    def body(txn: Transaction) -> Answer:
        table = _open(txn, source)
        hold = recovery.hold_of(table)
        if hold is None:
            raise PointInTimeRecoveryUnavailableException(
                f"Point in time recovery is not enabled for table '{source.name}'"
            )
        if moment is None:
            span = recovery.window(table, hold, now, settings)
            restored_to = span.latest
            stamp = recovery.stamp_of_latest(txn, hold, span, now, settings)
        else:
            restored_to = float(moment)
            stamp = recovery.stamp_of(txn, table, hold, restored_to, now, settings)
        targets.check(txn, target, context)
        made = overrides.restored(
            table, request, context, target, table_id, lambda: catalog.new_space(txn)
        )
        restore = Restore(table.full_name, table.id, source.arn, stamp, restored_to)
        made = msgspec.structs.replace(made, restore=restore, creating_until=UNTIL_FILLED)
        catalog.save(txn, recording.hold(txn, table, restoring.hold_of(made), now, since=stamp))
        shown = table_description.describe(txn, made, context.caller, now, status="CREATING")
        if restoring.at_once(txn, made, restore):
            made = restoring.completed(txn, made, restore, now, settings)
        catalog.save(txn, made)
        return {"TableDescription": shown}

    return body


def _source(request: Request, context: Context) -> _Source:
    arn, name = request.get("SourceTableArn"), request.get("SourceTableName")
    if arn is not None and name is not None:
        raise ValidationException(_BOTH_SOURCES)
    if name is not None:
        return _Source(name, context.scope, table_arn(context.caller, name))
    if arn is None:
        raise ValidationException(_NO_SOURCE)
    match = _ARN(arn)
    if match is None:
        raise ValidationException(_NO_ARN)
    region, account_id, name = match.groups()
    if account_id != context.caller.account_id:
        raise ValidationException(_OTHER_ACCOUNT)
    if region != context.caller.region and request.get("SSESpecificationOverride") is None:
        raise ValidationException(_OTHER_REGION)
    return _Source(name, scope_of(account_id, region, context.settings), arn)


def _open(reader: Reader, source: _Source) -> Table:
    table = catalog.find(reader, source.name, source.scope)
    if table is None or table.restore is not None:
        raise TableNotFoundException(f"Table not found: {source.name}")
    return table
