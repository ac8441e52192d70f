"""The mark of a store: the file STORE of a data directory, outside RocksDB's reach.

One line of fixed length says that a store was made here, which one, and how far its acknowledged writes came:

    hashrange store made     rocks 3b0bf30b-... batch 0000...0326 sequence 0000...1304 crc 89abcdef

- `creating` or `made`. Only while it says `creating` may RocksDB create its files; nobody was told of a write
  then.
- RocksDB's own random id of the store, which its MANIFEST holds as well: another store in this place is
  noticed.
- The last batch that was acknowledged, and its last sequence number in RocksDB. It is written over after each
  sync of the log and before the answers, without a sync of its own: the page cache outlives the process, and
  after a crash of the machine the mark is a few seconds old. So it is never ahead of the log, and a log that
  ends before it has lost acknowledged writes.

Refuses to know: RocksDB, and what follows from the mark.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from google_crc32c import value as crc32c

NAME: Final = "STORE"
NEW_NAME: Final = "STORE.new"
_NO_ID: Final = "-"
_LINE: Final = re.compile(
    rb"hashrange store (creating|made) +rocks (\S+) +batch (\d{20}) sequence (\d{20}) crc ([0-9a-f]{8})\n"
)


class DamagedMark(Exception):
    """Why the file STORE does not say what it should."""


class Mark(NamedTuple):
    """What the file STORE says."""

    made: bool
    store_id: str
    batch: int
    sequence: int

    def line(self) -> bytes:
        state = "made" if self.made else "creating"
        id_ = self.store_id or _NO_ID
        text = b"hashrange store %-8s rocks %-36s batch %020d sequence %020d" % (
            state.encode(),
            id_.encode(),
            self.batch,
            self.sequence,
        )
        return b"%s crc %08x\n" % (text, crc32c(text))


def read_mark(directory: Path) -> Mark | None:
    """The mark of a directory; None where there is none. Raises DamagedMark, OSError."""
    try:
        line = (directory / NAME).read_bytes()
    except FileNotFoundError:
        return None
    match = _LINE.fullmatch(line)
    if match is None or int(match[5], 16) != crc32c(line[: match.start(5) - len(" crc ")]):
        raise DamagedMark(f"the file {NAME} is damaged")
    store_id = match[2].decode("ascii", "replace")
    return Mark(match[1] == b"made", "" if store_id == _NO_ID else store_id, int(match[3]), int(match[4]))


def write_mark(directory: Path, mark: Mark) -> None:
    """Put a mark in the place of the one before, durably: a crash leaves the one or the other."""
    write_durably(directory / NAME, mark.line())


def write_durably(path: Path, content: bytes) -> None:
    """Write a file so that a crash leaves either all of it or what was there."""
    new = path.with_name(path.name + ".new")
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in a directory durable."""
    if os.name == "nt":  # Windows can neither open nor sync a directory
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class OpenMark:
    """The mark of an open store, moved on with each batch."""

    __slots__ = ("_descriptor", "_store_id", "batch")

    def __init__(self, directory: Path, store_id: str) -> None:
        """Raises OSError."""
        self._store_id = store_id
        self._descriptor = os.open(directory / NAME, os.O_RDWR | getattr(os, "O_BINARY", 0))
        self.batch = 0

    def advance(self, batch: int, sequence: int) -> None:
        """Note that all up to this batch is durable. A mark that cannot be written stays behind: it says less
        then, but nothing wrong."""
        self.batch = batch
        with contextlib.suppress(OSError):
            _overwrite(self._descriptor, Mark(True, self._store_id, batch, sequence).line())

    def close(self) -> None:
        """Make the mark durable, and let go of it."""
        try:
            with contextlib.suppress(OSError):
                os.fsync(self._descriptor)
        finally:
            os.close(self._descriptor)


def _overwriter() -> Callable[[int, bytes], object]:
    """What writes bytes over the beginning of a file.

    On POSIX it is the system's own `pwrite`, called without letting go of the GIL: it takes 2 µs, but
    `os.pwrite` would have to wait for the GIL again, behind an event loop that is busy.
    """
    try:
        pwrite = ctypes.PyDLL(None).pwrite
    except (AttributeError, OSError, TypeError):  # Windows

        def seek_and_write(descriptor: int, content: bytes) -> None:
            os.lseek(descriptor, 0, os.SEEK_SET)
            os.write(descriptor, content)

        return seek_and_write
    pwrite.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t, ctypes.c_int64)
    pwrite.restype = ctypes.c_ssize_t
    return lambda descriptor, content: pwrite(descriptor, content, len(content), 0)


_overwrite: Final = _overwriter()
