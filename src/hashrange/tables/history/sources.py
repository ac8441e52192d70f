"""The table whose past a job reads, existing or deleted.

A job, such as a restore, stores the full name and the id of its source, and holds the source's history under
its own name (`recording`). The source may be deleted meanwhile, and its name used again: `find` returns the
table that the job began with, and `release` releases it, existing or deleted.
"""

from __future__ import annotations

from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog, dropped
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import recording


def find(reader: Reader, full_name: str, table_id: str) -> Table | None:
    """The table with this full name and id, even if it was deleted; None if the table left no data."""
    table = catalog.find_full(reader, full_name)
    if table is not None and table.id == table_id:
        return table
    deleted = dropped.find(reader, full_name, table_id)
    return None if deleted is None else deleted.table


def release(txn: Transaction, full_name: str, table_id: str, hold: str) -> None:
    """Release a table's history, by the name of the hold; does nothing if there is no such hold."""
    table = catalog.find_full(txn, full_name)
    if table is not None and table.id == table_id:
        catalog.save(txn, recording.release(txn, table, hold))
        return
    deleted = dropped.find(txn, full_name, table_id)
    if deleted is not None:
        dropped.release(txn, deleted, hold)
