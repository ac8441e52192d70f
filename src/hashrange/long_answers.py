"""Long answers, written piece by piece.

An answer may have tens of megabytes (`Responses`) or a hundred thousand items. To encode it in one step would
keep the interpreter's lock for a quarter of a second. So a few members are encoded at a time, others run in
between, and the answer leaves as the pieces that it was encoded in: nothing copies the whole.

Refuses to know: what the members are.
"""

from __future__ import annotations

import zlib
from collections import deque
from typing import Any, Final

import orjson

from hashrange import pace

CHUNK_BYTES: Final = 64 * 1024
"""Shorter texts are joined to chunks of about this length."""

ITEMS_MAX: Final = 1_000
"""More items than these are encoded in pieces."""

RUN_ITEMS_MAX: Final = 256
RUN_RESPONSES_MAX: Final = 8
"""How many members of a list are encoded at once. Those of `Items` have a megabyte or so together, each of
`Responses` may have one."""


class Pieces:
    """A JSON text in pieces. `size` is its length and `crc` its CRC32. The `chunks` are taken out as they are
    written, so that each is freed then.

    `beside` is the text of the answer without its long member.
    """

    __slots__ = ("beside", "chunks", "crc", "size")

    def __init__(self, chunks: list[bytes], beside: bytes) -> None:
        self.chunks = deque(chunks)
        self.beside = beside
        self.size = 0
        self.crc = 0
        for chunk in chunks:
            pace.point()
            self.size += len(chunk)
            self.crc = zlib.crc32(chunk, self.crc)

    def __len__(self) -> int:
        return self.size


def dumps(answer: dict[str, Any], name: str) -> bytes | Pieces:
    """The text of an answer, which is used up; in pieces if it is long.

    `name` is that of its long member: `Responses`, or `Items` if they are many.
    """
    content = answer[name]
    beside = orjson.dumps({other: value for other, value in answer.items() if other != name})
    writer = _Writer(RUN_ITEMS_MAX if name == "Items" else RUN_RESPONSES_MAX)
    writer.write(b'{"%b":' % name.encode())
    writer.container(content)
    writer.write(b"}" if beside == b"{}" else b"," + beside[1:])
    chunks = writer.end()
    return chunks[0] if len(chunks) == 1 else Pieces(chunks, beside)


class _Writer:
    """Gathers what is encoded, in chunks of `CHUNK_BYTES` or as long as what was encoded at once."""

    __slots__ = ("_chunks", "_open", "_open_bytes", "_run_members_max")

    def __init__(self, run_members_max: int) -> None:
        self._run_members_max = run_members_max
        self._chunks: list[bytes] = []
        self._open: list[bytes] = []
        self._open_bytes = 0

    def write(self, text: bytes) -> None:
        self._open.append(text)
        self._open_bytes += len(text)
        if self._open_bytes >= CHUNK_BYTES:
            self._close()

    def container(self, value: Any) -> None:
        """Write the list, or the dict of lists, that the content is."""
        if isinstance(value, dict):
            between = b"{"
            for name, member in value.items():
                self.write(between + orjson.dumps(name) + b":")
                self.container(member)
                between = b","
            self.write(b"}" if value else b"{}")
        else:
            self._list(value)

    def _list(self, members: list[Any]) -> None:
        between = b"["
        begin, count, length = 0, 2, len(members)
        while begin < length:
            pace.point()
            end = begin + count
            run = members[begin:end]
            text = orjson.dumps(run)
            self.write(between)
            self.write(text[1:-1])
            if len(text) >= CHUNK_BYTES:
                count = 1
            elif count < self._run_members_max:
                count += count
            # Members are freed as they are written: to free a hundred thousand in one step takes long.
            members[begin:end] = [None] * len(run)
            between = b","
            begin = end
        self.write(b"]" if length else b"[]")

    def _close(self) -> None:
        if self._open:
            self._chunks.append(b"".join(self._open))
        self._open = []
        self._open_bytes = 0

    def end(self) -> list[bytes]:
        """All chunks."""
        self._close()
        return self._chunks
