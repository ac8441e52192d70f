"""The translation of records to another format: the part of a migration that knows what the records mean.
`embedded.offline.migration` reads and writes the records."""

from __future__ import annotations

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from typing import Protocol

from hashrange.storage.api import Reader

Record = tuple[int, bytes, bytes, bytes]
"""Space, partition, sort and value."""


class Translation(Protocol):
    """How the records of one store are translated."""

    @property
    def emptied(self) -> AbstractSet[int]:
        """The spaces that are dropped, with their totals."""

    def record(self, space: int, partition: bytes, sort: bytes, value: bytes) -> Iterator[Record]:
        """The records that replace one record, at any address. Called for every record of the other spaces,
        in order; the calls may begin at any record. Raises `Untranslatable`."""


class Begin(Protocol):
    """Makes the translation of a store. `mark` is a sequence number above all that the store has given, and
    below all that it will give; `now` is when the migration began."""

    def __call__(self, reader: Reader, mark: int, now: float) -> Translation: ...


class Untranslatable(Exception):
    """Why a record cannot be translated, and to which table or other object it belongs."""
