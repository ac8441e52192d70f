"""The repair of a store whose RocksDB takes no more writes: it is opened again, while readers read on.

A RocksDB cannot be opened twice, but a second time for reading only, beside the first. So:

1. Open it for reading, and give new readers a view of that (`Reopening.stand_in`). The failed batch may be in
   the log; the view shows what was there before it.
2. When nobody reads from the broken one any more, close it, and open it anew (`Reopening.open_again`). If
   that fails, the readers have their stand-in, and it is tried again later.
3. If the failed batch is there, put back what its keys held.

Not compiled, because it waits for the end of a view by a weak reference. Refuses to know: threads, who waits
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

from hashrange.storage.api import StorageError
from hashrange.storage.embedded.batches import writing
from hashrange.storage.embedded.keys import BATCH_KEY, unpack_batch
from hashrange.storage.embedded.room import reserved
from hashrange.storage.embedded.view import StandIn, View

# How long a try waits for readers that began before.
_READERS_END_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 0.002


class Reopening:
    """How far the repair after a failed batch has come."""

    __slots__ = ("_batch_number", "_before", "_broken", "_keys", "_readers")

    def __init__(self, broken: Rdict, batch_number: int, keys: Iterable[bytes]) -> None:
        self._broken = broken
        self._batch_number = batch_number
        self._keys = list(keys)
        self._before: dict[bytes, bytes | None] = {}
        self._readers: weakref.ref[View] | None = None  # of the broken RocksDB

    def stand_in(self, view: View, open_for_reading: Callable[[], Rdict]) -> View:
        """What readers are to be given instead of `view`, the last one that was published."""
        if self._readers is not None:
            return view
        before = {key: view.get(key) for key in self._keys}
        # Or a compaction would delete files between their being listed and being opened.
        self._broken.cancel_all_background(True)
        db = open_for_reading()
        stored = db.get(BATCH_KEY)
        last = 0 if stored is None else unpack_batch(stored)[0]
        if last < self._batch_number - 1:
            db.close()
            raise StorageError(f"the log ends at batch {last}, before the last one that was acknowledged")
        self._before = before
        self._readers = weakref.ref(view)
        return StandIn(db, view.cleared, before)

    def open_again(self, directory: Path, open_anew: Callable[[], Rdict]) -> Rdict:
        """RocksDB, without the failed batch. Raises OSError, StorageError, and whatever rocksdict does."""
        self._await_readers()
        with reserved(directory), contextlib.suppress(Exception):
            self._broken.close()  # it reports the old error once more
        db = open_anew()
        try:
            stored = db.get(BATCH_KEY)
            if stored is not None and unpack_batch(stored)[0] == self._batch_number:
                # It made it to the disk after all.
                db.write(writing(self._before))
                db.flush_wal(True)
        except BaseException:
            # If it cannot be closed either, it cannot be opened, and the next try tells.
            with contextlib.suppress(Exception):
                db.close()
            raise
        return db

    def _await_readers(self) -> None:
        """Wait until nobody reads from the broken RocksDB, for a reader keeps it open."""
        deadline = time.monotonic() + _READERS_END_SECONDS
        while self._readers is not None and self._readers() is not None:
            if time.monotonic() > deadline:
                raise StorageError("a long read keeps the store open")
            time.sleep(_PAUSE_SECONDS)
