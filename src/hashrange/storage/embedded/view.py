"""The committed records of the embedded engine as they were at one moment.

A view's `get` goes to a RocksDB snapshot. An iterator cannot (rocksdict 0.3.29 gives a snapshot's iterators
the newest data), so each view links to the batches written after it, and the keys that those touched are
taken from the snapshot instead (`corrections`). A batch is linked before it is written, so an iterator never
sees one that its view does not know of. With no batch under way there is nothing to correct.

Space 0, where almost every body reads and few write, is kept in memory as it is read (`View.kept`).

Not compiled, because the engine waits for the end of a view by a weak reference, which compiled classes do
not have. Refuses to know: threads, commits, who reads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from rocksdict import DbClosedError, Rdict, Snapshot

from hashrange.storage.api import StorageError

KEPT_SPACE: Final = 0
KEPT_RECORDS_MAX: Final = 256


class View:
    """The committed records of one moment."""

    __slots__ = ("__weakref__", "_sorted", "_touched", "cleared", "db", "following", "kept", "snapshot")

    def __init__(self, db: Rdict, touched: list[bytes], cleared: AbstractSet[int]) -> None:
        self.db = db
        self.snapshot: Snapshot | None = None
        self.cleared = cleared
        self.following: View | None = None
        self.kept: dict[bytes, bytes] = {}
        self._touched = touched
        self._sorted = False

    def follow(self, touched: list[bytes], cleared: AbstractSet[int]) -> View:
        """The view of the next batch, which writes the keys `touched`.

        What it keeps is its own copy: somebody who still reads this view must not put there what he finds.
        """
        view = self.following = View(self.db, touched, cleared)
        view.kept = self.kept.copy()
        if view.kept:
            for key in view.kept.keys() & touched:
                del view.kept[key]
        return view

    def keep(self, key: bytes, value: bytes | None) -> bytes | None:
        """Remember what this view holds at a key of the kept space."""
        if value is not None and len(self.kept) < KEPT_RECORDS_MAX:
            self.kept[key] = value
        return value

    def get(self, key: bytes) -> bytes | None:
        """The value at `key`, or None."""
        assert self.snapshot is not None
        try:
            return self.snapshot[key]  # type: ignore[no-any-return]
        except Exception as error:
            if error.args == ("key not found",):  # rocksdict has no class for it
                return None
            raise unreadable(error) from error

    def touched_between(self, low: bytes, high: bytes) -> list[bytes]:
        """The keys in `low <= key < high` that the batch of this view wrote."""
        keys = self._touched
        if not self._sorted:
            keys.sort()
            self._sorted = True
        return keys[bisect_left(keys, low) : bisect_left(keys, high)]

    def corrections(self, low: bytes, high: bytes) -> dict[bytes, bytes | None]:
        """What this view holds at the keys of a range that later batches wrote."""
        images: dict[bytes, bytes | None] = {}
        later = self.following
        while later is not None:
            for key in later.touched_between(low, high):
                if key not in images:
                    images[key] = self.get(key)
            later = later.following
        return images


class StandIn(View):
    """A view of a RocksDB that was opened for reading only, and in which some keys hold something else than
    they are to: `before` says what (None: no record)."""

    __slots__ = ("_before",)

    def __init__(self, db: Rdict, cleared: AbstractSet[int], before: Mapping[bytes, bytes | None]) -> None:
        super().__init__(db, [], cleared)
        self._before = before
        self.snapshot = db.snapshot()
        self.following = View(db, list(before), cleared)  # so scans ask `get` for these keys

    def get(self, key: bytes) -> bytes | None:
        before = self._before
        return before[key] if key in before else super().get(key)


def unreadable(error: Exception) -> Exception:
    """What to raise for an error that rocksdict raised while reading."""
    if isinstance(error, (DbClosedError, StorageError)):
        return error
    return StorageError(f"The store cannot be read: {error}. Check the disk; restore a backup if needed.")
