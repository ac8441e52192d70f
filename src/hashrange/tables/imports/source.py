"""Reads the items of an import from its objects, in bites, on from any place.

A bite holds writes that are ready for the table, and the errors of the rows that are no item of the table. An
object that cannot be read, or that changes while it is read, is one error; the rest of it is left out, as on
the service. The place after a bite is stored with the bite's items. When the process ended meanwhile, or a
connection was lost, a new `Reading` goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

from hashrange.buckets import ACCESS_DENIED, NO_SUCH_BUCKET, BucketError, Buckets, Object
from hashrange.errors import ITEM_TOO_LARGE, ServiceError, ValidationException
from hashrange.interchange.csv_files import Columns
from hashrange.interchange.reading import Rows
from hashrange.interchange.rows import Bad
from hashrange.limits import ITEM_BYTES_MAX
from hashrange.tables.background.bites import Limit
from hashrange.tables.data import keys, records
from hashrange.tables.data.writes import Write
from hashrange.tables.definitions.table import Table
from hashrange.tables.imports.jobs import Import, Place
from hashrange.values import Item, admit_item

_MESSAGE_CHARS_MAX: Final = 1_000

# After so many rows others may run.
_PART_ROWS: Final = 100


class Fault(NamedTuple):
    """A row that was not imported: the object, the number of the row in it, and the reason."""

    key: str
    row: int
    message: str


class Put(NamedTuple):
    """An item that is ready to be written: the object and the number of the row, and the item."""

    key: str
    row: int
    write: Write
    address: tuple[bytes, bytes]


class Taken(NamedTuple):
    """A bite of rows. `is_end`: there are no further rows."""

    before: Place
    after: Place
    puts: list[Put]
    faults: list[Fault]
    rows: int
    bytes: int
    is_end: bool


class Reading:
    """The objects of an import, from the place of `job` on. Raises `BucketError` where nothing can be
    read."""

    def __init__(self, buckets: Buckets, job: Import, table: Table) -> None:
        self._buckets = buckets
        self._job = job
        self._table = table
        self._columns = columns_of(job, table)
        self._objects: Iterator[Object] | None = None
        self._rows: Rows | None = None
        self._iterator: Iterator[Item | Bad] = iter(())
        self.place = job.place

    def close(self) -> None:
        """Release the object that is being read."""
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def take(self, limit: Limit, pause: Callable[[], None]) -> Taken:
        """The next rows."""
        before, place = self.place, self.place
        puts: list[Put] = []
        faults: list[Fault] = []
        count, bytes_ = 0, 0
        is_end = False
        while count < limit.items and bytes_ < limit.bytes:
            if self._rows is None:
                found = self._next(place)
                if found is None:
                    is_end = True
                    break
                place = self._open(found, place, faults)
                count += self._rows is None
                continue
            row = next(self._iterator, None)
            bytes_ += self._rows.place - place.byte
            if row is None:
                place = Place(place.key)
                self.close()
                continue
            count += 1
            if count % _PART_ROWS == 0:
                pause()
            self._add(row, place, puts, faults)
            if type(row) is Bad and row.is_end:
                place = Place(place.key)
                self.close()
            else:
                place = Place(place.key, place.etag, self._rows.place, place.row + 1)
        self.place = place
        return Taken(before, place, puts, faults, count, bytes_, is_end)

    def _next(self, place: Place) -> Object | None:
        """The object to read: the one that `place` is in, or the next one."""
        if place.etag:
            same = next(self._buckets.list(self._job.bucket, place.key), None)
            if same is not None and same.key == place.key:
                return same
            return Object(place.key, 0, "")  # it is gone, which opening it tells
        if self._objects is None:
            self._objects = self._buckets.list(self._job.bucket, self._job.prefix, place.key)
        return next(self._objects, None)

    def _open(self, found: Object, place: Place, faults: list[Fault]) -> Place:
        """Open an object, at `place` if that is in it. Returns the place that was reached."""
        job = self._job
        start = place if place.etag else Place(found.key, found.etag)
        is_raw = job.compression == "NONE" and job.format != "CSV"
        try:
            wanted = found._replace(etag=start.etag)
            source = self._buckets.open(job.bucket, wanted, start.byte if is_raw else 0)
        except BucketError as error:
            if error.code in (NO_SUCH_BUCKET, ACCESS_DENIED):
                raise
            faults.append(Fault(found.key, start.row, error.message))
            return Place(found.key)
        self._rows = Rows(source, job.format, job.compression, self._columns, start.byte, is_raw)
        self._iterator = iter(self._rows)
        return start

    def _add(self, row: Item | Bad, place: Place, puts: list[Put], faults: list[Fault]) -> None:
        if isinstance(row, Bad):
            faults.append(Fault(place.key, place.row, row.message))
            return
        try:
            size = admit_item(row)
            if size > ITEM_BYTES_MAX:
                raise ValidationException(ITEM_TOO_LARGE)
            address = keys.address_of_item(self._table.key, row)
            write = Write("put", self._table.name, row, records.pack(row, size))
        except ServiceError as error:
            faults.append(Fault(place.key, place.row, error.message or error.code))
        else:
            puts.append(Put(place.key, place.row, write, address))


def columns_of(job: Import, table: Table) -> Columns:
    """How the rows of CSV files are read for `table`."""
    options = (job.request.get("InputFormatOptions") or {}).get("Csv") or {}
    header = options.get("HeaderList")
    optional = {one.name for index in table.indexes for one in index.key.attributes()} - table.key_names
    return Columns(
        options.get("Delimiter") or ",",
        tuple(header) if header else None,
        table.attribute_types,
        frozenset(optional),
    )


def shown(job: Import, fault: Fault) -> dict[str, Any]:
    """An error as the service logs it."""
    arn = job.arn(job.region, job.account_id)
    pointer = {"bucket": job.bucket, "key": fault.key, "itemIndex": fault.row}
    message = fault.message[:_MESSAGE_CHARS_MAX]
    return {"itemS3Pointer": pointer, "importArn": arn, "errorMessages": [message]}
