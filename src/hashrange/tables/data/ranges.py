"""The only ordered read: pages of a table or an index, for Query, Scan and its segments.

A `Source` says where the records lie; `sort_bounds` turns a condition on the sort key into bytes,
`read_page` walks the records and stops at the limit or at 1 MB. The page's rules are DynamoDB's: Limit and
1 MB count before the filter, and a page that was stopped has a last evaluated key even if nothing follows.

Source: Developer Guide, "Paginating table query results".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import msgspec

from hashrange import encoding, pace
from hashrange.errors import KEY_MISMATCH, ValidationException
from hashrange.limits import PAGE_BYTES_MAX
from hashrange.storage.api import Reader
from hashrange.tables.data import indexes, keys, records
from hashrange.tables.data.records import HEADER_BYTES
from hashrange.tables.definitions.table import Index, KeySchema, Table
from hashrange.values import AttributeValue, Item

INVALID_START = "The provided starting key is invalid"


class Source(msgspec.Struct, frozen=True):
    """The table, or the index of it, that a read uses."""

    table: Table
    index: Index | None

    @property
    def space(self) -> int:
        """The space of the records."""
        return self.table.space if self.index is None else self.index.space

    @property
    def key(self) -> KeySchema:
        """The key that orders the records."""
        return self.table.key if self.index is None else self.index.key

    def start_names(self) -> list[str]:
        """The attributes of a last evaluated key: the index's key, then the table's."""
        names = [attribute.name for attribute in self.key.attributes()]
        return names + [a.name for a in self.table.key.attributes() if a.name not in names]


@dataclass(slots=True)
class Page:
    """A page of a read.

    `records` are the matching records in stored form. `shown` is what `show` made of their items (None
    without a `show`). `size` is in bytes, before the filter. `last` is the record that the next page starts
    after, None at the end.
    """

    records: list[bytes]
    shown: list[Item] | None
    scanned: int
    size: int
    last: bytes | None


@dataclass(slots=True)
class Begun:
    """The part of a page of the space `space` that was read on the event loop, up to the record `last`.

    The rest may be read at a later moment: a page shows each item as it was at some time after the request.
    """

    space: int
    page: Page
    last: bytes


def begun_page(source: Source) -> Begun | None:
    """The part of this request's page that was read before its turn was over, if there is one."""
    found = pace.reached()
    return found if isinstance(found, Begun) and found.space == source.space else None


def position_after(source: Source, begun: Begun) -> tuple[bytes, bytes]:
    """The `(partition, sort)` that the rest of a page starts after."""
    item = records.item_of(begun.last)
    return start_position(source, {name: item[name] for name in source.start_names()})


def sort_bounds(
    is_index: bool, equal: Sequence[AttributeValue], operator: str | None, operands: Sequence[AttributeValue]
) -> tuple[bytes, bytes | None]:
    """`(low, high)` of the sort bytes that a key condition selects, `low` inclusive, `high` exclusive.

    `equal` are the leading sort key components bound by `=`, then one condition on the next component:
    "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with", or None.
    """
    # In a base table the sort is its one component and nothing else: the next possible sort after k is k +
    # 00. In an index other bytes follow the components: the next sort after k is the lowest one above all
    # sorts with the prefix k.
    prefix = b"".join(map(encoding.pack_component, equal))
    end = encoding.successor(prefix) if prefix else None
    if operator is None:
        return prefix, end
    pack = encoding.pack_component if is_index else encoding.pack_sort
    packed = [prefix + pack(operand) for operand in operands] if operator != "begins_with" else []

    def after(key: bytes) -> bytes | None:
        return encoding.successor(key) if is_index else key + b"\x00"

    match operator:
        case "=":
            return packed[0], after(packed[0])
        case "<":
            return prefix, packed[0]
        case "<=":
            return prefix, after(packed[0])
        case ">":
            return after(packed[0]) or packed[0], end
        case ">=":
            return packed[0], end
        case "BETWEEN":
            return packed[0], after(packed[1])
    start = encoding.pack_sort(operands[0])
    start = prefix + (encoding.escape(start) if is_index else start)
    return start, encoding.successor(start)


def start_position(source: Source, key: Item, *, misfit: str = INVALID_START) -> tuple[bytes, bytes]:
    """The `(partition, sort)` of the record that an exclusive start key names.

    Raises `ValidationException` if the key does not fit the table or index. `misfit` is the text of this
    error if the key has the wrong attributes, or attributes of the wrong types.
    """
    if key.keys() != set(source.start_names()):
        raise ValidationException(misfit)
    try:
        partition, sort = keys.address_of_key(source.table.key, keys.key_of(source.table.key, key))
    except ValidationException as error:
        text = misfit if error.message == KEY_MISMATCH else f"{INVALID_START}: {error.message}"
        raise ValidationException(text) from None
    if source.index is None:
        return partition, sort
    if not indexes.fits(source.index, key):
        raise ValidationException(INVALID_START)
    return indexes.position(source.index, key, partition, sort)


_RECORD = itemgetter(1)
"""Takes the record out of the tuple that a scan yields. It is a C function, as it runs for each item of a
page."""


def query_records(
    reader: Reader,
    source: Source,
    partition: bytes,
    low: bytes,
    high: bytes | None,
    *,
    reverse: bool,
    start: bytes | None,
    likely: int | None = None,
) -> Iterator[bytes]:
    """The records of one partition between `low` and `high`, in order; with `start`, only those after it."""
    if start is not None:
        if reverse:
            high = start if high is None or start < high else high
        else:
            low = max(low, start + b"\x00")
    return map(_RECORD, reader.scan(source.space, partition, low, high, reverse=reverse, likely=likely))


def scan_records(
    reader: Reader,
    source: Source,
    segment: int,
    segments: int,
    start: tuple[bytes, bytes] | None,
    likely: int | None = None,
) -> Iterator[bytes]:
    """The records of a segment, one of `segments` equal ranges of the hash, in the order of the hash.

    With `start`, only those after it.
    """
    low = (_segment_start(segment, segments), b"")
    high = None if segment + 1 == segments else (_segment_start(segment + 1, segments), b"")
    if start is not None:
        low = max(low, (start[0], start[1] + b"\x00"))
    for _, _, record in reader.scan_space(source.space, low, high, likely=likely):
        yield record


def _segment_start(segment: int, segments: int) -> bytes:
    # Round up, so that every hash belongs to exactly one segment, also if 2**64 does not divide evenly.
    return (-(-(segment << 64) // segments)).to_bytes(8) if segment else b""


def segment_of(partition: bytes, segments: int) -> int:
    """The segment that a partition lies in."""
    return (int.from_bytes(partition[:8]) * segments) >> 64


_UNTESTED_MASK = 15
"""Without a filter a record costs so little that only every 16th asks whether the turn is over."""


def read_page(
    found: Iterator[bytes],
    *,
    limit: int | None,
    test: Callable[[Item], bool] | None,
    show: Callable[[Item], Item] | None = None,
    space: int | None = None,
    begun: Begun | None = None,
) -> Page:
    """Read records from `found` up to `limit` records or 1 MB, and keep those that pass `test`.

    `show` makes what is shown of an item. It is called here because the item is decoded here, and is freed
    before the next one is decoded.

    `begun` is the part of the page that comes before `found`. If the turn ends, `TurnOver` takes the part
    that was read along as a `Begun` of `space`; with None, the page begins again.
    """
    page = begun.page if begun is not None else Page([], None if show is None else [], 0, 0, None)
    read = _Read(page, begun.last if begun is not None else None)
    try:
        _read_on(read, found, limit, test, show)
    except pace.TurnOver as over:
        if space is not None and read.last is not None:
            over.reached = Begun(space, page, read.last)
        raise
    return page


class _Read:
    """A page that is being read, and the last of its records that is dealt with."""

    __slots__ = ("last", "page")

    def __init__(self, page: Page, last: bytes | None) -> None:
        self.page = page
        self.last = last


def _read_on(
    read: _Read,
    found: Iterator[bytes],
    limit: int | None,
    test: Callable[[Item], bool] | None,
    show: Callable[[Item], Item] | None,
) -> None:
    """Each step adds one record, after all that may end the turn."""
    page = read.page
    shown = page.shown
    scanned, total = page.scanned, page.size
    keep, size_of = page.records.append, int.from_bytes
    for record in found:
        if test is None and show is None:
            if not scanned & _UNTESTED_MASK:
                pace.point()
            keep(record)
        else:
            pace.point()
            item = records.item_of(record)
            if test is None or test(item):
                if show is not None and shown is not None:
                    shown.append(show(item))
                keep(record)
        scanned += 1
        total += size_of(record[1:HEADER_BYTES], "big")
        page.scanned, page.size, read.last = scanned, total, record
        if scanned == limit or total >= PAGE_BYTES_MAX:
            page.last = record
            return
