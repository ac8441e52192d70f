"""The records of one space, as changes over records that never change: the basis of the memory engine's
snapshots.

`Layered` has those methods of a `SortedDict` that the memory engine uses. A change goes into `changes`, a
removal as None, and `below` never changes, so several `Layered` may share it. Making one takes the same time
for any number of records.

`Leavings` are the records that a return to a snapshot has left behind.

Refuses to know: bodies, locks, spaces.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import merge
from typing import Any

from sortedcontainers import SortedDict

Key = tuple[bytes, bytes]


class Layered:
    """Records over `below`, which is a `SortedDict` that nobody changes any more."""

    __slots__ = ("below", "changes")

    def __init__(self, below: Any) -> None:
        self.below: Any = below
        self.changes: Any = SortedDict()

    def __contains__(self, key: Key) -> bool:
        return self.get(key) is not None

    def get(self, key: Key) -> bytes | None:
        """The record at `key`, or None."""
        if key in self.changes:
            changed: bytes | None = self.changes[key]
            return changed
        unchanged: bytes | None = self.below.get(key)
        return unchanged

    def __getitem__(self, key: Key) -> bytes:
        value = self.get(key)
        if value is None:
            raise KeyError(key)
        return value

    def __setitem__(self, key: Key, value: bytes) -> None:
        self.changes[key] = value

    def pop(self, key: Key, default: bytes | None = None) -> bytes | None:
        """Remove the record at `key` and return it; `default` if it does not exist."""
        value = self.get(key)
        if value is None:
            return default
        if key in self.below:
            self.changes[key] = None
        else:
            del self.changes[key]
        return value

    def irange(
        self, low: Key | None, high: Key | None, inclusive: tuple[bool, bool], reverse: bool
    ) -> Iterator[Key]:
        """The keys between `low` and `high`, in order, like `SortedDict.irange`."""
        below = self.below.irange(low, high, inclusive, reverse)
        if not self.changes:
            return below  # type: ignore[no-any-return]
        return self._merged(below, self.changes.irange(low, high, inclusive, reverse), reverse)

    def _merged(self, below: Iterator[Key], changed: Iterator[Key], reverse: bool) -> Iterator[Key]:
        changes = self.changes
        last: Key | None = None
        for key in merge(below, changed, reverse=reverse):
            # A key that is in both comes twice.
            if key == last:
                continue
            last = key
            if key not in changes or changes[key] is not None:
                yield key

    def flat(self) -> Any:
        """All records as one `SortedDict` that nobody changes: `below` itself while nothing has changed."""
        if not self.changes:
            return self.below
        flat = dict(self.below)
        for key, value in self.changes.items():
            if value is None:
                flat.pop(key, None)
            else:
                flat[key] = value
        return SortedDict(flat)


class Leavings:
    """Records that are no longer needed. They are freed a few at a time, because freeing 10,000 of them at
    once takes a millisecond or more."""

    __slots__ = ("_left",)

    def __init__(self) -> None:
        self._left: list[Any] = []

    def add(self, records: Any) -> None:
        """Add the records of a `SortedDict` or a `Layered` that nothing else refers to."""
        changes = records.changes if isinstance(records, Layered) else records
        if changes:
            self._left.append(changes)

    def free(self, records_max: int) -> None:
        """Free at most `records_max` records."""
        left = self._left
        while left and records_max > 0:
            last = left[-1]
            for _ in range(min(records_max, len(last))):
                last.popitem()
                records_max -= 1
            if not last:
                left.pop()

    def clear(self) -> None:
        """Free all of them."""
        self._left.clear()

    def __len__(self) -> int:
        """How many records are left."""
        return sum(map(len, self._left))
