"""Whether the disk has room for a batch, and for opening the store again after it.

RocksDB that meets the end of the disk takes no write until it is opened again, and opening takes room
itself: it writes what its log holds into tables. So no batch is begun that would leave less than that. The
room belongs to everybody on the disk, so it can be gone all the same: `reopening` deals with that.

Refuses to know: RocksDB but for its folder, batches but for their size.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

from hashrange.storage.api import StorageError

_MIB: Final = 1024 * 1024

# What opening takes beside the content of the log: a manifest, options, an empty log.
OPENING_BYTES: Final = 4 * _MIB
# How much more there has to be before writes are taken again, so that it does not go to and fro.
MARGIN_BYTES: Final = 4 * _MIB
# A batch is written to the log, and later to a table.
_COPIES: Final = 2

_PROBE_NAME: Final = "probe"
_PROBE_WRITTEN_BYTES: Final = 64 * 1024


class NoRoom(StorageError):
    """The disk is too full."""


def find_room(
    directory: Path, bytes_: int, log_bytes_max: int, flush: Callable[[], object] | None = None
) -> None:
    """Raise NoRoom unless the disk takes `bytes_` more, and the store can be opened again then.

    `flush` has RocksDB put the content of its log into tables, where it takes less, and need not be written
    once more when the store is opened: it is called before giving up.
    """
    free = shutil.disk_usage(directory).free
    need = OPENING_BYTES + _COPIES * bytes_
    if free >= need + log_bytes_max:  # no need to ask how long the log is
        return
    need += log_bytes(directory)
    if free >= need:
        return
    if flush is None:
        raise NoRoom(f"the disk of {directory} has {_mib(free)} free, of which the store keeps {_mib(need)}")
    flush()
    find_room(directory, bytes_, log_bytes_max)


def log_bytes(directory: Path) -> int:
    """The size of RocksDB's log."""
    total = 0
    with os.scandir(directory / "rocks") as entries:
        for entry in entries:
            if entry.name.endswith(".log"):
                with contextlib.suppress(FileNotFoundError):  # RocksDB deletes it when it is done with it
                    total += entry.stat().st_size
    return total


@contextlib.contextmanager
def reserved(directory: Path) -> Iterator[None]:
    """Hold what opening the store again takes, so that nobody else can take it, until the context ends.

    Raises OSError where the disk does not take it durably.
    """
    path = directory / _PROBE_NAME
    try:
        with path.open("wb") as file:
            file.write(bytes(_PROBE_WRITTEN_BYTES))
            _allocate(file.fileno(), OPENING_BYTES + log_bytes(directory))
            file.flush()
            os.fsync(file.fileno())
        yield
    finally:
        path.unlink(missing_ok=True)


def _allocate(descriptor: int, bytes_: int) -> None:
    if hasattr(os, "posix_fallocate"):
        try:
            os.posix_fallocate(descriptor, 0, bytes_)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # a file system that cannot
                raise


def _mib(bytes_: int) -> str:
    return f"{bytes_ / _MIB:.1f} MiB"
