"""Tables by name.

The catalog is a space like any other, read and written in the caller's transaction, so a table is never half
created or half removed. Decoded definitions are cached by their stored form: opening a table costs one `get`.

    space 0: ("table", scope / name) → definition     ("next-space", "") → the next free space number
             ("needs", feature) → nothing (`storage.features`)

The scope of a table is the account and the region that own it, `123456789012/eu-west-1`, with `*` for
accounts or regions that are not separate. It is empty for tables that all callers share: they lie at `/name`.
Names, accounts and regions contain no slash. See decision 9.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

import msgspec

from hashrange import pace
from hashrange.encoding import successor
from hashrange.errors import RESOURCE_NOT_FOUND, ResourceNotFoundException
from hashrange.storage import features
from hashrange.storage.api import Reader, Transaction
from hashrange.tables import streams
from hashrange.tables.definitions import dropped, replicas
from hashrange.tables.definitions import table as tables
from hashrange.tables.definitions.table import Table
from hashrange.tables.spaces import CATALOG_SPACE, DELIVERIES, DELIVERY_SPACE, FIRST_TABLE_SPACE

TABLE = b"table"
_NEXT_SPACE = b"next-space"

_ENTRIES_MAX: Final = 16_384


class Decoded:
    """A cache of tables by their stored definitions, in two generations.

    `age` drops the tables that were not used since its last call. Each sweep calls it and then reads all
    definitions: so the tables that exist stay, however many there are, and changed or deleted ones are
    dropped.
    """

    __slots__ = ("_decode", "_entries_max", "_old", "_young", "misses")

    def __init__(self, entries_max: int, decode: Callable[[bytes], Table]) -> None:
        self._entries_max = entries_max
        self._decode = decode
        self._young: dict[bytes, Table] = {}
        self._old: dict[bytes, Table] = {}
        self.misses = 0

    def __len__(self) -> int:
        return len(self._young) + len(self._old)

    def get(self, stored: bytes) -> Table:
        """The table of a stored definition. Raises the errors of decoding."""
        decoded = self._young.get(stored)
        if decoded is not None:
            return decoded
        decoded = self._old.pop(stored, None)
        if decoded is None:
            decoded = self._decode(stored)
            self.misses += 1
        if len(self._young) >= self._entries_max:
            self.age()
        self._young[stored] = decoded
        return decoded

    def age(self) -> None:
        """Drop the tables that were not used since the last call."""
        self._old = self._young
        self._young = {}


decoded: Final = Decoded(_ENTRIES_MAX, tables.decode)


def place_of(full_name: str) -> bytes:
    """The place of the definition of a table."""
    return full_name.encode() if "/" in full_name else b"/" + full_name.encode()


def find_full(reader: Reader, full_name: str) -> Table | None:
    """The table with this full name, in any state, or None."""
    stored = reader.get(CATALOG_SPACE, TABLE, place_of(full_name))
    return decoded.get(stored) if stored is not None else None


def find(reader: Reader, name: str, scope: str) -> Table | None:
    """The table called `name`, in any state, or None."""
    stored = reader.get(CATALOG_SPACE, TABLE, f"{scope}/{name}".encode())
    return decoded.get(stored) if stored is not None else None


def open_active(reader: Reader, name: str, scope: str) -> Table:
    """The table called `name`, for the data plane.

    Raises `ResourceNotFoundException` if there is no such table, or if it is neither ACTIVE nor UPDATING.
    """
    table = find(reader, name, scope)
    if table is None or table.creating_until or table.gone_at is not None:
        raise ResourceNotFoundException(RESOURCE_NOT_FOUND)
    return table


def open_any(
    reader: Reader, name: str, scope: str, region: str | None = None, *, restoring: bool = False
) -> Table:
    """The table called `name` in any state, for the control plane.

    Raises `ResourceNotFoundException` if there is no such table, or if its replica in `region` was deleted. A
    table that is being restored exists only for operations that pass `restoring`. [report] ack-api-quirks
    DDB-TABLE-217
    """
    table = find(reader, name, scope)
    if table is not None and table.restore is not None and not restoring:
        table = None
    if table is None or not replicas.is_in(table, region):
        raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Table: {name} not found")
    return table


def names(reader: Reader, scope: str, after: str | None = None, region: str | None = None) -> Iterator[str]:
    """The names of all tables of a scope above `after`, in order; without tables whose replica in `region`
    was deleted."""
    prefix = f"{scope}/".encode()
    low = prefix if after is None else prefix + after.encode() + b"\x00"
    for sort, stored in reader.scan(CATALOG_SPACE, TABLE, low, successor(prefix)):
        pace.point()
        name = sort[len(prefix) :].decode(errors="backslashreplace")
        try:
            table = decoded.get(stored)
        except (msgspec.MsgspecError, ValueError):
            yield name  # the damaged definition's name
            continue
        if replicas.is_in(table, region):
            yield name


def definitions(reader: Reader, after: str = "") -> Iterator[Table]:
    """The definitions of the tables of all scopes above `after`, in the order of their full names, DELETING
    tables included.

    Definitions that cannot be decoded are left out.
    """
    for _, table in every_definition(reader, after):
        if isinstance(table, Table):
            yield table


def of_scope(reader: Reader, scope: str, low: str = "") -> Iterator[Table]:
    """The definitions of the tables of a scope from the name `low` on, in the order of their names. Those
    that cannot be decoded are left out."""
    prefix = f"{scope}/".encode()
    for sort, stored in reader.scan(CATALOG_SPACE, TABLE, prefix + low.encode(), successor(prefix)):
        pace.point()
        table = read_definition(sort, stored)[1]
        if isinstance(table, Table):
            yield table


def every_definition(reader: Reader, after: str = "") -> Iterator[tuple[str, Table | Exception]]:
    """Like `definitions`, with the full names under which they are stored. For a definition that cannot be
    decoded it yields the error."""
    low = place_of(after) + b"\x00" if after else b""
    for record in reader.scan(CATALOG_SPACE, TABLE, low):
        pace.point()
        yield read_definition(*record)


def read_definition(place: bytes, stored: bytes) -> tuple[str, Table | Exception]:
    """The full name and the definition of a record of TABLE; an error if it cannot be decoded."""
    full_name = _full_name(place)
    try:
        return full_name, decoded.get(stored)
    except (msgspec.MsgspecError, ValueError) as error:
        return full_name, error


def _full_name(place: bytes) -> str:
    return place.decode(errors="backslashreplace").removeprefix("/")


def stored_definitions(reader: Reader) -> Iterator[tuple[str, bytes]]:
    """The full names and the stored, undecoded definitions of all tables: for the checker."""
    for sort, stored in reader.scan(CATALOG_SPACE, TABLE):
        yield _full_name(sort), stored


def owners(reader: Reader) -> dict[str, int]:
    """The scopes that have tables, each with the number of its tables."""
    counts: dict[str, int] = {}
    for sort, _ in reader.scan(CATALOG_SPACE, TABLE):
        scope = sort.decode(errors="backslashreplace").rpartition("/")[0]
        counts[scope] = counts.get(scope, 0) + 1
    return counts


def spaces_end(reader: Reader) -> int:
    """The next space number, which is above all numbers that were ever assigned."""
    stored = reader.get(CATALOG_SPACE, _NEXT_SPACE, b"")
    return int(stored) if stored else FIRST_TABLE_SPACE


def raise_spaces_end(txn: Transaction, end: int) -> None:
    """Make sure that no number below `end` is assigned again: for the checker, if the counter was lost."""
    txn.put(CATALOG_SPACE, _NEXT_SPACE, b"", str(max(end, spaces_end(txn))).encode())


def save(txn: Transaction, table: Table) -> None:
    """Store a definition, new or changed, and the features that it needs."""
    for feature in table.needs:
        txn.put(features.SPACE, features.NEEDS, feature.encode(), b"")
    txn.put(CATALOG_SPACE, TABLE, place_of(table.full_name), tables.encode(table))


def new_space(txn: Transaction) -> int:
    """A space number that was never used before."""
    space = spaces_end(txn)
    txn.put(CATALOG_SPACE, _NEXT_SPACE, b"", str(space + 1).encode())
    return space


def spaces_of(table: Table) -> list[int]:
    """The spaces that hold the records of a table: items, index entries, collections, the expiry queue, the
    changes for Kinesis, the spans of its history."""
    spaces = [table.space, *[space for index in table.indexes for space in index.spaces()]]
    if table.collection_space:
        spaces.append(table.collection_space)
    if table.ttl is not None:
        spaces.append(table.ttl.space)
    if table.outbox is not None:
        spaces.append(table.outbox.space)
    if table.history is not None:
        spaces += [span.space for span in table.history.spans]
    return spaces


def remove(txn: Transaction, table: Table, now: float) -> None:
    """Remove a table with all its records and index entries; its stream stays readable for a day.

    The items of a table with point-in-time recovery stay for 35 days (`dropped`), and the data that jobs
    still read stays until the jobs have ended.
    """
    txn.delete(CATALOG_SPACE, TABLE, place_of(table.full_name))
    stay = dropped.keep(txn, table, now)
    for space in spaces_of(table):
        if space not in stay:
            txn.delete_space(space)
    if table.stream is not None:
        streams.disable(txn, table.stream, now)
    if table.stream_label is not None:
        policies = {label: policy.document for label, policy in table.policies.items()}
        streams.outlive(txn, table.full_name, table.tags, policies)
    if table.destinations:
        txn.delete(DELIVERY_SPACE, DELIVERIES, place_of(table.full_name))
