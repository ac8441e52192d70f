"""The records that an engine knows without asking: recent records with their versions, and space 0.

All of them may be out of date, because other engines write as well. A body's reads from here count only after
they are verified (`groups`, `reads`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from hashrange.storage import features
from hashrange.storage.failures import StoreOutgrown
from hashrange_postgres import schema as schemas

_log = logging.getLogger("hashrange.postgres")

Key = tuple[int, bytes, bytes]
"""Space, partition and sort."""

Place = tuple[bytes, bytes]
"""Partition and sort."""

Known = tuple[bytes | None, int]
"""The value of a record and its version; None and 0 if the record does not exist."""

Range = tuple[int, bytes, bytes, bytes, bytes, bool, int]
"""A space, the places from which and below which its records are wanted (partition and sort, twice), whether
they are wanted from the highest down, and how many."""

Records = tuple[list[tuple[Place, bytes]], bool]
"""The records of a range, in order, and whether the range has no more."""

CATALOG_SPACE: Final = 0
_BEFORE_SPACES: Final = b"\xff" * 8

# A record takes about this much memory beside its own bytes.
_OVERHEAD_BYTES: Final = 300


class Cache:
    """Records that were read or written last, in two generations: when the young one is full, it becomes the
    old one, and the former old one is forgotten."""

    __slots__ = ("_bytes", "_bytes_max", "_old", "_young")

    def __init__(self, bytes_max: int) -> None:
        self._bytes = 0
        self._bytes_max = bytes_max
        self._young: dict[Key, Known] = {}
        self._old: dict[Key, Known] = {}

    def get(self, key: Key) -> Known | None:
        known = self._young.get(key)
        if known is None:
            known = self._old.get(key)
            if known is not None:
                self.put(key, known)
        return known

    def peek(self, key: Key) -> Known | None:
        """Like `get`, but does not count as a use of the record. Needs no lock."""
        known = self._young.get(key)
        return known if known is not None else self._old.get(key)

    def put(self, key: Key, known: Known) -> None:
        self._young[key] = known
        self._bytes += _OVERHEAD_BYTES + len(key[2]) + (len(known[0]) if known[0] is not None else 0)
        if self._bytes * 2 > self._bytes_max:
            self._old, self._young, self._bytes = self._young, {}, 0

    def add(self, records: dict[Key, bytes | None], version: int) -> None:
        """Add the records that a commit has written."""
        for key, value in records.items():
            self.put(key, (value, version) if value is not None else (None, 0))

    def learn(self, records: dict[Key, Known], known: dict[Key, Known]) -> None:
        """Add fetched records, except those that changed in the cache since the request; `known` are those
        that were in the cache at that time."""
        for key, fetched in records.items():
            if key[0] == CATALOG_SPACE:
                continue
            held = self.get(key)
            if held is not None and held[1] == fetched[1]:
                continue
            before = known.get(key)
            if held is None or (before is not None and before[1] == held[1]):
                self.put(key, fetched)

    def forget(self, keys: Iterable[Key]) -> None:
        for key in keys:
            self._young.pop(key, None)
            self._old.pop(key, None)

    def clear(self) -> None:
        self._young.clear()
        self._old.clear()
        self._bytes = 0


class Peeked:
    """The records of a cache, for readers that hold no lock."""

    __slots__ = ("_cache",)

    def __init__(self, cache: Cache) -> None:
        self._cache = cache

    def get(self, key: Key) -> Known | None:
        return self._cache.peek(key)


class LockedRecords:
    """The records that a group has locked, with their versions: those that have changed, and from the cache
    those that have not."""

    __slots__ = ("_cache", "_changed", "_versions")

    def __init__(self, versions: dict[Key, int], changed: dict[Key, Known], cache: Cache) -> None:
        self._versions = versions
        self._changed = changed
        self._cache = cache

    def get(self, key: Key) -> Known | None:
        """None if the record is not locked, or its value is not known."""
        version = self._versions.get(key)
        if version is None:
            return None
        if not version:
            return None, 0
        known = self._changed.get(key) or self._cache.get(key)
        return known if known is not None and known[1] == version else None


class CatalogState:
    """Space 0 and the deleted spaces, as of one version of the catalog. `records` has what was fetched."""

    __slots__ = ("cleared", "records", "version")

    def __init__(self, version: int, cleared: frozenset[int]) -> None:
        self.version = version
        self.cleared = cleared
        self.records: dict[Place, bytes | None] = {}


class Catalog:
    """What the engine knows of the catalog: `state`, which threads replace as a whole when the version
    changes.

    Each statement that fetches records also returns the version of the catalog. If it has changed, everything
    known of the catalog is dropped.

    `logs` are the spaces known to have logs. A space that has logs never holds anything else. `outgrown`
    says what this program does not know of a store that a newer one has upgraded. The newer one gives the
    catalog another version, so no statement misses the change.
    """

    __slots__ = ("logs", "outgrown", "state")

    def __init__(self) -> None:
        self.logs: set[int] = set()
        self.state = CatalogState(-1, frozenset())
        self.outgrown = ""

    def note(self, version: int, told: bytes) -> CatalogState:
        """The state of the version that row 0 of a statement tells (`told` in `schema.sql`). Raises
        StoreOutgrown."""
        state = self.state
        if version != state.version:
            needs, _, cleared = told.partition(_BEFORE_SPACES)
            format_, *features_ = needs.split()
            if int(format_) != schemas.FORMAT:
                raise self.outgrow(f"has format {int(format_)}")
            if names := features.unknown(features_):
                raise self.outgrow(f"needs {names}")
            state = self.state = CatalogState(version, _spaces(cleared))
        return state

    def outgrow(self, what: str) -> StoreOutgrown:
        """The error for all requests from now on: the store has what this program does not know."""
        error = StoreOutgrown(what)
        if not self.outgrown:
            _log.error("%s", error)
        self.outgrown = what
        return error

    def check(self) -> None:
        """Raises StoreOutgrown."""
        if self.outgrown:
            raise StoreOutgrown(self.outgrown)

    def forget(self) -> None:
        """Forget the state, because it is out of date. The catalog will never have this version again."""
        self.state = CatalogState(-1, frozenset())


def _spaces(packed: bytes) -> frozenset[int]:
    return frozenset(int.from_bytes(packed[at : at + 8], "big") for at in range(0, len(packed), 8))
