"""Queues by time: what is to happen when, in the order of the times. One space holds one queue.

    ("queue", time as 8 bytes big-endian + name) → ""
    ("mark", "") → the time at which it was set (8 bytes), and the place below which nothing is due any more

What was taken out of a queue lies at its front as deletions, and a scan from the beginning would walk over
all of them: it begins at the mark instead. The mark moves in the transaction that empties what is below it,
and goes back in the transaction that puts something there, such as a time in the past. It does not count
for a clock that was set back: what was too old then need not be now.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hashrange.storage.api import Reader, Transaction

_QUEUE: Final = b"queue"
_MARK: Final = b"mark"
_TIME_BYTES: Final = 8

TIME_MAX: Final = 2**63 - 1


def place(seconds: int, name: bytes) -> bytes:
    """Where a name lies that is due at `seconds` (epoch)."""
    return seconds.to_bytes(_TIME_BYTES, "big") + name


def add(txn: Transaction, space: int, seconds: int, name: bytes) -> None:
    """Have `name` be due at `seconds` (epoch)."""
    where = place(seconds, name)
    txn.put(space, _QUEUE, where, b"")
    stored = txn.get(space, _MARK, b"")
    if stored is not None and where < stored[_TIME_BYTES:]:
        txn.put(space, _MARK, b"", stored[:_TIME_BYTES] + where)


def remove(txn: Transaction, space: int, seconds: int, name: bytes) -> None:
    """Take a name out, wherever in the queue it is."""
    txn.delete(space, _QUEUE, place(seconds, name))


def holds(reader: Reader, space: int, seconds: int, name: bytes) -> bool:
    """Whether `name` is due at `seconds`."""
    return reader.get(space, _QUEUE, place(seconds, name)) is not None


def walk(reader: Reader, space: int, after: bytes | None = None) -> Iterator[tuple[int, bytes]]:
    """The whole queue behind the place `after`, as `(seconds, name)`: for the checker."""
    low = after + b"\x00" if after is not None else b""
    for where, _ in reader.scan(space, _QUEUE, low):
        yield int.from_bytes(where[:_TIME_BYTES], "big"), where[_TIME_BYTES:]


def due(reader: Reader, space: int, now: float, oldest: int = 0) -> Iterator[tuple[int, bytes]]:
    """What is due at `now` and was not before `oldest`, as `(seconds, name)`, the earliest first."""
    low = place(max(0, oldest), b"")
    stored = reader.get(space, _MARK, b"")
    if stored is not None and int.from_bytes(stored[:_TIME_BYTES], "big") <= int(now):
        low = max(low, stored[_TIME_BYTES:])
    for where, _ in reader.scan(space, _QUEUE, low, place(int(now) + 1, b"")):
        yield int.from_bytes(where[:_TIME_BYTES], "big"), where[_TIME_BYTES:]


def ahead(reader: Reader, space: int, latest: int) -> Iterator[tuple[int, bytes]]:
    """What is due after `latest` only, as `(seconds, name)`."""
    for where, _ in reader.scan(space, _QUEUE, place(latest + 1, b"")):
        yield int.from_bytes(where[:_TIME_BYTES], "big"), where[_TIME_BYTES:]


def done(txn: Transaction, space: int, now: float, seconds: int, name: bytes) -> None:
    """Move the mark behind a place: the transaction took everything out that `due` gave up to there."""
    txn.put(space, _MARK, b"", place(int(now), b"") + place(seconds, name) + b"\x00")
