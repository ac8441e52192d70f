"""Reads the rows of the objects of a bucket, in bites, from any place on: for imports and bulk operations.

A bite holds writes that are ready for the table, and the errors of rows that are not items of the table. An
object that cannot be read, or that changes while it is read, is one error; the rest of it is skipped, as on
the service. The place after a bite is stored with the bite's items. If the process ends meanwhile, or a
connection is lost, a new `Reading` continues from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec

from hashrange.buckets import ACCESS_DENIED, NO_SUCH_BUCKET, BucketError, Buckets, Object
from hashrange.errors import ServiceError
from hashrange.interchange.compression import unreadable
from hashrange.interchange.csv_files import Columns
from hashrange.interchange.object_rows import Format, Rows
from hashrange.interchange.rows import Bad
from hashrange.tables.background.units import described
from hashrange.tables.bites import Limit
from hashrange.tables.writes.read_modify_write import Write

# After this many rows other threads may run.
_PART_ROWS: Final = 100
_NOT_INSTALLED: Final = "NotInstalled"  # our own code: the service reads every compression


class ObjectPosition(msgspec.Struct, frozen=True):
    """How far the objects have been read.

    `key` is the object that is being read, or was read last; `etag` is its ETag, or "" when it was read to
    its end. `byte` is the place in its decompressed bytes, `row` the number of rows before it.
    """

    key: str = ""
    etag: str = ""
    byte: int = 0
    row: int = 0


class Input(NamedTuple):
    """The objects to read, and their format; objects whose keys begin with `left_out` are not read. `columns`
    are for CSV. `with_members`: a row is an object of several members with an `Item`; otherwise it is the
    item."""

    bucket: str
    prefix: str
    format: Format
    compression: str
    columns: Columns | None = None
    with_members: bool = False
    left_out: str | None = None


Make = Callable[[Any], tuple[Write, tuple[bytes, bytes]]]
"""Makes the write of a row, and the address of its item. Raises `ServiceError`."""


class Fault(NamedTuple):
    """A row that was not written: the object, the number of the row in it, and the reason."""

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
    """A bite of rows. `bytes` counts the decompressed bytes that it read; `object_bytes` is the size of the
    objects that it finished. `is_end`: there are no further rows."""

    before: ObjectPosition
    after: ObjectPosition
    puts: list[Put]
    faults: list[Fault]
    rows: int
    bytes: int
    object_bytes: int
    is_end: bool


class Reading:
    """The objects of `given`, from `place` on. Raises `BucketError` if nothing can be read."""

    def __init__(self, buckets: Buckets, given: Input, place: ObjectPosition, make: Make) -> None:
        problem = unreadable(given.compression)
        if problem is not None:
            raise BucketError(_NOT_INSTALLED, problem)
        self._buckets = buckets
        self._given = given
        self._make = make
        self._objects: Iterator[Object] | None = None
        self._rows: Rows | None = None
        self._iterator: Iterator[Any] = iter(())
        self._object_bytes = 0
        self.place = place

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
        count, bytes_, object_bytes = 0, 0, 0
        is_end = False
        while count < limit.items and bytes_ < limit.bytes:
            if self._rows is None:
                object_ = self._next(place)
                if object_ is None:
                    is_end = True
                    break
                place = self._open(object_, place, faults)
                count += self._rows is None
                continue
            row = next(self._iterator, None)
            bytes_ += self._rows.place - place.byte
            if row is None:
                place = ObjectPosition(place.key)
                self.close()
                object_bytes += self._object_bytes
                continue
            count += 1
            if count % _PART_ROWS == 0:
                pause()
            self._add(row, place, puts, faults)
            if type(row) is Bad and row.is_end:
                place = ObjectPosition(place.key)
                self.close()
                object_bytes += self._object_bytes
            else:
                place = ObjectPosition(place.key, place.etag, self._rows.place, place.row + 1)
        self.place = place
        return Taken(before, place, puts, faults, count, bytes_, object_bytes, is_end)

    def _next(self, place: ObjectPosition) -> Object | None:
        """The object to read: the object of `place`, or the next object."""
        if place.etag:
            same = next(self._buckets.list(self._given.bucket, place.key), None)
            if same is not None and same.key == place.key:
                return same
            return Object(place.key, 0, "")  # the object was deleted; opening it raises the error
        if self._objects is None:
            self._objects = self._buckets.list(self._given.bucket, self._given.prefix, place.key)
        left_out = self._given.left_out
        for object_ in self._objects:
            if left_out is None or not object_.key.startswith(left_out):
                return object_
        return None

    def _open(self, object_: Object, place: ObjectPosition, faults: list[Fault]) -> ObjectPosition:
        """Open an object, at `place` if it is in this object. Returns the place that was reached."""
        given = self._given
        start = place if place.etag else ObjectPosition(object_.key, object_.etag)
        is_raw = given.compression == "NONE" and given.format != "CSV"
        try:
            wanted = object_._replace(etag=start.etag)
            source = self._buckets.open(given.bucket, wanted, start.byte if is_raw else 0)
        except BucketError as error:
            if error.code in (NO_SUCH_BUCKET, ACCESS_DENIED):
                raise
            faults.append(Fault(object_.key, start.row, error.message))
            return ObjectPosition(object_.key)
        self._object_bytes = object_.bytes
        self._rows = Rows(
            source, given.format, given.compression, given.columns, start.byte, is_raw, given.with_members
        )
        self._iterator = iter(self._rows)
        return start

    def _add(self, row: Any, place: ObjectPosition, puts: list[Put], faults: list[Fault]) -> None:
        if isinstance(row, Bad):
            faults.append(Fault(place.key, place.row, row.message))
            return
        try:
            write, address = self._make(row)
        except ServiceError as error:
            faults.append(Fault(place.key, place.row, error.message or error.code))
        except Exception as error:  # `make` uses nothing but the row
            faults.append(Fault(place.key, place.row, described(error)))
        else:
            puts.append(Put(place.key, place.row, write, address))
