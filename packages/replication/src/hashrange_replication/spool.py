"""The spool: segments that the bucket does not have yet, as files in DIRECTORY/copy/spool.

A file has the content of the object, and is named by epoch and index. Nothing is synced: after a crash the
chain is broken anyway, and a new base follows. After a clean end the files are shipped by the next start.
"""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from hashrange.files.durable import make_directory, private
from hashrange_replication.format.names import SegmentName

SPOOL: Final = "spool"
_NAME: Final = re.compile(r"(\d{10})-(\d{12})")


class Spooled(NamedTuple):
    """A segment in the spool. `last` is its last batch, and `moment` that of its first, in epoch
    milliseconds; both are 0 for a file of an earlier process."""

    name: SegmentName
    bytes: int
    last: int
    moment: int


class Spool:
    """The segments that wait, in order; at most about `bytes_max`. Thread-safe."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        """Finds the files of an earlier process. Raises OSError."""
        self._folder = folder
        self.bytes_max = bytes_max
        self._lock = Lock()
        make_directory(folder)
        self._waiting = sorted(_found(folder))
        self.bytes = sum(spooled.bytes for spooled in self._waiting)
        """The bytes that wait."""

    def has_room(self, bytes_: int) -> bool:
        """Whether so many bytes more are allowed."""
        return self.bytes + bytes_ <= self.bytes_max

    def add(self, name: SegmentName, content: bytes, last: int, moment: int) -> None:
        """Add the next segment. Raises OSError."""
        with open(self._path(name), "wb", opener=private) as file:
            file.write(content)
        with self._lock:
            self._waiting.append(Spooled(name, len(content), last, moment))
            self.bytes += len(content)

    def first(self) -> Spooled | None:
        """The segment that has to be shipped next."""
        with self._lock:
            return self._waiting[0] if self._waiting else None

    def last(self) -> Spooled | None:
        """The newest segment."""
        with self._lock:
            return self._waiting[-1] if self._waiting else None

    def content(self, spooled: Spooled) -> bytes:
        """The object of a segment. Raises OSError."""
        return self._path(spooled.name).read_bytes()

    def shipped(self, spooled: Spooled) -> None:
        """Remove the first segment, which the bucket has."""
        with self._lock:
            if self._waiting and self._waiting[0] == spooled:
                del self._waiting[0]
                self.bytes -= spooled.bytes
        with contextlib.suppress(OSError):
            self._path(spooled.name).unlink()

    def drop(self) -> None:
        """Remove all segments."""
        with self._lock:
            dropped, self._waiting, self.bytes = self._waiting, [], 0
        for spooled in dropped:
            with contextlib.suppress(OSError):
                self._path(spooled.name).unlink()

    def _path(self, name: SegmentName) -> Path:
        return self._folder / f"{name.epoch:010}-{name.index:012}"


def _found(folder: Path) -> list[Spooled]:
    found = []
    for path in folder.iterdir():
        if (match := _NAME.fullmatch(path.name)) is not None:
            found.append(Spooled(SegmentName(int(match[1]), int(match[2])), path.stat().st_size, 0, 0))
        else:
            path.unlink()
    return found
