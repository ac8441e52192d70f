"""What is stored of a backup.

    ("backup", scope / id) → the `Backup`

An id begins with the time of its request in milliseconds, so that the backups of a scope lie in the order of
their times. The items themselves are in the files of a folder (`files`). A backup that is CREATING holds the
history of its table, which may be deleted meanwhile: its items then stay until the backup has them
(`history.sources`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Literal

import msgspec

from hashrange.storage.api import Reader, Transaction
from hashrange.storage.failures import StorageError
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import sources
from hashrange.tables.jobs.backups.files import DataFile
from hashrange.tables.jobs.job_records import Records
from hashrange.tables.spaces import BACKUP_SPACE, BACKUPS

Status = Literal["CREATING", "AVAILABLE", "DELETED"]


class Backup(msgspec.Struct, frozen=True):
    """A backup. `table` is the table as the API describes it: SourceTableDetails, SourceTableFeatureDetails
    and AttributeDefinitions.

    While it is CREATING, `files` are the files that are whole, `place` is the address of the next item to
    write, in hex, and `items` and `bytes` count those in `files`; `stamp` is the moment; `is_read`: there is
    no next item. It is DELETED until its files are gone. `problem` says why a restore found that the files
    cannot be used.
    """

    id: str
    name: str
    scope: str
    region: str
    account_id: str
    created: float
    table_name: str
    table_id: str
    table: dict[str, Any]
    folder: str
    status: Status = "CREATING"
    stamp: int = 0
    files: tuple[DataFile, ...] = ()
    place: str = ""
    items: int = 0
    bytes: int = 0
    is_read: bool = False
    problem: str | None = None

    @property
    def table_full_name(self) -> str:
        """The table's unique name, with its scope."""
        return f"{self.scope}/{self.table_name}" if self.scope else self.table_name


_RECORDS: Final = Records(BACKUP_SPACE, Backup, BACKUPS)
find = _RECORDS.find
save = _RECORDS.save
forget = _RECORDS.forget
every = _RECORDS.every
damaged = _RECORDS.damaged


def of_scope(reader: Reader, scope: str, after: str = "") -> Iterator[Backup]:
    """The backups of a scope, oldest first, starting after the id `after`, except DELETED backups."""
    for backup in _RECORDS.oldest_first(reader, scope, after):
        if backup.status != "DELETED":
            yield backup


def is_in_use(reader: Reader, id_: str) -> bool:
    """Whether a table is being restored from a backup."""
    return any(
        table.restore is not None and table.restore.backup == id_ and table.gone_at is None
        for table in catalog.definitions(reader)
    )


class SourceLost(StorageError):
    """The table of a backup is missing, because the store was damaged."""


def hold_of(id_: str) -> str:
    """The name under which a backup holds its table's history."""
    return f"backup:{id_}"


def source_of(reader: Reader, backup: Backup) -> Table:
    """The table of a backup, even if it was deleted meanwhile. Raises `SourceLost`."""
    table = sources.find(reader, backup.table_full_name, backup.table_id)
    if table is None or table.history is None or table.history.hold(hold_of(backup.id)) is None:
        raise SourceLost(
            f"Table {backup.table_full_name} with the id {backup.table_id}, or its history, is missing, so "
            "its backup cannot be finished. Delete the backup."
        )
    return table


def release(txn: Transaction, backup: Backup) -> None:
    """Release the table."""
    sources.release(txn, backup.table_full_name, backup.table_id, hold_of(backup.id))
