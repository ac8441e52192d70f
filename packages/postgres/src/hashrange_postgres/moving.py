"""A schema of a PostgreSQL database as the target of a copy (`storage.store_copy`); `snapshot` is the source.

The schema is made first, and its table `store` marks it as a copy, so no engine opens it. Then everything is
written by COPY, read back and compared in one transaction, which finally marks the store as complete. If
the copy is killed, PostgreSQL undoes the transaction, and a schema without records remains.

Refuses to know: what records mean, the other store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from secrets import randbits
from struct import Struct
from typing import Any, Final

import psycopg

from hashrange.storage.failures import StorageError
from hashrange.storage.store_copy import Numbers, Record
from hashrange_postgres import schema as schemas
from hashrange_postgres.direct import signed
from hashrange_postgres.snapshot import HEADER, TRAILER, numbers_of, records_of
from hashrange_postgres.wire.connections import (
    Trouble,
    call,
    close,
    place_of,
    refused,
    translated,
)
from hashrange_postgres.wire.opening import first_connection

_COLUMNS: Final = 5
_head: Final = Struct(">hiqi").pack
_length: Final = Struct(">i").pack
_middle: Final = Struct(">iqi").pack


class SchemaTarget:
    """A new store in a schema that is missing, empty, or holds an unfinished copy."""

    def __init__(self, url: str, schema: str) -> None:
        """Raises UnknownFormat, StorageError."""
        self._schema = schema
        self._loading = ExitStack()
        self._copy: Any = None
        # Of the copied records and the copied catalog: an engine may remember those of an earlier copy.
        self._version = randbits(63) or 1
        self._connection = first_connection(url)
        try:
            self.place = place_of(self._connection, schema)
            schemas.prepare_copy(self._connection, schema)
            self._begin()
        except BaseException:
            close(self._connection)
            raise

    def _begin(self) -> None:
        schema = self._schema
        for statement in (
            "BEGIN ISOLATION LEVEL READ COMMITTED",
            "SET LOCAL statement_timeout = 0",
            "SET LOCAL idle_in_transaction_session_timeout = 0",
        ):
            self._ask(statement)
        if not self._ask(f"SELECT 1 FROM {schema}.store FOR UPDATE SKIP LOCKED"):
            raise StorageError(
                f"Another `hashrange copy` writes to the schema {schema}. Wait for it, or stop it."
            )
        tables = ", ".join(f"{schema}.{name}" for name in ("records", "total", "log", "cleared"))
        # After a TRUNCATE in the same transaction, COPY can write rows that need no VACUUM to freeze them.
        self._ask(f"TRUNCATE {tables}")
        columns = "space, partition, sort, version, value"
        statement = f"COPY {schema}.records ({columns}) FROM STDIN (FORMAT binary, FREEZE)"
        try:
            with translated(self._connection):
                self._copy = self._loading.enter_context(self._connection.cursor().copy(statement))
                self._copy.write(HEADER)
        except Trouble as error:
            raise refused(error) from None

    def put(self, batch: list[Record]) -> None:
        parts: list[bytes] = []
        for space, partition, sort, value in batch:
            parts += (
                _head(_COLUMNS, 8, space, len(partition)),
                partition,
                _length(len(sort)),
                sort,
                _middle(8, self._version, len(value)),
                value,
            )
        self._write(b"".join(parts))

    def _write(self, data: bytes) -> None:
        try:
            with translated(self._connection):
                self._copy.write(data)
        except Trouble as error:
            raise refused(error) from None

    def end(self, numbers: Numbers) -> None:
        self._write(TRAILER)
        try:
            with translated(self._connection):
                self._loading.close()
        except Trouble as error:
            raise refused(error) from None
        schema = self._schema
        self._insert(
            f"INSERT INTO {schema}.total (space, slot, records, bytes) VALUES (%s, 0, %s, %s)",
            [(space, *totals) for space, totals in numbers.totals.items()],
        )
        self._insert(f"INSERT INTO {schema}.log (space, last) VALUES (%s, %s)", list(numbers.last.items()))
        last = max(numbers.last.values(), default=0)
        self._ask(
            f"SELECT setval('{schema}.log_number', %s), setval('{schema}.body_stamp', %s)",
            (last, signed(numbers.stamp)),
        )

    def _insert(self, statement: str, rows: list[tuple[Any, ...]]) -> None:
        try:
            with translated(self._connection):
                self._connection.cursor().executemany(statement, rows)
        except Trouble as error:
            raise refused(error) from None

    def _ask(self, statement: str, values: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
        try:
            return call(self._connection, statement, values)
        except Trouble as error:
            raise refused(error) from None

    def written(self) -> SchemaTarget:
        return self

    def numbers(self) -> Numbers:
        return numbers_of(self._connection, self._schema, frozenset())

    def batches(self) -> Iterator[list[Record]]:
        return records_of(self._connection, self._schema, frozenset())

    def expected(self) -> int:
        return 0

    def finish(self) -> None:
        schema = self._schema
        self._ask(
            f"UPDATE {schema}.store SET program = %s, catalog = %s, needs = {schema}.needs()",
            (schemas.PROGRAM, self._version),
        )
        self._ask("COMMIT")
        with suppress(StorageError):  # otherwise autovacuum does it
            self._ask(f"ANALYZE {schema}.records")

    def close(self) -> None:
        with suppress(psycopg.Error, StorageError):
            # Where the COPY is still under way, this ends it as failed.
            self._loading.__exit__(StorageError, StorageError("the copy was stopped"), None)
        close(self._connection)
