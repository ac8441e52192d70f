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
from time import monotonic
from typing import Final

from hashrange.storage.api import StorageError

_MIB: Final = 1024 * 1024

# What opening takes beside the content of the log: a manifest, options, an empty log.
OPENING_BYTES: Final = 4 * _MIB
# How much more there has to be before writes are taken again, so that it does not go to and fro.
MARGIN_BYTES: Final = 4 * _MIB
# A batch is written to the log, and later to a table.
_COPIES: Final = 2

# With less than this to spare, each batch asks the disk.
SPARE_BYTES_MIN: Final = 256 * _MIB
LOOK_SECONDS: Final = 0.05

_PROBE_NAME: Final = "probe"
_PROBE_WRITTEN_BYTES: Final = 64 * 1024


class NoRoom(StorageError):
    """The disk is too full."""


class Room:
    """The room on the disk of `directory`, whose log has at most `log_bytes_max`.

    While much is free, it asks the disk only once in `LOOK_SECONDS`: each question releases the interpreter's
    lock, which a commit thread gets back late beside a busy event loop.
    """

    __slots__ = ("_directory", "_log_bytes_max", "_look_at", "_spare_bytes")

    def __init__(self, directory: Path, log_bytes_max: int) -> None:
        self._directory = directory
        self._log_bytes_max = log_bytes_max
        self._spare_bytes = 0
        self._look_at = 0.0

    def take(self, bytes_: int, flush: Callable[[], object]) -> None:
        """As `look`, for a batch that is written at once. It may rely on an earlier look."""
        spare = self._spare_bytes - _COPIES * bytes_
        now = monotonic()
        if spare < SPARE_BYTES_MIN or now >= self._look_at:
            spare = self.look(bytes_, flush)
            self._look_at = now + LOOK_SECONDS
        self._spare_bytes = spare

    def look(self, bytes_: int, flush: Callable[[], object] | None = None) -> int:
        """Return how many bytes stay free after `bytes_` more and the next opening of the store.

        Raises NoRoom if the disk has not enough for both.

        Before it gives up, it calls `flush`, which makes RocksDB write the records of its log into tables.
        Tables are smaller than the log, and opening the store then need not write those records again.
        """
        free = shutil.disk_usage(self._directory).free
        need = OPENING_BYTES + _COPIES * bytes_
        spare = free - need - self._log_bytes_max
        if spare >= 0:  # no need to ask how long the log is
            return spare
        need += log_bytes(self._directory)
        if free >= need:
            return 0
        if flush is None:
            raise NoRoom(
                f"the disk of {self._directory} has {_mib(free)} free, of which the store keeps {_mib(need)}"
            )
        flush()
        return self.look(bytes_)


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
