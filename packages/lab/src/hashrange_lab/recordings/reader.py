"""Reads a recording of a load, as `hashrange serve --record` makes it.

    with reader.open(path) as recording:
        recording.head.values                       # "kept" or "hashed"
        for entry in recording.entries():           # in the order in which requests ended
            entry.operation, entry.tables, entry.request, entry.read_units, entry.seconds
        recording.tables["orders"]                  # the CreateTable request of a table, once it was read
        recording.dropped                           # requests that are missing
        recording.end                               # the last line; None if the file was cut off
    recording.is_cut                            # whether it was cut off or is damaged

`in_order(recording.entries())` gives the entries in the order in which requests began. A recording is read
once, from its beginning to its end, and never held in memory as a whole. `lines` describes the form, and what
an `Entry` has.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from heapq import heappop, heappush
from pathlib import Path
from typing import IO, Any, Final

from hashrange_lab.recordings.blocks import Damaged, NeedsZstd, pieces
from hashrange_lab.recordings.lines import VERSION, Dropped, End, Entry, Head, Line, TableLine, decode

WINDOW_ENTRIES_MAX: Final = 16_384
"""How many entries `in_order` keeps, to bring them into order."""
WINDOW_SECONDS: Final = 60.0
"""A request that took longer may come too late in `in_order`."""
_NO_RECORDING: Final = "{} is not a recording of `hashrange serve --record`."


class NotARecording(Exception):
    """The file is not a recording, or one that this version does not read; the text says why."""


class RecordingFile:
    """A recording that is being read. `tables`, `dropped`, `requests` and `end` fill while it is read."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._name = name
        self._lines = self._read(file)
        self.tables: dict[str, dict[str, Any]] = {}
        self.dropped = 0
        self.requests = 0
        self.end: End | None = None
        self._is_damaged = False
        first = next(self._lines, None)
        if not isinstance(first, Head):
            raise NotARecording(_NO_RECORDING.format(name))
        if first.version != VERSION:
            raise NotARecording(
                f"{name} is a recording of the form {first.version}; this version reads the form {VERSION}."
            )
        self.head = first

    @property
    def is_cut(self) -> bool:
        """Whether the file was cut off or damaged, once as much as possible of it was read."""
        return self.end is None or self._is_damaged

    def entries(self) -> Iterator[Entry]:
        """The requests, in the order in which they ended. Raises `NotARecording` for a line in between that
        is none, OSError."""
        for line in self._lines:
            if isinstance(line, Entry):
                self.requests += 1
                yield line
            elif isinstance(line, TableLine):
                self.tables[line.create["TableName"]] = line.create
            elif isinstance(line, Dropped):
                self.dropped += line.requests
            elif isinstance(line, End):
                self.end = line

    def _read(self, file: IO[bytes]) -> Iterator[Line]:
        number = 0
        rest = b""
        try:
            for piece in pieces(file):
                *whole, rest = (rest + piece).split(b"\n")
                for text in whole:
                    number += 1
                    yield self._decoded(text, number)
        except Damaged:
            self._is_damaged = True
        except NeedsZstd as error:
            raise NotARecording(f"{self._name} cannot be read. {error}") from None
        # What follows the last end of a line is a line that was cut off.

    def _decoded(self, text: bytes, number: int) -> Line:
        try:
            return decode(text)
        except ValueError as error:
            why = f"Line {number} of {self._name} is not a line of a recording: {error}"
            raise NotARecording(_NO_RECORDING.format(self._name) if number == 1 else why) from None


@contextmanager
def open(path: str | Path) -> Iterator[RecordingFile]:  # noqa: A001 (as of `tarfile` and `gzip`)
    """The recording in a file. Raises `NotARecording`, OSError."""
    with builtins.open(path, "rb") as file:
        yield RecordingFile(file, str(path))


def in_order(entries: Iterable[Entry]) -> Iterator[Entry]:
    """Entries in the order in which their requests began. Those of one connection that follow each other are
    in order in any case; a request that took longer than `WINDOW_SECONDS` may come late."""
    waiting: list[tuple[float, int, Entry]] = []
    for number, entry in enumerate(entries):
        heappush(waiting, (entry.at, number, entry))
        now = entry.at + entry.seconds
        while waiting and (len(waiting) > WINDOW_ENTRIES_MAX or waiting[0][0] < now - WINDOW_SECONDS):
            yield heappop(waiting)[2]
    while waiting:
        yield heappop(waiting)[2]
