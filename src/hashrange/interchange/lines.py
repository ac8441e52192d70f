"""Lines of a stream, each with the place where it ends; a line that is too long is skipped, not kept in
memory.

A place is a number of bytes from the beginning of the stream. Reading can continue from a place later.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from hashrange.interchange.compression import Readable

LINE_BYTES_MAX: Final = 16 * 1024 * 1024
"""The longest line that is read. An item of 400 KB takes some megabytes as JSON at most: a name or a number
of one byte takes ten, and some characters six."""

CHUNK_BYTES: Final = 256 * 1024


def lines(
    source: Readable, place: int, bytes_max: int = LINE_BYTES_MAX
) -> Iterator[tuple[bytes | None, int]]:
    """The lines of `source`, without their ends, each with the place of the next line.

    `source` stands at `place`. A line of more than `bytes_max` is None. The last line needs no end.
    """
    unfinished = b""
    while True:
        chunk = source.read(CHUNK_BYTES)
        if not chunk:
            break
        parts = (unfinished + chunk).split(b"\n") if unfinished else chunk.split(b"\n")
        unfinished = parts.pop()
        for line in parts:
            place += len(line) + 1
            yield (line if len(line) <= bytes_max else None), place
        if len(unfinished) > bytes_max:
            place, unfinished, was_ended = _skip(source, place + len(unfinished))
            yield None, place
            if not was_ended:
                return
    if unfinished:
        yield (unfinished if len(unfinished) <= bytes_max else None), place + len(unfinished)


def _skip(source: Readable, place: int) -> tuple[int, bytes, bool]:
    """Go to the end of the line that contains `place`. Returns the place of the next line, the part of it
    that was read, and whether the line has an end."""
    while chunk := source.read(CHUNK_BYTES):
        before, end, after = chunk.partition(b"\n")
        place += len(before) + len(end)
        if end:
            return place, after, True
    return place, b"", False
