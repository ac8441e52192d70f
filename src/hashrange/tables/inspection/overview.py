"""An overview of the tables for operators: sizes, states, and the progress of builds.

The API tells a program that an index is CREATING or time to live ENABLING, but not how long this will take.
Items are stored in the order of their partition keys' hashes, which are spread evenly. So the position of a
build's cursor among all hashes is its progress, and no item need be counted.

It reads definitions, totals and cursors only, so its cost does not depend on the size of the tables.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from hashrange.storage.api import Reader
from hashrange.tables.background import backfill, expiry, restoring
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, Restore, Table, TimeToLive
from hashrange.tables.history.spans import History, moment_of
from hashrange.tables.streams.logs import Stream

_HASH_BYTES = 8


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
        "progress": round(restore_progress(reader, table), 4),
    }


def _index(reader: Reader, index: Index) -> dict[str, Any]:
    totals = reader.totals(index.space)
    return {
        "name": index.name,
        "kind": index.kind,
        "status": index.status,
        "entries": totals.records,
        "bytes": totals.bytes,
        "progress": round(index_progress(reader, index), 4),
    }


def _time_to_live(reader: Reader, ttl: TimeToLive) -> dict[str, Any]:
    return {
        "attribute": ttl.attribute,
        "status": "ENABLED" if ttl.built else "ENABLING",
        "progress": round(queue_progress(reader, ttl), 4),
    }


def _stream(stream: Stream) -> dict[str, Any]:
    return {
        "label": stream.label,
        "view_type": stream.view_type,
        "shards": len(stream.shards),
        "open_shards": len(stream.open_shards),
    }


def index_progress(reader: Reader, index: Index) -> float:
    """The share of an index that is filled, from 0 to 1."""
    return _share_before(backfill.cursor(reader, index)) if index.backfilling else 1.0


def queue_progress(reader: Reader, ttl: TimeToLive) -> float:
    """The share of a table's expiry queue that is built, from 0 to 1."""
    return 1.0 if ttl.built else _share_before(expiry.cursor(reader, ttl))


def restore_progress(reader: Reader, table: Table) -> float:
    """The share of a table's items that are restored, from 0 to 1."""
    return 1.0 if table.restore is None else _share_before(restoring.cursor(reader, table))


def _share_before(address: bytes) -> float:
    """The share of a space that comes before an address, which begins with a hash."""
    hashed = address[:_HASH_BYTES].ljust(_HASH_BYTES, b"\x00")
    return float(int.from_bytes(hashed) / 2 ** (8 * _HASH_BYTES))
