"""Read and write units, and the ConsumedCapacity of an answer.

A read unit is 4 KB read strongly consistent; eventually consistent reads cost half, transactions double.
A write unit is 1 KB of the larger of the item before and after. In a transaction, writes cost double on the
table, but not on its indexes (measured on the service: dynoxide pull request 188). A change of an index entry
costs on the index too: one write for an entry that is added, removed or changed, two for an entry that moves
to another key. Units are reported as float, as DynamoDB does.

Source: Developer Guide, "DynamoDB read and write operations", and "Global Secondary Indexes: provisioned
throughput considerations".
"""

from __future__ import annotations

from typing import Any

import msgspec

from hashrange.limits import READ_UNIT_BYTES, WRITE_UNIT_BYTES
from hashrange.tables.definitions.table import Table

NO_INDEXES: dict[str, int] = {}


class WriteUnits(msgspec.Struct, frozen=True):
    """The cost of a write: units on the table, and on each index that it changed."""

    table: int
    indexes: dict[str, int]


def write_units(size: int) -> int:
    """The units of writing `size` bytes, at least 1."""
    return -(-size // WRITE_UNIT_BYTES) or 1


def read_units(size: int, *, consistent: bool) -> float:
    """The units of reading `size` bytes, at least half a unit."""
    units = max(1, -(-size // READ_UNIT_BYTES))
    return float(units) if consistent else units / 2


class Consumed:
    """Adds up the capacity that one request consumes on one table."""

    __slots__ = ("_global", "_local", "_name", "_table")

    def __init__(self, table_name: str) -> None:
        self._name = table_name
        self._table = 0.0
        self._global: dict[str, float] = {}
        self._local: dict[str, float] = {}

    def add(self, units: float) -> None:
        """Add units consumed on the table itself."""
        self._table += units

    def add_index(self, name: str, units: float, *, is_global: bool) -> None:
        """Add units consumed on an index."""
        indexes = self._global if is_global else self._local
        indexes[name] = indexes.get(name, 0.0) + units

    def add_write(self, table: Table, units: WriteUnits, factor: int = 1) -> None:
        """Add a write. `factor` is 2 in a transaction; it applies to the table, not to its indexes."""
        self._table += units.table * factor
        for name, index_units in units.indexes.items():
            index = table.index(name)
            self.add_index(name, index_units, is_global=index is not None and index.is_global)

    def wire(self, mode: str, *, split: str | None = None) -> dict[str, Any]:
        """The ConsumedCapacity of an answer; `mode` is TOTAL or INDEXES.

        `split` is "ReadCapacityUnits" or "WriteCapacityUnits" in a transaction, which reports both.
        """
        total = self._table + sum(self._global.values()) + sum(self._local.values())
        answer: dict[str, Any] = {"TableName": self._name, "CapacityUnits": total}
        if split is not None:
            answer[split] = total
        if mode == "INDEXES":
            answer["Table"] = _units(self._table, split)
            if self._local:
                answer["LocalSecondaryIndexes"] = {n: _units(u, split) for n, u in self._local.items()}
            if self._global:
                answer["GlobalSecondaryIndexes"] = {n: _units(u, split) for n, u in self._global.items()}
        return answer


def _units(units: float, split: str | None) -> dict[str, float]:
    answer = {"CapacityUnits": units}
    if split is not None:
        answer[split] = units
    return answer


def wanted(request: dict[str, Any]) -> str | None:
    """TOTAL or INDEXES where the request asks for its consumed capacity, else None."""
    mode = request.get("ReturnConsumedCapacity")
    return None if mode == "NONE" else mode
