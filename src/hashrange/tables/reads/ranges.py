"""The only ordered read: pages of a table or an index, for Query, Scan and its segments.

A `ReadSource` is the place of the records; `sort_bounds` turns a condition on the sort key into bytes,
`read_page` walks the records and stops at the limit or at 1 MB. The page's rules are DynamoDB's: Limit and
1 MB count before the filter, and a page that was stopped has a last evaluated key even if nothing follows.

Source: Developer Guide, "Paginating table query results".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import msgspec

from hashrange import encoding, pace
from hashrange.errors import KEY_MISMATCH, ValidationException
from hashrange.limits import PAGE_BYTES_MAX
from hashrange.storage.api import Reader
from hashrange.tables.definitions.table import Index, KeySchema, Table
from hashrange.tables.items import indexes, keys, records
from hashrange.values import AttributeValue, Item

INVALID_START = "The provided starting key is invalid"


class ReadSource(msgspec.Struct, frozen=True):
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
    after, None at the end. `reached` is the last record that was read; the page has `ended` when all of its
    records were.
    """

    records: list[bytes]
    shown: list[Item] | None
    scanned: int = 0
    size: int = 0
    last: bytes | None = None
    reached: bytes | None = None
    ended: bool = False


class Begun:
    """What was done of a table's page on the event loop until the turn was over. It is made with the body,
    which goes on from there when it runs again.

    The rest is read later, so a page shows each item as it was at some time after the request. A page of an
    index begins again: between two moments an item may move in the order of the index, and would be shown
    twice or not at all.
    """

    __slots__ = ("_kept", "_space")

    def __init__(self) -> None:
        self._kept: Any = None
        self._space = 0

    def keep(self, source: ReadSource, part: Any) -> None:
        """Keep a page, or more of the body's state, for the next run of the body; nothing of an index."""
        if source.index is None:
            self._kept, self._space = part, source.space

    def take(self, source: ReadSource) -> Any:
        """What the run before has kept; None if it has kept nothing, or the table was made again since."""
        kept, self._kept = self._kept, None
        return kept if self._space == source.space else None


def position_after(source: ReadSource, record: bytes) -> tuple[bytes, bytes]:
    """The `(partition, sort)` that the rest of a page starts after, of whose records this was the last."""
    return start_position(source, key_in(source, record))


def key_in(source: ReadSource, record: bytes) -> Item:
    """The key that a last evaluated key shows of a record."""
    return records.members_of(record, tuple(source.start_names()))


def sort_bounds(
    is_index: bool, equal: Sequence[AttributeValue], operator: str | None, operands: Sequence[AttributeValue]
) -> tuple[bytes, bytes | None]:
    """`(low, high)` of the sort bytes that a key condition selects, `low` inclusive, `high` exclusive.

    `equal` are the leading sort key components bound by `=`, then one condition on the next component:
    "=", "<", "<=", ">", ">=", "BETWEEN", "begins_with", or None.
    """
    # In a base table the sort is only its component: the next possible sort after k is k + 00. In an index
    # other bytes follow the components: the next sort after k is the lowest above all sorts with the prefix
    # k.
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


def start_position(source: ReadSource, key: Item, *, misfit: str = INVALID_START) -> tuple[bytes, bytes]:
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
"""Takes the record out of the tuple that a scan yields. It is a C function, because it runs for each item of
a page."""


def query_records(
    reader: Reader,
    source: ReadSource,
    partition: bytes,
    low: bytes,
    high: bytes | None,
    *,
    reverse: bool,
    start: bytes | None,
    likely: int | None = None,
) -> Iterator[bytes]:
    """The records of a partition between `low` and `high`, in order; with `start`, only those after it."""
    if start is not None:
        if reverse:
            high = start if high is None or start < high else high
        else:
            low = max(low, start + b"\x00")
    return map(_RECORD, reader.scan(source.space, partition, low, high, reverse=reverse, likely=likely))


def scan_records(
    reader: Reader,
    source: ReadSource,
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
    # Round up, so that every hash belongs to exactly one segment, even if 2**64 does not divide evenly.
    return (-(-(segment << 64) // segments)).to_bytes(8) if segment else b""


def segment_of(partition: bytes, segments: int) -> int:
    """The segment that a partition lies in."""
    return (int.from_bytes(partition[:8]) * segments) >> 64


_UNDECODED_MASK = 15
"""Records that are not decoded cost so little that only every 16th checks whether the turn is over."""

_DECODED_MASK = 3
_SMALL_BYTES = 2_000
"""Of the records that are decoded every 4th checks it, and each that is larger than this."""


def read_page(
    candidates: Iterator[bytes],
    *,
    limit: int | None,
    test: Callable[[Item], bool] | None,
    show: Callable[[Item], Item] | None = None,
    page: Page | None = None,
) -> Page:
    """Read the records `candidates` up to `limit` records or 1 MB, and keep those that pass `test`.

    `show` makes what is shown of an item. It is called here because the item is decoded here, and is freed
    before the next one is decoded. `page` is the part of the page that comes before the candidates. It takes
    in one record at a time, after all that may end the turn, so the candidates may depend on it.
    """
    if page is None:
        page = Page([], None if show is None else [])
    if page.ended:
        return page
    shown = page.shown
    scanned, total = page.scanned, page.size
    kept = page.records
    for record in candidates:
        if test is None and show is None:
            if not scanned & _UNDECODED_MASK:
                pace.point()
            kept.append(record)
        else:
            if not scanned & _DECODED_MASK or len(record) > _SMALL_BYTES:
                pace.point()
            item = records.item_of(record)
            if test is None or test(item):
                if show is not None and shown is not None:
                    shown.append(show(item))
                kept.append(record)
        scanned += 1
        total += records.size_of(record)
        page.scanned, page.size, page.reached = scanned, total, record
        if scanned == limit or total >= PAGE_BYTES_MAX:
            page.last = record
            break
    page.ended = True
    return page
