"""`Past`: a reader that shows the items of one table as they were at a stamp.

It is a `storage.api.Reader`, so all code that reads tables can read the past through it: a Query, a page of a
scan, a build. It shows the table's own space as of the stamp, and all other spaces, such as indexes, as they
are now.

A scan merges the table with the images of each span above the stamp, and takes for each address the record of
the oldest span that has one. It holds a few records of the table and one of each span, so its memory does not
depend on the size of the table or of the history. An item with many images is not walked over image by image:
after a few of them the scan seeks what it needs.

The state at a stamp never changes later, provided that no later transaction gets that stamp or a lower one;
`settle` ensures this. So a reader may stop at any address and continue from there in a later body, on another
view.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import merge
from typing import Final, TypeVar

from hashrange import pace
from hashrange.encoding import escape
from hashrange.storage.api import STAMP_BYTES, Address, Engine, Reader, Totals
from hashrange.storage.failures import StorageError
from hashrange.tables.definitions.spans import History, Span
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import images

_Found = tuple[bytes, bytes, int, bytes]
"""An address, the rank of the span in which it was found, and the image or the record. For the same address,
a merge gives the oldest span first and the table last. No address comes twice from the same span, so
comparing two of these never reaches the last member."""

# The scan walks over this many images of an item before it seeks the next image that it needs.
_WALKED_MAX: Final = 8
_WINDOW_ROWS_MIN: Final = 8
_WINDOW_ROWS_MAX: Final = 64
_WINDOW_BYTES: Final = 256 * 1024


def settle(engine: Engine, stamp: int) -> None:
    """Ensure that the state at a stamp never changes: no later transaction gets that stamp or a lower one."""
    engine.write(lambda txn: txn.stamp(stamp))


class PastLost(StorageError):
    """The history of a table does not reach back to the requested moment."""


class Past:
    """The `Reader` of a table's items at `stamp`.

    `reader` shows the current store, and `table` is the table's current definition. Raises `PastLost` if its
    history does not reach back to the stamp.
    """

    __slots__ = ("_reader", "_space", "_spans", "_stamp")

    def __init__(self, reader: Reader, table: Table, stamp: int) -> None:
        history: History | None = table.history
        if history is None or stamp < history.after:
            raise PastLost(
                f"The history of table {table.full_name} does not reach back to the stamp {stamp}. Hold it "
                "before that moment (tables.history.recording)."
            )
        self._reader = reader
        self._space = table.space
        self._stamp = stamp
        self._spans: tuple[Span, ...] = history.above(stamp)

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        """The record's value, or None."""
        if space == self._space:
            place = images.place_of(sort)
            low, high = images.stamped(place, self._stamp + 1), images.behind(place)
            for span in self._spans:
                for _, image in self._reader.scan(span.space, partition, low, high, likely=1):
                    return images.record_of(image)
        return self._reader.get(space, partition, sort)

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        """The values at `addresses`."""
        values: list[bytes | None] = []
        for space, partition, sort in addresses:
            pace.point()
            values.append(self.get(space, partition, sort))
        return values

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
        """The records of one partition."""
        if space != self._space:
            return self._reader.scan(space, partition, low, high, reverse=reverse, likely=likely)
        return self._scan(partition, low, high, reverse, likely)

    def scan_space(
        self,
        space: int,
        low: tuple[bytes, bytes] = (b"", b""),
        high: tuple[bytes, bytes] | None = None,
        *,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        """The records of a space."""
        if space != self._space:
            return self._reader.scan_space(space, low, high, likely=likely)
        return self._scan_space(low, high, likely)

    def totals(self, space: int) -> Totals:
        """The current totals of a space."""
        return self._reader.totals(space)

    def _scan(
        self, partition: bytes, low: bytes, high: bytes | None, reverse: bool, likely: int | None
    ) -> Iterator[tuple[bytes, bytes]]:
        items = 0 if reverse else len(self._spans)
        rows = self._reader.scan(self._space, partition, low, high, reverse=reverse, likely=likely)
        bottom, top = escape(low), None if high is None else escape(high)
        for window, goes_on in _windows(rows):
            start, end = bottom, top
            # The next window begins where this one ends.
            if goes_on and reverse:
                start = top = escape(window[-1][0])
            elif goes_on:
                end = bottom = escape(window[-1][0] + b"\x00")
            parts = self._first_images(partition, start, end, reverse)
            parts.append(_items_of_partition(iter(window), partition, items))
            for _, sort, record in _merged(parts, reverse, items):
                yield sort, record

    def _first_images(
        self, partition: bytes, start: bytes, end: bytes | None, reverse: bool
    ) -> list[Iterator[_Found]]:
        """The first images above the stamp of each span, for the items of a partition."""
        reader, stamp, count = self._reader, self._stamp, len(self._spans)
        if reverse:
            return [
                _first_images_reversed(reader, span.space, stamp, count - number, partition, start, end)
                for number, span in enumerate(self._spans)
            ]
        top = (partition + b"\x00", b"") if end is None else (partition, end)
        return [
            first_images(reader, span.space, stamp, rank, (partition, start), top)
            for rank, span in enumerate(self._spans)
        ]

    def _scan_space(
        self, low: tuple[bytes, bytes], high: tuple[bytes, bytes] | None, likely: int | None
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        items = len(self._spans)
        rows = self._reader.scan_space(self._space, low, high, likely=likely)
        bottom, top = (low[0], escape(low[1])), None if high is None else (high[0], escape(high[1]))
        for window, goes_on in _windows(rows):
            start, end = bottom, top
            if goes_on:
                partition, sort, _ = window[-1]
                end = bottom = partition, escape(sort + b"\x00")
            parts = [
                first_images(self._reader, span.space, self._stamp, rank, start, end)
                for rank, span in enumerate(self._spans)
            ]
            parts.append(_items(iter(window), items))
            yield from _merged(parts, False, items)


_Row = TypeVar("_Row", tuple[bytes, bytes], tuple[bytes, bytes, bytes])


def _windows(rows: Iterator[_Row]) -> Iterator[tuple[list[_Row], bool]]:
    """The rows of a table in windows, each with whether others follow.

    The images are walked as far as a window reaches. Otherwise the first image above the stamp would be
    looked for to the end of the table, by each page of it again. The windows grow, since many scans end soon.
    """
    window: list[_Row] = []
    rows_max, size = _WINDOW_ROWS_MIN, 0
    for row in rows:
        window.append(row)
        size += len(row[-1])
        if len(window) == rows_max or size >= _WINDOW_BYTES:
            yield window, True
            window, size = [], 0
            rows_max = min(2 * rows_max, _WINDOW_ROWS_MAX)
    yield window, False


def _items(rows: Iterator[tuple[bytes, bytes, bytes]], rank: int) -> Iterator[_Found]:
    for partition, sort, record in rows:
        yield partition, sort, rank, record


def _items_of_partition(
    rows: Iterator[tuple[bytes, bytes]], partition: bytes, rank: int
) -> Iterator[_Found]:
    for sort, record in rows:
        yield partition, sort, rank, record


def _merged(
    parts: list[Iterator[_Found]], reverse: bool, items: int
) -> Iterator[tuple[bytes, bytes, bytes]]:
    """The first record for each address; items that were absent are left out. `items` is the rank of the
    table."""
    partition, sort = b"", b"\xff"
    first = True
    for entry in merge(*parts, reverse=reverse):
        if not first and entry[1] == sort and entry[0] == partition:
            continue
        first = False
        partition, sort = entry[0], entry[1]
        record = entry[3] if entry[2] == items else images.record_of(entry[3])
        if record is not None:
            yield partition, sort, record


def first_images(
    reader: Reader,
    space: int,
    stamp: int,
    rank: int,
    low: tuple[bytes, bytes],
    high: tuple[bytes, bytes] | None,
) -> Iterator[_Found]:
    """For each item between two places, its first image above `stamp` in a span."""
    above = stamp.to_bytes(STAMP_BYTES, "big")
    start: tuple[bytes, bytes] | None = low
    while start is not None:
        again: tuple[bytes, bytes] | None = None
        done_partition, done, walked = b"", b"", 0
        for partition, sort, image in reader.scan_space(space, start, high):
            pace.step()
            place = sort[:-STAMP_BYTES]
            if place == done and partition == done_partition:
                # A later image of the same item.
                walked += 1
                if walked >= _WALKED_MAX:
                    again = partition, images.behind(place)
                    break
            elif sort[-STAMP_BYTES:] > above:
                yield partition, images.sort_of(place), rank, image
                done_partition, done, walked = partition, place, 0
            else:
                walked += 1
                if walked >= _WALKED_MAX:
                    again = partition, images.stamped(place, stamp + 1)
                    break
        start = again


def _first_images_reversed(
    reader: Reader, space: int, stamp: int, rank: int, partition: bytes, low: bytes, high: bytes | None
) -> Iterator[_Found]:
    """Like `first_images`, for the places of a partition, from the highest down."""
    bound = high
    going = True
    while going:
        going = False
        place, first, walked = b"", b"", 0
        for sort, image in reader.scan(space, partition, low, bound, reverse=True):
            pace.step()
            if sort[:-STAMP_BYTES] != place:
                if first:
                    # The first image of the item above, counted down from its last one.
                    yield partition, images.sort_of(place), rank, first
                place, first, walked = sort[:-STAMP_BYTES], b"", 0
            walked += 1
            if int.from_bytes(sort[-STAMP_BYTES:], "big") > stamp:
                first = image
            if walked >= _WALKED_MAX:
                seek = images.stamped(place, stamp + 1)
                for _, image in reader.scan(space, partition, seek, images.behind(place), likely=1):
                    yield partition, images.sort_of(place), rank, image
                    break
                bound, going, first = place, True, b""
                break
        if first:
            yield partition, images.sort_of(place), rank, first
