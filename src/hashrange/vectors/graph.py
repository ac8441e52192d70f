"""A graph over the vectors of a large matrix, which proposes rows near a vector: usearch's form of HNSW.

A graph is made only if a setting asks for it, because it may miss some of the nearest vectors. It proposes
more rows than a search wants, and their scores are then computed exactly, as without a graph. A search
compares all rows if few of them meet its condition, if the graph would have to propose too many, or if it
proposes too few.

A new vector takes a graph about as long as a search, so background work adds the vectors, a few at a time
(`MatrixCache.grow`). Those that wait are always proposed: each search finds what was written before it.

Distances in the graph are of 16-bit floats with the range of 32-bit ones (bfloat16), which halve its memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import islice
from math import ceil
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from hashrange.tables.definitions.table import Vector

Floats = NDArray[np.float32]
Rows = NDArray[np.intp]

_METRICS: Final = {"COSINE": "cos", "EUCLIDEAN": "l2sq", "DOT_PRODUCT": "ip"}

_TIMES: Final = 4
"""How many times the wanted vectors it proposes, per vector that meets the condition."""

_PROPOSED_MAX: Final = 1_000
_BREADTH_MIN: Final = 128
_LINKS_BYTES: Final = 320
"""What the links of a vector take: 300 to 330 bytes, measured for 16 to 768 dimensions. (`memory_usage` of
usearch counts reserved addresses, of which it uses a part.)"""

_MAPS_BYTES: Final = 300
"""What the maps of a vector's key take: three entries of dictionaries, and the numbers."""


def is_installed() -> bool:
    """Whether usearch can be imported."""
    try:
        import usearch.index  # noqa: F401
    except ImportError:
        return False
    return True


def bytes_of(vector: Vector, count: int) -> int:
    """About how many bytes of memory a graph of this many vectors takes."""
    return count * (2 * vector.dimensions + _LINKS_BYTES + _MAPS_BYTES)


class Graph:
    """The vectors of entries, by the sorts of the entries; `waiting` are those that it does not know yet."""

    __slots__ = ("_index", "_keys", "_most", "_next", "_sorts", "_vector", "waiting")

    def __init__(self, vector: Vector, sorts: Iterable[bytes]) -> None:
        from usearch.index import Index

        self._index: Any = Index(ndim=vector.dimensions, metric=_METRICS[vector.distance], dtype="bf16")
        self._vector = vector
        self._most = 0  # (the place of a removed vector is used again, and never given back)
        self._keys: dict[bytes, int] = {}
        self._sorts: dict[int, bytes] = {}
        self._next = 0
        self.waiting: dict[bytes, None] = dict.fromkeys(sorts)

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        known, waiting = len(self._keys), len(self.waiting)
        return bytes_of(self._vector, self._most) + _MAPS_BYTES * (known + waiting - self._most)

    def changed(self, sort: bytes) -> None:
        """Note that the vector of an entry is new."""
        self.removed(sort)
        self.waiting[sort] = None

    def removed(self, sort: bytes) -> None:
        """Forget the vector of an entry."""
        self.waiting.pop(sort, None)
        key = self._keys.pop(sort, None)
        if key is not None:
            del self._sorts[key]
            self._index.remove(key)

    def grow(self, floats: Floats, places: Mapping[bytes, int], count: int) -> None:
        """Add at most `count` of the vectors that wait. `floats` and `places` are those of the matrix."""
        sorts = list(islice(self.waiting, count))
        keys = range(self._next, self._next + len(sorts))
        if sorts:
            rows = floats[[places[sort] for sort in sorts]]
            self._index.add(np.array(keys, np.uint64), rows, threads=1)
        for key, sort in zip(keys, sorts, strict=True):
            del self.waiting[sort]
            self._keys[sort], self._sorts[key] = key, sort
        self._next += len(sorts)
        self._most = max(self._most, len(self._keys))

    def proposed(
        self, query: Floats, count: int, rows: Rows | None, places: Mapping[bytes, int], exact_max: int
    ) -> Rows | None:
        """The rows, of `rows` (None: all), among which a search for `count` vectors should look: `rows`
        itself if it should look at all."""
        allowed = len(places) if rows is None else len(rows)
        if allowed <= exact_max or len(self.waiting) > exact_max:
            return rows
        wanted = ceil(_TIMES * count * len(places) / allowed)
        if wanted > _PROPOSED_MAX:
            return rows
        self._index.expansion_search = max(_BREADTH_MIN, 2 * wanted)
        keys: NDArray[np.uint64] = self._index.search(query, wanted, threads=1).keys
        sorts = [*(self._sorts[key] for key in keys.tolist()), *self.waiting]
        near = np.array(sorted(places[sort] for sort in sorts), np.intp)
        if rows is not None:
            near = np.intersect1d(near, rows, assume_unique=True)
        return rows if len(near) < count else near
