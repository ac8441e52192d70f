"""Segments: the batches that were committed between two moments.

Segments are chained: each names the digest of the segment before it, and the number of the last batch there.
The first segment of a chain names the root of its epoch instead, and a base of that epoch is where a restore
begins.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import msgspec

from hashrange_replication.failures import Damaged
from hashrange_replication.format.batches import Batch, frames
from hashrange_replication.format.names import SegmentName
from hashrange_replication.format.objects import Reader, encode
from hashrange_replication.format.sealing import Data, Key

_KIND: Final = "segment"


def root_of(epoch: int) -> str:
    """The predecessor of the first segment of a chain that begins in an epoch."""
    return f"root {epoch}"


class SegmentHeader(msgspec.Struct, frozen=True, kw_only=True):
    """What a segment says of itself. `after` is the last batch before it, 0 if it follows no other segment;
    `first` and `last` are its own. Moments are epoch milliseconds, `bytes` is the size of the batches."""

    epoch: int
    index: int
    predecessor: str
    after: int
    first: int
    last: int
    batches: int
    first_moment: int
    last_moment: int
    bytes: int

    @property
    def name(self) -> SegmentName:
        return SegmentName(self.epoch, self.index)

    @property
    def is_root(self) -> bool:
        """Whether a chain begins here."""
        return self.predecessor == root_of(self.epoch)


def encode_segment(
    header: SegmentHeader, content: bytes | bytearray, key: Key | None, *, quick: bool = False
) -> tuple[list[Data], str]:
    """The pieces of the object of a segment, whose frames of batches are `content`, and its digest: as
    `objects.encode`."""
    return encode({"kind": _KIND, "segment": msgspec.to_builtins(header)}, content, key, quick=quick)


class Segment:
    """A segment that is read. Raises Damaged, and CopyError if the key does not fit."""

    def __init__(self, read: Callable[[int], bytes], key: Key | None, *, sealed_too: bool = False) -> None:
        self._reader = Reader(read, key, sealed_too=sealed_too)
        self.batches: list[Batch] = []
        """The batches, once the segment was read."""
        try:
            if self._reader.header.get("kind") != _KIND:
                raise Damaged("the object is no segment")
            self.header = msgspec.convert(self._reader.header.get("segment"), SegmentHeader)
        except msgspec.ValidationError as error:
            raise Damaged(f"the header of a segment cannot be read: {error}") from None

    def read(self) -> None:
        """Read and verify the whole object. Of a sealed segment without its key only the digest is."""
        content = self._reader.content()
        found = list(frames(content))
        header = self.header
        if self._reader.is_readable:
            numbers = [batch.number for batch in found]
            wanted = (header.batches, header.first, header.last, header.bytes)
            has = (len(numbers), numbers[0] if numbers else 0, numbers[-1] if numbers else 0, len(content))
            if wanted != has or numbers != sorted(set(numbers)) or not header.after < header.first:
                raise Damaged("the batches of a segment are not those of its header")
        self.batches = found

    @property
    def digest(self) -> str:
        """The digest of the object, once it was read."""
        return self._reader.digest
