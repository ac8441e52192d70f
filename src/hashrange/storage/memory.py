"""The engine that keeps all records in the memory of this process: for tests and for `--memory`.

Rules:

- One lock is held around every body, so bodies run one after the other and a reader never sees half of a
  body's writes.
- A write changes the store at once, and adds its opposite to an undo list. If the body raises, its writes are
  undone.
- A batch holds one body: `submit` does the work of `write`, and calls `done` before it returns. So nothing is
  left for the event loop.
- A read on a worker thread may take long, so it does not hold the lock: it reads a `_Moment`. While a moment
  is in use, every write first copies the record that it replaces into the moment.
- A snapshot keeps the current records, and the engine goes on with `layered.Layered` records over
  them. So neither making a snapshot nor restoring one copies a record.
- Restoring a snapshot does not free the dropped records at once. Each write after it frees twice as many of
  them as it has written records, so their number never grows.

Refuses to know: durability, formats, files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from threading import RLock
from typing import Any, TypeVar

from sortedcontainers import SortedDict

from hashrange import pace
from hashrange.storage.api import (
    ADDRESS_BYTES_MAX,
    PARTITION_BYTES_MAX,
    STAMP_BYTES,
    Address,
    Reader,
    Totals,
    Transaction,
)
from hashrange.storage.capabilities import Snapshot
from hashrange.storage.failures import (
    CommitFailed,
    CommitFault,
    CommitUnknown,
    Moment,
    StorageError,
    StoreClosed,
    Unsupported,
)
from hashrange.storage.layered import Layered, Leavings
from hashrange.storage.loops import Done, Loop

T = TypeVar("T")

# A scan copies this many keys at a time: a body may then write while its scan is under way, and a short
# page of a long partition stays cheap.
_SCAN_CHUNK = 64

_NO_TOTALS = Totals(0, 0)


class MemorySnapshot(Snapshot):
    """The contents of the engine at one moment. It never changes, so it can be restored many times."""

    __slots__ = ("last_stamp", "sequence", "spaces", "stamps", "totals")

    def __init__(
        self,
        spaces: dict[int, Any],
        totals: dict[int, Totals],
        stamps: dict[tuple[int, bytes], bytes],
        sequence: int,
        last_stamp: int,
    ) -> None:
        self.spaces = spaces
        self.last_stamp = last_stamp
        self.totals = totals
        self.stamps = stamps
        self.sequence = sequence


class MemoryEngine:
    """The store in memory."""

    name = "memory"
    runs_once = True

    def __init__(self) -> None:
        self.commit_fault: CommitFault | None = None
        self.loop = Loop()
        self._lock = RLock()
        # For each space a `SortedDict`, or after a snapshot a `Layered`: the keys are (partition, sort).
        self._spaces: dict[int, Any] = {}
        self._totals: dict[int, Totals] = {}
        self._sequence = 0
        self._stamps: dict[tuple[int, bytes], bytes] = {}  # the last stamp of each log
        self._last_stamp = 0  # of a body
        self._closed = False
        self._reader = _Reader(self)
        self._moments: list[_Moment] = []
        self._leavings = Leavings()

    def read(self, body: Callable[[Reader], T]) -> T:
        if pace.is_aside():
            return self._read_aside(body)
        pace.acquire(self._lock)
        try:
            self._check_open()
            return body(self._reader)
        finally:
            self._lock.release()

    def _read_aside(self, body: Callable[[Reader], T]) -> T:
        with self._lock:
            self._check_open()
            moment = _Moment(self)
            self._moments.append(moment)
        try:
            return body(moment)
        finally:
            with self._lock:
                # `restore` has let go of the moments before it.
                if moment in self._moments:
                    self._moments.remove(moment)

    def write(self, body: Callable[[Transaction], T]) -> T:
        pace.acquire(self._lock)
        try:
            self._check_open()
            transaction = _Transaction(self)
            sequence, last_stamp = self._sequence, self._last_stamp
            unknown: CommitUnknown | None = None
            try:
                result = body(transaction)
                if self.commit_fault is not None and transaction.writes() > 0:
                    self._meet(self.commit_fault, "before")
                    try:
                        self._meet(self.commit_fault, "after")
                    except CommitUnknown as error:
                        unknown = error
            except BaseException:
                transaction.undo()
                self._sequence, self._last_stamp = sequence, last_stamp
                raise
            self._leavings.free(2 * transaction.writes())
            if unknown is not None:
                raise unknown
            return result
        finally:
            self._lock.release()

    def submit_read(self, body: Callable[[Reader], Any], done: Done) -> None:
        try:
            result = self.read(body)
        except Exception as error:
            done(None, error)
        else:
            done(result, None)

    def submit(self, body: Callable[[Transaction], Any], done: Done) -> None:
        try:
            result = self.write(body)
        except Exception as error:
            done(None, error)
        else:
            done(result, None)

    def refusing(self) -> str | None:
        return None

    def checkpoint(self, directory: str) -> None:
        raise Unsupported("The memory engine has no checkpoint; use a data directory instead.")

    def snapshot(self) -> Snapshot:
        with self._lock:
            self._check_open()
            spaces = {
                space: records.flat() if isinstance(records, Layered) else records
                for space, records in self._spaces.items()
            }
            self._stand_on(spaces)
            stamps = self._stamps.copy()
            return MemorySnapshot(spaces, self._totals.copy(), stamps, self._sequence, self._last_stamp)

    def restore(self, snapshot: Snapshot) -> None:
        if not isinstance(snapshot, MemorySnapshot):
            raise Unsupported("The memory engine restores snapshots of memory engines only.")
        with self._lock:
            self._check_open()
            if not self._moments:
                for records in self._spaces.values():
                    self._leavings.add(records)
            # No write changes the records of these moments any more: they need no copies of what it replaces.
            self._moments.clear()
            self._stand_on(snapshot.spaces)
            self._totals.clear()
            self._totals.update(snapshot.totals)
            self._stamps.clear()
            self._stamps.update(snapshot.stamps)
            self._sequence = snapshot.sequence
            self._last_stamp = snapshot.last_stamp

    def _stand_on(self, spaces: dict[int, Any]) -> None:
        """Continue on top of these records without changing them."""
        self._spaces.clear()
        for space, records in spaces.items():
            self._spaces[space] = Layered(records)

    def upkeep(self) -> None:
        """Nothing to do: deleted records take no memory."""

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._spaces.clear()
            self._leavings.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise StoreClosed

    def _meet(self, fault: CommitFault, moment: Moment) -> None:
        try:
            fault(moment)
        except CommitUnknown:
            raise
        except Exception as error:
            raise CommitFailed(f"The writes could not be kept: {error}") from error


class _Reader:
    __slots__ = ("_engine", "_spaces")

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._spaces = engine._spaces

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        records: Any = self._spaces.get(space)
        return None if records is None else records.get((partition, sort))

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

    def totals(self, space: int) -> Totals:
        return self._engine._totals.get(space, _NO_TOTALS)

    def _walk(
        self,
        space: int,
        low: tuple[bytes, bytes],
        high: tuple[bytes, bytes] | None,
        reverse: bool,
        likely: int | None,
    ) -> Iterator[tuple[tuple[bytes, bytes], bytes]]:
        if high is not None and low >= high:
            return
        low_included = True
        wanted = _SCAN_CHUNK if likely is None else min(likely, _SCAN_CHUNK)
        while True:
            chunk = self._chunk(space, low, high, low_included, reverse, wanted)
            for key, value in chunk:
                if value is not None:
                    yield key, value
            if len(chunk) < wanted:
                return
            wanted = _SCAN_CHUNK
            if reverse:
                high = chunk[-1][0]
            else:
                low, low_included = chunk[-1][0], False

    def _chunk(
        self,
        space: int,
        low: tuple[bytes, bytes],
        high: tuple[bytes, bytes] | None,
        low_included: bool,
        reverse: bool,
        wanted: int,
    ) -> list[tuple[tuple[bytes, bytes], bytes | None]]:
        """The next records of a walk: fewer than `wanted` only at its end."""
        # Looked up for each chunk, because the body may have deleted or created the space since the last one.
        records = self._spaces.get(space)
        if records is None:
            return []
        keys = islice(records.irange(low, high, (low_included, False), reverse), wanted)
        return [(key, records[key]) for key in keys]


class _Moment(_Reader):
    """The records as they were when this was made, for a body that runs without the lock.

    It shares the records of the engine. Each write first calls `keep` with the value that it is about to
    replace (its image).
    """

    __slots__ = ("_images", "_totals")

    def __init__(self, engine: MemoryEngine) -> None:
        super().__init__(engine)
        self._spaces = engine._spaces.copy()
        self._totals = engine._totals.copy()
        self._images: dict[int, Any] = {}

    def keep(self, space: int, key: tuple[bytes, bytes], value: bytes | None) -> None:
        """Remember that `value` was at `key` (None: no record). Only the first call for a key counts."""
        images = self._images.get(space)
        if images is None:
            images = self._images[space] = SortedDict()
        images.setdefault(key, value)

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        pace.point()
        key = (partition, sort)
        records: Any = self._spaces.get(space)
        # Read the record first and the image second: a write stores the image first and the record second.
        value = None if records is None else records.get(key)
        images = self._images.get(space)
        if images is not None and key in images:
            kept: bytes | None = images[key]
            return kept
        return value

    def totals(self, space: int) -> Totals:
        return self._totals.get(space, _NO_TOTALS)

    def _chunk(
        self,
        space: int,
        low: tuple[bytes, bytes],
        high: tuple[bytes, bytes] | None,
        low_included: bool,
        reverse: bool,
        wanted: int,
    ) -> list[tuple[tuple[bytes, bytes], bytes | None]]:
        with self._engine._lock:
            records = _Reader._chunk(self, space, low, high, low_included, reverse, wanted)
            images = self._images.get(space)
            if images is None:
                return records
            # Take the images in the range of this chunk only; later images belong to the next chunk.
            start, end, inclusive = low, high, (low_included, False)
            if len(records) >= wanted:
                last = records[-1][0]
                start, end = (last, high) if reverse else (low, last)
                inclusive = (True, False) if reverse else (low_included, True)
            merged = dict(records)
            for key in images.irange(start, end, inclusive):
                merged[key] = images[key]
            return sorted(merged.items(), reverse=reverse)


class _Transaction(_Reader):
    __slots__ = ("_stamp", "_undo")

    def __init__(self, engine: MemoryEngine) -> None:
        super().__init__(engine)
        self._stamp = 0
        self._undo: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        if len(partition) > PARTITION_BYTES_MAX or len(partition) + len(sort) > ADDRESS_BYTES_MAX:
            raise StorageError(f"The address is too long: {len(partition)} and {len(sort)} bytes.")
        records = self._spaces.get(space)
        if records is None:
            records = self._spaces[space] = SortedDict()
        key = (partition, sort)
        before = records.get(key)
        self._keep(space, key, before)
        self._undo.append((_set, (records, key, before)))
        records[key] = value

    def delete(self, space: int, partition: bytes, sort: bytes) -> None:
        records = self._spaces.get(space)
        key = (partition, sort)
        if records is not None and key in records:
            self._keep(space, key, records[key])
            self._undo.append((_set, (records, key, records.pop(key))))

    def _keep(self, space: int, key: tuple[bytes, bytes], value: bytes | None) -> None:
        for moment in self._engine._moments:
            moment.keep(space, key, value)

    def delete_space(self, space: int) -> None:
        totals, stamps = self._engine._totals, self._engine._stamps
        self._undo.append((_set, (self._spaces, space, self._spaces.pop(space, None))))
        self._undo.append((_set, (totals, space, totals.pop(space, None))))
        for log in [log for log in stamps if log[0] == space]:
            self._undo.append((_set, (stamps, log, stamps.pop(log))))

    def append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None = None) -> None:
        if stamp_at is not None:
            value = self._stamped(space, partition, value, stamp_at)
        self.put(space, partition, self.position(space).to_bytes(8, "big"), value)

    def _stamped(self, space: int, partition: bytes, value: bytes, start: int) -> bytes:
        """The value, with the log's last stamp in place of its own if that is smaller."""
        stamps, log, end = self._engine._stamps, (space, partition), start + STAMP_BYTES
        last = stamps.get(log)
        stamp = value[start:end]
        if last is None or last < stamp:
            self._undo.append((_set, (stamps, log, last)))
            stamps[log] = stamp
            return value
        return value if last == stamp else value[:start] + last + value[end:]

    def position(self, space: int) -> int:
        self._engine._sequence += 1
        return self._engine._sequence

    def stamp(self, moment: int) -> int:
        if not self._stamp:
            self._stamp = self._engine._last_stamp = max(moment, self._engine._last_stamp + 1)
        return self._stamp

    def keep(self, space: int, partition: bytes, sort: bytes, value: bytes, moment: int) -> None:
        sort += self.stamp(moment).to_bytes(STAMP_BYTES, "big")
        records = self._spaces.get(space)
        # No other body has this stamp, so a record here is this body's own.
        if records is None or (partition, sort) not in records:
            self.put(space, partition, sort, value)

    def count(self, space: int, records: int, bytes_: int) -> None:
        totals = self._engine._totals
        before = totals.get(space)
        self._undo.append((_set, (totals, space, before)))
        now = before or _NO_TOTALS
        totals[space] = Totals(now.records + records, now.bytes + bytes_)

    def writes(self) -> int:
        """How many writes `undo` would revert."""
        return len(self._undo)

    def undo(self) -> None:
        while self._undo:
            function, arguments = self._undo.pop()
            function(*arguments)


def _set(mapping: Any, key: Any, value: Any) -> None:
    """Put `value` back into `mapping` at `key`; None removes the key."""
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value
