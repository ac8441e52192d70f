"""Repairs a store whose RocksDB refuses writes: opens it again, while readers continue to read.

A RocksDB cannot be opened for writing twice, but it can be opened for reading beside the first. So:

1. Open the store for reading only, and give new readers a view of it (`Reopening.stand_in`). RocksDB's log
   may hold the failed batch; this view shows the records as they were before that batch.
2. When no reader uses the broken RocksDB any more, close it and open the store again
   (`Reopening.open_again`). If this fails, readers keep the view of step 1, and the engine tries again later.
3. If the failed batch is in the store, write back the records that it replaced.

Not compiled, because it detects the end of a view by a weak reference. Refuses to know: threads, who waits
for the failed batch, when to try again.
"""

from __future__ import annotations

import contextlib
import time
import weakref
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final

from rocksdict import Rdict

from hashrange.storage.embedded.batches import writing
from hashrange.storage.embedded.keys import BATCH_KEY, unpack_batch
from hashrange.storage.embedded.room import reserved
from hashrange.storage.embedded.view import StandIn, View
from hashrange.storage.failures import StorageError

# How long one try waits for readers of the broken RocksDB to end.
_READERS_END_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.002


class Reopening:
    """How far the repair after a failed batch has come."""

    __slots__ = ("_batch_number", "_before", "_broken", "_keys", "_readers", "_stored_number")

    def __init__(self, broken: Rdict, batch_number: int, stored_number: int, keys: Iterable[bytes]) -> None:
        """`batch_number` is that of the failed batch, `stored_number` that of the last one before it which is
        in the store."""
        self._broken = broken
        self._batch_number = batch_number
        self._stored_number = stored_number
        self._keys = list(keys)
        self._before: dict[bytes, bytes | None] = {}
        self._readers: weakref.ref[View] | None = None  # of the broken RocksDB

    def stand_in(self, view: View, open_for_reading: Callable[[], Rdict]) -> View:
        """The view that new readers get instead of `view`, the last published one."""
        if self._readers is not None:
            return view
        before = {key: view.get(key) for key in self._keys}
        # A compaction could otherwise delete a file after it was listed and before it is opened.
        self._broken.cancel_all_background(True)
        db = open_for_reading()
        stored = db.get(BATCH_KEY)
        last = 0 if stored is None else unpack_batch(stored)[0]
        if last < self._stored_number:
            db.close()
            raise StorageError(f"the log ends at batch {last}, before the last one that was acknowledged")
        self._before = before
        self._readers = weakref.ref(view)
        return StandIn(db, view.cleared, before)

    def open_again(self, directory: Path, open_anew: Callable[[], Rdict]) -> Rdict:
        """Open RocksDB, without the failed batch. Raises OSError, StorageError, and any error of
        rocksdict."""
        self._await_readers()
        with reserved(directory), contextlib.suppress(Exception):
            self._broken.close()  # reports the old error once more
        db = open_anew()
        try:
            stored = db.get(BATCH_KEY)
            if stored is not None and unpack_batch(stored)[0] == self._batch_number:
                # The failed batch did reach the disk.
                db.write(writing(self._before))
                db.flush_wal(True)
        except BaseException:
            # If closing fails as well, the next try to open fails and reports the reason.
            with contextlib.suppress(Exception):
                db.close()
            raise
        return db

    def _await_readers(self) -> None:
        """Wait until no reader uses the broken RocksDB, because a reader keeps it open."""
        deadline = time.monotonic() + _READERS_END_SECONDS
        while self._readers is not None and self._readers() is not None:
            if time.monotonic() > deadline:
                raise StorageError("a long read keeps the store open")
            time.sleep(_PAUSE_SECONDS)
