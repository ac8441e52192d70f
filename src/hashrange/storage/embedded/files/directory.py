"""A data directory: its format, its lock, and whether all of its files are there.

    DIRECTORY/FORMAT    "hashrange data 4"
    DIRECTORY/STORE     the mark of the store: its id and its last acknowledged write (`mark`)
    DIRECTORY/rocks/    RocksDB's files
    DIRECTORY/COPYING   while another store is copied to the directory (`offline.directory_copy`,
                        `offline.replay`)

A directory with FORMAT or STORE is a data directory; an empty directory becomes one; any other directory is
refused, so that a mistyped path never mixes a database into somebody's files.

A directory of another format, older or newer, is refused and left unchanged (docs/decisions/0011-formats.md).

While a new store is made, STORE says `creating`. Only then may RocksDB create its files, and a crash leaves a
directory in which the next start makes the store again. When the new store is durable, STORE says `made`.
From then on a directory in which a file is missing or damaged is refused and left unchanged.

The directory is locked while a store is open in it, and only its owner may enter it (mode 0700).

Refuses to know: records and commits.
"""

from __future__ import annotations

import contextlib
import logging
import os
import shutil
from pathlib import Path
from typing import Final

from rocksdict import Checkpoint, Rdict

from hashrange.files.durable import sync_directory, write_durably
from hashrange.storage import features
from hashrange.storage.embedded import disk
from hashrange.storage.embedded.batches import needs_of
from hashrange.storage.embedded.disk import locked
from hashrange.storage.embedded.files.damage import Damage, Examined, examine
from hashrange.storage.embedded.files.manifest import UnreadableManifest, read_manifest
from hashrange.storage.embedded.files.mark import (
    FORMAT_VERSION,
    NAME,
    NEW_NAME,
    DamagedMark,
    Mark,
    OpenMark,
    read_mark,
    write_mark,
)
from hashrange.storage.embedded.files.presence import Identity, identity, missing
from hashrange.storage.embedded.room import log_bytes
from hashrange.storage.failures import StorageError, StoreDamaged, UnfinishedCopy, UnknownFormat

_log = logging.getLogger(__name__)

# RocksDB replays about 25 MiB of its log in a second, and meanwhile no other thread can log a message.
_LOG_TOLD_MIB: Final = 16
_MIB: Final = 1024 * 1024

COPYING: Final = "COPYING"
_FORMAT_PREFIX: Final = "hashrange data "
_DIRECTORY_MODE: Final = 0o700
_OTHERS: Final = 0o077

# Names that an empty directory may hold: a file system's own folder, and the files of an unfinished creation.
_HARMLESS_NAMES: Final = frozenset({"lost+found", "FORMAT.new", NAME, NEW_NAME})


class DamagedFormat(UnknownFormat):
    """The file FORMAT cannot be read, but STORE says that a store of Hashrange is there."""


def open_directory(
    directory: Path, *, cache_bytes: int, write_buffer_bytes: int
) -> tuple[DataDirectory, Rdict]:
    """Lock a directory, and open the store in it; raises the errors of `DataDirectory.open`."""
    taken = DataDirectory(directory, cache_bytes=cache_bytes, write_buffer_bytes=write_buffer_bytes)
    try:
        return taken, taken.open()
    except BaseException:
        taken.close()
        raise


class DataDirectory:
    """A data directory in use by this process: locked until it is closed."""

    __slots__ = (
        *("_cache_bytes", "_directory", "_lock", "_mark", "_opened", "_write_buffer_bytes"),
        *("_discards", "_has_made", "_new"),
    )

    def __init__(self, directory: Path, *, cache_bytes: int, write_buffer_bytes: int) -> None:
        """Raises DataDirectoryLocked, UnknownFormat, StorageError."""
        self._directory = directory
        self._cache_bytes = cache_bytes
        self._write_buffer_bytes = write_buffer_bytes
        self._mark: OpenMark | None = None
        self._opened: Identity = (0, 0)  # the folder rocks
        self._new = [each for each in (directory, *directory.parents) if not each.exists()]
        self._has_made = False
        self._discards = False
        try:
            make_directory(directory)
            self._lock: int | None = lock(directory)
        except OSError as error:
            raise unusable(directory, error) from error

    def open(self) -> Rdict:
        """Open the store of the directory; make it if the directory never had one.

        Raises DataDirectoryLocked, UnknownFormat, StoreDamaged, StorageError.
        """
        self._close_mark()
        directory = self._directory
        try:
            check_copied(directory)
            try:
                has_format = read_format(directory)
            except DamagedFormat as error:
                raise damaged(directory, [Damage(str(error), "FORMAT")]) from None
            mark = _mark(directory)
            if not has_format and mark is None:
                check_empty(directory)
            if not has_format if mark is None else not mark.made:
                return self._create(has_format)
            examined = examine_directory(directory, has_format, mark)
            if examined.damage:
                raise damaged(directory, examined.damage)
            assert examined.manifest is not None
            self._make_private()
            for log, end in examined.torn.items():  # RocksDB can loop forever over random bytes
                os.truncate(directory / "rocks" / log, end)
            log_mib = log_bytes(directory) // _MIB
            if log_mib >= _LOG_TOLD_MIB:
                _log.info(
                    "opening the store: RocksDB plays back its log", extra={"fields": {"log_mib": log_mib}}
                )
            db = self._open_rocks(create=False)
            try:
                features.check(f"The data directory {directory}", needs_of(db))
                self._mark = OpenMark(directory, examined.manifest.store_id)
            except BaseException:
                db.close()
                raise
            return db
        except OSError as error:
            raise unusable(directory, error) from error

    def _create(self, has_format: bool) -> Rdict:
        """Make a new store, also if a crash cut off an earlier try. Raises OSError and the errors of
        `open`."""
        directory = self._directory
        write_mark(directory, Mark(False, "", 0, 0))
        if not has_format:
            write_format(directory)
        sync_directory(directory.parent)
        self._make_private()
        db = self._open_rocks(create=True)
        try:
            self._make_private()
            sync_directory(directory)
            store_id = read_manifest(directory / "rocks").store_id
            write_mark(directory, Mark(True, store_id, 0, 0))
            self._mark = OpenMark(directory, store_id)
        except BaseException as error:
            db.close()
            if isinstance(error, UnreadableManifest):
                raise StorageError(f"The new store in {directory} cannot be read: {error}.") from None
            raise
        self._has_made = True
        return db

    def _open_rocks(self, *, create: bool) -> Rdict:
        db = disk.open_rocks(
            self._directory,
            cache_bytes=self._cache_bytes,
            write_buffer_bytes=self._write_buffer_bytes,
            create=create,
        )
        self._opened = identity(self._directory / "rocks")
        return db

    def missing_files(self, db: Rdict) -> str | None:
        """Which files of the store that was opened as `db` somebody has removed; None if all are there."""
        return missing(self._directory, self._opened, db)

    @property
    def store_id(self) -> str:
        """The id of the open store; "" if none is open."""
        return self._mark.store_id if self._mark is not None else ""

    def sync_drive(self) -> None:
        """Make durable what RocksDB has synced. Raises OSError."""
        if self._mark is not None:
            self._mark.sync_drive()

    def advance(self, batch: int, sequence: int) -> None:
        """Note in STORE that everything up to this batch is durable."""
        if self._mark is not None:
            self._mark.advance(batch, sequence)

    def checkpoint(self, db: Rdict, copy: Path) -> None:
        """Write a copy of the store into the new or empty directory `copy`."""
        try:
            make_directory(copy)
            if any(copy.iterdir()):
                raise StorageError(f"The checkpoint directory {copy} is not empty; choose a new directory.")
            copy.chmod(_DIRECTORY_MODE)
            Checkpoint(db).create_checkpoint(str(copy / "rocks"))
            manifest = read_manifest(copy / "rocks")
            batch = self._mark.batch if self._mark is not None else 0
            write_mark(copy, Mark(True, manifest.store_id, batch, manifest.last_sequence))
            write_format(copy)
            make_private(copy)
            sync_directory(copy.parent)
        except StorageError:
            raise
        except Exception as error:
            raise StorageError(f"The checkpoint in {copy} could not be written: {error}") from error

    def discard(self, wanted: bool) -> None:
        """Whether to remove the store when it is closed, if this object has made it, and the directories
        that were made for the store."""
        self._discards = wanted and self._has_made

    def close(self) -> None:
        """Unlock the directory. Close the store in it first."""
        self._close_mark()
        if self._discards:  # while it is locked: afterwards another server may have it
            self._remove()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _remove(self) -> None:
        """Remove the store, and what was not there before it."""
        shutil.rmtree(self._directory / "rocks", ignore_errors=True)
        with contextlib.suppress(OSError):  # (somebody else uses a directory)
            for name in (NAME, "FORMAT"):
                (self._directory / name).unlink(missing_ok=True)
            for made in self._new:
                made.rmdir()

    def _close_mark(self) -> None:
        if self._mark is not None:
            self._mark.close()
            self._mark = None

    def _make_private(self) -> None:
        """Remove the rights of other users, if this process owns the directory; otherwise leave them."""
        with contextlib.suppress(PermissionError):
            make_private(self._directory)


def examine_directory(directory: Path, has_format: bool, mark: Mark | None) -> Examined:
    """Look at the files of a directory in which a store was made. Raises OSError."""
    examined = examine(directory / "rocks", mark)
    for name, is_there in ((NAME, mark is not None), ("FORMAT", has_format)):
        if not is_there:
            examined.damage.insert(0, Damage(f"the file {name} is missing", name))
    return examined


def damaged(directory: Path, damage: list[Damage]) -> StoreDamaged:
    """The error for a start on a damaged directory."""
    more = f" (and {len(damage) - 1} more)" if len(damage) > 1 else ""
    return StoreDamaged(
        f"The store in {directory} is damaged: {damage[0].message}{more}. Nothing was changed. "
        f"Put back what is missing, or restore a copy; `hashrange check {directory}` tells all that is "
        "wrong, and with --repair it accepts the loss."
    )


def read_format(directory: Path) -> bool:
    """Whether a data directory has FORMAT. Refuses a directory of another format than FORMAT_VERSION.

    Raises DamagedFormat, UnknownFormat, OSError.
    """
    path = directory / "FORMAT"
    mark, text = None, None
    with contextlib.suppress(DamagedMark):
        mark = read_mark(directory)
    with contextlib.suppress(FileNotFoundError):
        text = path.read_bytes().decode("ascii", "replace").strip()
    number = (text or "").removeprefix(_FORMAT_PREFIX)
    is_written = number != text and number.isdecimal()
    # STORE has a checksum, and FORMAT has none.
    version = mark.format if mark is not None else int(number) if is_written else FORMAT_VERSION
    if version != FORMAT_VERSION:
        raise UnknownFormat(
            f"The data directory {directory} has format {version}; this version of Hashrange opens format "
            f"{FORMAT_VERSION}. Nothing was changed. Use the version that has written the directory; to take "
            "its tables over, serve it with that version and run `hashrange pull --all --from URL --limit N`."
        )
    if text is None:
        return False
    if mark is not None and not (is_written and int(number) == FORMAT_VERSION):
        raise DamagedFormat("the file FORMAT is damaged")
    if not is_written:
        raise UnknownFormat(f"The file {path} was not written by Hashrange. Choose another directory.")
    return True


def lock(directory: Path, *, shared: bool = False) -> int | None:
    """Lock a directory for this process, until the returned descriptor is closed.

    Returns None on a system without such locks; RocksDB's own lock protects the store there. Raises
    DataDirectoryLocked, OSError.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        return None
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise locked(directory) from None
    except OSError:  # a file system without locks
        os.close(descriptor)
        return None
    return descriptor


def make_private(directory: Path) -> None:
    """Remove all rights of other users from a directory and the files in it."""
    if os.name == "nt":  # rights are inherited there
        return
    folders = [path for path in (directory, directory / "rocks") if path.is_dir()]
    if not any(path.stat().st_mode & _OTHERS for path in folders):
        return  # other users cannot reach the files in it any more
    for path in (*folders, *directory.rglob("*")):
        with contextlib.suppress(FileNotFoundError):  # RocksDB may delete files while this runs
            mode = path.stat().st_mode
            if mode & _OTHERS:
                path.chmod(mode & ~_OTHERS & 0o7777)


def check_copied(directory: Path) -> None:
    """Refuse a directory with an unfinished copy. Raises UnfinishedCopy."""
    if (directory / COPYING).exists():
        raise UnfinishedCopy(
            f"The directory {directory} holds an unfinished copy. Run `hashrange copy` "
            "again with the same two stores, or `hashrange replica restore`: both start again. Or remove the "
            "directory."
        )


def _mark(directory: Path) -> Mark | None:
    try:
        return read_mark(directory)
    except DamagedMark as error:
        raise damaged(directory, [Damage(str(error), NAME)]) from None


def make_directory(directory: Path, mode: int = _DIRECTORY_MODE) -> None:
    """Make a directory and its missing parents durably: a crash of the machine does not remove them."""
    if not directory.is_dir():
        make_directory(directory.parent, 0o777)
        directory.mkdir(mode=mode, exist_ok=True)
        sync_directory(directory.parent)


def check_empty(directory: Path) -> None:
    """Refuse a directory that holds somebody's files. Raises UnknownFormat, OSError."""
    foreign = sorted({entry.name for entry in directory.iterdir()} - _HARMLESS_NAMES)
    if foreign:
        raise UnknownFormat(
            f"The directory {directory} is not empty and is not a Hashrange data directory (it holds "
            f"{foreign[0]!r}). Choose an empty or a new directory."
        )


def write_format(directory: Path) -> None:
    """Write FORMAT so that a crash leaves either all of it or none."""
    write_durably(directory / "FORMAT", f"{_FORMAT_PREFIX}{FORMAT_VERSION}\n".encode())


def unusable(directory: Path, error: OSError) -> StorageError:
    """The error for a system call on a data directory that failed."""
    return StorageError(
        f"The data directory {directory} cannot be used: {error}. Check that it is a directory that this "
        "user may write to, and that the disk is not full."
    )
