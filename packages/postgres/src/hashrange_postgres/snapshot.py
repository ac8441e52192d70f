"""A store in PostgreSQL at one moment, for reading only: for `hashrange check` and as the source of a copy.

Everything is read in one transaction of REPEATABLE READ, on one connection. The transaction changes nothing
and blocks no server. While it is open, PostgreSQL keeps the old versions of changed records.

Refuses to know: what records mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from struct import Struct
from typing import Any, Final, TypeVar

import psycopg
from psycopg import pq

from hashrange.storage.api import Totals
from hashrange.storage.failures import StorageError
from hashrange.storage.store_copy import BATCH_BYTES_MAX, BATCH_RECORDS_MAX, Numbers, Record
from hashrange_postgres import schema as schemas
from hashrange_postgres.cache import Catalog
from hashrange_postgres.direct import DirectReader, unsigned
from hashrange_postgres.wire.connections import (
    Connection,
    Trouble,
    call,
    close,
    place_of,
    refused,
    translated,
)
from hashrange_postgres.wire.opening import first_connection
from hashrange_postgres.wire.statements import Statements

T = TypeVar("T")

# Of PostgreSQL's binary format of COPY: the signature, the flags and the length of the extension.
HEADER: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
TRAILER: Final = b"\xff\xff"
_COLUMNS: Final = 4
_head_of: Final = Struct(">hiqi").unpack_from
_length_of: Final = Struct(">i").unpack_from
_HEAD_BYTES: Final = 18


class Snapshot:
    """The store in a schema, as it is now."""

    def __init__(self, url: str, schema: str) -> None:
        """Raises UnknownFormat, UnfinishedCopy, StorageError."""
        self._statements = Statements(schema)
        self._catalog = Catalog()
        self._connection = first_connection(url)
        try:
            self.place = place_of(self._connection, schema)
            schemas.check_readable(self._connection, schema)
            for statement in (
                "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
                "SET LOCAL statement_timeout = 0",
                "SET LOCAL idle_in_transaction_session_timeout = 0",
            ):
                self._ask(statement)
            self.cleared = frozenset(space for (space,) in self._ask("SELECT space FROM {}.cleared"))
        except BaseException:
            close(self._connection)
            raise

    def read(self, body: Callable[[DirectReader], T]) -> T:
        """Run a read body."""
        try:
            return body(DirectReader(self._connection, self._statements, self._catalog))
        except Trouble as error:
            raise refused(error) from None

    def numbers(self) -> Numbers:
        """The engines' numbers, without those of deleted spaces."""
        return numbers_of(self._connection, self._statements.schema, self.cleared)

    def batches(self) -> Iterator[list[Record]]:
        """All records except those of deleted spaces, in PostgreSQL's order."""
        return records_of(self._connection, self._statements.schema, self.cleared)

    def expected(self) -> int:
        """About how many records there are, as PostgreSQL estimates."""
        rows = self._ask("SELECT reltuples::bigint FROM pg_class WHERE oid = '{}.records'::regclass")
        return max(int(rows[0][0]), 0)

    def problems(self) -> Iterator[str]:
        """The problems of the engines' own data, as far as they show without knowledge of the records."""
        [(strange,)] = self._ask("SELECT count(*) FROM {}.records WHERE version <= 0")
        if strange:
            yield f"{strange} records have a version that no server gives, and may be taken for absent"

    def _ask(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            return call(self._connection, statement.format(self._statements.schema), values)
        except Trouble as error:
            raise refused(error) from None

    def close(self) -> None:
        """End the transaction, and close the connection."""
        close(self._connection)


def numbers_of(connection: Connection, schema: str, cleared: frozenset[int]) -> Numbers:
    """The engines' numbers in a schema, as this connection sees them. Raises StorageError."""

    def ask(statement: str) -> list[tuple[Any, ...]]:
        return [row for row in call(connection, statement.format(schema)) if row[0] not in cleared]

    try:
        totals = ask("SELECT space, sum(records)::bigint, sum(bytes)::bigint FROM {}.total GROUP BY space")
        logs = ask("SELECT space FROM {}.log")
        [(last, stamp)] = call(
            connection,
            f"SELECT n.last_value, s.last_value FROM {schema}.log_number n, {schema}.body_stamp s",
        )
    except Trouble as error:
        raise refused(error) from None
    return Numbers(
        {space: Totals(records, bytes_) for space, records, bytes_ in totals},
        {space: last for (space,) in logs},
        unsigned(stamp),
    )


def records_of(connection: Connection, schema: str, cleared: frozenset[int]) -> Iterator[list[Record]]:
    """The records in a schema, as this connection sees them. Raises StorageError."""
    without = f" WHERE space NOT IN ({', '.join(map(str, sorted(cleared)))})" if cleared else ""
    rows = f"SELECT space, partition, sort, value FROM {schema}.records{without}"
    statement = f"COPY ({rows}) TO STDOUT (FORMAT binary)"
    try:
        with translated(connection):
            yield from _batches(connection, statement)
    except Trouble as error:
        raise refused(error) from None


def _batches(connection: Connection, statement: str) -> Iterator[list[Record]]:
    """The rows of a COPY. libpq gives one row at a time; the driver's own interface costs ten times as much
    per row."""
    pgconn = connection.pgconn
    begun = pgconn.exec_(statement.encode())
    if begun.status != pq.ExecStatus.COPY_OUT:
        raise psycopg.errors.error_from_result(begun)
    batch: list[Record] = []
    bytes_ = 0
    first = True
    while True:
        length, row = pgconn.get_copy_data(0)
        if length < 0:
            break
        data = bytes(row)
        at = 0
        if first:
            first, at = False, len(HEADER)
        if data[at:] in (b"", TRAILER):
            continue
        record = _record(data, at)
        batch.append(record)
        bytes_ += length
        if bytes_ >= BATCH_BYTES_MAX or len(batch) >= BATCH_RECORDS_MAX:
            yield batch
            batch, bytes_ = [], 0
    while (result := pgconn.get_result()) is not None:
        if result.status != pq.ExecStatus.COMMAND_OK:
            raise psycopg.errors.error_from_result(result)
    if batch:
        yield batch


def _record(data: bytes, at: int) -> Record:
    columns, _, space, length = _head_of(data, at)
    if columns != _COLUMNS:
        raise StorageError(f"PostgreSQL sent a row of {columns} columns in the place of {_COLUMNS}.")
    start = at + _HEAD_BYTES
    end = start + length
    partition = data[start:end]
    start = end + 4
    end = start + _length_of(data, end)[0]
    return space, partition, data[start:end], data[end + 4 :]
