"""The spool: segments that the bucket does not have yet.

The newest ones are in memory; what the bucket does not take is written to a file in DIRECTORY/copy/spool
(`save`), which has the content of the object, and is named by epoch and index. Nothing is synced before the
server ends (`sync`): after a crash the chain is broken anyway, and a new base follows. After a clean end the
files are shipped by the next start.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from hashrange.files import durable
from hashrange.files.durable import private
from hashrange_replication.failures import CopyError
from hashrange_replication.format.names import SegmentName
from hashrange_replication.format.objects import in_memory
from hashrange_replication.format.sealing import Data
from hashrange_replication.format.segments import Segment, SegmentHeader

SPOOL: Final = "spool"
_NAME: Final = re.compile(r"(\d{10})-(\d{12})")


class Spooled(NamedTuple):
    """A segment in the spool: the last batch before it, and its own last one. `moment` is that of its first
    batch, in epoch milliseconds."""

    name: SegmentName
    bytes: int
    after: int
    last: int
    moment: int


def spooled_of(header: SegmentHeader, bytes_: int) -> Spooled:
    """A segment of so many bytes."""
    return Spooled(header.name, bytes_, header.after, header.last, header.first_moment)


class Spool:
    """The segments that wait, in order; at most about `bytes_max`. Thread-safe."""

    def __init__(self, folder: Path, bytes_max: int) -> None:
        """Finds the files of an earlier process. Raises OSError."""
        self._folder = folder
        self.bytes_max = bytes_max
        self._lock = Lock()
        durable.make_directory(folder)
        self._waiting = sorted(_found(folder))
        self._in_memory: dict[SegmentName, Sequence[Data]] = {}
        self.bytes = sum(spooled.bytes for spooled in self._waiting)
        """The bytes that wait."""

    def has_room(self, bytes_: int) -> bool:
        """Whether so many bytes more are allowed."""
        return self.bytes + bytes_ <= self.bytes_max

    def add(self, spooled: Spooled, content: Sequence[Data]) -> None:
        """Add the next segment, in memory, by the pieces of its object."""
        with self._lock:
            self._in_memory[spooled.name] = content
            self._waiting.append(spooled)
            self.bytes += spooled.bytes

    def save(self) -> None:
        """Write to files what is in memory only. Raises OSError."""
        for name, content in list(self._in_memory.items()):
            with open(self._path(name), "wb", opener=private) as file:
                file.writelines(content)
            with self._lock:
                self._in_memory.pop(name, None)

    def sync(self) -> None:
        """Make what waits survive a crash of the machine. Raises OSError."""
        self.save()
        for spooled in self._waiting:
            with open(self._path(spooled.name), "rb+") as file:
                durable.sync(file.fileno())
        durable.sync_directory(self._folder)

    @property
    def is_whole(self) -> bool:
        """Whether the segments that wait follow each other."""
        with self._lock:
            indexes = [spooled.name.index for spooled in self._waiting]
        return indexes == list(range(indexes[0], indexes[0] + len(indexes))) if indexes else True

    def first(self) -> Spooled | None:
        """The segment that has to be shipped next."""
        with self._lock:
            return self._waiting[0] if self._waiting else None

    def last(self) -> Spooled | None:
        """The newest segment."""
        with self._lock:
            return self._waiting[-1] if self._waiting else None

    def content(self, spooled: Spooled) -> Sequence[Data]:
        """The pieces of a segment's object. Raises OSError."""
        with self._lock:
            content = self._in_memory.get(spooled.name)
        return content if content is not None else [self._path(spooled.name).read_bytes()]

    def shipped(self, spooled: Spooled) -> None:
        """Remove the first segment, which the bucket has."""
        with self._lock:
            if self._waiting and self._waiting[0] == spooled:
                del self._waiting[0]
                self.bytes -= spooled.bytes
        self._remove(spooled)

    def drop(self) -> None:
        """Remove all segments."""
        with self._lock:
            dropped, self._waiting, self.bytes = self._waiting, [], 0
        for spooled in dropped:
            self._remove(spooled)

    def _remove(self, spooled: Spooled) -> None:
        with self._lock:
            self._in_memory.pop(spooled.name, None)
        with contextlib.suppress(OSError):
            self._path(spooled.name).unlink()

    def _path(self, name: SegmentName) -> Path:
        return self._folder / f"{name.epoch:010}-{name.index:012}"


def _found(folder: Path) -> list[Spooled]:
    """The segments of an earlier process; what is none, or damaged, is removed. Raises OSError."""
    found = []
    for path in folder.iterdir():
        spooled = _read(path) if _NAME.fullmatch(path.name) else None
        if spooled is not None:
            found.append(spooled)
        else:
            path.unlink()
    return found


def _read(path: Path) -> Spooled | None:
    """The segment in a file; None if it is not whole."""
    content = path.read_bytes()
    try:
        segment = Segment(in_memory(content), None, sealed_too=True)
        segment.read()
    except CopyError:
        return None
    is_named = path.name == f"{segment.header.epoch:010}-{segment.header.index:012}"
    return spooled_of(segment.header, len(content)) if is_named else None
