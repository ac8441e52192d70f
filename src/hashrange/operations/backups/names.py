"""The ARNs of backups, and the backups that they name: a user's backup, or the backup of a deleted table.

The region of an ARN matters only when a table is restored: the service is as lenient.

Source: ack-api-quirks DDB-BACKUP-005, 012, 015.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from hashrange.errors import AccessDeniedException, BackupNotFoundException, ValidationException
from hashrange.operations.context import Caller
from hashrange.storage.api import Reader
from hashrange.tables.definitions import dropped
from hashrange.tables.definitions.dropped import Dropped
from hashrange.tables.jobs.backups import backup_records
from hashrange.tables.jobs.backups.backup_records import Backup

SYSTEM_SUFFIX: Final = "-00000000"
_MILLIS: Final = 1_000

_ARN: Final = re.compile(
    r"arn:([^:]*):([^:]*):([^:]*):([^:]*):table/([a-zA-Z0-9_.-]{3,255})/backup/([0-9]{14,}-[0-9a-f]{8})"
).fullmatch
_IS_REGION: Final = re.compile(
    r"[a-z]{2}(-gov|-isof?|-isob)?-(north|south|east|west|central)(east|west)?-[0-9]"
).fullmatch


class Name(NamedTuple):
    """The parts of a backup's ARN."""

    arn: str
    region: str
    table: str
    id: str


def parse(arn: str, caller: Caller) -> Name:
    """The parts of a backup's ARN. Raises `ValidationException`, and `AccessDeniedException` for the ARN of
    another account."""
    parsed = _ARN(arn)
    if parsed is None:
        raise ValidationException("Invalid Backup ARN")
    partition, service, region, account_id, table, id_ = parsed.groups()
    is_region = not region or region == caller.region or _IS_REGION(region)
    if not partition.startswith("aws") or service != "dynamodb" or not is_region:
        raise ValidationException("BackupArn is not valid")
    if not region or account_id != caller.account_id:
        raise AccessDeniedException("Access is denied")
    return Name(arn, region, table, id_)


def find(reader: Reader, name: Name, scope: str) -> Backup | Dropped:
    """The backup that an ARN names in a scope. Raises `BackupNotFoundException`."""
    if name.id.endswith(SYSTEM_SUFFIX):
        full_name = f"{scope}/{name.table}" if scope else name.table
        for deleted in dropped.of_name(reader, full_name):
            if deleted.recoverable and system_id(deleted) == name.id:
                return deleted
        raise not_found(name)
    backup = backup_records.find(reader, scope, name.id)
    if backup is None or backup.status == "DELETED" or backup.table_name != name.table:
        raise not_found(name)
    return backup


def not_found(name: Name) -> BackupNotFoundException:
    """The error for a backup that does not exist."""
    return BackupNotFoundException(f"Backup not found: {name.arn}")


def system_id(deleted: Dropped) -> str:
    """The id of the backup of a deleted table."""
    return f"{round(deleted.at * _MILLIS):014}{SYSTEM_SUFFIX}"


def arn_of(caller: Caller, table: str, id_: str) -> str:
    """The ARN of a backup as the caller sees it."""
    return f"arn:aws:dynamodb:{caller.region}:{caller.account_id}:table/{table}/backup/{id_}"
