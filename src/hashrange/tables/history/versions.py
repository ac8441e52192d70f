"""The versions of an item, and the items that changed between two moments.

Each image is the state of an item before a change, so a version combines two images: one names the change
that made the version, the next one holds the record that it made.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import NamedTuple

from hashrange import pace
from hashrange.encoding import escape
from hashrange.storage.api import STAMP_BYTES, Reader
from hashrange.tables.definitions.spans import STAMP_MAX, Span
from hashrange.tables.definitions.table import Table
from hashrange.tables.history import images
from hashrange.tables.history.past import Past, first_images


class Version(NamedTuple):
    """A version of an item: the stamp of the change that made it, the record (None: no item from then on),
    and who made the change."""

    stamp: int
    record: bytes | None
    caller: str
    by_expiry: bool


class Changed(NamedTuple):
    """An item that changed between two stamps: its address, its record at both (None: no item), and the stamp
    of its last change between them."""

    partition: bytes
    sort: bytes
    before: bytes | None
    after: bytes | None
    stamp: int


def versions(
    reader: Reader, table: Table, partition: bytes, sort: bytes, low: int = 0, high: int = STAMP_MAX
) -> Iterator[Version]:
    """The versions of an item from changes with `low < stamp <= high`, newest first.

    To continue later, pass the stamp of the last version minus 1 as `high`.
    """
    history = table.history
    if history is None:
        return
    place = images.place_of(sort)
    record: bytes | None
    if high == STAMP_MAX:
        record = reader.get(table.space, partition, sort)
    else:
        record = Past(reader, table, high).get(table.space, partition, sort)
    start = images.stamped(place, low + 1)
    end = images.behind(place) if high == STAMP_MAX else images.stamped(place, high + 1)
    for span in reversed(history.above(low)):
        for sort_bytes, stored in reader.scan(span.space, partition, start, end, reverse=True):
            pace.point()
            image = images.unpack(stored)
            stamp = int.from_bytes(sort_bytes[-STAMP_BYTES:], "big")
            yield Version(stamp, record, image.caller, image.by_expiry)
            record = image.record


def changed(
    reader: Reader, table: Table, low: int, high: int, start: tuple[bytes, bytes] = (b"", b"")
) -> Iterator[Changed]:
    """The items that were changed with `low < stamp <= high`, from the address `start` on, in the order of
    the table. An item's final state may equal its first.

    To continue later, pass the address after the last item as `start`: its sort with 00 at the end.
    """
    history = table.history
    if history is None:
        return
    spans = [span for span in history.above(low) if span.after < high]
    bottom = start[0], escape(start[1])
    parts = [first_images(reader, span.space, low, rank, bottom, None) for rank, span in enumerate(spans)]
    past = Past(reader, table, high)
    last: tuple[bytes, bytes] | None = None
    for partition, sort, _, image in merge(*parts):
        if (partition, sort) == last:
            continue
        last = partition, sort
        stamp = _last_stamp(reader, spans, partition, sort, low, high)
        if stamp is not None:
            before, after = images.record_of(image), past.get(table.space, partition, sort)
            yield Changed(partition, sort, before, after, stamp)


def _last_stamp(
    reader: Reader, spans: list[Span], partition: bytes, sort: bytes, low: int, high: int
) -> int | None:
    """The stamp of the last change of an item between two stamps."""
    place = images.place_of(sort)
    start, end = images.stamped(place, low + 1), images.stamped(place, high + 1)
    for span in reversed(spans):
        for newest, _ in reader.scan(span.space, partition, start, end, reverse=True, likely=1):
            return int.from_bytes(newest[-STAMP_BYTES:], "big")
    return None
