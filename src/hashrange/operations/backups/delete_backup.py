"""DeleteBackup: the backup is gone at once; the background removes its files.

A backup that is still being written is given up. The service refuses that, but there it takes no time, and
here a full disk may hold a backup up.

Source: API reference, DeleteBackup; ack-api-quirks DDB-BACKUP-005, 010, 015.
"""

from __future__ import annotations

import msgspec

from hashrange.clock import show_moment
from hashrange.errors import BackupInUseException, ValidationException
from hashrange.operations.backups import description, names
from hashrange.operations.context import Answer, Context, Request, WriteBody
from hashrange.storage.api import Transaction
from hashrange.tables.backups import source, stored
from hashrange.tables.definitions.dropped import Dropped


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a DeleteBackup."""
    name = names.parse(request["BackupArn"], context.caller)

    def body(txn: Transaction) -> Answer:
        found = names.find(txn, name, context.scope)
        if isinstance(found, Dropped):
            raise ValidationException(
                "Invalid Request: User is not allowed to delete the system backup with arn "
                f"{name.arn}. It will automatically expire on {show_moment(found.expires)}"
            )
        if stored.is_in_use(txn, found.id):
            raise BackupInUseException(f"Backup is being used to restore table: {name.arn}")
        if found.status == "CREATING":
            source.release(txn, found, context.now)
        deleted = msgspec.structs.replace(found, status="DELETED", files=())
        stored.save(txn, deleted)
        return {"BackupDescription": description.describe(txn, deleted, name, context)}

    return body
