"""What the tables store, for prices of storage and for advice.

AWS bills the bytes of items and index entries, and 100 bytes more for each of them; 48 more for each item of
a global table. Point-in-time recovery is billed for the table and its local indexes.
Source: Developer Guide, "Secondary indexes: storage considerations", "DynamoDB item sizes and formats" and
"Point-in-time recovery: how it works"; Amazon DynamoDB pricing, "Data storage".
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from hashrange.operations.backups import recovery
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, Table
from hashrange_lab.money.counts import Stored

OVERHEAD_BYTES: Final = 100
REPLICATED_BYTES: Final = 48


def stored(reader: Reader, tables_max: int) -> list[Stored]:
    """What the first `tables_max` tables store, by their names."""
    return list(_each(reader, tables_max))


def _each(reader: Reader, tables_max: int) -> Iterator[Stored]:
    for table in islice(catalog.definitions(reader), tables_max):
        totals = reader.totals(table.space)
        overhead = OVERHEAD_BYTES + (REPLICATED_BYTES if table.replicas else 0)
        bytes_ = local = totals.bytes + totals.records * overhead
        for index in table.indexes:
            entries = reader.totals(index.space)
            size = entries.bytes + entries.records * OVERHEAD_BYTES
            bytes_ += size
            local += 0 if index.is_global else size
        yield Stored(
            table.full_name,
            bytes_,
            totals.records,
            totals.bytes,
            table.billing_mode,
            table.table_class or "",
            local if recovery.hold_of(table) is not None else 0,
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
