"""DeleteBackup: removes the backup at once; the background work removes its files.

A backup that is still being written is given up. The service refuses this, but its backups take no time,
while here a full disk may delay a backup.

Source: API reference, DeleteBackup; ack-api-quirks DDB-BACKUP-005, 010, 015.
"""

from __future__ import annotations

import msgspec

from hashrange.clock import show_moment
from hashrange.errors import BackupInUseException, ValidationException
from hashrange.operations.backups import backup_description, names
from hashrange.operations.context import Answer, Context, Request, WriteBody
from hashrange.storage.api import Transaction
from hashrange.tables.definitions.dropped import Dropped
from hashrange.tables.jobs.backups import backup_records, source


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a DeleteBackup."""
    name = names.parse(request["BackupArn"], context.caller)

    def body(txn: Transaction) -> Answer:
        backup = names.find(txn, name, context.scope)
        if isinstance(backup, Dropped):
            raise ValidationException(
                "Invalid Request: User is not allowed to delete the system backup with arn "
                f"{name.arn}. It will automatically expire on {show_moment(backup.expires)}"
            )
        if backup_records.is_in_use(txn, backup.id):
            raise BackupInUseException(f"Backup is being used to restore table: {name.arn}")
        if backup.status == "CREATING":
            source.release(txn, backup)
        deleted = msgspec.structs.replace(backup, status="DELETED", files=())
        backup_records.save(txn, deleted)
        return {"BackupDescription": backup_description.describe(txn, deleted, name, context)}

    return body
