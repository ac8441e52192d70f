"""CreateBackup: stores a table's current items in files.

The request fixes the moment and holds the table's history; the background work writes the files
(`tables.jobs.backups.backup_runner`). The table may change or be deleted meanwhile.

Source: API reference, CreateBackup; ack-api-quirks DDB-BACKUP-001, 003, 004, 006, 007, 011.
"""

from __future__ import annotations

from typing import Final

from hashrange.errors import ResourceNotFoundException, TableNotFoundException, ValidationException
from hashrange.operations import jobs
from hashrange.operations.backups import backup_description
from hashrange.operations.context import Answer, Context, Request, WriteBody, table_name
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import recording
from hashrange.tables.jobs.backups import backup_records, source
from hashrange.tables.jobs.backups.backup_records import Backup

_NO_DIRECTORY: Final = (
    "There is no directory for backups: a database in memory has none unless --backup-dir (or "
    "Settings.backup_dir) names one."
)

# A file system takes names of 255 bytes, and the folder of an unfinished backup has a longer name.
_FOLDER_CHARS_MAX: Final = 200


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a CreateBackup."""
    name = table_name(request["TableName"], context.scope)
    if not context.settings.backup_dir:
        raise ValidationException(_NO_DIRECTORY)
    id_, now, caller = jobs.new_id(context), context.now, context.caller

    def body(txn: Transaction) -> Answer:
        table = _open(txn, name, context)
        held = recording.hold(txn, table, source.hold_of(id_), now)
        catalog.save(txn, held)
        backup = Backup(
            id=id_,
            name=request["BackupName"],
            scope=context.scope,
            region=caller.region,
            account_id=caller.account_id,
            created=int(id_.partition("-")[0]) / 1_000,
            table_name=name,
            table_id=table.id,
            table=backup_description.kept(txn, table, caller, now),
            folder=f"{name[:_FOLDER_CHARS_MAX]}-{id_}",
            stamp=_stamp(held, id_),
        )
        backup_records.save(txn, backup)
        return {"BackupDetails": backup_description.details_of(backup_description.summary_of(backup, caller))}

    return body


def _stamp(table: Table, id_: str) -> int:
    hold = table.history.hold(source.hold_of(id_)) if table.history is not None else None
    assert hold is not None
    return hold.since


def _open(reader: Reader, name: str, context: Context) -> Table:
    """The table, in any state but CREATING."""
    try:
        table = catalog.open_any(reader, name, context.scope, context.caller.region)
    except ResourceNotFoundException:
        raise TableNotFoundException(f"Table not found: {name}") from None
    if table.status == "CREATING":
        raise TableNotFoundException(f"Table not found: {name}")
    return table
