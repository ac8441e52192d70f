"""A problem that a check found, and what every check of the store uses."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeVar

from hashrange.storage.api import Reader, Transaction

BITE_RECORDS: Final = 500
"""How many records a check reads in a body."""

T = TypeVar("T")

Progress = Callable[[str, int], None]
"""Called after each bite with the name of the table, index or stream being checked, and the number of its
checked records."""


Mend = Callable[[Transaction], None]
"""Corrects a problem."""


class Readable(Protocol):
    """The store to be checked: an engine, or the readable records of a damaged store."""

    def read(self, body: Callable[[Reader], T]) -> T:
        """Run a read body."""
        ...


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem that was found. `table` is "" if it concerns no table. `partition` and `sort` are the
    address of the record that it concerns, None if it concerns none. `orphan` is the space whose records
    `mend` deletes, because nothing owns them."""

    table: str
    message: str
    index: str | None = None
    partition: bytes | None = None
    sort: bytes | None = None
    mend: Mend | None = field(default=None, compare=False, repr=False)
    orphan: int | None = None

    def __str__(self) -> str:
        where = self.table or "store"
        if self.index is not None:
            where += f", index {self.index}"
        if self.partition is not None:
            where += f", record {self.partition.hex()}/{(self.sort or b'').hex()}"
        return f"{where}: {self.message}"
