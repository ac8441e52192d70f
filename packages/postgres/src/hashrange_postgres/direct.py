"""The readers and transactions of bodies that ask PostgreSQL for each record, on a thread that may wait.

`DirectReader` reads in one transaction of REPEATABLE READ, so all reads are of one moment.
`DirectTransaction` holds the exclusive lock of the store, so nobody else can write; its writes are sent at
its end.

A scan fetches a chunk of records at a time: as many as the body is likely to take, or about a megabyte.

Refuses to know: groups, caches, threads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from hashrange import pace
from hashrange.storage.api import STAMP_BYTES, Address, Totals
from hashrange.storage.merging import merged
from hashrange_postgres.bodies import check_address
from hashrange_postgres.cache import CATALOG_SPACE, Catalog, CatalogState, Key, Place
from hashrange_postgres.wire.connections import Connection, Numbers, call
from hashrange_postgres.wire.statements import Statements, arrays_to_fetch

Found = tuple[Place, bytes]

Marks = tuple[Numbers, Numbers]
"""How far logs can be read: what `marks` of `schema.sql` returns."""

CHUNK_ROWS_MAX: Final = 10_000
CHUNK_BYTES_MAX: Final = 1024 * 1024
_FEW_ROWS: Final = 64


class DirectReader:
    """A `Reader` that asks for each record. Without `marks` it reads all records of logs that are visible."""

    def __init__(
        self,
        connection: Connection,
        statements: Statements,
        catalog: Catalog,
        marks: Marks | tuple[None, None] = (None, None),
    ) -> None:
        self._connection = connection
        self._statements = statements
        self._catalog = catalog
        self._marks = marks
        self._state: CatalogState | None = None

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        return self.get_many([(space, partition, sort)])[0]

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        wanted: list[Key] = [(space, partition, sort) for space, partition, sort in addresses]
        if len(wanted) == 1 and wanted[0][0] == CATALOG_SPACE and self._state is not None:
            place = wanted[0][1:]
            if place in self._state.records:
                return [self._state.records[place]]
        pace.point()
        records: list[bytes | None] = [None] * len(wanted)
        arrays = arrays_to_fetch(wanted, {})
        for n, version, value in call(self._connection, self._statements.fetch, arrays):
            if n:
                records[n - 1] = value
            else:
                self._note(version, value)
        state = self._state
        assert state is not None
        for at, key in enumerate(wanted):
            if key[0] in state.cleared:
                records[at] = None
            elif key[0] == CATALOG_SPACE:
                state.records[key[1:]] = records[at]
        return records

    def _note(self, version: int, told: bytes) -> CatalogState:
        """The state of the catalog, by the version that the first statement returns."""
        if self._state is None:
            self._state = self._catalog.note(version, told)
        return self._state

    def scan(
        self,
        space: int,
        partition: bytes,
        low: bytes = b"",
        high: bytes | None = None,
        *,
        reverse: bool = False,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes]]:
        # b"\0" appended makes the next partition in byte order, hence the end of this one.
        end = (partition + b"\0", b"") if high is None else (partition, high)
        for (_, sort), value in self._walk(space, (partition, low), end, reverse, likely):
            yield sort, value

    def scan_space(
        self,
        space: int,
        low: tuple[bytes, bytes] = (b"", b""),
        high: tuple[bytes, bytes] | None = None,
        *,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        for (partition, sort), value in self._walk(space, low, high, False, likely):
            yield partition, sort, value

    def _walk(
        self, space: int, low: Place, high: Place | None, reverse: bool, likely: int | None
    ) -> Iterator[Found]:
        if high is not None and low >= high:
            return
        rows = min(likely, CHUNK_ROWS_MAX) if likely is not None else CHUNK_ROWS_MAX
        while True:
            records, ended = self._chunk(space, low, high, reverse, max(rows, 1))
            yield from records
            if ended:
                return
            rows = max(rows, _FEW_ROWS)
            last = records[-1][0]
            if reverse:
                high = last
            else:
                low = (last[0], last[1] + b"\0")

    def _chunk(
        self, space: int, low: Place, high: Place | None, reverse: bool, rows: int
    ) -> tuple[list[Found], bool]:
        """The next records of a walk, and whether the range ends with them."""
        pace.point()
        high_partition, high_sort = high if high is not None else (None, None)
        values = (space, *low, high_partition, high_sort, reverse, rows, CHUNK_BYTES_MAX, *self._marks)
        first, *rows_read = call(self._connection, self._statements.scan, values)
        if space in self._note(first[2], first[3]).cleared:
            return [], True
        ended = rows_read[-1][0] is None
        if ended:
            rows_read.pop()
        return [((partition, sort), value) for partition, sort, _, value in rows_read], ended

    def totals(self, space: int) -> Totals:
        pace.point()
        [(records, bytes_)] = call(
            self._connection,
            "SELECT coalesce(sum(records), 0)::bigint, coalesce(sum(bytes), 0)::bigint "
            f"FROM {self._statements.schema}.total WHERE space = %s",
            (space,),
        )
        return Totals(records, bytes_)


class DirectTransaction(DirectReader):
    """A `Transaction` under the exclusive lock of the store."""

    def __init__(self, connection: Connection, statements: Statements, catalog: Catalog) -> None:
        super().__init__(connection, statements, catalog)
        self.own: dict[Key, bytes | None] = {}
        self.counts: dict[int, tuple[int, int]] = {}
        self.deleted: set[int] = set()
        self.last_spaces: set[int] = set()  # in which it took numbers
        self.last: int | None = None
        self.body_stamp: int | None = None

    def written(self) -> dict[Key, bytes | None]:
        """The records that it writes, without those of spaces that it deletes."""
        return {key: value for key, value in self.own.items() if key[0] not in self.deleted}

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        wanted: list[Key] = [(space, partition, sort) for space, partition, sort in addresses]
        asked = [key for key in wanted if key not in self.own and key[0] not in self.deleted]
        known = dict(zip(asked, super().get_many(asked), strict=True)) if asked else {}
        return [
            None if key[0] in self.deleted else self.own[key] if key in self.own else known[key]
            for key in wanted
        ]

    def _walk(
        self, space: int, low: Place, high: Place | None, reverse: bool, likely: int | None
    ) -> Iterator[Found]:
        if space in self.deleted:
            return iter(())
        changes = {
            (partition, sort): value
            for (where, partition, sort), value in self.own.items()
            if where == space and low <= (partition, sort) and (high is None or (partition, sort) < high)
        }
        stored = super()._walk(space, low, high, reverse, likely)
        return merged(stored, changes, reverse) if changes else stored

    def totals(self, space: int) -> Totals:
        if space in self.deleted:
            return Totals(0, 0)
        records, bytes_ = super().totals(space)
        more = self.counts.get(space, (0, 0))
        return Totals(records + more[0], bytes_ + more[1])

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        check_address(space, partition, sort)
        self.own[space, partition, sort] = value

    def delete(self, space: int, partition: bytes, sort: bytes) -> None:
        self.own[space, partition, sort] = None

    def delete_space(self, space: int) -> None:
        self.deleted.add(space)

    def append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None = None) -> None:
        if stamp_at is not None:
            value = self._stamped(space, partition, value, stamp_at)
        self.put(space, partition, self.position(space).to_bytes(8, "big"), value)

    def _stamped(self, space: int, partition: bytes, value: bytes, start: int) -> bytes:
        """The value, with the log's last stamp in place of its own if that is smaller."""
        end = start + STAMP_BYTES
        for _, newest in self.scan(space, partition, reverse=True, likely=1):
            return value[:start] + max(newest[start:end], value[start:end]) + value[end:]
        return value

    def position(self, space: int) -> int:
        if self.last is None:
            self.last = self._last_value("log_number")
        self.last += 1
        self.last_spaces.add(space)
        return self.last

    def stamp(self, moment: int) -> int:
        if self.body_stamp is None:
            self.body_stamp = max(moment, unsigned(self._last_value("body_stamp")) + 1)
        return self.body_stamp

    def keep(self, space: int, partition: bytes, sort: bytes, value: bytes, moment: int) -> None:
        sort += self.stamp(moment).to_bytes(STAMP_BYTES, "big")
        # No other body has this stamp, so a record here is this body's own.
        if (space, partition, sort) not in self.own:
            self.put(space, partition, sort, value)

    def count(self, space: int, records: int, bytes_: int) -> None:
        before = self.counts.get(space, (0, 0))
        self.counts[space] = (before[0] + records, before[1] + bytes_)

    def _last_value(self, sequence: str) -> int:
        [(last,)] = call(
            self._connection, f"SELECT last_value FROM {self._statements.schema}.{sequence}"
        )
        return int(last)


def signed(stamp: int) -> int:
    """The form in which PostgreSQL's sequences hold a stamp, which is unsigned."""
    return stamp - 2**63


def unsigned(number: int) -> int:
    """The stamp that a sequence holds in this form."""
    return number + 2**63
