"""The engine that keeps everything in this process, sorted: for tests and for `--memory`.

Rules:

- One lock around every body, so bodies run one after the other and a reader never sees half of one.
- A write goes into the store at once and its opposite into an undo list; a body that raises is undone.
- A batch holds one body: `write` and `submit` are the same thing, and `done` is called before `submit`
  returns.

Refuses to know: durability, formats, files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from threading import RLock
from typing import Any, TypeVar

from sortedcontainers import SortedDict

from hashrange.storage.api import (
    ADDRESS_BYTES_MAX,
    PARTITION_BYTES_MAX,
    Address,
    CommitFailed,
    Done,
    Reader,
    StorageError,
    Totals,
    Transaction,
    Unsupported,
)

T = TypeVar("T")

# A scan copies this many keys at a time: a body may then write while its scan is under way, and a short
# page of a long partition stays cheap.
_SCAN_CHUNK = 64

_Space = dict[tuple[bytes, bytes], bytes]
_NO_TOTALS = Totals(0, 0)


class MemoryEngine:
    """The store in memory. `commit_fault` is for tests: it is called before each body's writes become
    visible, and what it raises fails that commit."""

    name = "memory"

    def __init__(self) -> None:
        self.commit_fault: Callable[[], None] | None = None
        self._lock = RLock()
        self._spaces: dict[int, Any] = {}
        self._totals: dict[int, Totals] = {}
        self._sequence = 0
        self._closed = False
        self._reader = _Reader(self)

    def read(self, body: Callable[[Reader], T]) -> T:
        with self._lock:
            self._check_open()
            return body(self._reader)

    def write(self, body: Callable[[Transaction], T]) -> T:
        with self._lock:
            self._check_open()
            transaction = _Transaction(self)
            sequence = self._sequence
            try:
                result = body(transaction)
                self._commit(transaction)
            except BaseException:
                transaction.undo()
                self._sequence = sequence
                raise
            return result

    def submit(self, body: Callable[[Transaction], Any], done: Done) -> None:
        try:
            result = self.write(body)
        except Exception as error:
            done(None, error)
        else:
            done(result, None)

    def deliver_on(
        self,
        deliver: Callable[[Callable[[], None]], None],
        defer: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """Nothing to do: outcomes are never late."""

    def checkpoint(self, directory: str) -> None:
        raise Unsupported("The memory engine has no checkpoint; use a data directory instead.")

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._spaces.clear()

    def _check_open(self) -> None:
        if self._closed:
            raise StorageError("The store is closed; open it again to use it.")

    def _commit(self, transaction: _Transaction) -> None:
        if self.commit_fault is not None and transaction.wrote():
            try:
                self.commit_fault()
            except Exception as error:
                raise CommitFailed(f"The writes could not be kept: {error}") from error


class _Reader:
    __slots__ = ("_engine", "_spaces")

    def __init__(self, engine: MemoryEngine) -> None:
        self._engine = engine
        self._spaces = engine._spaces

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        records: _Space | None = self._spaces.get(space)
        return None if records is None else records.get((partition, sort))

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        get = self.get
        return [get(space, partition, sort) for space, partition, sort in addresses]

    def scan(
        self,
        space: int,
        partition: bytes,
        low: bytes = b"",
        high: bytes | None = None,
        *,
        reverse: bool = False,
    ) -> Iterator[tuple[bytes, bytes]]:
        # b"\0" appended makes the next partition in byte order, hence the end of this one.
        end = (partition + b"\0", b"") if high is None else (partition, high)
        for (_, sort), value in self._walk(space, (partition, low), end, reverse):
            yield sort, value

    def scan_space(
        self,
        space: int,
        low: tuple[bytes, bytes] = (b"", b""),
        high: tuple[bytes, bytes] | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        for (partition, sort), value in self._walk(space, low, high, False):
            yield partition, sort, value

    def totals(self, space: int) -> Totals:
        return self._engine._totals.get(space, _NO_TOTALS)

    def _walk(
        self, space: int, low: tuple[bytes, bytes], high: tuple[bytes, bytes] | None, reverse: bool
    ) -> Iterator[tuple[tuple[bytes, bytes], bytes]]:
        if high is not None and low >= high:
            return
        low_included = True
        while True:
            # Looked up anew each time: the body may have removed the space, or made it.
            records = self._spaces.get(space)
            if records is None:
                return
            keys = list(islice(records.irange(low, high, (low_included, False), reverse), _SCAN_CHUNK))
            for key in keys:
                value = records.get(key)
                if value is not None:
                    yield key, value
            if len(keys) < _SCAN_CHUNK:
                return
            if reverse:
                high = keys[-1]
            else:
                low, low_included = keys[-1], False


class _Transaction(_Reader):
    __slots__ = ("_undo",)

    def __init__(self, engine: MemoryEngine) -> None:
        super().__init__(engine)
        self._undo: list[tuple[Callable[..., None], tuple[Any, ...]]] = []

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        if len(partition) > PARTITION_BYTES_MAX or len(partition) + len(sort) > ADDRESS_BYTES_MAX:
            raise StorageError(f"The address is too long: {len(partition)} and {len(sort)} bytes.")
        records = self._spaces.get(space)
        if records is None:
            records = self._spaces[space] = SortedDict()
        key = (partition, sort)
        self._undo.append((_set, (records, key, records.get(key))))
        records[key] = value

    def delete(self, space: int, partition: bytes, sort: bytes) -> None:
        records = self._spaces.get(space)
        key = (partition, sort)
        if records is not None and key in records:
            self._undo.append((_set, (records, key, records.pop(key))))

    def delete_space(self, space: int) -> None:
        totals = self._engine._totals
        self._undo.append((_set, (self._spaces, space, self._spaces.pop(space, None))))
        self._undo.append((_set, (totals, space, totals.pop(space, None))))

    def append(self, space: int, partition: bytes, value: bytes) -> None:
        self.put(space, partition, self.position(space).to_bytes(8, "big"), value)

    def position(self, space: int) -> int:
        self._engine._sequence += 1
        return self._engine._sequence

    def count(self, space: int, records: int, bytes_: int) -> None:
        totals = self._engine._totals
        before = totals.get(space)
        self._undo.append((_set, (totals, space, before)))
        now = before or _NO_TOTALS
        totals[space] = Totals(now.records + records, now.bytes + bytes_)

    def wrote(self) -> bool:
        return bool(self._undo)

    def undo(self) -> None:
        while self._undo:
            function, arguments = self._undo.pop()
            function(*arguments)


def _set(mapping: dict[Any, Any], key: Any, value: Any) -> None:
    """Make `mapping` hold `value` at `key` again; None: nothing."""
    if value is None:
        mapping.pop(key, None)
    else:
        mapping[key] = value
