"""The table of a backup, and the hold on its history.

The table may be deleted meanwhile; its items then stay until the backup has them (`history.sources`).
"""

from __future__ import annotations

from hashrange.storage.api import Reader, Transaction
from hashrange.storage.failures import StorageError
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import sources
from hashrange.tables.jobs.backups.backup_records import Backup


class SourceLost(StorageError):
    """The table of a backup is missing, because the store was damaged."""


def hold_of(id_: str) -> str:
    """The name under which a backup holds its table's history."""
    return f"backup:{id_}"


def table_of(reader: Reader, backup: Backup) -> Table:
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
