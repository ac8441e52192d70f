"""Opens RocksDB for the embedded engine, and chooses its settings.

Refuses to know: the other files of the data directory (`directory`), records and commits.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Final

from rocksdict import (
    AccessType,
    BlockBasedOptions,
    Cache,
    DBCompressionType,
    DBRecoveryMode,
    Options,
    Rdict,
)

from hashrange.files.descriptors import engine_files_max
from hashrange.storage.failures import DataDirectoryLocked, StorageError, StoreDamaged

_log = logging.getLogger(__name__)

_MIB: Final = 1024 * 1024

_READING_CACHE_BYTES: Final = 8 * _MIB

# RocksDB looks for every block of a deleted file, also where it has found few of them in the cache.
_UNCACHE_AGGRESSIVENESS: Final = 1_000


def open_rocks(
    directory: Path,
    *,
    cache_bytes: int,
    write_buffer_bytes: int = 32 * _MIB,
    create: bool = False,
    read_only: bool = False,
    compact: bool = True,
) -> Rdict:
    """Open the RocksDB of a directory that `directory` has checked; with `create`, make it.

    Raises DataDirectoryLocked, StorageError.
    """
    options = _options(cache_bytes, write_buffer_bytes)
    options.create_if_missing(create)
    options.set_disable_auto_compactions(not compact)
    access = AccessType.read_only(False) if read_only else AccessType.read_write()
    try:
        # The column family "default" is named here because rocksdict 0.3.29 would otherwise take its options
        # from a file that RocksDB wrote, and that file records neither the cache nor the filters.
        db = Rdict(str(directory / "rocks"), options, {"default": options}, access)
    except Exception as error:  # rocksdict raises plain Exception for everything
        text = str(error)
        if "lock" in text.lower() and "/LOCK" in text:
            raise locked(directory) from None
        if text.startswith("Corruption"):
            raise StoreDamaged(
                f"The store in {directory} is damaged and cannot be opened: {text}. Restore a copy; "
                f"`hashrange check {directory}` lists all damage, and with --repair accepts the loss."
            ) from None
        raise StorageError(f"The store in {directory} cannot be opened: {text}") from None
    if not read_only:
        _forget_deleted_files(db)
    return db


def _forget_deleted_files(db: Rdict) -> None:
    """Have RocksDB remove the blocks of a file from the cache when it deletes the file.

    Otherwise RocksDB keeps them until the cache is full. Each deleted table makes RocksDB rewrite files, and
    the blocks of all earlier versions filled the cache: hundreds of MB for a store of 19 MB. `Options` of
    rocksdict 0.3.29 has no method for this setting.
    """
    try:
        db.set_options({"uncache_aggressiveness": str(_UNCACHE_AGGRESSIVENESS)})
    except Exception as error:  # rocksdict raises plain Exception for everything
        # RocksDB notes a changed setting in a file of its own. Where the disk is full this fails, but the
        # setting holds, and the store has to open. A RocksDB without the setting only takes more memory.
        if not str(error).startswith("IO error"):
            _log.warning("the cache keeps blocks of deleted files, up to its size: %s", error)


def locked(directory: Path) -> DataDirectoryLocked:
    return DataDirectoryLocked(
        f"The data directory {directory} is in use by another process, or opened twice by this one. Stop the "
        "other server, or choose another directory."
    )


def open_for_reading(directory: Path) -> Rdict:
    """Open the RocksDB of a directory for reading only, while the engine may have it open as well.

    It shows the store as it is now: it opens all files at once, so it can read files that are deleted later.
    Raises StorageError.
    """
    if not (directory / "rocks/CURRENT").exists():  # rocksdict would create a missing directory
        raise StorageError(f"The store in {directory} cannot be opened: rocks/CURRENT is missing")
    options = _options(_READING_CACHE_BYTES, _MIB)
    options.set_max_open_files(-1)
    try:
        return Rdict(
            str(directory / "rocks"),
            options,
            column_families={"default": options},
            access_type=AccessType.read_only(),
        )
    except Exception as error:
        raise StorageError(f"The store in {directory} cannot be opened for reading: {error}") from None


def _options(cache_bytes: int, write_buffer_bytes: int) -> Options:
    """RocksDB's settings: for point reads and short ranges of records of about 1 KB."""
    table = BlockBasedOptions()
    table.set_block_cache(Cache(cache_bytes))
    table.set_bloom_filter(10, False)  # most conditional puts look for an item that is not there
    table.set_block_size(8 * 1024)
    table.set_format_version(5)

    options = Options(raw_mode=True)
    # A torn record at the end of the log is not an error: a crash leaves one. `damage` has already looked for
    # all other damage, because RocksDB in this mode silently stops reading at a hole.
    options.set_wal_recovery_mode(DBRecoveryMode.point_in_time())
    # `manifest` reads the whole MANIFEST before each start.
    options.set_max_manifest_file_size(16 * _MIB)
    options.set_block_based_table_factory(table)
    # For all levels: zstd takes half the space, but gets from blocks outside the cache take twice the time.
    options.set_compression_type(DBCompressionType.lz4())
    # A crash replays at most the log of the buffers: this bounds both memory and the time of the next start.
    options.set_write_buffer_size(write_buffer_bytes)
    # Many buffers absorb a burst of writes without a stall; the engine limits how many bodies wait anyway.
    options.set_max_write_buffer_number(6)
    options.set_level_zero_slowdown_writes_trigger(40)
    options.set_level_zero_stop_writes_trigger(64)
    options.set_max_total_wal_size(4 * write_buffer_bytes)
    # A scan walks over every tombstone in its range. So RocksDB compacts a file when half of 4,096
    # consecutive records, or half of the whole file, are tombstones, even if it has no other reason to.
    options.add_compact_on_deletion_collector_factory(4_096, 2_048, 0.5)
    options.set_max_background_jobs(max(2, min(4, os.cpu_count() or 2)))
    options.set_bytes_per_sync(_MIB)
    options.set_max_open_files(engine_files_max())
    options.set_avoid_unnecessary_blocking_io(True)
    # Few and small info logs; no periodic statistics.
    options.set_keep_log_file_num(2)
    options.set_max_log_file_size(_MIB)
    options.set_stats_dump_period_sec(0)
    options.set_stats_persist_period_sec(0)
    return options
