"""The items of an object: decompressed, cut into rows, and read by the format's module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, Literal, ParamSpec, TypeVar

from hashrange.buckets import ObjectReader
from hashrange.interchange import csv_files, dynamodb_json, ion
from hashrange.interchange.compression import DAMAGED, Readable, reader
from hashrange.interchange.csv_files import Columns
from hashrange.interchange.lines import CHUNK_BYTES, LINE_BYTES_MAX, lines
from hashrange.interchange.rows import Bad
from hashrange.values import Item

P = ParamSpec("P")
T = TypeVar("T")

Format = Literal["DYNAMODB_JSON", "ION", "CSV"]

_TOO_LONG: Final = f"The line has more than {LINE_BYTES_MAX} bytes"
_DAMAGED: Final = "The object cannot be decompressed as {}: {}"
_NOTHING: Final = b" \t\r"


class Rows:
    """The rows of one object.

    Iterating gives an item, or `Bad`, for each row that is not empty. `place` is the decompressed byte at
    which the next row begins: reading an object with the same bytes can continue from there.
    """

    def __init__(
        self,
        source: ObjectReader,
        format_: Format,
        compression: str,
        columns: Columns | None = None,
        place: int = 0,
        is_at_place: bool = False,
        with_members: bool = False,
    ) -> None:
        """Read `source` from `place` on. `is_at_place`: `source` itself begins at `place`.
        `with_members`: give the whole objects in the lines, of which the item is a member."""
        self._source = source
        self._format = format_
        self._compression = compression
        self._columns = columns or Columns(",", None, {}, frozenset())
        self._is_at_place = is_at_place
        self._read = (ion.read if format_ == "ION" else dynamodb_json.read) if not with_members else (
            ion.read_row if format_ == "ION" else dynamodb_json.read_row
        )
        self.place = place

    def close(self) -> None:
        """Release the source."""
        self._source.close()

    def __iter__(self) -> Iterator[Item | Bad]:
        try:
            yield from self._rows()
        except DAMAGED as error:
            yield Bad(_DAMAGED.format(self._compression, error), is_end=True)

    def _rows(self) -> Iterator[Item | Bad]:
        opened = reader(self._source, self._compression)
        if self._format == "CSV":
            yield from self._csv(opened)
            return
        if not self._is_at_place:
            skip(opened, self.place)
        read = self._read
        for line, place in lines(opened, self.place):
            self.place = place
            if line is None:
                yield Bad(_TOO_LONG)
            elif line.strip(_NOTHING):
                row = _guarded(read, line)
                yield row
                if type(row) is Bad and row.is_end:
                    return

    def _csv(self, opened: Readable) -> Iterator[Item | Bad]:
        """Reading that continues within an object reads the header again, which is cheap."""
        columns, start = self._columns, self.place
        header = columns.header
        for row, place in csv_files.joined(lines(opened, 0)):
            self.place = max(place, start)
            if row is None:
                if place > start:
                    yield Bad(_TOO_LONG, is_end=header is None)
                if header is None:
                    return
            elif row.strip(_NOTHING):
                if header is None:
                    names = _guarded(csv_files.header_of, row, columns.delimiter)
                    if isinstance(names, Bad):
                        yield names
                        return
                    header = names
                elif place > start:
                    yield _guarded(csv_files.read, row, header, columns)


def _guarded(read: Callable[P, T | Bad], *row: P.args, **more: P.kwargs) -> T | Bad:
    """The result of `read`. Whatever a row makes it raise is an error of that row: the rows around it are
    read, and reading ends."""
    try:
        return read(*row, **more)
    except Exception as error:
        return Bad(f"The row cannot be read: {type(error).__name__}: {error}")


def skip(source: Readable, count: int) -> None:
    """Skip `count` bytes of a stream."""
    while count > 0:
        passed = len(source.read(min(count, CHUNK_BYTES)))
        if not passed:
            return
        count -= passed
