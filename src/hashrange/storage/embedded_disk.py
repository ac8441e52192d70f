"""A data directory on disk: its format, its lock, and the RocksDB inside it.

    DIRECTORY/FORMAT    "hashrange data 1": written first, durably, before anything else
    DIRECTORY/rocks/    RocksDB's files; RocksDB's own LOCK keeps every other process out

A directory is ours if it has a FORMAT file; an empty one becomes ours; any other is refused, so that a
mistyped path never mixes a database into somebody's files.

Refuses to know: records and commits.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from rocksdict import (
    BlockBasedOptions,
    Cache,
    Checkpoint,
    DBCompressionType,
    Options,
    Rdict,
)

from hashrange.storage.api import DataDirectoryLocked, StorageError, UnknownFormat

FORMAT_VERSION: Final = 1
_FORMAT_PREFIX: Final = "hashrange data "
_MIB: Final = 1024 * 1024

# What an otherwise empty directory may hold: a file system's own folder, and our own unfinished start.
_HARMLESS_NAMES: Final = frozenset({"lost+found", "FORMAT.new"})

# A store that failed for want of space is opened again only when this much can be written: opening needs
# room itself, and a store that fails to open cannot even be read.
_PROBE_BYTES: Final = 4 * _MIB


def open_directory(directory: Path, *, cache_bytes: int, write_buffer_bytes: int) -> Rdict:
    """Open the store in `directory`, made where missing.

    Raises DataDirectoryLocked, UnknownFormat, StorageError.
    """
    try:
        directory.mkdir(parents=True, exist_ok=True)
        _check_format(directory)
    except OSError as error:
        raise StorageError(
            f"The data directory {directory} cannot be used: {error}. Check that it is a directory that "
            "this user may write to, and that the disk is not full."
        ) from error
    return open_rocks(directory, cache_bytes=cache_bytes, write_buffer_bytes=write_buffer_bytes)


def open_rocks(directory: Path, *, cache_bytes: int, write_buffer_bytes: int) -> Rdict:
    """Open the RocksDB of a directory whose format is known to be ours."""
    options = _options(cache_bytes, write_buffer_bytes)
    try:
        # The column family is named, for rocksdict 0.3.29 takes the options of one that is not from the file
        # that RocksDB wrote, which knows neither the cache nor the filters.
        return Rdict(str(directory / "rocks"), options, column_families={"default": options})
    except Exception as error:  # rocksdict raises plain Exception for everything
        text = str(error)
        if "lock" in text.lower() and "/LOCK" in text:
            raise DataDirectoryLocked(
                f"The data directory {directory} is in use by another process, or opened twice by this "
                "one. Stop the other server, or choose another directory."
            ) from None
        raise StorageError(f"The store in {directory} cannot be opened: {text}") from None


def checkpoint(db: Rdict, directory: Path) -> None:
    """Write a copy of `db` into the new or empty `directory`."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise StorageError(f"The checkpoint directory {directory} is not empty; choose a new one.")
        Checkpoint(db).create_checkpoint(str(directory / "rocks"))
        _write_format(directory)
    except StorageError:
        raise
    except Exception as error:
        raise StorageError(f"The checkpoint in {directory} could not be written: {error}") from error


def probe_space(directory: Path) -> None:
    """Raise OSError unless the directory's disk takes `_PROBE_BYTES` durably."""
    path = directory / "probe"
    try:
        with path.open("wb") as file:
            file.write(bytes(_PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    finally:
        path.unlink(missing_ok=True)


def _check_format(directory: Path) -> None:
    try:
        text = (directory / "FORMAT").read_text("ascii").strip()
    except FileNotFoundError:
        foreign = sorted({entry.name for entry in directory.iterdir()} - _HARMLESS_NAMES)
        if foreign:
            raise UnknownFormat(
                f"The directory {directory} is not empty and is not a Hashrange data directory (it holds "
                f"{foreign[0]!r}). Choose an empty or a new directory."
            ) from None
        _write_format(directory)
        return
    except UnicodeDecodeError:
        text = ""
    version = text.removeprefix(_FORMAT_PREFIX)
    if version == text or not version.isdigit():
        raise UnknownFormat(
            f"The file {directory / 'FORMAT'} was not written by Hashrange. Choose another directory."
        )
    if int(version) != FORMAT_VERSION:
        raise UnknownFormat(
            f"The data directory {directory} has format {version}; this program knows format "
            f"{FORMAT_VERSION}. Use a newer Hashrange."
        )


def _write_format(directory: Path) -> None:
    """Write FORMAT so that a crash leaves either all of it or none."""
    new = directory / "FORMAT.new"
    with new.open("w", encoding="ascii") as file:
        file.write(f"{_FORMAT_PREFIX}{FORMAT_VERSION}\n")
        file.flush()
        os.fsync(file.fileno())
    new.replace(directory / "FORMAT")
    _sync_directory(directory)
    _sync_directory(directory.parent)


def _sync_directory(directory: Path) -> None:
    if os.name == "nt":  # Windows can neither open nor sync a directory
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _options(cache_bytes: int, write_buffer_bytes: int) -> Options:
    """RocksDB's settings: for point reads and short ranges of records of about 1 KB."""
    table = BlockBasedOptions()
    table.set_block_cache(Cache(cache_bytes))
    table.set_bloom_filter(10, False)  # most conditional puts look for an item that is not there
    table.set_block_size(8 * 1024)
    table.set_format_version(5)

    options = Options(raw_mode=True)
    options.create_if_missing(True)
    options.set_block_based_table_factory(table)
    options.set_compression_type(DBCompressionType.lz4())
    options.set_bottommost_compression_type(DBCompressionType.zstd())
    # A crash replays at most the log of the buffers: this bounds both memory and the time of the next start.
    options.set_write_buffer_size(write_buffer_bytes)
    # Bursts are taken into buffers rather than held up: the bodies that wait for a commit are bounded anyway.
    options.set_max_write_buffer_number(6)
    options.set_level_zero_slowdown_writes_trigger(40)
    options.set_level_zero_stop_writes_trigger(64)
    options.set_max_total_wal_size(4 * write_buffer_bytes)
    options.set_max_background_jobs(max(2, min(4, os.cpu_count() or 2)))
    options.set_bytes_per_sync(_MIB)
    options.set_max_open_files(_open_files_max())
    options.set_avoid_unnecessary_blocking_io(True)
    # Few and small info logs; no periodic statistics.
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(_MIB)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    return options


def _open_files_max() -> int:
    """A quarter of the process's file descriptors: the rest is for sockets."""
    try:
        import resource
    except ImportError:  # Windows
        return 512
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 4096 if soft == resource.RLIM_INFINITY else max(64, min(4096, soft // 4))
