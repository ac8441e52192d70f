"""CreateBackup, DescribeBackup, ListBackups and DeleteBackup.

CreateBackup fixes the moment and holds the table's history; the background work writes the files
(`tables.jobs.backups.backup_runner`). The table may change or be deleted meanwhile. DeleteBackup removes the
backup at once, and the background work its files. A backup that is still being written is given up: the
service refuses this, but its backups take no time, while here a full disk may delay a backup.

Source: API reference; ack-api-quirks DDB-BACKUP-001, 003 to 007, 010, 011, 014 to 016.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from itertools import islice
from typing import Any, Final

import msgspec

from hashrange.clock import show_moment
from hashrange.errors import (
    BackupInUseException,
    ResourceNotFoundException,
    TableNotFoundException,
    ValidationException,
)
from hashrange.limits import LIST_BACKUPS_MAX
from hashrange.operations import jobs
from hashrange.operations.backups import backup_description, names
from hashrange.operations.context import Answer, Context, ReadBody, Request, WriteBody, table_name
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog, dropped
from hashrange.tables.definitions.dropped import Dropped
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import recording
from hashrange.tables.jobs.backups import backup_records
from hashrange.tables.jobs.backups.backup_records import Backup

_NO_DIRECTORY: Final = (
    "There is no directory for backups: a database in memory has none unless --backup-dir (or "
    "Settings.backup_dir) names one."
)

# A file system takes names of 255 bytes, and the folder of an unfinished backup has a longer name.
_FOLDER_CHARS_MAX: Final = 200

_Listed = tuple[str, str, dict[str, Any]]
"""An id, a table's name, and a BackupSummary: in the order of time, and of names at the same time."""


def prepare_create(request: Request, context: Context) -> WriteBody:
    """The body of a CreateBackup."""
    name = table_name(request["TableName"], context.scope)
    if not context.settings.backup_dir:
        raise ValidationException(_NO_DIRECTORY)
    id_, now, caller = jobs.new_id(context), context.now, context.caller

    def body(txn: Transaction) -> Answer:
        table = _open(txn, name, context)
        held = recording.hold(txn, table, backup_records.hold_of(id_), now)
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
    hold = table.history.hold(backup_records.hold_of(id_)) if table.history is not None else None
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


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeBackup."""
    name = names.parse(request["BackupArn"], context.caller)

    def body(reader: Reader) -> Answer:
        backup = names.find(reader, name, context.scope)
        return {"BackupDescription": backup_description.describe(reader, backup, name, context)}

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListBackups: in the order of their times, in pages of up to 100. The backups of deleted
    tables are listed only for the types SYSTEM and ALL."""
    only = table_name(request["TableName"], context.scope) if request.get("TableName") else None
    size = request.get("Limit") or LIST_BACKUPS_MAX
    low, high = request.get("TimeRangeLowerBound"), request.get("TimeRangeUpperBound")
    if low is not None and high is not None and low > high:
        raise ValidationException("Time range lower bound must be less than or equal to upper bound")
    after = _after(request.get("ExclusiveStartBackupArn"), context)
    kind = request.get("BackupType") or "USER"

    def is_wanted(listed: _Listed) -> bool:
        created = listed[2]["BackupCreationDateTime"]
        return (
            (only is None or listed[1] == only)
            and (low is None or created >= low)
            and (high is None or created < high)
            and listed[:2] > after
        )

    def body(reader: Reader) -> Answer:
        parts: list[Iterator[_Listed]] = []
        if kind in ("USER", "ALL"):
            parts.append(_of_users(reader, context, after[0]))
        if kind in ("SYSTEM", "ALL"):
            parts.append(iter(sorted(_of_deleted_tables(reader, context), key=_place)))
        wanted = (listed[2] for listed in merge(*parts, key=_place) if is_wanted(listed))
        page = list(islice(wanted, size + 1))
        answer: Answer = {"BackupSummaries": page[:size]}
        if len(page) > size:
            answer["LastEvaluatedBackupArn"] = page[size - 1]["BackupArn"]
        return answer

    return body


def _place(listed: _Listed) -> tuple[str, str]:
    return listed[:2]


def _after(arn: str | None, context: Context) -> tuple[str, str]:
    if arn is None:
        return "", ""
    name = names.parse(arn, context.caller)
    if name.region != context.caller.region:
        # [report] DDB-BACKUP-012 for "does not match the region"; the rest of the text is [assumed]
        raise ValidationException("ExclusiveStartBackupArn does not match the region of the request")
    return name.id, name.table


def _of_users(reader: Reader, context: Context, after: str) -> Iterator[_Listed]:
    """The backups that users made. Their ids are unique."""
    for backup in backup_records.of_scope(reader, context.scope, after):
        yield backup.id, backup.table_name, backup_description.summary_of(backup, context.caller)


def _of_deleted_tables(reader: Reader, context: Context) -> Iterator[_Listed]:
    """The backups of deleted tables."""
    for _, dropped_backup in dropped.every(reader, context.scope):
        if isinstance(dropped_backup, Dropped) and dropped_backup.recoverable:
            summary = backup_description.summary_of_deleted(reader, dropped_backup, context.caller)
            yield names.system_id(dropped_backup), dropped_backup.table.name, summary


def prepare_delete(request: Request, context: Context) -> WriteBody:
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
            backup_records.release(txn, backup)
        deleted = msgspec.structs.replace(backup, status="DELETED", files=())
        backup_records.save(txn, deleted)
        return {"BackupDescription": backup_description.describe(txn, deleted, name, context)}

    return body
