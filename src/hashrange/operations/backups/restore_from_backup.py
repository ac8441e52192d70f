"""RestoreTableFromBackup: a new table with the items of a backup.

The new table is CREATING until `tables.jobs.backups.backup_runner` has written all items.
The request detects files that are missing or cut off. Files with damaged content are detected while they are
read; the new table is then removed.

Source: API reference, RestoreTableFromBackup; ack-api-quirks DDB-BACKUP-010, DDB-TABLE-215 to 219, 273 to
282.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import msgspec

from hashrange.errors import BackupInUseException, ServiceError, ValidationException
from hashrange.operations.backups import backup_description, names, overrides, targets
from hashrange.operations.context import Answer, Context, Request, WriteBody, scope_of, table_arn
from hashrange.operations.tables import table_description as tables
from hashrange.storage.api import Transaction
from hashrange.tables.background import restoring
from hashrange.tables.definitions import catalog, dropped
from hashrange.tables.definitions.dropped import Dropped
from hashrange.tables.definitions.spans import STAMP_MAX
from hashrange.tables.definitions.table import UNTIL_FILLED, Restore, Table
from hashrange.tables.jobs.backups import backup_records, files
from hashrange.tables.jobs.backups.backup_records import Backup
from hashrange.tables.jobs.backups.files import Damaged

_OTHER_REGION: Final = "Invalid Request: sseSpecificationOverride must be provided for cross-region restores"


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a RestoreTableFromBackup."""
    name, target = names.parse(request["BackupArn"], context.caller), request["TargetTableName"]
    if name.region != context.caller.region and request.get("SSESpecificationOverride") is None:
        raise ValidationException(_OTHER_REGION)
    overrides.check(request)
    scope = scope_of(context.caller.account_id, name.region, context.settings)
    table_id, now, settings = context.new_id(), context.now, context.settings

    def body(txn: Transaction) -> Answer:
        backup = names.find(txn, name, scope)
        targets.check(txn, target, context)
        _check_at_rest(txn, backup, name)
        source = backup.table if isinstance(backup, Dropped) else _table_in(backup, name, context)
        made = overrides.restored(
            source, request, context, target, table_id, lambda: catalog.new_space(txn)
        )
        restore = _restore_of(backup, name, context)
        made = msgspec.structs.replace(made, restore=restore, creating_until=UNTIL_FILLED)
        shown = tables.describe(txn, made, context.caller, now, status="CREATING")
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
