"""RocksDB under the embedded engine: makes one batch after another durable, and opens RocksDB again after a
write that failed.

A batch goes to RocksDB in one call, and its log is made durable in another. rocksdict 0.3.29 keeps the GIL
during the first (memory and page cache) and releases it during the second (the fsync): a write with `sync`
would block every other thread for as long as the disk takes.

A large batch, such as that of a 4 MB transaction, does not go through the log, which would take three times
as long as memory alone. Instead of a sync, a flush of RocksDB's memory to an SST file makes the batch
durable. If the process dies before the flush ends, no part of the batch is stored, because the MANIFEST gets
the file as a whole. Until then a restart reads the earlier logs; afterwards they are not needed.

Refuses to know: who waits for a batch, which thread writes it, when to try a repair again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from rocksdict import Rdict

from hashrange.storage.api import Totals
from hashrange.storage.capabilities import Follower, Position
from hashrange.storage.embedded.batches import write, writing
from hashrange.storage.embedded.bodies import with_totals
from hashrange.storage.embedded.disk import open_for_reading
from hashrange.storage.embedded.files.directory import open_directory
from hashrange.storage.embedded.keys import BATCH_KEY, clearing_key, pack_batch, unpack_batch
from hashrange.storage.embedded.outcomes import Batch, Prevented
from hashrange.storage.embedded.reopening import Reopening
from hashrange.storage.embedded.room import MARGIN_BYTES, NoRoom, Room
from hashrange.storage.embedded.upkeep import Upkeep
from hashrange.storage.embedded.view import View, told, unreadable
from hashrange.storage.failures import CommitFault, StorageError

_Records = dict[bytes, bytes | None]

# The totals of this many spaces are kept in memory; those of further spaces are read from the store.
_TOTALS_MAX: Final = 10_000


class Store:
    """The files of a data directory, created if they are missing. One thread at a time may write."""

    def __init__(
        self, directory: Path, *, cache_bytes: int, write_buffer_bytes: int, logged_bytes_max: int
    ) -> None:
        """Raises DataDirectoryLocked, UnknownFormat, StoreDamaged, StorageError."""
        self._directory = directory
        self._logged_bytes_max = logged_bytes_max
        self._room = Room(directory, 4 * write_buffer_bytes)
        self._disk, self.db = open_directory(
            directory, cache_bytes=cache_bytes, write_buffer_bytes=write_buffer_bytes
        )
        self.upkeep = Upkeep()
        self.follower: Follower | None = None
        self._totals: dict[int, Totals] = {}
        self._batch_number = 0
        self._stored_number = 0  # that of the last batch which is in the store
        self._unsynced = False  # whether RocksDB got a batch that is not durable yet
        self._reopening: Reopening | None = None  # None: RocksDB itself is sound

    @property
    def unsure(self) -> bool:
        """Whether RocksDB may have got the batch that failed, so that a restart may find it."""
        return self._reopening is not None

    def begin(self, db: Rdict) -> tuple[View, int]:
        """Begin to use a RocksDB that was just opened. Returns the view of it, and the last sequence number
        that was given. Raises StoreDamaged."""
        try:
            stored = db.get(BATCH_KEY)
            self.upkeep.start(db)
        except Exception as error:  # rocksdict raises plain Exception
            raise unreadable(error) from error
        number, sequence = (0, 0) if stored is None else unpack_batch(stored)
        # A batch number is never given twice, even if the batch failed.
        self._batch_number = max(number, self._batch_number)
        self._stored_number = number
        self.db = db
        self._totals.clear()
        self._sync()
        view = View(db, [], frozenset())
        view.snapshot = db.snapshot()
        return view, sequence

    def commit(self, batch: Batch, view: View, sequence: int, fault: CommitFault | None) -> View:
        """Make a batch durable, and return the view that shows it; `view` is the one before it.

        Raises NoRoom or Prevented if the batch did not reach RocksDB. After any other error RocksDB may have
        it, and refuses further writes until `open_again`.
        """
        records: _Records = {}
        try:
            batch.meet(fault, "before")
            self._room.take(batch.bytes, self.db.flush)
            records, totals = self._records(batch, view, sequence)
            following = self._write(batch, view, records, fault)
        except (NoRoom, Prevented):
            raise
        except BaseException:
            self._reopening = Reopening(self.db, self._batch_number, self._stored_number, records)
            raise
        self._stored_number = self._batch_number
        if len(self._totals) > _TOTALS_MAX:
            self._totals.clear()
        self._totals.update(totals)
        if self.follower is not None:
            held_back = batch.held_back = self._tell(self.follower, batch, records)
            if held_back is not None:
                batch.unknown = held_back
        return following

    def _tell(self, follower: Follower, batch: Batch, records: _Records) -> str | None:
        try:
            return follower.committed(self._batch_number, records, batch.bytes)
        except Exception as error:
            return f"the follower of the store failed: {error}"

    @property
    def position(self) -> Position:
        """How far the store is. The number of the last batch counts one that failed."""
        return Position(self._disk.store_id, self._batch_number)

    def drop_deleted(self, view: View) -> None:
        """Drop the records of deleted spaces that no reader can see any more; `view` is the current one."""
        self._unsynced |= self.upkeep.drop(self.db, view)

    def checkpoint(self, directory: Path) -> None:
        """Copy the store as it is, while nothing is written, to a directory that does not exist."""
        self._disk.checkpoint(self.db, directory)

    def missing_files(self, db: Rdict) -> str | None:
        """The files of the open store that somebody has removed; None if none is missing."""
        return self._disk.missing_files(db)

    def discard(self, wanted: bool) -> None:
        """As `Local.discard`."""
        self._disk.discard(wanted)

    def close(self, broken: bool) -> None:
        """Close RocksDB. Raises StorageError if it reports an error, unless it is `broken` anyway."""
        cut_short = self.upkeep.stop(self.db)
        try:
            self.db.close()
        except Exception as error:
            if not broken and not cut_short:
                problem = f"The store in {self._directory} did not close well: {told(error)}"
                raise StorageError(problem) from None
        finally:
            self._disk.close()

    # Writing.

    def _records(self, batch: Batch, view: View, sequence: int) -> tuple[_Records, dict[int, Totals]]:
        """All records of a batch, the engine's own included, and the new totals."""
        totals: dict[int, Totals] = {}
        if batch.is_told:
            records = batch.records.copy()
            self._totals.clear()
            self._batch_number = unpack_batch(records[BATCH_KEY] or b"")[0]
        else:
            records, totals = with_totals(batch, self._totals, view)
            for space in batch.cleared:
                self._totals.pop(space, None)
            self._batch_number += 1
            records[BATCH_KEY] = pack_batch(self._batch_number, sequence)
        for space in self.upkeep.take_done():
            records[clearing_key(space)] = None
        return records, totals

    def _write(self, batch: Batch, view: View, records: _Records, fault: CommitFault | None) -> View:
        cleared = self.upkeep.masked(view.cleared, batch.cleared)
        following = view.follow(list(records), cleared)
        if self._unsynced:
            self._sync_log()
            self._unsynced = False
        logged = batch.bytes <= self._logged_bytes_max
        write(self.db, lambda: writing(records), logged=logged)
        batch.meet(fault, "after")
        if not logged:
            self.db.flush(True)
        self._sync()
        following.snapshot = self.db.snapshot()
        return following

    def _sync(self) -> None:
        """Make RocksDB's log durable, and note in STORE how far it goes. A batch is written only when the
        batch before it is durable: otherwise a crash could lose only the earlier batch, which would look like
        damage."""
        self._sync_log()
        self._disk.advance(self._batch_number, self.db.latest_sequence_number())

    def _sync_log(self) -> None:
        self.db.flush_wal(True)
        self._disk.sync_drive()

    # The repair after a failed batch. A broken RocksDB is only read from.

    def room_again(self) -> None:
        """Raises NoRoom unless the disk has room for a repair and for further batches."""
        margin_bytes = 0 if self.unsure else MARGIN_BYTES
        self._room.look(margin_bytes)

    def stand_in(self, view: View) -> View:
        """The view that readers get instead of `view`, the last published one, until `open_again` is done."""
        assert self._reopening is not None
        self.upkeep.stop(self.db)
        return self._reopening.stand_in(view, lambda: open_for_reading(self._directory))

    def open_again(self) -> tuple[View, int]:
        """Open RocksDB without the failed batch, when nobody reads from the broken one any more. Returns what
        `begin` returns."""
        assert self._reopening is not None
        db = self._reopening.open_again(self._directory, self._disk.open)
        try:
            begun = self.begin(db)
        except BaseException:
            db.close()
            raise
        self._reopening = None
        return begun
