"""Gives back the disk space of deleted records.

A deleted record stays in RocksDB, beside a tombstone, until a compaction removes both; until then every scan
walks over the two. Three things make a compaction happen soon:

- `disk` has RocksDB compact files in which tombstones gather (its deletion collector);
- `Upkeep.step` flushes the write buffer when many tombstones are in it, since only files are compacted;
- a deleted space is compacted as a whole, on a thread of its own, because dropping its range of keys alone
  would leave its files on the disk.

A note under CLEARING stays until the space is compacted, so that the work goes on after a restart.

Not compiled, because it detects the end of views by weak references. Refuses to know: who reads, and how a
batch is committed.
"""

from __future__ import annotations

import contextlib
import logging
import weakref
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from threading import Lock, Thread
from typing import Final

from rocksdict import Rdict

from hashrange.storage.api import Transaction
from hashrange.storage.embedded.batches import clearing, keys_under, write
from hashrange.storage.embedded.keys import CLEARING, space_range
from hashrange.storage.embedded.view import View, told

_log = logging.getLogger(__name__)

# A scan walks over this many tombstones in a write buffer in about two milliseconds.
DELETIONS_MAX: Final = 10_000
_DELETIONS: Final = "rocksdb.num-deletes-active-mem-table"


def count_nothing(txn: Transaction) -> None:
    """A body for a commit that changes nothing."""
    txn.count(0, 0, 0)


class Upkeep:
    """The upkeep of a store, whose RocksDB may be opened again. Deleted spaces go through five stages:

    1. Their records are there, and a view masks them (`add`).
    2. Nobody reads a view from before the deletion: the records are dropped (`drop`).
    3. A view without the mask, with a snapshot without the records, is published (`masked`).
    4. Nobody reads an older view, whose snapshot would keep the records: they are compacted (`step`).
    5. Their notes go with the next batch (`take_done`).
    """

    __slots__ = ("_clearing", "_done", "_dropped", "_lock", "_spaces", "_stopped", "_thread", "problem")

    def __init__(self) -> None:
        self.problem = ""  # why the last compaction failed
        self._lock = Lock()
        self._clearing: list[tuple[weakref.ref[View], int]] = []
        self._dropped: set[int] = set()
        self._spaces: list[tuple[weakref.ref[View] | None, int]] = []
        self._done: list[int] = []
        self._stopped = False
        self._thread: Thread | None = None

    def start(self, db: Rdict) -> None:
        """Start over with a RocksDB that was just opened; work that was under way is done again."""
        spaces = [int.from_bytes(key[-4:], "big") for key in keys_under(db, CLEARING)]
        if spaces:
            write(db, lambda: clearing(spaces))
        with self._lock:
            self._clearing, self._dropped, self._done = [], set(), []
            self._spaces = [(None, space) for space in spaces]
            self._stopped = False

    def add(self, spaces: Iterable[int], view: View) -> None:
        """Note spaces that were deleted just now; `view` is the last one that shows them."""
        with self._lock:
            self._clearing += [(weakref.ref(view), space) for space in spaces]

    def drop(self, db: Rdict, view: View) -> bool:
        """Drop the records of deleted spaces that no reader can see any more; `view` is the current one.

        Returns whether it wrote anything. This write is not durable: after a crash it is done again, because
        the notes under CLEARING are still there.
        """
        if not self._clearing:
            return False
        with self._lock, contextlib.suppress(Exception):  # a broken store: its repair calls `start`
            ready = {space for last, space in self._clearing if last() is None}
            if not ready:
                return False
            self._clearing = [entry for entry in self._clearing if entry[1] not in ready]
            write(db, lambda: clearing(ready))
            self._dropped |= ready
            self._spaces += [(weakref.ref(view), space) for space in ready]
        return True

    def take_done(self) -> list[int]:
        """The spaces whose notes the next batch drops, because nothing is left of these spaces."""
        if not self._done:
            return []
        with self._lock:
            done, self._done = self._done, []
        return done

    def masked(self, before: AbstractSet[int], deleted: AbstractSet[int]) -> AbstractSet[int]:
        """The spaces that a new view masks: those that the view before it masks and those just deleted,
        without those whose records are gone."""
        if not deleted and not self._dropped:
            return before
        with self._lock:
            dropped, self._dropped = self._dropped, set()
        return (before | deleted) - dropped

    @property
    def stale(self) -> bool:
        """Whether the work on deleted spaces needs a commit to continue."""
        return bool(self._clearing or self._dropped or self._done)

    def step(self, db: Rdict) -> None:
        """Start the work that is due, without waiting for it. Raises rocksdict's errors."""
        with self._lock:
            if self._stopped:
                return
            if (db.property_int_value(_DELETIONS) or 0) >= DELETIONS_MAX:
                db.flush(False)
            ready = [space for view, space in self._spaces if view is None or view() is None]
            if ready and self._thread is None:
                self._spaces = [entry for entry in self._spaces if entry[1] not in ready]
                self._thread = Thread(
                    target=self._compact, args=(db, ready), name="hashrange-compact", daemon=True
                )
                self._thread.start()

    def wait(self) -> None:
        """Return when the compaction under way, if any, is done."""
        thread = self._thread
        if thread is not None:
            thread.join()

    def stop(self, db: Rdict) -> bool:
        """Stop a compaction that is under way, because RocksDB cannot be closed during it; returns whether
        there was one.

        After that `db` can only be closed, and reports an error even then: it may not flush its write
        buffer. No record is lost by this, because the records of the buffer are in the log.
        """
        with self._lock:
            self._stopped = True
            thread = self._thread
            if thread is not None:
                db.cancel_all_background(False)
        if thread is None:
            return False
        thread.join()
        return True

    def _compact(self, db: Rdict, spaces: list[int]) -> None:
        """Compact deleted spaces; on a thread of its own. rocksdict releases the GIL while RocksDB
        compacts."""
        try:
            for space in spaces:
                db.compact_range(*space_range(space))
                with self._lock:
                    self._done.append(space)
        except Exception as error:
            # The notes are still there, so the next start compacts these spaces.
            if not self._stopped:
                self.problem = told(error)
                _log.warning("the files of deleted tables could not be compacted: %s", self.problem)
        finally:
            del db
            with self._lock:
                self._thread = None
