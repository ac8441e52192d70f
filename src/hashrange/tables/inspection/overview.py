"""An overview of the tables for operators: sizes, states, and the progress of builds.

The API tells a program that an index is CREATING or time to live ENABLING, but not how long this will take.
It reads definitions, totals and cursors only, so its cost does not depend on the size of the tables.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from hashrange.storage.api import Reader
from hashrange.tables.background import restoring
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.spans import History, moment_of
from hashrange.tables.definitions.table import Index, Restore, Table, TimeToLive
from hashrange.tables.streams import Stream
from hashrange.tables.writes import backfill, expiry


def tables(reader: Reader, after: str = "", tables_max: int | None = None) -> list[dict[str, Any]]:
    """One entry for each table, in the order of their names, as the admin plane shows it.

    With `after` and `tables_max` it returns a page: at most `tables_max` tables whose names come after
    `after`.
    """
    return [_table(reader, table) for table in islice(catalog.definitions(reader, after), tables_max)]


def table(reader: Reader, full_name: str) -> dict[str, Any] | None:
    """The entry of one table; None if there is none."""
    definition = catalog.find_full(reader, full_name)
    return _table(reader, definition) if definition is not None else None


def _table(reader: Reader, table: Table) -> dict[str, Any]:
    totals = reader.totals(table.space)
    return {
        "name": table.full_name,
        "status": table.status,
        "items": totals.records,
        "bytes": totals.bytes,
        "created": table.created,
        "indexes": [_index(reader, index) for index in table.indexes],
        "time_to_live": _time_to_live(reader, table.ttl) if table.ttl is not None else None,
        "stream": _stream(table.stream) if table.stream is not None else None,
        "history": _history(table.history) if table.history is not None else None,
        "restore": _restore(reader, table, table.restore) if table.restore is not None else None,
    }


def _history(history: History) -> dict[str, Any]:
    return {
        "since": moment_of(history.after),
        "spans": len(history.spans),
        "holds": [hold.name for hold in history.holds],
    }


def _restore(reader: Reader, table: Table, restore: Restore) -> dict[str, Any]:
    return {
        "source": restore.source,
        "moment": restore.moment,
        "progress": round(restoring.progress(reader, table), 4),
    }


def _index(reader: Reader, index: Index) -> dict[str, Any]:
    totals = reader.totals(index.space)
    return {
        "name": index.name,
        "kind": index.kind,
        "status": index.status,
        "entries": totals.records,
        "bytes": totals.bytes,
        "progress": round(backfill.progress(reader, index), 4),
    }


def _time_to_live(reader: Reader, ttl: TimeToLive) -> dict[str, Any]:
    return {
        "attribute": ttl.attribute,
        "status": "ENABLED" if ttl.built else "ENABLING",
        "progress": round(expiry.progress(reader, ttl), 4),
    }


def _stream(stream: Stream) -> dict[str, Any]:
    return {
        "label": stream.label,
        "view_type": stream.view_type,
        "shards": len(stream.shards),
        "open_shards": len(stream.open_shards),
    }
