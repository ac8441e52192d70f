"""The matrices that a database keeps between searches, within a bound of memory.

For each index there is the position in its log of changes up to which its matrices are right. A search first
brings them up to what its reader shows: it reads the changes since, and then the changed entries. If the log
no longer has all of these changes, the matrices are dropped. A reader that shows an older state than the
matrices have, because another search was faster, reads the entries themselves.

A search is a part of a body, which an engine may run over outdated records before it runs it again. What is
kept comes only from scans, and from entries whose digest is that of the log (`tables.items.vectors`).

A matrix that is larger than the bound is never whole in memory: the search goes through its parts, each of a
quarter of the bound at most. The changes of an index go to all of its matrices, so all that have changed are
measured again, with their graphs.

Background work adds the vectors of large matrices to graphs, if a setting asks for it.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final, NamedTuple

from hashrange import pace
from hashrange.expressions import SearchCondition
from hashrange.settings import ALL_VECTORS
from hashrange.storage.api import Reader
from hashrange.tables.definitions.table import Index, Vector
from hashrange.tables.items import vectors
from hashrange.vectors.graph import Floats
from hashrange.vectors.matrix import Matrix
from hashrange.vectors.nearest import Match, nearest

_PART_BYTES: Final = 16 * 1024 * 1024
_ENTRIES_AT_ONCE: Final = 256
_GROWN_AT_ONCE: Final = 16
"""This many vectors are added to a graph while searches of its index wait: about 20 milliseconds."""

_LOCK_SECONDS_MAX: Final = 0.5
"""A search that waits longer for others on its index reads the entries itself."""

_DOUBTS_MAX: Final = 10
"""After this many searches whose entries are not those of the log, as after damage, an index is read
again."""


class Search(NamedTuple):
    """What to search for: the `top` vectors nearest to `query` among the entries of `partition` whose
    filter attributes meet the `condition`."""

    partition: bytes
    query: Floats
    top: int
    condition: SearchCondition


class _OfIndex:
    """The matrices of an index, by the partitions of its entries, and up to which change they are right;
    `doubts` counts the searches since then whose entries were not those of the log."""

    __slots__ = ("doubts", "lock", "matrices", "position")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.position = -1
        self.doubts = 0
        self.matrices: dict[bytes, Matrix] = {}


class MatrixCache:
    """The matrices of a database, at most `bytes_max` together, with graphs for those that have more rows
    than `exact_max`. Any thread may search."""

    def __init__(self, bytes_max: int, exact_max: int) -> None:
        self._bytes_max = bytes_max
        self._part_bytes = min(_PART_BYTES, bytes_max // 4)
        self._exact_max = exact_max
        self._indexes: dict[int, _OfIndex] = {}
        self._used: OrderedDict[tuple[int, bytes], int] = OrderedDict()  # sizes, by the last use
        self._size = 0  # their sum
        self._lock = threading.Lock()

    @property
    def size(self) -> int:
        """About how much memory the matrices take, with their graphs."""
        return self._size

    def find(self, reader: Reader, index: Index, vector: Vector, search: Search) -> list[Match]:
        """The nearest entries, the nearest first."""
        with self._lock:
            own = self._indexes.setdefault(index.space, _OfIndex())
        # The memory engine holds its lock while a body runs, except on a worker thread, which takes it for a
        # moment when it reads. If they waited for each other, neither would go on.
        seconds = -1.0 if pace.is_aside() else _LOCK_SECONDS_MAX
        if not own.lock.acquire(timeout=seconds):
            return _through(_parts(reader, index, vector, search.partition, self._part_bytes), vector, search)
        try:
            if self._bring_up(reader, index, vector, own):
                matrix = own.matrices.get(search.partition)
                if matrix is not None and matrix.is_worn():
                    matrix = None
                if matrix is not None:
                    self._measure(index.space, own, [search.partition], is_used=True)
                    condition, most = search.condition, self._exact_max
                    return nearest(matrix, vector.distance, search.query, search.top, condition, most)
                return self._first(reader, index, vector, own, search)
        finally:
            own.lock.release()
        return _through(_parts(reader, index, vector, search.partition, self._part_bytes), vector, search)

    def grow(self) -> bool:
        """Add some vectors to the graphs. Returns whether vectors still wait."""
        if self._exact_max == ALL_VECTORS:
            return False
        with self._lock:
            indexes = list(self._indexes.items())
        for space, own in indexes:
            with own.lock:
                for partition, matrix in list(own.matrices.items()):
                    had = matrix.graph is not None
                    waits = matrix.tend_graph(self._exact_max, self._bytes_max, _GROWN_AT_ONCE)
                    if had or matrix.graph is not None:
                        self._measure(space, own, [partition])
                    if waits:
                        return True
        return False

    def _first(
        self, reader: Reader, index: Index, vector: Vector, own: _OfIndex, search: Search
    ) -> list[Match]:
        """The first search of a partition, or the search of one that is too large to keep."""
        parts = _parts(reader, index, vector, search.partition, self._part_bytes)
        whole = Matrix(vector)
        for part in parts:
            whole.add(part)
            if whole.size > self._bytes_max:
                return _through(chain([whole], parts), vector, search)
        own.matrices[search.partition] = whole
        self._measure(index.space, own, [search.partition], is_used=True)
        return nearest(whole, vector.distance, search.query, search.top, search.condition, ALL_VECTORS)

    def _bring_up(self, reader: Reader, index: Index, vector: Vector, own: _OfIndex) -> bool:
        """Bring the matrices of an index up to what the reader shows; returns False if they are ahead of
        it."""
        changes = vectors.changes(reader, vector, own.position) if own.position >= 0 else None
        if changes is None:
            position = vectors.position(reader, vector)
            if position < own.position:
                return False
            own.matrices.clear()
            self._forget(index.space)
            own.position = position
            return True
        if not changes:
            return vectors.position(reader, vector) >= own.position
        latest = {
            (change.partition, change.sort): change.digest
            for change in changes
            if change.partition in own.matrices
        }
        places = sorted(latest)
        for start in range(0, len(places), _ENTRIES_AT_ONCE):
            pace.point()
            part = places[start : start + _ENTRIES_AT_ONCE]
            stored = reader.get_many([(index.space, *place) for place in part])
            for place, record in zip(part, stored, strict=True):
                if vectors.digest_of(record) != latest[place]:
                    # This is not the entry of the log's moment: the engine will run the body again.
                    own.doubts += 1
                    own.position = own.position if own.doubts < _DOUBTS_MAX else -1
                    return False
                matrix = own.matrices.get(place[0])
                if matrix is not None and record is None:
                    matrix.remove(place[1])
                elif matrix is not None and record is not None:
                    matrix.put(place[1], record)
            self._measure(index.space, own, {place[0] for place in part})
        own.position, own.doubts = changes[-1].number, 0
        return True

    def _forget(self, space: int) -> None:
        with self._lock:
            for used in [used for used in self._used if used[0] == space]:
                self._size -= self._used.pop(used)

    def _measure(
        self, space: int, own: _OfIndex, partitions: Iterable[bytes], *, is_used: bool = False
    ) -> None:
        """Note the sizes of matrices that have changed, or are used, and drop those that were used least
        recently if all together take too much."""
        with self._lock:
            for partition in partitions:
                matrix = own.matrices.get(partition)
                if matrix is None:
                    continue
                before, size = self._used.get((space, partition), 0), matrix.size
                self._used[space, partition] = size
                self._size += size - before
                if is_used:
                    self._used.move_to_end((space, partition))
            while self._size > self._bytes_max and self._used:
                (old_space, old_partition), size = self._used.popitem(last=False)
                self._size -= size
                self._indexes[old_space].matrices.pop(old_partition, None)


def _parts(
    reader: Reader, index: Index, vector: Vector, partition: bytes, bytes_max: int
) -> Iterator[Matrix]:
    """The entries of a partition as matrices of about `bytes_max`."""
    part = Matrix(vector)
    for sort, record in reader.scan(index.space, partition):
        pace.point()
        part.put(sort, record)
        if part.size >= bytes_max:
            yield part
            part = Matrix(vector)
    yield part


def _through(parts: Iterable[Matrix], vector: Vector, search: Search) -> list[Match]:
    """The nearest entries of all parts."""
    best: list[Match] = []
    for part in parts:
        near = nearest(part, vector.distance, search.query, search.top, search.condition, ALL_VECTORS)
        best = sorted(best + near)[: search.top]
    return best
