"""Read and write units, and the ConsumedCapacity of an answer.

A read unit is 4 KB read strongly consistent; eventually consistent reads cost half, transactions double.
A write unit is 1 KB of the larger of the item before and after; a vector counts by its dimensions there
(`vectors.billed_size`), and by its digits in reads. In a transaction, writes cost double on the table, but
not on its indexes (measured on the service: dynoxide pull request 188). A change of an index entry costs on
the index too: one write for an entry that is added, removed or changed, two for an entry that moves to
another key. Units are reported as float, as DynamoDB does.

A write whose condition fails consumes write units of its table, and none of its indexes: one if there is no
item ("Working with items and attributes", "Item sizes and capacity unit consumption"; measured on the service
in October 2026: zae-limiter issue 695), else those of the larger of the existing item and the new one
("DynamoDB read and write operations"; measured in August 2026: dynoxide's captures of PartiQL batches). A
transaction that a failed condition cancels consumes the units of all its members, of those that failed as a
failed write does [assumed]. Requests that are refused for another reason consume nothing [assumed].

A write of an entry of a vector index is charged in bytes: those of the larger of the entry before and after,
at least 1,024; an entry that moves to another HASH is charged for both places. A search costs, in bytes:
30.6875 for each dimension, 65 for each result, the bytes of the attributes in the answer, and 4 for each
dimension of each vector in the answer; at least 1,024. Only an answer with INDEXES shows the bytes of a
write, which are no capacity units. [report] measured on the service: extenddb pull request 244.

A GetRecords consumes one read request unit of streams, whatever it returns; other operations on streams
consume nothing.

Source: Developer Guide, "DynamoDB read and write operations", "Global Secondary Indexes: provisioned
throughput considerations", and "Evaluate your DynamoDB streams usage".
"""

from __future__ import annotations

from typing import Any, Final

from hashrange.limits import READ_UNIT_BYTES, VECTOR_REQUEST_BYTES_MIN, WRITE_UNIT_BYTES
from hashrange.tables.definitions.table import Table

TRANSACTION_FACTOR: Final = 2

NO_INDEXES: Final[dict[str, int]] = {}
_NO_BYTES: Final[dict[str, float]] = {}

_SEARCH_BYTES_OF_DIMENSION: Final = 30.6875
_SEARCH_BYTES_OF_RESULT: Final = 65
VECTOR_BYTES_OF_DIMENSION: Final = 4


class WriteUnits:
    """The cost of a write: units on the table, and on each index that it changed; for a vector index, bytes
    instead."""

    __slots__ = ("indexes", "table")

    def __init__(self, table: int, indexes: dict[str, int]) -> None:
        self.table = table
        self.indexes = indexes


NOTHING_WRITTEN: Final = WriteUnits(0, NO_INDEXES)


def write_units(size: int) -> int:
    """The units of writing `size` bytes, at least 1."""
    return -(-size // WRITE_UNIT_BYTES) or 1


def read_units(size: int, *, consistent: bool) -> float:
    """The units of reading `size` bytes, at least half a unit."""
    units = max(1, -(-size // READ_UNIT_BYTES))
    return float(units) if consistent else units / 2


def entry_bytes(size: int) -> int:
    """The bytes of writing an entry of `size` bytes in a vector index."""
    return max(size, VECTOR_REQUEST_BYTES_MIN)


def search_bytes(dimensions: int, results: int, size: int, vectors: int) -> float:
    """The bytes of a search in an index with this many `dimensions`. `size` are the bytes of the attributes
    in the answer, vectors not counted; `vectors` is how many vectors it holds."""
    examined = _SEARCH_BYTES_OF_DIMENSION * dimensions + _SEARCH_BYTES_OF_RESULT * results
    returned = size + VECTOR_BYTES_OF_DIMENSION * dimensions * vectors
    return max(examined + returned, float(VECTOR_REQUEST_BYTES_MIN))


class Consumed:
    """Adds up the units that a request consumes on a table: of writing if `writes`, otherwise of reading.

    `table_name` is the name or ARN in the request. `table` are the units on the table itself, `local` and
    `global_` those on its indexes, by their names. `stream` are the read request units of its stream.
    `vectors` are the bytes written to or searched in its vector indexes, by their names.
    """

    __slots__ = ("global_", "local", "stream", "table", "table_name", "vectors", "writes")

    def __init__(self, table_name: str, *, writes: bool) -> None:
        self.table_name = table_name
        self.writes = writes
        self.table = 0.0
        self.global_: dict[str, float] = {}
        self.local: dict[str, float] = {}
        self.stream = 0
        self.vectors = _NO_BYTES

    def add(self, units: float) -> None:
        """Add units consumed on the table itself."""
        self.table += units

    def add_index(self, name: str, units: float, *, is_global: bool) -> None:
        """Add units consumed on an index."""
        indexes = self.global_ if is_global else self.local
        indexes[name] = indexes.get(name, 0.0) + units

    def add_vectors(self, name: str, bytes_: float) -> None:
        """Add bytes written to or searched in a vector index."""
        if not self.vectors:
            self.vectors = {}
        self.vectors[name] = self.vectors.get(name, 0.0) + bytes_

    def add_write(self, table: Table, units: WriteUnits, factor: int = 1) -> None:
        """Add a write. `factor` is 2 in a transaction; it applies to the table, not to its indexes."""
        self.table += units.table * factor
        for name, index_units in units.indexes.items():
            index = table.index(name)
            if index is not None and index.vector is not None:
                self.add_vectors(name, index_units)
            else:
                self.add_index(name, index_units, is_global=index is not None and index.is_global)

    def wire(self, mode: str, *, splits: bool = False, refused: float = 0.0) -> dict[str, Any]:
        """The ConsumedCapacity of an answer; `mode` is TOTAL or INDEXES.

        A transaction `splits`: it also says whether the units are of reading or writing. `refused` are units
        that only the total shows.
        """
        total = self.table + sum(self.global_.values()) + sum(self.local.values()) + refused
        answer: dict[str, Any] = {"TableName": self.table_name, "CapacityUnits": total}
        split = None
        if splits:
            split = "WriteCapacityUnits" if self.writes else "ReadCapacityUnits"
        if split is not None:
            answer[split] = total
        if mode == "INDEXES":
            answer["Table"] = _units(self.table, split)
            if self.local:
                answer["LocalSecondaryIndexes"] = {n: _units(u, split) for n, u in self.local.items()}
            if self.global_:
                answer["GlobalSecondaryIndexes"] = {n: _units(u, split) for n, u in self.global_.items()}
            if self.vectors:
                answer["VectorIndexes"] = {n: {"VectorWriteRequestBytes": b} for n, b in self.vectors.items()}
        return answer


def _units(units: float, split: str | None) -> dict[str, float]:
    answer = {"CapacityUnits": units}
    if split is not None:
        answer[split] = units
    return answer


Bill = tuple[Consumed, ...]
"""What a request consumed: a part for each table."""

NO_BILL: Final[Bill] = ()


class TableTotals:
    """Adds up the units that a request consumes on its tables, in the order in which it names them: of
    writing if `writes`, otherwise of reading."""

    __slots__ = ("_by_name", "_writes")

    def __init__(self, *, writes: bool) -> None:
        self._by_name: dict[str, Consumed] = {}
        self._writes = writes

    def of(self, table_name: str) -> Consumed:
        """The total of a table, by the name or ARN that the request gives."""
        total = self._by_name.get(table_name)
        if total is None:
            total = self._by_name[table_name] = Consumed(table_name, writes=self._writes)
        return total

    def bill(self) -> Bill:
        """The totals so far."""
        return tuple(self._by_name.values())


SILENT: Final = ""


def wanted(request: dict[str, Any], *, billed: bool) -> str | None:
    """TOTAL or INDEXES if the request asks for its consumed capacity; SILENT if it is only `billed`: the bill
    is made, but not shown. None: neither."""
    mode: str | None = request.get("ReturnConsumedCapacity")
    if mode is None or mode == "NONE":
        return SILENT if billed else None
    return mode


def transaction_reads(given_names: list[str], sizes: list[int]) -> Bill:
    """The bill of a transaction that reads an item of each table; `sizes` are the items' sizes."""
    totals = TableTotals(writes=False)
    for given, size in zip(given_names, sizes, strict=True):
        totals.of(given).add(read_units(size, consistent=True) * TRANSACTION_FACTOR)
    return totals.bill()


def refused(table_name: str, units: int) -> Bill:
    """The bill of a write whose condition failed; `writes.read_modify_write.perform` determines the units."""
    consumed = Consumed(table_name, writes=True)
    consumed.add(units)
    return (consumed,)


def canceled(given_names: list[str], units: list[int]) -> Bill:
    """The bill of a transaction that a failed condition cancelled; `units` are those of its members."""
    totals = TableTotals(writes=True)
    for given, used in zip(given_names, units, strict=True):
        totals.of(given).add(used * TRANSACTION_FACTOR)
    return totals.bill()


def stream_read(table_name: str) -> Bill:
    """The bill of a GetRecords."""
    consumed = Consumed(table_name, writes=False)
    consumed.stream = 1
    return (consumed,)


def wires(bill: Bill, mode: str, *, splits: bool = False) -> list[dict[str, Any]]:
    """The ConsumedCapacity of an answer that lists the tables."""
    return [consumed.wire(mode, splits=splits) for consumed in bill]
