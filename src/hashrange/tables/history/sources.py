"""The table that a job reads the past of, alive or deleted.

A job, such as a restore, keeps the full name and the id of its source, and holds the source's history by a
name of its own (`recording`). The source may be deleted meanwhile, and its name used again: `find` gives the
table that the job began with, and `release` lets go of it, wherever it is.
"""

from __future__ import annotations

from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog, dropped
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import recording


def find(reader: Reader, full_name: str, table_id: str) -> Table | None:
    """The table with this full name and id, even if it was deleted; None if it is gone."""
    table = catalog.find_full(reader, full_name)
    if table is not None and table.id == table_id:
        return table
    gone = dropped.find(reader, full_name, table_id)
    return None if gone is None else gone.table


def release(txn: Transaction, full_name: str, table_id: str, hold: str, now: float) -> None:
    """Let go of a table's history, by the name of the hold; nothing happens if there is no such hold."""
    table = catalog.find_full(txn, full_name)
    if table is not None and table.id == table_id:
        catalog.save(txn, recording.release(txn, table, hold, now))
        return
    gone = dropped.find(txn, full_name, table_id)
    if gone is not None:
        dropped.release(txn, gone, hold)
