"""What an operator sees of the tables: sizes, states, and how far the builds under way are.

The API tells a program that an index is CREATING or time to live ENABLING, never how long it will take.
Items lie in the order of their partition keys' hashes, which are spread evenly, so a build is as far
along as its cursor is in that order: no counting.

Reads definitions, totals and cursors only, so it costs little however large the tables are.
"""

from __future__ import annotations

from itertools import islice
from typing import Any

from hashrange.storage.api import Reader
from hashrange.tables.background import backfill, expiry
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, Table, TimeToLive
from hashrange.tables.streams.logs import Stream

_HASH_BYTES = 8


def tables(reader: Reader, after: str = "", tables_max: int | None = None) -> list[dict[str, Any]]:
    """One entry for each table, in the order of their names, as the admin plane shows it.

    With `after` and `tables_max` a page of them: the first so many above that name.
    """
    return [_table(reader, table) for table in islice(catalog.definitions(reader, after), tables_max)]


def _table(reader: Reader, table: Table) -> dict[str, Any]:
    totals = reader.totals(table.space)
    return {
        "name": table.name,
        "status": table.status,
        "items": totals.records,
        "bytes": totals.bytes,
        "created": table.created,
        "indexes": [_index(reader, index) for index in table.indexes],
        "time_to_live": _time_to_live(reader, table.ttl) if table.ttl is not None else None,
        "stream": _stream(table.stream) if table.stream is not None else None,
    }


def _index(reader: Reader, index: Index) -> dict[str, Any]:
    totals = reader.totals(index.space)
    return {
        "name": index.name,
        "kind": "global" if index.is_global else "local",
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
    """How much of an index is filled, from 0 to 1."""
    return _share_before(backfill.cursor(reader, index)) if index.backfilling else 1.0


def queue_progress(reader: Reader, ttl: TimeToLive) -> float:
    """How much of a table's expiry queue is built, from 0 to 1."""
    return 1.0 if ttl.built else _share_before(expiry.cursor(reader, ttl))


def _share_before(address: bytes) -> float:
    """The share of a space that comes before an address, which begins with a hash."""
    hashed = address[:_HASH_BYTES].ljust(_HASH_BYTES, b"\x00")
    return float(int.from_bytes(hashed) / 2 ** (8 * _HASH_BYTES))
