"""Finds out whether the disk has room for a batch, and for opening the store again after it.

When the disk is full, RocksDB takes no write until it is opened again, and opening needs disk space itself:
it writes the records of its log into tables. So the engine begins no batch that would leave less than this
space. Other programs may still use the space up; `reopening` deals with that.

Refuses to know: everything of RocksDB but its folder, and of batches but their size.
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

    Before it gives up, it calls `flush`, which makes RocksDB write the records of its log into tables. Tables
    are smaller than the log, and opening the store then need not write those records again.
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
                with contextlib.suppress(FileNotFoundError):  # RocksDB deletes a log that it needs no more
                    total += entry.stat().st_size
    return total


@contextlib.contextmanager
def reserved(directory: Path) -> Iterator[None]:
    """Reserve the disk space that opening the store again needs, until the context ends.

    Raises OSError if the disk has not that much.
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
            if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):  # the file system has no fallocate
                raise


def _mib(bytes_: int) -> str:
    return f"{bytes_ / _MIB:.1f} MiB"
