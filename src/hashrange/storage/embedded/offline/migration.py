"""Converts a store of an older format to the current format, in a new store beside the old one.

    DIRECTORY/migration/new/    the new store while it is made: `rocks`, and STORE when all of it is there
    DIRECTORY/migration/old/    the old store once the new one has taken its place

1. *Copying.* Every record of the old store is read in order, translated, and written to the new store; the
   old one is only read. Each batch holds the last key that was copied. Only the batch is kept in memory, so a
   store may have any size.
2. *Completing.* The new store is synced and gets its STORE.
3. *Exchanging.* FORMAT of the directory says the new format; then the old store moves to `migration/old`, and
   the new one to its place.
4. *Clearing away.* The old store is removed, or kept as DIRECTORY/format-N; `migration` goes last.

If the process or the machine dies, the next `migrate` continues from there: the new store says how far the
copying came, and the files in the directory show the step. Before step 3 the directory is unchanged, and
older programs can use it: if one of them has written to it meanwhile, the copying starts over. During steps 3
and 4 only `migrate` accepts the directory.

Refuses to know: what records mean (`translate` knows).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from rocksdict import Rdict

from hashrange.files.durable import sync_directory, write_durably
from hashrange.storage.embedded import disk
from hashrange.storage.embedded.batches import write, writing
from hashrange.storage.embedded.files.damage import Damage
from hashrange.storage.embedded.files.directory import (
    MIGRATION,
    DamagedFormat,
    check_copied,
    damaged,
    lock,
    make_private,
    read_format,
    unusable,
    write_format,
)
from hashrange.storage.embedded.files.manifest import read_manifest
from hashrange.storage.embedded.files.mark import FORMAT_OPENED, Mark, write_mark
from hashrange.storage.embedded.files.mark import NAME as STORE
from hashrange.storage.embedded.keys import (
    BATCH_KEY,
    ENGINE_SPACE,
    STAMP_KEY,
    TOTALS,
    pack,
    pack_batch,
    unpack,
    unpack_batch,
)
from hashrange.storage.embedded.offline.salvage import BadRange, StoredRecords, walk
from hashrange.storage.failures import StorageError, UnknownFormat
from hashrange.storage.translation import Begin, Translation, Untranslatable

_MIB: Final = 1024 * 1024
_BATCH_RECORDS_MAX: Final = 2_000
_BATCH_BYTES_MAX: Final = 4 * _MIB
_CACHE_BYTES: Final = 8 * _MIB
_WRITE_BUFFER_BYTES: Final = 32 * _MIB
_END: Final = b"\xff" * 40  # above every key
_RECORDS: Final = "rocksdb.estimate-num-keys"
_JOURNAL: Final = pack(ENGINE_SPACE, b"migration", b"")

Report = Callable[[str, int, int], None]
"""Called after each durable step and each batch with the step's name, the number of records read, and their
total."""


class _Journal(msgspec.Struct, array_like=True):
    """The progress of the copying: the state of the old store, when copying began, the last copied key."""

    source: bytes
    began: float
    key: bytes = b""
    read: int = 0
    left_out: int = 0
    done: bool = False


class Migrated(NamedTuple):
    """The result of a migration: the old format, the numbers of records read and left out, and where the old
    store is kept. The numbers are 0 if an earlier run did the copying."""

    version: int
    read: int
    left_out: int
    kept: Path | None


_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(_Journal).decode


def migrate(
    directory: Path,
    begin: Begin,
    now: float,
    *,
    report: Report,
    leave_out: Callable[[str], None] | None = None,
    keep_old: bool = False,
) -> Migrated | None:
    """Convert a directory, or continue to; None if there is nothing to do.

    `leave_out` is called for each record that cannot be translated, and the old store is kept then. Without
    `leave_out` the first such record ends the migration. Raises DataDirectoryLocked, UnknownFormat,
    StoreDamaged, StorageError.
    """
    try:
        descriptor = lock(directory)
        try:
            return _Migration(directory, report).run(begin, now, leave_out, keep_old)
        finally:
            if descriptor is not None:
                os.close(descriptor)
    except OSError as error:
        raise unusable(directory, error) from error


def untranslatable(store: StoredRecords, begin: Begin) -> Iterator[str]:
    """The records that a migration of this store would have to leave out, for the checker."""
    state = store.db.get(BATCH_KEY)
    sequence = unpack_batch(state)[1] if state else 0
    translation = store.read(lambda reader: begin(reader, sequence + 1, 0.0))
    left = {ENGINE_SPACE, *store.cleared, *translation.emptied}
    for key, value in walk(store.db, b"", _END, lambda bad: None):
        if unpack(key)[0] not in left:
            try:
                for _ in translation.record(*unpack(key), value):
                    pass
            except Untranslatable as error:
                yield str(error)


class _Migration:
    """One migration of a directory, which is locked."""

    def __init__(self, directory: Path, report: Report) -> None:
        self._directory = directory
        self._report = report
        self._work = directory / MIGRATION
        self._new = self._work / "new"
        self._old = self._work / "old"
        self._keep = self._work / "keep"
        self._read = self._left_out = 0

    def run(
        self, begin: Begin, now: float, leave_out: Callable[[str], None] | None, keep_old: bool
    ) -> Migrated | None:
        check_copied(self._directory)
        try:
            version = read_format(self._directory)
        except DamagedFormat as error:
            raise damaged(self._directory, [Damage(str(error), "FORMAT")]) from None
        if version is None:
            raise UnknownFormat(
                f"{self._directory} has no FORMAT. If it is a Hashrange data directory that has lost it, run "
                f"`hashrange check --repair {self._directory}` first."
            )
        if version >= FORMAT_OPENED and not self._work.exists():
            return None
        if version < FORMAT_OPENED:
            self._copy(begin, now, leave_out)
            if keep_old or self._left_out:
                write_durably(self._keep, b"")
            self._exchange_format()
        self._exchange_stores()
        version = read_format(self._old) or version
        kept = self._clear_away(version)
        return Migrated(version, self._read, self._left_out, kept)

    def _step(self, name: str) -> None:
        self._report(name, self._read, self._read)

    def _copy(self, begin: Begin, now: float, leave_out: Callable[[str], None] | None) -> None:
        source = StoredRecords(self._directory, locked=True)
        try:
            if source.found.damage or not source.readable:
                raise damaged(self._directory, source.found.damage)
            self._check_room()
            self._new.mkdir(parents=True, exist_ok=True)
            make_private(self._work)
            journal = _Journal(source.db.get(BATCH_KEY) or b"", now)
            target, journal = self._open_new(journal)
            try:
                _Copy(source, target, journal, self._report, leave_out).run(begin)
            finally:
                target.close()
        finally:
            source.close()
        self._read, self._left_out = journal.read, journal.left_out
        sync_directory(self._new / "rocks")
        self._step("copied")
        write_mark(self._new, Mark(True, read_manifest(self._new / "rocks").store_id, 0, 0))
        self._step("new store complete")

    def _open_new(self, journal: _Journal) -> tuple[Rdict, _Journal]:
        """The new store, and its progress; an empty one if the old store has changed meanwhile."""
        db = self._open_rocks()
        stored = db.get(_JOURNAL)
        if stored is None:
            return db, journal
        progress = _decode(stored)
        if progress.source == journal.source:
            return db, progress
        db.close()
        shutil.rmtree(self._new)
        self._new.mkdir()
        return self._open_rocks(), journal

    def _open_rocks(self) -> Rdict:
        return disk.open_rocks(
            self._new, cache_bytes=_CACHE_BYTES, write_buffer_bytes=_WRITE_BUFFER_BYTES, create=True
        )

    def _check_room(self) -> None:
        need = _size(self._directory / "rocks") - _size(self._new)
        free = shutil.disk_usage(self._directory).free
        if free < need:
            raise StorageError(
                f"The new store takes about {_mib(need)} beside the old one, but the disk of "
                f"{self._directory} has {_mib(free)} free. Make room, or copy the directory to a larger disk "
                "and migrate it there."
            )

    def _exchange_format(self) -> None:
        """Write the new format to the directory, and keep the files with the old format in the old store."""
        self._old.mkdir(exist_ok=True)
        for name in ("FORMAT", STORE):
            if (self._directory / name).exists():  # format 1 has no STORE
                write_durably(self._old / name, (self._directory / name).read_bytes())
        self._step("old store named")
        write_format(self._directory)
        self._step("format written")

    def _exchange_stores(self) -> None:
        new, now = self._new / "rocks", self._directory / "rocks"
        if new.exists():
            if now.exists():
                _move(now, self._old / "rocks")
                self._step("old store moved")
            _move(new, now)
            self._step("new store moved")
        mark = self._new / STORE
        if mark.exists():
            write_durably(self._directory / STORE, mark.read_bytes())
            self._step("new store marked")
            mark.unlink()

    def _clear_away(self, version: int) -> Path | None:
        """Remove the old store, or keep it. Returns where it is kept."""
        kept = None
        if self._keep.exists() and self._old.exists():
            kept = self._directory / f"format-{version}"
            number = 1
            while kept.exists():
                number += 1
                kept = self._directory / f"format-{version}-{number}"
            _move(self._old, kept)
            self._step("old store kept")
        shutil.rmtree(self._work)
        sync_directory(self._directory)
        self._step("done")
        return kept


class _Copy:
    """The copying of all records from one store to another."""

    def __init__(
        self,
        source: StoredRecords,
        target: Rdict,
        journal: _Journal,
        report: Report,
        leave_out: Callable[[str], None] | None,
    ) -> None:
        self._source = source
        self._target = target
        self._journal = journal
        self._report = report
        self._leave_out = leave_out
        self._left: set[int] = set()
        self._records: dict[bytes, bytes | None] = {}
        self._bytes = 0

    def run(self, begin: Begin) -> None:
        if not self._journal.done:
            self._copy(begin)
        # Also if the copying was complete before: that process may have died before it flushed.
        self._target.flush_wal(True)
        self._target.flush()

    def _copy(self, begin: Begin) -> None:
        journal = self._journal
        batch, sequence = unpack_batch(journal.source) if journal.source else (0, 0)
        total = self._source.db.property_int_value(_RECORDS) or 0
        translation = self._source.read(lambda reader: begin(reader, sequence + 1, journal.began))
        self._left = {*self._source.cleared, *translation.emptied}
        low = journal.key + b"\x00" if journal.key else b""
        for key, value in walk(self._source.db, low, _END, self._refuse):
            journal.key = key
            journal.read += 1
            for new_key, new_value in self._translated(translation, key, value):
                self._records[new_key] = new_value
                self._bytes += len(new_key) + len(new_value)
            if len(self._records) >= _BATCH_RECORDS_MAX or self._bytes >= _BATCH_BYTES_MAX:
                self._commit()
                self._report("copying", journal.read, max(total, journal.read))
        self._records[BATCH_KEY] = pack_batch(batch, sequence + 1)
        journal.done = True
        self._commit()

    def _translated(
        self, translation: Translation, key: bytes, value: bytes
    ) -> Iterator[tuple[bytes, bytes]]:
        space, partition, sort = unpack(key)
        if space == ENGINE_SPACE:
            # Of the engine's own records only the last stamp and the totals are copied, without the totals of
            # spaces that are left out.
            if key == STAMP_KEY or (partition == TOTALS and int.from_bytes(sort) not in self._left):
                yield key, value
            return
        if space in self._left:
            return
        try:
            for record in translation.record(space, partition, sort, value):
                yield pack(*record[:3]), record[3]
        except Untranslatable as error:
            if self._leave_out is None:
                raise StorageError(
                    f"{error}. The store is as it was. With --leave-out the migration leaves out what cannot "
                    "be brought over, says what that is, and keeps the old store."
                ) from error
            self._journal.left_out += 1
            self._leave_out(str(error))

    def _commit(self) -> None:
        self._records[_JOURNAL] = _encode(self._journal)
        write(self._target, partial(writing, self._records))
        self._records, self._bytes = {}, 0

    def _refuse(self, bad: BadRange) -> None:
        raise damaged(self._source.directory, [Damage(bad.cause)])


def _move(path: Path, to: Path) -> None:
    """Move a file or folder durably."""
    path.rename(to)
    sync_directory(to.parent)
    sync_directory(path.parent)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _mib(bytes_: int) -> str:
    return f"{bytes_ / _MIB:.1f} MiB"
