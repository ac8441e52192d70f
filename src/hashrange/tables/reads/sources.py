"""The source of a read: a table or one of its indexes, the attributes that it shows, and the cost of the
read.

Query, Scan and SELECT share these rules. A read of a global index shows only projected attributes. A read of
a local index fetches the other attributes from the table.

Source: Developer Guide, "Attribute projections", for both kinds of index.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hashrange import pace
from hashrange.errors import INVALID, ValidationException
from hashrange.limits import PAGE_BYTES_MAX, READ_UNIT_BYTES
from hashrange.storage.api import Reader
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import capacity, indexes, keys, records
from hashrange.tables.reads.ranges import Page, ReadSource

# [report] extenddb pull request 319, measured on the service: one of them ends in a full stop
VECTOR_QUERIED: Final = "Query operation not supported on this index type."
VECTOR_SCANNED: Final = "Scan operation not supported on this index type"

_GSI_CONSISTENT = "Consistent reads are not supported on global secondary indexes"


def open_source(
    table: Table, index_name: str | None, *, consistent: bool, vector: str = VECTOR_QUERIED
) -> ReadSource:
    """The table, or its index of that name. Raises `ValidationException` if it cannot be read in this way;
    with the text `vector` if it is a vector index, except that a consistent Query hears of that first
    ([report] dynoxide's captures of August 2026, extenddb)."""
    if index_name is None:
        return ReadSource(table, None)
    index = table.index(index_name)
    if index is None:
        raise ValidationException(f"The table does not have the specified index: {index_name}")
    if index.is_global:
        if consistent and (index.vector is None or vector == VECTOR_QUERIED):
            raise ValidationException(_GSI_CONSISTENT)
        if index.vector is not None:
            raise ValidationException(vector)
        if index.backfilling or index.status in ("CREATING", "DELETING"):
            raise ValidationException(f"Cannot read from backfilling global secondary index: {index_name}")
    return ReadSource(table, index)


def missing_attributes(source: ReadSource, attributes: frozenset[str]) -> list[str]:
    """The `attributes` that the records of `source` lack because they are not projected."""
    if source.index is None or source.index.projection == "ALL":
        return []
    return sorted(attributes - indexes.projected_names(source.table, source.index))


def check_projected(source: ReadSource, attributes: frozenset[str]) -> None:
    """Raise `ValidationException` if `source` is a global index that does not project all `attributes`."""
    if source.index is not None and source.index.is_global:
        missing = missing_attributes(source, attributes)
        if missing:
            raise ValidationException(
                f"{INVALID}Global secondary index {source.index.name} does not project [{', '.join(missing)}]"
            )


def check_filter(source: ReadSource, attributes: frozenset[str]) -> None:
    """Raise `ValidationException` if `source` is a global or local index that does not project the
    `attributes` of a filter.

    This rule applies only to reads of one partition. A filter on a scan of an index is allowed, and treats
    attributes that are not projected as absent. [report] dynoxide, statements that read an index; DynamoDB
    Local refuses such a Query with the same message.
    """
    missing = missing_attributes(source, attributes)
    if missing and source.index is not None:
        raise ValidationException(
            f"{INVALID}Secondary index {source.index.name} does not project one or more filter attributes: "
            f"[{', '.join(missing)}]"
        )


def noted(records: Iterator[bytes], read: list[bytes]) -> Iterator[bytes]:
    """The records, each added to `read` when it is consumed."""
    for record in records:
        read.append(record)
        yield record


def fetch(
    reader: Reader, source: ReadSource, read: list[bytes], page: Page, *, consistent: bool
) -> tuple[list[bytes], float]:
    """The table's records of the index entries that `page` keeps, and the units of fetching, each fetch
    rounded up.

    Every entry that was `read` costs units, even if the filter did not keep it. [report] paritysuite,
    captures of 2026. The page is cut before it exceeds 1 MB: the size of its entries, rounded up to 4 KB, and
    that of each item, rounded up to 4 KB. Developer Guide, "Local secondary indexes".
    """
    table = source.table
    kept, page.records = page.records, []
    page.scanned = page.size = 0
    fetched: list[bytes] = []
    units = 0.0
    while page.scanned < len(read):
        pace.point()
        entries = read[page.scanned : page.scanned + _fetched_next(page.scanned, units)]
        addresses = [
            (table.space, *keys.address_of_item(table.key, records.item_of(entry))) for entry in entries
        ]
        for entry, record in zip(entries, reader.get_many(addresses), strict=True):
            size = page.size + records.size_of(entry)
            more = 0.0 if record is None else capacity.read_units(records.size_of(record), consistent=True)
            if capacity.read_units(size, consistent=True) + units + more > FETCHED_MAX:
                page.last = read[page.scanned - 1]
                return fetched, units if consistent else units / 2
            page.scanned += 1
            page.size = size
            units += more
            if len(page.records) < len(kept) and kept[len(page.records)] is entry:
                page.records.append(entry)
                if record is not None:
                    fetched.append(record)
    return fetched, units if consistent else units / 2


FETCHED_MAX: Final = PAGE_BYTES_MAX // READ_UNIT_BYTES
"""No page fetches more items than this: the read units of 1 MB."""
_FETCHED_FIRST: Final = 8
_FETCHED_AT_ONCE: Final = 64
"""How many records are held at a time, some of which may be useless."""


def _fetched_next(done: int, units: float) -> int:
    """How many items to fetch next, after `done` items of this many units: about as many as fit into the
    page, and few at first."""
    if not done:
        return _FETCHED_FIRST
    return max(1, min(int((FETCHED_MAX - units) * done / max(units, 1.0)), _FETCHED_AT_ONCE))


def consumed(
    given_name: str, source: ReadSource, units: float, fetched_units: float = 0.0
) -> capacity.Consumed:
    """The capacity of a read that cost `units` on the table or index that it read, and `fetched_units` on the
    table for attributes that a local index does not project."""
    total = capacity.Consumed(given_name, writes=False)
    if source.index is None:
        total.add(units)
    else:
        total.add_index(source.index.name, units, is_global=source.index.is_global)
        total.add(fetched_units)
    return total
