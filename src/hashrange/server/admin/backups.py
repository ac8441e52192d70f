"""Backups on the admin plane, for `hashrange backup` and `hashrange restore`.

    GET  /v1/backups    the backups, their progress, and their folders
    POST /v1/backups    make a backup of a table
    POST /v1/restores   make a table from a backup

Tables are named by their full names, as in `GET /v1/tables`; a table is restored into the scope of its
backup.
"""

from __future__ import annotations

import os
from typing import Final

import msgspec
from starlette.requests import Request

from hashrange.database import Caller, Database
from hashrange.errors import BackupNotFoundException
from hashrange.server.admin.application import Endpoint, read_json, subject_of
from hashrange.server.admin.aside import aside
from hashrange.server.admin.data import caller_of
from hashrange.server.admin.port import Subject


class Backup(msgspec.Struct, forbid_unknown_fields=True):
    """The backup to make.

    table: the full name of the table.
    name: the name of the backup.
    """

    table: str
    name: str


class Restore(msgspec.Struct, forbid_unknown_fields=True):
    """The table to make.

    backup: the id of the backup.
    table: the name of the new table, without its scope; without it that of the table in the backup.
    """

    backup: str
    table: str | None = None


class BackupState(msgspec.Struct):
    """A backup.

    id: its id, the end of its ARN.
    name: its name.
    table: the full name of its table.
    status: CREATING or AVAILABLE.
    created: when it was made, in epoch seconds; its items are those of this moment.
    items: how many items it has.
    bytes: the size of its items.
    folder: its folder on the server's machine.
    progress: which share of it is made, from 0 to 1.
    problem: why a restore found that its files cannot be used; null otherwise.
    """

    id: str
    name: str
    table: str
    status: str
    created: float
    items: int
    bytes: int
    folder: str
    progress: float
    problem: str | None


class BackupStates(msgspec.Struct):
    """The backups of the store.

    directory: the absolute path of their directory on the server's machine; null without --backup-dir.
    backups: the backups.
    """

    directory: str | None
    backups: list[BackupState]


class BackupMade(msgspec.Struct):
    """The backup that is being made.

    backup: its id.
    """

    backup: str


class TableMade(msgspec.Struct):
    """The table that is being made.

    table: its full name.
    """

    table: str


async def _list(request: Request) -> BackupStates:
    def work(database: Database) -> BackupStates:
        directory = database.settings.backup_dir
        known = database.jobs.backups.runner.overview()
        shown = [backup for backup in known if backup["status"] != "DELETED"]
        return BackupStates(
            os.path.abspath(directory) if directory else None, msgspec.convert(shown, list[BackupState])
        )

    return await aside(request, work)


async def _back_up(request: Request) -> BackupMade:
    sent = await read_json(request, Backup)
    subject = subject_of(request)

    def work(database: Database) -> BackupMade:
        caller, table = _owned(subject, sent.table)
        parameters = {"TableName": table, "BackupName": sent.name}
        arn = database.execute("CreateBackup", parameters, caller)["BackupDetails"]["BackupArn"]
        return BackupMade(arn.rpartition("/")[2])

    return await aside(request, work)


async def _restore(request: Request) -> TableMade:
    sent = await read_json(request, Restore)
    subject = subject_of(request)

    def work(database: Database) -> TableMade:
        known = database.jobs.backups.runner.overview()
        backup = next((each for each in known if each["id"] == sent.backup), None)
        if backup is None:
            raise BackupNotFoundException(f"There is no backup with the id {sent.backup}")
        full_name = str(backup["table"])
        caller, table = _owned(subject, full_name)
        arn = f"arn:aws:dynamodb:{caller.region}:{caller.account_id}:table/{table}/backup/{sent.backup}"
        target = sent.table or table
        parameters = {"TargetTableName": target, "BackupArn": arn}
        database.execute("RestoreTableFromBackup", parameters, caller)
        return TableMade(full_name.removesuffix(table) + target)

    return await aside(request, work)


def _owned(subject: Subject, full_name: str) -> tuple[Caller, str]:
    """A caller who owns a table, and the table's name for this caller. Where the full name has no account or
    region they are the server's own, as for requests of programs: a backup belongs to its maker's account."""
    scope, _, name = full_name.rpartition("/")
    return caller_of(subject, scope), name


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/backups", "The backups, their progress, and their folders.", _list),
    Endpoint("POST", "/v1/backups", "Begin to make a backup of a table.", _back_up, takes=Backup),
    Endpoint("POST", "/v1/restores", "Begin to make a table from a backup.", _restore, takes=Restore),
)
