"""Queues by time: names with the times at which they are due, in the order of the times. A space holds a
single queue.

    ("queue", time as 8 bytes big-endian + name) → ""
    ("mark", "") → the time at which the mark was set (8 bytes), and the place where the queue begins

A removed name leaves a tombstone at the front of the queue, and a scan from the beginning would walk over all
tombstones. So a scan begins at the mark. A transaction that removes all names up to a place moves the mark
there; a transaction that adds a name below the mark, for example one that is due in the past, moves the mark
back. If the clock shows an earlier time than when the mark was set, the mark is ignored: names below it may
count again.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hashrange.storage.api import Reader, Transaction

QUEUE: Final = b"queue"
_MARK: Final = b"mark"
_TIME_BYTES: Final = 8

TIME_MAX: Final = 2**63 - 1


def place(seconds: int, name: bytes) -> bytes:
    """The place of a name that is due at `seconds` (epoch)."""
    return seconds.to_bytes(_TIME_BYTES, "big") + name


def add(txn: Transaction, space: int, seconds: int, name: bytes) -> None:
    """Add `name` to the queue, due at `seconds` (epoch)."""
    where = place(seconds, name)
    txn.put(space, QUEUE, where, b"")
    stored = txn.get(space, _MARK, b"")
    if stored is not None and where < stored[_TIME_BYTES:]:
        txn.put(space, _MARK, b"", stored[:_TIME_BYTES] + where)


def remove(txn: Transaction, space: int, seconds: int, name: bytes) -> None:
    """Remove a name that is due at `seconds` (epoch)."""
    txn.delete(space, QUEUE, place(seconds, name))


def holds(reader: Reader, space: int, seconds: int, name: bytes) -> bool:
    """Whether the queue holds `name`, due at `seconds`."""
    return reader.get(space, QUEUE, place(seconds, name)) is not None


def walk(reader: Reader, space: int, after: bytes | None = None) -> Iterator[tuple[int, bytes]]:
    """All members of the queue after the place `after`, as `(seconds, name)`: for the checker."""
    low = after + b"\x00" if after is not None else b""
    for where, _ in reader.scan(space, QUEUE, low):
        yield int.from_bytes(where[:_TIME_BYTES], "big"), where[_TIME_BYTES:]


def due(reader: Reader, space: int, now: float, oldest: int = 0) -> Iterator[tuple[int, bytes]]:
    """The names whose time is at most `now` and at least `oldest`, as `(seconds, name)`, the earliest
    first."""
    low = place(max(0, oldest), b"")
    stored = reader.get(space, _MARK, b"")
    if stored is not None and int.from_bytes(stored[:_TIME_BYTES], "big") <= int(now):
        low = max(low, stored[_TIME_BYTES:])
    for where, _ in reader.scan(space, QUEUE, low, place(int(now) + 1, b"")):
        yield int.from_bytes(where[:_TIME_BYTES], "big"), where[_TIME_BYTES:]


def ahead(reader: Reader, space: int, latest: int) -> Iterator[tuple[int, bytes]]:
    """The names whose time is after `latest`, as `(seconds, name)`."""
    for where, _ in reader.scan(space, QUEUE, place(latest + 1, b"")):
        yield int.from_bytes(where[:_TIME_BYTES], "big"), where[_TIME_BYTES:]


def done(txn: Transaction, space: int, now: float, seconds: int, name: bytes) -> None:
    """Move the mark after a place: this transaction removed all names of `due` up to this place."""
    txn.put(space, _MARK, b"", place(int(now), b"") + place(seconds, name) + b"\x00")
