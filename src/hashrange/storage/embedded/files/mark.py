"""The mark of a store: the file STORE of a data directory, outside RocksDB's reach.

One line of fixed length says whether a store was made here, its id, and its last acknowledged write:

    hashrange store made     rocks 3b0bf30b-... batch 0000...0326 sequence 0000...1304 format 4 crc 89abcdef

- `creating` or `made`. RocksDB may create its files only while the mark says `creating`; no write has been
  acknowledged then.
- RocksDB's own random id of the store. The MANIFEST holds this id as well, so the files of another store in
  this place are noticed.
- The last batch that was acknowledged, and its last sequence number in RocksDB. The engine writes them after
  each sync of the log and before the answers, without a sync of the mark itself: a killed process leaves the
  mark in the page cache, and after a crash of the machine the mark is a few seconds old. So the mark is never
  ahead of the log, and a log that ends before the mark has lost acknowledged writes.
- The format of the data directory. FORMAT holds it as well, so that a directory that has lost FORMAT is not
  mistaken for a directory of another format.

Refuses to know: RocksDB, and the conclusions from the mark (`damage`).
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from fastcrc.crc32 import iscsi as crc32c

from hashrange.files.durable import BINARY, sync, sync_drive, write_durably

FORMAT_VERSION: Final = 4
"""The format of the data directories that this program makes and opens."""
_FORMAT_UNWRITTEN: Final = 2
"""The format of marks that do not name theirs."""

NAME: Final = "STORE"
NEW_NAME: Final = "STORE.new"
_NO_ID: Final = "-"
_LINE: Final = re.compile(
    rb"hashrange store (creating|made) +rocks (\S+) +batch (\d{20}) sequence (\d{20})( format (\d+))?"
    rb" crc ([0-9a-f]{8})\n"
)


class DamagedMark(Exception):
    """The file STORE cannot be read as a mark."""


class Mark(NamedTuple):
    """The contents of the file STORE."""

    made: bool
    store_id: str
    batch: int
    sequence: int
    format: int = FORMAT_VERSION

    def line(self) -> bytes:
        return _line(self.before(), self.batch, self.sequence, self.after())

    def before(self) -> bytes:
        """The beginning of the line, which does not change while a store is open."""
        state = "made" if self.made else "creating"
        return f"hashrange store {state:8} rocks {self.store_id or _NO_ID:36}".encode()

    def after(self) -> bytes:
        """The end of the line, which does not change either."""
        return b" format %d" % self.format


def _line(before: bytes, batch: int, sequence: int, after: bytes) -> bytes:
    text = b"%b batch %020d sequence %020d%b" % (before, batch, sequence, after)
    return b"%b crc %08x\n" % (text, crc32c(text))


def read_mark(directory: Path) -> Mark | None:
    """The mark of a directory; None if it has no mark. Raises DamagedMark, OSError."""
    try:
        line = (directory / NAME).read_bytes()
    except FileNotFoundError:
        return None
    match = _LINE.fullmatch(line)
    if match is None or int(match[7], 16) != crc32c(line[: match.start(7) - len(" crc ")]):
        raise DamagedMark(f"the file {NAME} is damaged")
    store_id = match[2].decode("ascii", "replace")
    format_ = _FORMAT_UNWRITTEN if match[6] is None else int(match[6])
    made, id_ = match[1] == b"made", "" if store_id == _NO_ID else store_id
    return Mark(made, id_, int(match[3]), int(match[4]), format_)


def write_mark(directory: Path, mark: Mark) -> None:
    """Replace the mark durably: a crash leaves either the old mark or the new one."""
    write_durably(directory / NAME, mark.line())


class OpenMark:
    """The mark of an open store. The engine advances it with each batch."""

    __slots__ = ("_after", "_before", "_descriptor", "batch", "store_id")

    def __init__(self, directory: Path, store_id: str) -> None:
        """Raises OSError."""
        mark = Mark(True, store_id, 0, 0)
        self.store_id = store_id
        self._before, self._after = mark.before(), mark.after()
        self._descriptor = os.open(directory / NAME, os.O_RDWR | BINARY)
        self.batch = 0

    def advance(self, batch: int, sequence: int) -> None:
        """Note that everything up to this batch is durable. If the mark cannot be written, the old mark
        remains, which claims less but is still true."""
        self.batch = batch
        try:  # noqa: SIM105 (`suppress` takes longer than the write)
            _overwrite(self._descriptor, _line(self._before, batch, sequence, self._after))
        except OSError:
            pass

    def sync_drive(self) -> None:
        """Make durable what RocksDB has synced. Raises OSError."""
        sync_drive(self._descriptor)

    def close(self) -> None:
        """Make the mark durable, and close its file."""
        try:
            with contextlib.suppress(OSError):
                sync(self._descriptor)
        finally:
            os.close(self._descriptor)


def _overwriter() -> Callable[[int, bytes], object]:
    """A function that writes bytes over the beginning of a file.

    On POSIX it is the system's own `pwrite`, called without releasing the GIL: the call takes 2 µs, whereas
    `os.pwrite` releases the GIL and then waits for it behind a busy event loop.
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
