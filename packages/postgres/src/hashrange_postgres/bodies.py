"""The transactions of bodies that commit in groups: they read records that the engine knows, and note their
versions.

A body that needs a record that the engine does not know is ended by `Missing`, and runs again after the
record was fetched. One that needs more than records (a range, a number, totals) is ended by `NeedsStore`, and
runs again under the store's lock, in a transaction that asks PostgreSQL (`direct`).

Refuses to know: threads, SQL.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NoReturn, Protocol

from hashrange import pace
from hashrange.storage.api import ADDRESS_BYTES_MAX, PARTITION_BYTES_MAX, Address, Totals
from hashrange.storage.failures import StorageError
from hashrange_postgres.cache import CATALOG_SPACE, CatalogState, Key, Known, Range

SPACES_END: Final = 0xFFFF_FFFF
_UNKNOWN: Final = object()


class Missing(BaseException):
    """The body needs records or ranges that are not known."""

    def __init__(self, keys: list[Key], ranges: Sequence[Range] = ()) -> None:
        super().__init__(keys, ranges)
        self.keys = keys
        self.ranges = ranges


class NeedsStore(BaseException):
    """The body has to hold the store's lock before it runs, because it reads more than records."""


class Records(Protocol):
    """The known records: a cache, or records that were locked."""

    def get(self, key: Key) -> Known | None: ...


def check_address(space: int, partition: bytes, sort: bytes) -> None:
    """Raises StorageError."""
    size = len(partition) + len(sort)
    if size > ADDRESS_BYTES_MAX or len(partition) > PARTITION_BYTES_MAX or not 0 <= space < SPACES_END:
        raise StorageError(f"Not an address: space {space}, {len(partition)} and {len(sort)} bytes.")


class OnlyRecords(ABC):
    """The methods of a `Reader`; only `get` is answered from known records, the others end the body."""

    __slots__ = ()

    @abstractmethod
    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        """Like `Reader.get`. Raises Missing."""

    @abstractmethod
    def _more(self) -> NoReturn:
        """End the body, because it reads more than records."""

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        values: list[bytes | None] = []
        missing: list[Key] = []
        for space, partition, sort in addresses:
            if values:
                pace.point()
            try:
                values.append(self.get(space, partition, sort))
            except Missing as error:
                missing += error.keys
                values.append(None)
        if missing:
            raise Missing(missing)
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
        self._more()

    def scan_space(
        self,
        space: int,
        low: tuple[bytes, bytes] = (b"", b""),
        high: tuple[bytes, bytes] | None = None,
        *,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        self._more()

    def totals(self, space: int) -> Totals:
        self._more()


class Layer:
    """The writes of a group of bodies, as later bodies see them. `version` is that of its records;
    `late` are the spaces with records whose addresses PostgreSQL assigns."""

    __slots__ = ("late", "records", "version")

    def __init__(self, version: int) -> None:
        self.version = version
        self.records: dict[Key, bytes | None] = {}
        self.late: set[int] = set()


class GroupTransaction(OnlyRecords):
    """A `Transaction` over layers of groups, the newest first, and below them the records that the engine
    knows."""

    __slots__ = (
        "_cache",
        "_collecting",
        "_committing",
        "appended",
        "bytes",
        "catalog",
        "counts",
        "discovered",
        "kept",
        "late",
        "moment",
        "own",
        "read_catalog",
        "reads",
    )

    def __init__(
        self,
        collecting: Layer,
        committing: Layer | None,
        cache: Records,
        catalog: CatalogState,
    ) -> None:
        self._collecting = collecting
        self._committing = committing
        self._cache = cache
        self.discovered: list[Key] | None = None
        self.catalog = catalog
        self.reads: dict[Key, int] = {}
        self.read_catalog = False
        self.own: dict[Key, bytes | None] = {}
        self.late: set[int] = set()
        self.counts: dict[int, tuple[int, int]] = {}
        self.appended: list[tuple[int, bytes, bytes, int | None]] = []
        self.kept: dict[Key, bytes] = {}
        self.moment: int | None = None
        self.bytes = 0

    def wrote(self) -> bool:
        return bool(self.own or self.counts or self.appended or self.kept)

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        if space == CATALOG_SPACE:
            return self._get_catalog(partition, sort)
        catalog = self.catalog
        if catalog.cleared and space in catalog.cleared:
            self.read_catalog = True
            return None
        key = (space, partition, sort)
        if key in self.own:
            return self.own[key]
        committing = self._committing
        collecting = self._collecting
        if space in self.late or space in collecting.late or (committing and space in committing.late):
            raise NeedsStore
        records = collecting.records
        if key in records:
            # A group is committed as a whole or not at all: nothing to verify, but the outcome waits.
            self.read_catalog = True
            return records[key]
        if committing is not None and key in committing.records:
            value = committing.records[key]
            self.reads[key] = committing.version if value is not None else 0
            return value
        known = self._cache.get(key)
        if known is None:
            self._miss(key)
            return None
        self.reads[key] = known[1]
        return known[0]

    def _get_catalog(self, partition: bytes, sort: bytes) -> bytes | None:
        self.read_catalog = True
        value = self.catalog.records.get((partition, sort), _UNKNOWN)
        if value is _UNKNOWN:
            self._miss((CATALOG_SPACE, partition, sort))
            return None
        return value  # type: ignore[return-value]

    def _miss(self, key: Key) -> None:
        """Handle an unknown record: end the body, or let a trial run continue to find further ones."""
        if self.discovered is None:
            raise Missing([key])
        self.discovered.append(key)

    def _more(self) -> NoReturn:
        raise NeedsStore

    def position(self, space: int) -> int:
        raise NeedsStore

    def stamp(self, moment: int) -> int:
        raise NeedsStore

    def delete_space(self, space: int) -> None:
        raise NeedsStore

    def put(self, space: int, partition: bytes, sort: bytes, value: bytes) -> None:
        check_address(space, partition, sort)
        if space == CATALOG_SPACE:
            raise NeedsStore
        self.own[space, partition, sort] = value
        self.bytes += len(value) + len(partition) + len(sort)

    def delete(self, space: int, partition: bytes, sort: bytes) -> None:
        if space == CATALOG_SPACE:
            raise NeedsStore
        self.own[space, partition, sort] = None

    def append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None = None) -> None:
        check_address(space, partition, bytes(8))
        self.appended.append((space, partition, value, stamp_at))
        self.late.add(space)
        self.bytes += len(value) + len(partition)

    def keep(self, space: int, partition: bytes, sort: bytes, value: bytes, moment: int) -> None:
        check_address(space, partition, sort + bytes(8))
        if self.moment is None:
            self.moment = moment
        self.kept.setdefault((space, partition, sort), value)
        self.late.add(space)
        self.bytes += len(value) + len(partition) + len(sort)

    def count(self, space: int, records: int, bytes_: int) -> None:
        before = self.counts.get(space)
        if before is not None:
            records += before[0]
            bytes_ += before[1]
        self.counts[space] = (records, bytes_)
