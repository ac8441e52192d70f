"""A data directory as the source and the target of a copy (`storage.store_copy`).

    DIRECTORY/COPYING          the origin of the copy, while a copy is made in the directory
    DIRECTORY/checkpoint-N/    the store at one moment, while a directory that a server holds is copied

`new_directory` says in which order the files of a new directory are made.

Refuses to know: what records mean, the other store.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Final

from rocksdict import Rdict

from hashrange.storage.api import Totals
from hashrange.storage.embedded import disk
from hashrange.storage.embedded.batches import keys_under, write, writing
from hashrange.storage.embedded.bodies import ViewReader
from hashrange.storage.embedded.files.damage import Damage
from hashrange.storage.embedded.files.directory import (
    damaged,
    lock,
    make_private,
    unusable,
)
from hashrange.storage.embedded.files.manifest import UnreadableManifest
from hashrange.storage.embedded.files.mark import NAME as STORE
from hashrange.storage.embedded.files.mark import read_mark
from hashrange.storage.embedded.keys import (
    BATCH_KEY,
    ENGINE_SPACE,
    STAMP_KEY,
    TOTALS_PREFIX,
    pack,
    pack_batch,
    pack_totals,
    totals_key,
    unpack,
    unpack_batch,
    unpack_totals,
)
from hashrange.storage.embedded.offline.new_directory import NewDirectory
from hashrange.storage.embedded.offline.salvage import BadRange, StoredRecords, walk
from hashrange.storage.embedded.view import View
from hashrange.storage.failures import DataDirectoryLocked, StorageError
from hashrange.storage.store_copy import (
    BATCH_BYTES_MAX,
    BATCH_RECORDS_MAX,
    FindLogs,
    Numbers,
    Record,
)

CHECKPOINT: Final = "checkpoint-"

_MIB: Final = 1024 * 1024
_CACHE_BYTES: Final = 8 * _MIB
_WRITE_BUFFER_BYTES: Final = 64 * _MIB
_RECORDS: Final = "rocksdb.estimate-num-keys"
_PARTS: Final = ("rocks", STORE, "FORMAT", "FORMAT.new", f"{STORE}.new")


class DirectorySource:
    """The store in a directory that no server holds. No server can open it before `close`."""

    def __init__(self, directory: Path, find_logs: FindLogs) -> None:
        """Raises DataDirectoryLocked, UnknownFormat, StoreDamaged, StorageError."""
        self._stored = StoredRecords(directory)
        try:
            if self._stored.found.damage or not self._stored.readable:
                raise damaged(directory, self._stored.found.damage or [Damage("no record can be read")])
            view = View(self._stored.db, [], self._stored.cleared)
            view.snapshot = self._stored.db.snapshot()
            self._logs = find_logs(ViewReader(view))
        except BaseException:
            self._stored.close()
            raise
        self._content = Content(directory, self._stored.db, self._stored.cleared)

    def numbers(self) -> Numbers:
        return self._content.numbers(self._logs)

    def batches(self) -> Iterator[list[Record]]:
        return self._content.batches()

    def expected(self) -> int:
        return self._content.expected()

    def close(self) -> None:
        self._stored.close()


class Content:
    """The contents of a RocksDB that nobody writes to."""

    def __init__(self, directory: Path, db: Rdict, cleared: frozenset[int]) -> None:
        self._directory = directory
        self._db = db
        self._cleared = cleared

    def numbers(self, logs: set[int]) -> Numbers:
        stored = self._db.get(BATCH_KEY)
        last = 0 if stored is None else unpack_batch(stored)[1]
        stamp = self._db.get(STAMP_KEY)
        totals: dict[int, Totals] = {}
        for key in keys_under(self._db, TOTALS_PREFIX):
            space, value = int.from_bytes(key[-4:]), self._db.get(key)
            if space not in self._cleared and value is not None:
                totals[space] = Totals(*unpack_totals(value))
        # The engine has one counter for all spaces.
        return Numbers(
            totals,
            dict.fromkeys(logs, last),
            0 if stamp is None else int.from_bytes(stamp),
        )

    def batches(self) -> Iterator[list[Record]]:
        batch: list[Record] = []
        bytes_ = 0
        end = ENGINE_SPACE.to_bytes(4)
        for key, value in walk(self._db, b"", end, self._refuse):
            record = (*unpack(key), value)
            if record[0] in self._cleared:
                continue
            batch.append(record)
            bytes_ += len(key) + len(value)
            if bytes_ >= BATCH_BYTES_MAX or len(batch) >= BATCH_RECORDS_MAX:
                yield batch
                batch, bytes_ = [], 0
        if batch:
            yield batch

    def expected(self) -> int:
        return self._db.property_int_value(_RECORDS) or 0

    def _refuse(self, bad: BadRange) -> None:
        raise damaged(self._directory, [Damage(bad.cause)])


class DirectoryTarget:
    """A new store in a directory that is missing, empty, or holds an unfinished copy."""

    def __init__(self, directory: Path, origin: str) -> None:
        """`origin` names the store that is copied, for anyone who finds the copy unfinished.

        Raises DataDirectoryLocked, UnknownFormat, StorageError.
        """
        self._directory = directory
        self._db: Rdict | None = None
        self._logs: set[int] = set()
        self._new = NewDirectory(directory, origin, _PARTS)
        try:
            make_private(directory)
            self._db = self._open(create=True)
            make_private(directory)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise unusable(directory, error) from error
            raise

    def _open(self, *, create: bool) -> Rdict:
        return disk.open_rocks(
            self._directory,
            cache_bytes=_CACHE_BYTES,
            write_buffer_bytes=_WRITE_BUFFER_BYTES,
            create=create,
            read_only=not create,
        )

    def put(self, batch: list[Record]) -> None:
        self._write({pack(space, partition, sort): value for space, partition, sort, value in batch})

    def end(self, numbers: Numbers) -> None:
        records: dict[bytes, bytes | None] = {
            totals_key(space): pack_totals(*totals) for space, totals in numbers.totals.items()
        }
        records[BATCH_KEY] = pack_batch(0, max(numbers.last.values(), default=0))
        if numbers.stamp:
            records[STAMP_KEY] = numbers.stamp.to_bytes(8)
        self._write(records)
        self._logs = set(numbers.last)
        assert self._db is not None
        try:
            self._db.flush_wal(True)
            self._db.flush()
            self._db.close()
            self._db = None
            # Opened again, so that it reads from files.
            self._db = self._open(create=False)
        except StorageError:
            raise
        except Exception as error:
            raise self._failed(error) from error

    def _write(self, records: dict[bytes, bytes | None]) -> None:
        assert self._db is not None
        try:
            write(self._db, partial(writing, records))
        except Exception as error:
            raise self._failed(error) from error

    def _failed(self, error: Exception) -> StorageError:
        return StorageError(
            f"The copy in {self._directory} could not be written: {error}. Check that the disk has room, and "
            "run `hashrange copy` again, which starts from the beginning."
        )

    def written(self) -> _Written:
        assert self._db is not None
        return _Written(self._directory, self._db, self._logs)

    def finish(self) -> None:
        assert self._db is not None
        self._db.close()
        self._db = None
        try:
            self._new.finish(0)
        except UnreadableManifest as error:
            raise self._failed(error) from error

    def close(self) -> None:
        if self._db is not None:
            self._db.close()
            self._db = None
        self._new.close()


class _Written:
    """The records written to a new store."""

    def __init__(self, directory: Path, db: Rdict, logs: set[int]) -> None:
        self._content = Content(directory, db, frozenset())
        self._logs = logs
        self.batches = self._content.batches
        self.expected = self._content.expected

    def numbers(self) -> Numbers:
        return self._content.numbers(self._logs)

    def close(self) -> None:
        """Nothing to release: the target closes the store."""


def new_checkpoint(directory: Path) -> Path:
    """The folder in a data directory for a new checkpoint of its store. Removes the checkpoints that killed
    copies have left behind. Raises OSError."""
    for left in directory.glob(f"{CHECKPOINT}*"):
        remove_checkpoint(left)
    number = 1
    while (directory / f"{CHECKPOINT}{number}").exists():
        number += 1
    return directory / f"{CHECKPOINT}{number}"


def remove_checkpoint(checkpoint: Path) -> None:
    """Remove a checkpoint unless another process reads it. Raises OSError."""
    try:
        held = lock(checkpoint)
    except (DataDirectoryLocked, FileNotFoundError):
        return
    try:
        shutil.rmtree(checkpoint)
    finally:
        if held is not None:
            os.close(held)


def is_same_store(directory: Path, other: Path) -> bool:
    """Whether two directories hold the same store, perhaps at different moments. Raises OSError,
    DamagedMark."""
    mark, other_mark = read_mark(directory), read_mark(other)
    return mark is not None and other_mark is not None and mark.store_id == other_mark.store_id
