"""The committed records of the embedded engine as they were at one moment.

A view's `get` reads from a RocksDB snapshot. A scan cannot: in rocksdict 0.3.29 the iterators of a snapshot
show the newest data. So each view links to the batches written after it, and a scan takes the values of the
keys that those batches wrote from the snapshot (`corrections`). A batch is linked before it is written, so an
iterator never shows a batch that its view does not know of. While no batch is under way, there is nothing to
correct.

Almost every body reads space 0, and few write to it. So its records stay in memory once they have been read
(`View.kept`).

Not compiled, because the engine detects the end of a view by a weak reference, which compiled classes do
not support. Refuses to know: threads, commits, who reads.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Final

from rocksdict import DbClosedError, Rdict, Snapshot

from hashrange.storage.failures import StorageError, StoreDamaged

_UNREADABLE: Final = (
    "The store cannot be read: {}. Check the disk. Stop the server: `hashrange check` tells all that is "
    "wrong with a data directory, and with --repair it accepts the loss; or restore a backup."
)

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

        The new view copies `kept`, because a reader of this view may go on adding the old values to it.
        """
        view = self.following = View(self.db, touched, cleared)
        view.kept = self.kept.copy()
        if view.kept:
            for key in view.kept.keys() & touched:
                del view.kept[key]
        return view

    def keep(self, key: bytes, value: bytes | None) -> bytes | None:
        """Remember the value of this view at a key of the kept space."""
        if value is not None and len(self.kept) < KEPT_RECORDS_MAX:
            self.kept[key] = value
        return value

    def get(self, key: bytes) -> bytes | None:
        """The value at `key`, or None."""
        assert self.snapshot is not None
        try:
            return self.snapshot[key]  # type: ignore[no-any-return]
        except Exception as error:
            raise_unless_missing(error)
            return None

    def touched_between(self, low: bytes, high: bytes) -> list[bytes]:
        """The keys in `low <= key < high` that the batch of this view wrote."""
        keys = self._touched
        if not self._sorted:
            keys.sort()
            self._sorted = True
        return keys[bisect_left(keys, low) : bisect_left(keys, high)]

    def corrections(self, low: bytes, high: bytes) -> dict[bytes, bytes | None]:
        """This view's values of the keys in a range that later batches wrote."""
        images: dict[bytes, bytes | None] = {}
        later = self.following
        while later is not None:
            for key in later.touched_between(low, high):
                if key not in images:
                    images[key] = self.get(key)
            later = later.following
        return images


class StandIn(View):
    """A view of a RocksDB that was opened for reading only and may hold a failed batch. For the keys of that
    batch, the view shows the values in `before` (None: no record)."""

    __slots__ = ("_before",)

    def __init__(self, db: Rdict, cleared: AbstractSet[int], before: Mapping[bytes, bytes | None]) -> None:
        super().__init__(db, [], cleared)
        self._before = before
        self.snapshot = db.snapshot()
        self.following = View(db, list(before), cleared)  # so scans ask `get` for these keys

    def get(self, key: bytes) -> bytes | None:
        before = self._before
        return before[key] if key in before else super().get(key)


def raise_unless_missing(error: Exception) -> None:
    """Raise an error of a snapshot again, unless it says that there is no such record."""
    if error.args != ("key not found",):  # rocksdict has no class for it
        raise unreadable(error) from error


def told(error: BaseException) -> str:
    """The text of an error that rocksdict raised, with the remedy if a file is damaged. RocksDB's text names
    the file."""
    text = str(error)
    return _UNREADABLE.format(text) if text.startswith("Corruption") else text


def unreadable(error: Exception) -> Exception:
    """Our error for an error that rocksdict raised while reading."""
    if isinstance(error, (DbClosedError, StorageError)):
        return error
    return StoreDamaged(_UNREADABLE.format(error))
