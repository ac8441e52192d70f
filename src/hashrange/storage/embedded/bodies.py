"""The readers and transactions that the embedded engine passes to bodies.

Reads. After each durable batch the engine publishes a `View` (`view`). An iterator cannot show a view (in
rocksdict 0.3.29 a snapshot's iterators show the newest data), so a scan runs over the newest data, and
corrects the keys that later batches wrote.

Transactions. Bodies run one after the other, each over

    its own writes > the collecting batch > the committing batch > what was committed last > RocksDB

RocksDB may already hold the committing batch; its layer then shows the same records.

Deleted spaces are masked until their records are dropped (`cleared`).

Refuses to know: threads, commits, outcomes.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final

from rocksdict import Rdict, ReadOptions

from hashrange import pace
from hashrange.storage.api import ADDRESS_BYTES_MAX, PARTITION_BYTES_MAX, STAMP_BYTES, Address, Totals
from hashrange.storage.embedded.keys import (
    ENGINE_SPACE,
    HEAD_BYTES,
    STAMP_KEY,
    after,
    clearing_key,
    pack,
    pack_totals,
    space_bound,
    space_range,
    totals_key,
    unpack_totals,
)
from hashrange.storage.embedded.view import KEPT_SPACE, View, raise_unless_missing, unreadable
from hashrange.storage.failures import StorageError
from hashrange.storage.merging import merged

_Record = tuple[bytes, bytes]

Stamps = dict[tuple[int, bytes], bytes]
# The last stamps of this many logs are kept in memory; those of further logs are read from the store.
_STAMPS_MAX: Final = 10_000

NO_TOTALS: Final = Totals(0, 0)
NO_SPACES: Final[frozenset[int]] = frozenset()

# A record takes about this much memory beside its own bytes: two objects and a place in a dict.
_RECORD_OVERHEAD_BYTES: Final = 200


class _Reads(ABC):
    """What readers and transactions share: their reads of several records, by `get` and `_walk`. `_opened` is
    the view while the body runs."""

    __slots__ = ("_opened",)

    _opened: View | None

    @property
    def _view(self) -> View:
        view = self._opened
        assert view is not None
        return view

    @abstractmethod
    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None: ...

    @abstractmethod
    def _walk(
        self, space: int, low: bytes, high: bytes, reverse: bool = False, start: int = 0
    ) -> Iterator[_Record]:
        """The records between two keys; of their keys, what follows `start`."""

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        get = self.get
        values: list[bytes | None] = []
        for space, partition, sort in addresses:
            if values:
                pace.point()
            values.append(get(space, partition, sort))
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
        prefix = pack(space, partition, b"")
        end = after(prefix) if high is None else prefix + high
        return self._walk(space, prefix + low, end, reverse, len(prefix))

    def scan_space(
        self,
        space: int,
        low: tuple[bytes, bytes] = (b"", b""),
        high: tuple[bytes, bytes] | None = None,
        *,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        return _partitions(self._walk(space, *self._bounds(space, low, high)))

    def _bounds(
        self, space: int, low: tuple[bytes, bytes], high: tuple[bytes, bytes] | None
    ) -> tuple[bytes, bytes]:
        """The keys between which `scan_space` walks."""
        start, end = space_range(space)
        if low == (b"", b"") and high is None:
            return start, end
        first = next(self._walk(space, start, end), None)
        if first is None:
            return start, start
        length = first[0][4]
        if low != (b"", b""):
            start = space_bound(space, *low, length)
        if high is not None:
            end = space_bound(space, *high, length)
        return start, end


class ViewReader(_Reads):
    """The `Reader` of a read body."""

    __slots__ = ("_cleared", "_kept", "_snapshot")

    def __init__(self, view: View) -> None:
        self._opened = view
        # To read an attribute of a view, which is not compiled, takes long.
        self._cleared = view.cleared
        self._kept = view.kept
        self._snapshot = view.snapshot if type(view) is View else None

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        if self._cleared and space in self._cleared:
            return None
        key = pack(space, partition, sort)
        if space == KEPT_SPACE:
            value = self._kept.get(key)
            return value if value is not None else self._view.keep(key, self._stored(key))
        return self._stored(key)

    def _stored(self, key: bytes) -> bytes | None:
        snapshot = self._snapshot
        if snapshot is None:
            return self._view.get(key)
        try:
            return snapshot[key]  # type: ignore[no-any-return]
        except Exception as error:
            raise_unless_missing(error)
            return None

    def totals(self, space: int) -> Totals:
        view = self._view
        return NO_TOTALS if space in view.cleared else stored_totals(view, space)

    def end(self) -> None:
        """Let go of the store: the body is over, but its frames may live on in a traceback."""
        self._opened = self._snapshot = None

    def _walk(
        self, space: int, low: bytes, high: bytes, reverse: bool = False, start: int = 0
    ) -> Iterator[_Record]:
        """The records between two keys; of their keys, what follows `start`."""
        view = self._view
        if low >= high or space in view.cleared:
            return iter(())
        # Make the iterator first and read the corrections second: see the module's docstring.
        stored = _Range(view.db, low, high, reverse)
        corrections = view.corrections(low, high) if view.following is not None else None
        return stored.records(start) if not corrections else merge(stored, corrections, start)


class Layer:
    """The writes of one body, or of a batch of bodies, over a store."""

    __slots__ = ("cleared", "counts", "records")

    def __init__(self) -> None:
        self.records: dict[bytes, bytes | None] = {}  # None: deleted
        self.counts: dict[int, tuple[int, int]] = {}
        self.cleared: AbstractSet[int] = NO_SPACES

    def wrote(self) -> bool:
        return bool(self.records or self.counts or self.cleared)

    def count(self, space: int, records: int, bytes_: int) -> None:
        before = self.counts.get(space)
        if before is not None:
            records += before[0]
            bytes_ += before[1]
        self.counts[space] = (records, bytes_)

    def absorb(self, upper: Layer) -> None:
        """Add the writes of a later layer to these."""
        self.records.update(upper.records)
        for space, (records, bytes_) in upper.counts.items():
            self.count(space, records, bytes_)
        if upper.cleared:
            self.cleared |= upper.cleared


class Recent:
    """The records that were committed last (None: deleted). A read-modify-write usually finds its record
    here, and then need not ask RocksDB.

    There are two generations. When the young one is full, it becomes the old one, and the former old one is
    forgotten. Together they take about `bytes_max`.
    """

    __slots__ = ("_bytes", "_bytes_max", "old", "young")

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self.young: dict[bytes, bytes | None] = {}
        self.old: dict[bytes, bytes | None] = {}

    def add(self, records: Mapping[bytes, bytes | None], bytes_: int) -> None:
        """Add a batch of `bytes_` bytes that was committed."""
        self.young.update(records)
        self._bytes += bytes_ + len(records) * _RECORD_OVERHEAD_BYTES
        if self._bytes * 2 > self._bytes_max:
            self.old, self.young, self._bytes = self.young, {}, 0

    def clear(self) -> None:
        """Forget all records, because the store may hold others now."""
        self.young, self.old, self._bytes = {}, {}, 0


class LayeredTransaction(_Reads):
    """The `Transaction` of a write body.

    `sequence` is the last sequence number given, `last_stamp` the last stamp of a body, and `known` has the
    last stamps of logs, by space and partition. `own_stamp` is the stamp of this body, 0 if it has none.
    """

    __slots__ = (
        "_cleared",
        "_known",
        "_last_stamp",
        "_lower",
        "_recent",
        "_stamps",
        "bytes",
        "own",
        "own_stamp",
        "sequence",
    )

    def __init__(
        self,
        view: View,
        lower: tuple[Layer, ...],
        recent: Recent,
        cleared: AbstractSet[int],
        sequence: int,
        last_stamp: int,
        known: Stamps,
    ) -> None:
        self._opened = view
        self._lower = lower  # the newest first
        self._recent = recent
        self._cleared = cleared
        self.own = Layer()
        self.sequence = sequence
        self._last_stamp = last_stamp
        self.own_stamp = 0
        self._known = known
        self._stamps: Stamps = {}
        self.bytes = 0

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        if self._cleared and space in self._cleared:
            return None
        key = pack(space, partition, sort)
        records = self.own.records
        if key in records:
            return records[key]
        for layer in self._lower:
            records = layer.records
            if key in records:
                return records[key]
        records = self._recent.young
        if key in records:
            return records[key]
        records = self._recent.old
        if key in records:
            return records[key]
        if space == KEPT_SPACE:
            # A record that is in no layer is the same in RocksDB and in the view.
            value = self._view.kept.get(key)
            if value is not None:
                return value
        try:
            value = self._view.db.get(key)
        except Exception as error:
            raise unreadable(error) from error
        return value if space != KEPT_SPACE else self._view.keep(key, value)

    def totals(self, space: int) -> Totals:
        if space in self._cleared:
            return NO_TOTALS
        # Not from RocksDB's newest data: it may hold the committing batch, whose counts are added below.
        records, bytes_ = stored_totals(self._view, space)
        for layer in (*self._lower, self.own):
            more = layer.counts.get(space, NO_TOTALS)
            records += more[0]
            bytes_ += more[1]
        return Totals(records, bytes_)

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        size = len(partition) + len(sort)
        if size > ADDRESS_BYTES_MAX or len(partition) > PARTITION_BYTES_MAX or not 0 <= space < ENGINE_SPACE:
            raise StorageError(f"Not an address: space {space}, {len(partition)} and {len(sort)} bytes.")
        self.own.records[pack(space, partition, sort)] = value
        self.bytes += len(value) + size

    def delete(self, space: int, partition: bytes, sort: bytes) -> None:
        self.own.records[pack(space, partition, sort)] = None

    def delete_space(self, space: int) -> None:
        self._cleared = {*self._cleared, space}
        self.own.cleared |= {space}

    def append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None = None) -> None:
        if stamp_at is not None:
            value = self._stamped(space, partition, value, stamp_at)
        self.put(space, partition, self.position(space).to_bytes(8, "big"), value)

    def _stamped(self, space: int, partition: bytes, value: bytes, start: int) -> bytes:
        """The value, with the log's last stamp in place of its own if that is smaller."""
        log, end = (space, partition), start + STAMP_BYTES
        last = self._stamps.get(log) or self._known.get(log)
        if last is None:
            last = self._newest(space, partition)[start:end]
        stamp = value[start:end]
        if last <= stamp:
            self._stamps[log] = stamp
            return value
        self._stamps[log] = last
        return value[:start] + last + value[end:]

    def keep_stamps(self) -> None:
        """Remember the stamps that this body gave, for the next bodies."""
        if self._stamps:
            if len(self._known) > _STAMPS_MAX:
                self._known.clear()
            self._known.update(self._stamps)

    def _newest(self, space: int, partition: bytes) -> bytes:
        """The newest record of a log, b"" if it has none."""
        for _, value in self.scan(space, partition, reverse=True):
            return value
        return b""

    def position(self, space: int) -> int:
        self.sequence += 1
        return self.sequence

    def stamp(self, moment: int) -> int:
        stamp = self.own_stamp
        if not stamp:
            stamp = self.own_stamp = max(moment, self._last_stamp + 1)
            self.own.records[STAMP_KEY] = stamp.to_bytes(STAMP_BYTES, "big")
        return stamp

    def keep(self, space: int, partition: bytes, sort: bytes, value: bytes, moment: int) -> None:
        sort += self.stamp(moment).to_bytes(STAMP_BYTES, "big")
        # No other body has this stamp, so a record here is this body's own.
        if pack(space, partition, sort) not in self.own.records:
            self.put(space, partition, sort, value)

    def count(self, space: int, records: int, bytes_: int) -> None:
        self.own.count(space, records, bytes_)

    def end(self) -> None:
        """Let go of the store: the body is over, but its frames may live on in a traceback."""
        self._opened, self._lower = None, ()

    def _walk(
        self, space: int, low: bytes, high: bytes, reverse: bool = False, start: int = 0
    ) -> Iterator[_Record]:
        """The records between two keys; of their keys, what follows `start`."""
        if low >= high or space in self._cleared:
            return iter(())
        stored = _Range(self._view.db, low, high, reverse)
        changes: dict[bytes, bytes | None] = {}
        for layer in (*reversed(self._lower), self.own):
            if layer.records:
                changes.update({k: v for k, v in layer.records.items() if low <= k < high})
        return stored.records(start) if not changes else merge(stored, changes, start)


class _Range:
    """The records of RocksDB between two keys, as they are now.

    The upper bound spares RocksDB a walk over deleted records above the range. The lower bound of rocksdict
    0.3.29 does not work. Its iterators point into the options without keeping them alive, so this object
    keeps them.
    """

    __slots__ = ("_db", "_high", "_items", "_low", "_options", "reverse")

    def __init__(self, db: Rdict, low: bytes, high: bytes, reverse: bool) -> None:
        self._options = ReadOptions()
        self._options.set_iterate_upper_bound(high)
        self._items: Iterator[Any] = db.items(reverse, high if reverse else low, self._options)
        self._db, self._low, self._high, self.reverse = db, low, high, reverse

    def records(self, start: int) -> Iterator[_Record]:
        """The records in order; of their keys, what follows `start`."""
        key = self._low
        if self.reverse:
            low, key = key, self._high
            for key, value in self._items:
                if key < low:
                    return
                yield key[start:], value
        else:
            for key, value in self._items:
                yield key[start:], value
        self._verify(key)

    def _verify(self, last: bytes) -> None:
        """Raise an error if the walk ended at damage.

        An iterator stops at damage as it does at the end of the data; only its status distinguishes the two.
        The fast `items` does not show its status, so a slow iterator goes on from the last key.
        """
        iterator = self._db.iter(self._options)
        if self.reverse:
            iterator.seek_for_prev(last)
            if iterator.valid():
                iterator.prev()
        else:
            iterator.seek(last)
            if iterator.valid():
                iterator.next()
        try:
            iterator.status()
        except Exception as error:
            raise unreadable(error) from error


def merge(stored: _Range, changes: Mapping[bytes, bytes | None], start: int) -> Iterator[_Record]:
    """The records of a range, with `changes` applied (None: the record is removed)."""
    for key, value in merged(stored.records(0), changes, stored.reverse):
        yield key[start:], value


def stored_totals(view: View, space: int) -> Totals:
    """The totals of a space in a view."""
    value = view.get(totals_key(space))
    return NO_TOTALS if value is None else Totals(*unpack_totals(value))


def with_totals(
    batch: Layer, known: dict[int, Totals], view: View
) -> tuple[dict[bytes, bytes | None], dict[int, Totals]]:
    """All records of a batch, including the new totals; and the new totals.

    `known` are totals that need not be looked up in `view`, which is the newest one.
    """
    records = batch.records.copy()  # a copy, because bodies read `batch.records` while this runs
    totals: dict[int, Totals] = {}
    for space, (more, more_bytes) in batch.counts.items():
        before = known.get(space) or stored_totals(view, space)
        total = totals[space] = Totals(before.records + more, before.bytes + more_bytes)
        records[totals_key(space)] = pack_totals(*total)
    for space in batch.cleared:
        totals.pop(space, None)
        records[totals_key(space)] = None
        records[clearing_key(space)] = b""
    return records, totals


def _partitions(records: Iterator[_Record]) -> Iterator[tuple[bytes, bytes, bytes]]:
    for key, value in records:
        end = HEAD_BYTES + key[4]
        yield key[HEAD_BYTES:end], key[end:], value
