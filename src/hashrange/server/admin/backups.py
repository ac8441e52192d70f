"""Backups on the admin plane, for `hashrange backup` and `hashrange restore`.

    GET  /backups    the backups, their progress, and their folders
    POST /backups    make a backup of a table
    POST /restores   make a table from a backup

Tables are named by their full names, as in `GET /tables`; a table is restored into the scope of its backup.
"""

from __future__ import annotations

import os
from typing import Any, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hashrange.database import Caller, Database
from hashrange.errors import BackupNotFoundException
from hashrange.server.admin.application import Endpoint, json, read_json, subject_of
from hashrange.server.admin.aside import aside
from hashrange.server.admin.data import caller_of
from hashrange.server.admin.port import Subject


class Backup(msgspec.Struct, forbid_unknown_fields=True):
    """The table to back up, and the name of the backup."""

    table: str
    name: str


class Restore(msgspec.Struct, forbid_unknown_fields=True):
    """The id of the backup, and the name of the new table; by default that of the table in the backup."""

    backup: str
    table: str | None = None


async def _list(request: Request) -> Response:
    def work(database: Database) -> dict[str, Any]:
        directory = database.settings.backup_dir
        known = database.jobs.backups.runner.overview()
        shown = [backup for backup in known if backup["status"] != "DELETED"]
        return {"directory": os.path.abspath(directory) if directory else None, "backups": shown}

    return json(await aside(request, work))


async def _back_up(request: Request) -> Response:
    sent = await read_json(request, Backup)
    subject = subject_of(request)

    def work(database: Database) -> dict[str, Any]:
        caller, table = _owned(subject, sent.table)
        parameters = {"TableName": table, "BackupName": sent.name}
        arn = database.execute("CreateBackup", parameters, caller)["BackupDetails"]["BackupArn"]
        return {"backup": arn.rpartition("/")[2]}

    return json(await aside(request, work))


async def _restore(request: Request) -> Response:
    sent = await read_json(request, Restore)
    subject = subject_of(request)

    def work(database: Database) -> dict[str, Any]:
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
        return {"table": full_name.removesuffix(table) + target}

    return json(await aside(request, work))


def _owned(subject: Subject, full_name: str) -> tuple[Caller, str]:
    """A caller who owns a table, and the table's name for this caller. Where the full name has no account or
    region they are the server's own, as for requests of programs: a backup belongs to its maker's account."""
    scope, _, name = full_name.rpartition("/")
    return caller_of(subject, scope), name


ENDPOINTS: Final = (
    Endpoint("GET", "/backups", "The backups, their progress, and their folders.", _list),
    Endpoint("POST", "/backups", "Make a backup of a table.", _back_up, takes=Backup),
    Endpoint("POST", "/restores", "Make a table from a backup.", _restore, takes=Restore),
)
