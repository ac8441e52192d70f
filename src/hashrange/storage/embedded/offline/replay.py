"""Makes a data directory of the files of a checkpoint and the batches that were committed after it.

A batch holds raw records, as `Followed` tells them. A deleted space is told by its note under CLEARING only:
its records are dropped here with that note, and once more when the note goes.

Refuses to know: what records mean, where the files and the batches come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from rocksdict import Rdict, WriteBatch

from hashrange.files.durable import sync_directory, write_durably
from hashrange.storage.embedded import disk
from hashrange.storage.embedded.batches import write, writing
from hashrange.storage.embedded.files.directory import COPYING, unusable
from hashrange.storage.embedded.keys import BATCH_KEY, CLEARING, space_range, unpack_batch
from hashrange.storage.embedded.offline.new_directory import NewDirectory
from hashrange.storage.failures import StorageError

_MIB: Final = 1024 * 1024
_CACHE_BYTES: Final = 8 * _MIB
_WRITE_BUFFER_BYTES: Final = 64 * _MIB


class Replay:
    """A new store in a directory that is missing, empty, or holds an unfinished copy. Put the files of a
    checkpoint into `rocks`, call `open`, `apply` the batches in order, and `finish`; `close` in any case."""

    def __init__(self, directory: Path, origin: str, parts: Sequence[str] = ()) -> None:
        """`origin` names the copy, for anyone who finds the directory unfinished. Of an unfinished copy the
        `parts` are removed; without them everything.

        Raises DataDirectoryLocked, UnknownFormat, StorageError.
        """
        self._directory = directory
        self._db: Rdict | None = None
        self.rocks = directory / "rocks"
        self._new = NewDirectory(directory, origin, parts)
        try:
            self.rocks.mkdir(mode=0o700)
            sync_directory(directory)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise unusable(directory, error) from error
            raise

    def open(self) -> int:
        """Open the files of the checkpoint; returns the number of the last batch in them. Raises StorageError
        and StoreDamaged."""
        self._db = disk.open_rocks(
            self._directory, cache_bytes=_CACHE_BYTES, write_buffer_bytes=_WRITE_BUFFER_BYTES
        )
        return self._last()

    def _last(self) -> int:
        assert self._db is not None
        stored = self._db.get(BATCH_KEY)
        return 0 if stored is None else unpack_batch(stored)[0]

    def apply(self, records: Mapping[bytes, bytes | None]) -> None:
        """Write a batch. Raises StorageError."""
        db = self._db
        assert db is not None

        def made() -> WriteBatch:
            batch = writing(records)
            for key in records:
                if key.startswith(CLEARING):
                    batch.delete_range(*space_range(int.from_bytes(key[-4:], "big")))
            return batch

        try:
            # Not logged: a directory that is not finished is made again.
            write(db, made, logged=False)
        except Exception as error:
            raise self._failed(error) from error

    def finish(self) -> int:
        """Make the store durable and usable; returns the number of its last batch. Raises StorageError."""
        assert self._db is not None
        try:
            last = self._last()
            self._db.flush(True)
            self._db.close()
            self._db = None
            self._new.finish(last)
        except StorageError:
            raise
        except Exception as error:
            # (UnreadableManifest, and what rocksdict raises)
            raise self._failed(error) from error
        return last

    def _failed(self, error: Exception) -> StorageError:
        return StorageError(
            f"The store in {self._directory} could not be written: {error}. Check that the disk has room, "
            "and run the command again, which starts from the beginning."
        )

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
        self._new.close()


def renounce(directory: Path, origin: str) -> None:
    """Make a store an unfinished copy: from now on only a new copy accepts its directory. An engine may have
    the store open. Raises StorageError."""
    try:
        write_durably(directory / COPYING, f"{origin}\n".encode())
        sync_directory(directory)
    except OSError as error:
        raise unusable(directory, error) from error


def succeed(directory: Path, other: Path, parts: Sequence[str]) -> bool:
    """Put the store of `other`, a directory on the same disk, in the place of one that was renounced, of
    which the `parts` are removed. Returns False if `other` has no whole store, as after a crash of this
    function. Raises DataDirectoryLocked, StorageError."""
    if is_unfinished(other) or not (other / "FORMAT").exists():
        return False
    new = NewDirectory(directory, f"the store in {other}", parts)
    try:
        new.take(other)
    finally:
        new.close()
    return True


def is_unfinished(directory: Path) -> bool:
    """Whether the directory holds an unfinished copy."""
    return (directory / COPYING).exists()
