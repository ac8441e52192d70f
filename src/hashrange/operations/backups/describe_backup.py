"""DescribeBackup: a backup, and its table at that time.

Source: API reference, DescribeBackup; ack-api-quirks DDB-BACKUP-004, 012.
"""

from __future__ import annotations

from hashrange.operations.backups import backup_description, names
from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.storage.api import Reader


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeBackup."""
    name = names.parse(request["BackupArn"], context.caller)

    def body(reader: Reader) -> Answer:
        backup = names.find(reader, name, context.scope)
        return {"BackupDescription": backup_description.describe(reader, backup, name, context)}

    return body
