"""Tables by name.

The catalog is a space like any other, read and written in the caller's transaction, so a table is never
created or removed by half. Decoded definitions are cached by their stored form: opening a table costs one
`get`.

    space 0: ("table", name) → definition     ("next-space", "") → the next free space number
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import msgspec

from hashrange import pace
from hashrange.errors import RESOURCE_NOT_FOUND, ResourceNotFoundException
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import replicas
from hashrange.tables.definitions import table as tables
from hashrange.tables.definitions.table import Table
from hashrange.tables.spaces import CATALOG_SPACE, FIRST_TABLE_SPACE
from hashrange.tables.streams import logs

_TABLE = b"table"
_NEXT_SPACE = b"next-space"

# Large enough to keep the definitions of all tables, because each sweep reads all of them.
_decode = lru_cache(maxsize=16_384)(tables.decode)


def find(reader: Reader, name: str) -> Table | None:
    """The table called `name`, in any state, or None."""
    stored = reader.get(CATALOG_SPACE, _TABLE, name.encode())
    return _decode(stored) if stored is not None else None


def open_active(reader: Reader, name: str) -> Table:
    """The table called `name`, for the data plane.

    Raises `ResourceNotFoundException` if there is no such table, or if it is neither ACTIVE nor UPDATING.
    """
    table = find(reader, name)
    if table is None or table.creating_until or table.gone_at is not None:
        raise ResourceNotFoundException(RESOURCE_NOT_FOUND)
    return table


def open_any(reader: Reader, name: str, region: str | None = None) -> Table:
    """The table called `name` in any state, for the control plane.

    Raises `ResourceNotFoundException` if there is no such table, or if its replica in `region` was deleted.
    """
    table = find(reader, name)
    if table is None or not replicas.is_in(table, region):
        raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Table: {name} not found")
    return table


def names(reader: Reader, after: str | None = None, region: str | None = None) -> Iterator[str]:
    """The names of all tables above `after`, in order; without tables whose replica in `region` was
    deleted."""
    low = b"" if after is None else after.encode() + b"\x00"
    for sort, stored in reader.scan(CATALOG_SPACE, _TABLE, low):
        pace.point()
        try:
            table = _decode(stored)
        except (msgspec.MsgspecError, ValueError):
            yield sort.decode(errors="backslashreplace")  # the damaged definition's name
            continue
        if replicas.is_in(table, region):
            yield sort.decode()


def definitions(reader: Reader, after: str = "") -> Iterator[Table]:
    """The definitions of the tables above `after`, in the order of their names, DELETING tables included.

    Definitions that cannot be decoded are left out.
    """
    for _, table in every_definition(reader, after):
        if isinstance(table, Table):
            yield table


def every_definition(reader: Reader, after: str = "") -> Iterator[tuple[str, Table | Exception]]:
    """As `definitions`, with the names that they are stored under. A definition that cannot be decoded comes
    as the error."""
    low = after.encode() + b"\x00" if after else b""
    for sort, stored in reader.scan(CATALOG_SPACE, _TABLE, low):
        pace.point()
        name = sort.decode(errors="backslashreplace")
        try:
            yield name, _decode(stored)
        except (msgspec.MsgspecError, ValueError) as error:
            yield name, error


def stored_definitions(reader: Reader) -> Iterator[tuple[str, bytes]]:
    """The names and the stored, undecoded definitions of all tables: for the checker."""
    for sort, stored in reader.scan(CATALOG_SPACE, _TABLE):
        yield sort.decode(errors="backslashreplace"), stored


def spaces_end(reader: Reader) -> int:
    """The next space number: it is above all space numbers that were ever given."""
    stored = reader.get(CATALOG_SPACE, _NEXT_SPACE, b"")
    return int(stored) if stored else FIRST_TABLE_SPACE


def raise_spaces_end(txn: Transaction, end: int) -> None:
    """Make sure that no number below `end` is given again: for the checker, where the counter was lost."""
    txn.put(CATALOG_SPACE, _NEXT_SPACE, b"", str(max(end, spaces_end(txn))).encode())


def save(txn: Transaction, table: Table) -> None:
    """Store a definition, new or changed."""
    txn.put(CATALOG_SPACE, _TABLE, table.name.encode(), tables.encode(table))


def new_space(txn: Transaction) -> int:
    """A space number that was never used before."""
    space = spaces_end(txn)
    txn.put(CATALOG_SPACE, _NEXT_SPACE, b"", str(space + 1).encode())
    return space


def spaces_of(table: Table) -> list[int]:
    """The spaces that hold the records of a table: items, index entries, collections, the expiry queue."""
    spaces = [table.space, *[index.space for index in table.indexes]]
    if table.collection_space:
        spaces.append(table.collection_space)
    if table.ttl is not None:
        spaces.append(table.ttl.space)
    return spaces


def remove(txn: Transaction, table: Table, now: float) -> None:
    """Remove a table with all its records and index entries; its stream stays readable for a day."""
    txn.delete(CATALOG_SPACE, _TABLE, table.name.encode())
    for space in spaces_of(table):
        txn.delete_space(space)
    if table.stream is not None:
        logs.disable(txn, table.stream, now)
