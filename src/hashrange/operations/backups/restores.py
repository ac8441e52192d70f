"""RestoreTableFromBackup and RestoreTableToPointInTime: a new table with the items of a backup, or with those
that a table had at a moment.

The new table is CREATING until it has all items. `tables.jobs.backups.backup_runner` writes those of a
backup. The restore of a table holds the table's history; a small table is filled at once, a larger one by the
sweep (`tables.background.restoring`). The request detects files of a backup that are missing or cut off.
Files with damaged content are detected while they are read; the new table is then removed.

Source: API reference, RestoreTableFromBackup and RestoreTableToPointInTime; for the order of checks, the
messages and the contents ack-api-quirks DDB-BACKUP-010, DDB-TABLE-086, 100, 215 to 219, 272 to 282, measured
in October 2026.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from hashrange.errors import (
    BackupInUseException,
    LimitExceededException,
    PointInTimeRecoveryUnavailableException,
    ServiceError,
    TableAlreadyExistsException,
    TableInUseException,
    TableNotFoundException,
    ValidationException,
)
from hashrange.limits import RESTORES_MAX
from hashrange.operations.backups import backup_description, names, overrides, recovery
from hashrange.operations.context import (
    TABLE_ARN,
    Answer,
    Context,
    Request,
    WriteBody,
    scope_of,
    table_arn,
)
from hashrange.operations.tables import table_description
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.background import restoring
from hashrange.tables.definitions import catalog, dropped
from hashrange.tables.definitions.dropped import Dropped
from hashrange.tables.definitions.spans import STAMP_MAX
from hashrange.tables.definitions.table import UNTIL_FILLED, Restore, Table
from hashrange.tables.history import recording
from hashrange.tables.jobs.backups import backup_records, files
from hashrange.tables.jobs.backups.backup_records import Backup
from hashrange.tables.jobs.backups.files import Damaged

_BOTH_TIMES: Final = (
    "Invalid Request: Both RestoreDateTime and UseLatestRestorableTime cannot be set for point-in-time "
    "restore request. Please use only one of them."
)
_NO_TIME: Final = (
    "Invalid Request: Either one of RestoreDateTime or UseLatestRestorableTime must be specified, but not "
    "both"
)
_BOTH_SOURCES: Final = "Must provide exactly one of: sourceTableArn, sourceTableName"
_NO_SOURCE: Final = "The parameter 'TableName' is required but was not present in the request"
_NO_ARN: Final = "sourceTableArn is not a valid ARN"
_OTHER_ACCOUNT: Final = "This action is only supported by accounts that match the resource owner's account"
_OTHER_REGION: Final = "Invalid Request: sseSpecificationOverride must be provided for cross-region restores"
# [report] ack-api-quirks, service
_TOO_MANY: Final = (
    f"Subscriber limit exceeded: Only {RESTORES_MAX} restore operations can be done simultaneously"
)


def prepare_of_backup(request: Request, context: Context) -> WriteBody:
    """The body of a RestoreTableFromBackup."""
    name, target = names.parse(request["BackupArn"], context.caller), request["TargetTableName"]
    if name.region != context.caller.region and request.get("SSESpecificationOverride") is None:
        raise ValidationException(_OTHER_REGION)
    overrides.check(request)
    scope = scope_of(context.caller.account_id, name.region, context.settings)
    table_id, now, settings = context.new_id(), context.now, context.settings

    def body(txn: Transaction) -> Answer:
        backup = names.find(txn, name, scope)
        _check_target(txn, target, context)
        _check_at_rest(txn, backup, name)
        source = backup.table if isinstance(backup, Dropped) else _table_in(backup, name, context)
        made = overrides.restored(source, request, context, target, table_id, lambda: catalog.new_space(txn))
        restore = _restore_of(backup, name, context)
        made = msgspec.structs.replace(made, restore=restore, creating_until=UNTIL_FILLED)
        shown = table_description.describe(txn, made, context.caller, now, status="CREATING")
        if isinstance(backup, Dropped):
            dropped.read_by(txn, backup, restoring.hold_of(made))
            if restoring.at_once(txn, made, restore):
                made = restoring.completed(txn, made, restore, now, settings)
        catalog.save(txn, made)
        return {"TableDescription": shown}

    return body


def _check_at_rest(txn: Transaction, backup: Backup | Dropped, name: names.Name) -> None:
    if isinstance(backup, Dropped):
        in_use = bool(backup.readers)
    else:
        in_use = backup_records.is_in_use(txn, backup.id)
        if backup.status == "CREATING":
            raise BackupInUseException(f"Backup is being created: {name.arn}")  # [assumed]
    if in_use:
        raise BackupInUseException(f"Backup is being used to restore another table: {name.arn}")


def _table_in(backup: Backup, name: names.Name, context: Context) -> Table:
    """The table in a backup, unless its files are known to be unusable."""
    folder = Path(context.settings.backup_dir, backup.folder)
    try:
        files.check_sizes(folder, files.read_manifest(folder))
        return backup_description.table_of(backup, context)
    except (Damaged, OSError) as error:
        reason = str(error)
    except (ServiceError, msgspec.MsgspecError, KeyError, TypeError, AttributeError) as error:
        reason = f"the table in its manifest cannot be created: {error}"
    raise ValidationException(f"Backup {name.arn} cannot be restored: {reason}")


def _restore_of(backup: Backup | Dropped, name: names.Name, context: Context) -> Restore:
    arn = table_arn(context.caller, name.table)
    if isinstance(backup, Dropped):
        table = backup.table
        return Restore(table.full_name, table.id, arn, STAMP_MAX, backup.at, backup_arn=name.arn)
    return Restore(
        backup.table_full_name, backup.table_id, arn, backup.stamp, backup.created, backup.id, name.arn
    )


class _Source(NamedTuple):
    """A table to be restored."""

    name: str
    scope: str
    arn: str


def prepare_of_table(request: Request, context: Context) -> WriteBody:
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
        _check_target(txn, target, context)
        made = overrides.restored(table, request, context, target, table_id, lambda: catalog.new_space(txn))
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
    match = TABLE_ARN(arn)
    if match is None or not all(match.groups()):
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


def _check_target(reader: Reader, target: str, context: Context) -> None:
    """Refuse a name that is taken ([report] ack-api-quirks DDB-TABLE-100, 219, 275), and too many restores.

    Raises `TableInUseException`, `TableAlreadyExistsException`, `LimitExceededException`.
    """
    existing = catalog.find(reader, target, context.scope)
    if existing is not None:
        if existing.restore is None or existing.gone_at is not None:
            raise TableAlreadyExistsException(f"Table already exists: {target}")
        arn = existing.restore.backup_arn
        source = f" from backup: {arn}" if arn is not None else ""  # [assumed] the words without a backup
        raise TableInUseException(f"Table: {target} is already being restored{source}")
    restoring = sum(
        table.restore is not None and table.gone_at is None and table.scope == context.scope
        for table in catalog.definitions(reader)
    )
    if restoring >= RESTORES_MAX:
        raise LimitExceededException(_TOO_MANY)
