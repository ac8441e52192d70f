"""What the tables store, for prices of storage and for advice.

AWS bills the bytes of items and index entries, and 100 bytes more for each of them.
Source: Developer Guide, "Secondary indexes: storage considerations", and Amazon DynamoDB pricing, "Data
storage".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from hashrange.money.counts import Stored
from hashrange.operations.backups import recovery
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, Table

OVERHEAD_BYTES: Final = 100


def stored(reader: Reader, tables_max: int) -> list[Stored]:
    """What the first `tables_max` tables store, by their names."""
    return list(_each(reader, tables_max))


def _each(reader: Reader, tables_max: int) -> Iterator[Stored]:
    for table in islice(catalog.definitions(reader), tables_max):
        totals = reader.totals(table.space)
        bytes_ = totals.bytes + totals.records * OVERHEAD_BYTES
        for index in table.indexes:
            entries = reader.totals(index.space)
            bytes_ += entries.bytes + entries.records * OVERHEAD_BYTES
        yield Stored(
            table.full_name,
            bytes_,
            totals.records,
            totals.bytes,
            table.billing_mode,
            table.table_class or "",
            recovery.hold_of(table) is not None,
            [index.name for index in table.indexes if index.is_global],
            _provisioned(table),
            _maximum(table),
        )


def _provisioned(table: Table) -> dict[str, tuple[int, int]]:
    if table.billing_mode != "PROVISIONED":
        return {}
    return {
        name: (owner.throughput.read_units, owner.throughput.write_units) for name, owner in _owners(table)
    }


def _maximum(table: Table) -> dict[str, tuple[int, int]]:
    if table.billing_mode == "PROVISIONED":
        return {}
    units = {}
    for name, owner in _owners(table):
        given = owner.on_demand or {}
        # (-1 takes a maximum away)
        reads, writes = [max(given.get(f"Max{way}RequestUnits", 0), 0) for way in ("Read", "Write")]
        if reads or writes:
            units[name] = (reads, writes)
    return units


def _owners(table: Table) -> Iterator[tuple[str, Table | Index]]:
    """The table (name "") and its global indexes: what has throughput of its own."""
    yield "", table
    for index in table.indexes:
        if index.is_global:
            yield index.name, index
