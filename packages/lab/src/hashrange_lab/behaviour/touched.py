"""Notes which records a body touches, so that what it costs can be charged to their partitions.

A `TouchedReader` stands between a body and the engine's reader or transaction. Knows no limits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from hashrange.storage.api import Address, Totals
from hashrange.tables.items.records import size_of
from hashrange.tables.spaces import LAG_SPACE
from hashrange.tables.writes import lag

Position = tuple[bytes, bytes]


class Touched:
    """A touched record, or for a walk all records from `low` to `high`, in the order of the walk.

    `size` is that of the item, or of all items of a walk; `is_get`: it was read by its address. Records that
    hold no items have a size without meaning.
    """

    __slots__ = ("high", "is_get", "low", "size", "space")

    def __init__(self, space: int, position: Position, size: int, is_get: bool = False) -> None:
        self.space = space
        self.low = self.high = position
        self.size = size
        self.is_get = is_get


class TouchedReader:
    """A reader or a transaction that notes what is touched: `touched`, in order."""

    __slots__ = ("_inner", "append", "count", "delete_space", "keep", "position", "stamp", "touched")

    def __init__(self, inner: Any) -> None:
        self._inner = inner
        self.touched: list[Touched] = []
        if hasattr(inner, "put"):
            self.count = inner.count
            self.delete_space = inner.delete_space
            self.keep = inner.keep
            self.position = inner.position
            self.stamp = inner.stamp
            self.append = self._append

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        value: bytes | None = self._inner.get(space, partition, sort)
        self.touched.append(Touched(space, (partition, sort), 0 if value is None else size_of(value), True))
        return value

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        wanted = list(addresses)
        values: list[bytes | None] = self._inner.get_many(wanted)
        for (space, partition, sort), value in zip(wanted, values, strict=True):
            size = 0 if value is None else size_of(value)
            self.touched.append(Touched(space, (partition, sort), size, True))
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
        walk = Touched(space, (partition, low), 0)
        self.touched.append(walk)
        for sort, value in self._inner.scan(space, partition, low, high, reverse=reverse, likely=likely):
            walk.high = (partition, sort)
            if not walk.size:
                walk.low = walk.high
            walk.size += size_of(value)
            yield sort, value

    def scan_space(
        self,
        space: int,
        low: Position = (b"", b""),
        high: Position | None = None,
        *,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        walk = Touched(space, low, 0)
        self.touched.append(walk)
        for partition, sort, value in self._inner.scan_space(space, low, high, likely=likely):
            walk.high = (partition, sort)
            walk.size += size_of(value)
            yield partition, sort, value

    def totals(self, space: int) -> Totals:
        totals: Totals = self._inner.totals(space)
        return totals

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        self._inner.put(space, partition, sort, value)
        self.touched.append(Touched(space, (partition, sort), size_of(value)))

    def delete(self, space: int, partition: bytes, sort: bytes) -> None:
        self._inner.delete(space, partition, sort)
        self.touched.append(Touched(space, (partition, sort), 0))

    def _append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None = None) -> None:
        self._inner.append(space, partition, value, stamp_at)
        if space == LAG_SPACE:
            # The index entries of this write will follow later, but are charged now.
            change = lag.decode(value)
            for entry in (change.before, change.after):
                if entry is not None:
                    self.touched.append(Touched(change.space, entry[:2], entry.size))
