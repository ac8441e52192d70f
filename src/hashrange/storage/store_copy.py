"""Copies the contents of a store from one engine to another.

A source gives the contents of a store at one moment: its records, and the numbers that its engine keeps in
addition (`Numbers`). A target writes them to a new store that nobody can open before `finish`. `copy` copies
a store from source to target, reads back what was written, and compares it with what was read: for each space
the number of records, their bytes, and a digest of all of them.

The digest of a set of records is the sum of the digests of each, modulo 2^128, so it does not depend on the
order in which an engine reads them.

Memory holds a batch of records, and some numbers for each space and each log. Refuses to know: engines, and
what records mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from struct import Struct
from typing import Final, NamedTuple, Protocol

from hashrange.storage.api import Reader, Totals
from hashrange.storage.failures import StorageError

Record = tuple[int, bytes, bytes, bytes]
"""Its space, partition, sort and value."""

BATCH_RECORDS_MAX: Final = 5_000
BATCH_BYTES_MAX: Final = 4 * 1024 * 1024

Progress = Callable[[str, int, int], None]
"""Called after each batch with the name of the step, and how many of about how many records it has done."""

_HEAD: Final = Struct(">II").pack
_DIGEST_BYTES: Final = 16
_MODULUS: Final = 1 << (8 * _DIGEST_BYTES)


FindLogs = Callable[[Reader], set[int]]
"""Finds the spaces with logs of a store. Only the code that appends records knows them; not all engines store
them separately from the records."""


@dataclass(slots=True)
class Numbers:
    """The numbers that an engine keeps beside its records: totals by space, the last sequence number of each
    space with logs, the last stamp of a body."""

    totals: dict[int, Totals] = field(default_factory=dict)
    last: dict[int, int] = field(default_factory=dict)
    stamp: int = 0


class CopySource(Protocol):
    """The contents of a store at one moment."""

    def numbers(self) -> Numbers:
        """The engine's numbers, without those of deleted spaces."""
        ...

    def batches(self) -> Iterator[list[Record]]:
        """All records except those of deleted spaces and the engine's own, in any order. A batch has at most
        about BATCH_BYTES_MAX bytes, and BATCH_RECORDS_MAX records. Raises StorageError."""
        ...

    def expected(self) -> int:
        """About how many records there are."""
        ...

    def close(self) -> None:
        """Release everything. Idempotent."""
        ...


class CopyTarget(Protocol):
    """A store that is being made. No engine opens it before `finish`, even if the process dies."""

    def put(self, batch: list[Record]) -> None:
        """Write records. Raises StorageError."""
        ...

    def end(self, numbers: Numbers) -> None:
        """Write the numbers, after all records were put. Raises StorageError."""
        ...

    def written(self) -> CopySource:
        """A source that reads back what was written. `close` closes it."""
        ...

    def finish(self) -> None:
        """Let engines open the store from now on. Raises StorageError."""
        ...

    def close(self) -> None:
        """Release everything. Idempotent."""
        ...


class Sum(NamedTuple):
    """The records of a space: how many, their bytes, their digest."""

    records: int
    bytes: int
    digest: int


class Sums:
    """The sums of the records that were added, by space."""

    __slots__ = ("by_space", "records")

    def __init__(self) -> None:
        self.by_space: dict[int, Sum] = {}
        self.records = 0

    def add(self, batch: Iterable[Record]) -> None:
        """Add records."""
        by_space: dict[int, list[bytes]] = {}
        for space, partition, sort, value in batch:
            text = b"".join((_HEAD(len(partition), len(sort)), partition, sort, value))
            texts = by_space.get(space)
            if texts is None:
                texts = by_space[space] = []
            texts.append(text)
        for space, texts in by_space.items():
            digest = sum(
                [int.from_bytes(blake2b(text, digest_size=_DIGEST_BYTES).digest()) for text in texts]
            )
            before = self.by_space.get(space, _NOTHING)
            self.by_space[space] = Sum(
                before.records + len(texts),
                before.bytes + sum(map(len, texts)),
                (before.digest + digest) % _MODULUS,
            )
            self.records += len(texts)


_NOTHING: Final = Sum(0, 0, 0)


class Copied(NamedTuple):
    """The result of a copy."""

    records: int
    spaces: int


def copy(source: CopySource, target: CopyTarget, progress: Progress) -> Copied:
    """Copy a store, read it back, compare, and finish it. Raises StorageError; the target is unfinished
    then."""
    expected = source.expected()
    numbers = source.numbers()
    sums = Sums()
    for batch in source.batches():
        target.put(batch)
        sums.add(batch)
        progress("copying", sums.records, max(expected, sums.records))
    target.end(numbers)
    written = target.written()
    _compare_numbers(numbers, written.numbers())
    reread = Sums()
    for batch in written.batches():
        reread.add(batch)
        progress("verifying", reread.records, sums.records)
    _compare(sums.by_space, reread.by_space)
    target.finish()
    return Copied(sums.records, len(sums.by_space))


def _compare(read: dict[int, Sum], written: dict[int, Sum]) -> None:
    wrong = [space for space in sorted(read.keys() | written.keys()) if read.get(space) != written.get(space)]
    if wrong:
        space = wrong[0]
        first, second = read.get(space, _NOTHING), written.get(space, _NOTHING)
        differs = (
            f"{first.records} records of {first.bytes} bytes were read, and {second.records} records of "
            f"{second.bytes} bytes are there now"
            if first[:2] != second[:2]
            else f"its {first.records} records have another digest than those that were read"
        )
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise _mismatch(f"in space {space}{more}, {differs}")


def _compare_numbers(read: Numbers, written: Numbers) -> None:
    """Check that the new store has the same totals and the same last stamp. Its sequence numbers may be
    higher."""
    if {space: total for space, total in read.totals.items() if any(total)} != {
        space: total for space, total in written.totals.items() if any(total)
    }:
        raise _mismatch("the totals are not those that were read")
    if written.stamp != read.stamp:
        raise _mismatch(f"the last stamp is {written.stamp}, not {read.stamp}")
    for space, last in read.last.items():
        if written.last.get(space, 0) < last:
            raise _mismatch(f"the sequence numbers of space {space} do not go on above {last}")


def _mismatch(differs: str) -> StorageError:
    return StorageError(
        f"The copy is not what was read: {differs}. It stays unfinished, and no server opens it. Check the "
        "disks and the memory of both machines, and run `hashrange copy` again."
    )
