"""Checks that the disk has room for a batch, and for opening the store again after it.

When the disk is full, RocksDB refuses writes until it is opened again, and opening needs disk space itself:
RocksDB writes the records of its log into tables. So the engine begins no batch that would leave less than
this space. Other programs may still use up the space; `reopening` deals with that.

Refuses to know: RocksDB except its folder, and batches except their size.
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

from hashrange.files.durable import sync
from hashrange.storage.failures import StorageError

_MIB: Final = 1024 * 1024

# The space that opening needs in addition to the content of the log: a manifest, options, an empty log.
OPENING_BYTES: Final = 4 * _MIB
# This much more has to be free before writes are accepted again, so that the engine does not flip-flop.
MARGIN_BYTES: Final = 4 * _MIB
# A batch is written to the log, and later to a table.
_COPIES: Final = 2

# With less than this to spare, each batch checks the disk.
SPARE_BYTES_MIN: Final = 256 * _MIB
LOOK_SECONDS: Final = 0.05

_PROBE_NAME: Final = "probe"
_PROBE_WRITTEN_BYTES: Final = 64 * 1024


class NoRoom(StorageError):
    """The disk is too full."""


class Room:
    """The room on the disk of `directory`, whose log has at most `log_bytes_max`.

    While plenty is free, the disk is checked only once in `LOOK_SECONDS`: each check releases the GIL, and a
    commit thread waits long to get the GIL back from a busy event loop.
    """

    __slots__ = ("_directory", "_log_bytes_max", "_look_at", "_spare_bytes")

    def __init__(self, directory: Path, log_bytes_max: int) -> None:
        self._directory = directory
        self._log_bytes_max = log_bytes_max
        self._spare_bytes = 0
        self._look_at = 0.0

    def take(self, bytes_: int, flush: Callable[[], object]) -> None:
        """Like `look`, for a batch that is written at once. May rely on an earlier check."""
        spare = self._spare_bytes - _COPIES * bytes_
        now = monotonic()
        if spare < SPARE_BYTES_MIN or now >= self._look_at:
            spare = self.look(bytes_, flush)
            self._look_at = now + LOOK_SECONDS
        self._spare_bytes = spare

    def look(self, bytes_: int, flush: Callable[[], object] | None = None) -> int:
        """Return how many bytes stay free after `bytes_` more and the next opening of the store.

        Raises NoRoom if the disk has not enough space for both.

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
                with contextlib.suppress(FileNotFoundError):  # RocksDB deletes logs that it no longer needs
                    total += entry.stat().st_size
    return total


@contextlib.contextmanager
def reserved(directory: Path) -> Iterator[None]:
    """Reserve the disk space that opening the store again needs, until the context ends.

    Raises OSError if the disk has less.
    """
    path = directory / _PROBE_NAME
    try:
        with path.open("wb") as file:
            file.write(bytes(_PROBE_WRITTEN_BYTES))
            _allocate(file.fileno(), OPENING_BYTES + log_bytes(directory))
            file.flush()
            sync(file.fileno())
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
