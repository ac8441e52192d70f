"""Which objects of a copy follow each other.

Each time a server begins to ship, or its chain was broken, it takes a new epoch (`lease`). An epoch either
continues the chain, from the last segment that counted, or begins again with a base. Indexes of segments grow
across epochs, so where a later epoch has a segment, those of earlier epochs from that index on do not count:
a server that had lost its lease may have shipped them.

Refuses to know: what is done with batches.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from hashrange.buckets import Object
from hashrange.clock import show_moment
from hashrange_replication.failures import CopyError, Damaged
from hashrange_replication.format.manifests import Manifest, decode_manifest
from hashrange_replication.format.names import (
    BASES,
    FILES,
    SEGMENTS,
    BaseName,
    SegmentName,
    base_of,
    segment_of,
)
from hashrange_replication.format.objects import in_memory
from hashrange_replication.format.sealing import Key
from hashrange_replication.format.segments import Segment, SegmentHeader
from hashrange_replication.place import Place, patient

_BATCH_MAX: Final = 10**20 - 1


@dataclass(slots=True)
class Listing:
    """The objects of a copy."""

    bases: dict[BaseName, Object] = field(default_factory=dict)
    segments: dict[SegmentName, Object] = field(default_factory=dict)
    files: dict[str, Object] = field(default_factory=dict)
    strange: list[str] = field(default_factory=list)

    def firsts(self) -> dict[int, int]:
        """The index of the first segment of each epoch."""
        firsts: dict[int, int] = {}
        for name in self.segments:
            firsts[name.epoch] = min(name.index, firsts.get(name.epoch, name.index))
        return firsts

    def last_index(self) -> int:
        """The highest index of a segment; 0 if there is none."""
        return max((name.index for name in self.segments), default=0)


def list_copy(place: Place, *, files: bool = True) -> Listing:
    """All objects of a copy. Raises BucketError, OSError."""
    listing = Listing()
    for one in place.list(BASES):
        if (base := base_of(one.key)) is not None:
            listing.bases[base] = one
        else:
            listing.strange.append(one.key)
    for one in place.list(SEGMENTS):
        if (segment := segment_of(one.key)) is not None:
            listing.segments[segment] = one
        else:
            listing.strange.append(one.key)
    if files:
        listing.files = {one.key: one for one in place.list(FILES)}
    return listing


def list_after(place: Place, at: Position, *, bases: bool) -> Listing:
    """The segments from a position on; with `bases`, also the bases of later epochs. Raises BucketError,
    OSError."""
    listing = Listing()
    for one in place.list(SEGMENTS, SegmentName(at.epoch, at.index - 1).name):
        if (segment := segment_of(one.key)) is not None:
            listing.segments[segment] = one
    if bases:
        listing.bases = list_bases(place, BaseName(at.epoch, _BATCH_MAX).name)
    return listing


def list_bases(place: Place, after: str = "") -> dict[BaseName, Object]:
    """The bases of a copy, perhaps those after a name only. Raises BucketError, OSError."""
    found = {base_of(one.key): one for one in place.list(BASES, after)}
    return {name: one for name, one in found.items() if name is not None}


@dataclass(frozen=True, slots=True)
class Position:
    """Where a chain goes on: the next segment would have this epoch and index, and follow the segment with
    the digest `predecessor`, whose last batch is `after`."""

    epoch: int
    index: int
    predecessor: str
    after: int


class Chain:
    """The segments of a copy, as they count. Its methods raise Damaged, CopyError, BucketError, OSError."""

    def __init__(self, place: Place, key: Key | None, listing: Listing, *, sealed_too: bool = False) -> None:
        self._place = place
        self._key = key
        self._sealed_too = sealed_too
        self._firsts = listing.firsts()
        self._heads: dict[int, SegmentHeader] = {}
        self.listing = listing

    def manifest(self, name: BaseName) -> Manifest:
        """The manifest of a base."""

        def read() -> Manifest:
            reader = self._place.open(self.listing.bases[name])
            try:
                return decode_manifest(reader.read, self._key)
            finally:
                reader.close()

        try:
            manifest = patient(read)
        except Damaged as error:
            raise Damaged(f"{name.name}: {error}") from None
        if manifest.name != name:
            raise Damaged(f"{name.name} is the manifest of {manifest.name.name}")
        return manifest

    def base(self, until: int | None = None) -> Manifest:
        """The newest base that holds nothing from after `until` (epoch milliseconds; None: any)."""
        earliest: Manifest | None = None
        for name in sorted(self.listing.bases, reverse=True):
            manifest = self.manifest(name)
            earliest = manifest
            if (until is None or manifest.moment <= until) and not self._overtaken(manifest):
                return manifest
        if earliest is None:
            raise CopyError(f"The copy at {self._place.shown} has no base: no server has finished one yet.")
        raise CopyError(f"The copy begins at {show_moment(earliest.moment / 1000)}; name a later moment.")

    def _overtaken(self, manifest: Manifest) -> bool:
        """Whether a base holds batches that do not count, because a later epoch went on before them."""
        later = [self.head(epoch) for epoch in self._firsts if epoch > manifest.epoch]
        return any(not head.is_root and manifest.batch > head.after for head in later)

    def head(self, epoch: int) -> SegmentHeader:
        """The header of the first segment of an epoch."""
        if epoch not in self._heads:
            name = SegmentName(epoch, self._firsts[epoch])
            self._heads[epoch] = self.segment(name).header
        return self._heads[epoch]

    def segment(self, name: SegmentName) -> Segment:
        """A segment, whose batches are not verified yet."""

        def read() -> bytes:
            reader = self._place.open(self.listing.segments[name])
            try:
                pieces = []
                while piece := reader.read(1 << 20):
                    pieces.append(piece)
                return b"".join(pieces)
            finally:
                reader.close()

        try:
            segment = Segment(in_memory(patient(read)), self._key, sealed_too=self._sealed_too)
        except Damaged as error:
            raise Damaged(f"{name.name}: {error}") from None
        if segment.header.name != name:
            raise Damaged(f"{name.name} is the segment {segment.header.name.name}")
        return segment

    def next_name(self, at: Position) -> SegmentName | None:
        """The segment at a position; None if the chain ends there."""
        later = sorted((epoch for epoch in self._firsts if epoch > at.epoch), reverse=True)
        for epoch in later:
            if self._firsts[epoch] == at.index and at.predecessor == self.head(epoch).predecessor:
                return SegmentName(epoch, at.index)
        if any(self._firsts[epoch] <= at.index for epoch in later):
            return None  # a later epoch began again
        name = SegmentName(at.epoch, at.index)
        if name in self.listing.segments:
            return name
        behind = [one for one in self.listing.segments if one.epoch == at.epoch and one.index > at.index]
        behind += [SegmentName(epoch, self._firsts[epoch]) for epoch in later]
        for one in sorted(behind)[:1]:
            if one.epoch == at.epoch or not self.head(one.epoch).is_root:
                raise Damaged(f"{name.name} is missing, and {one.name} is there")
        return None

    def last_name(self, start: Position) -> SegmentName | None:
        """The last segment of the chain from a position on, None if there is none: by the names of segments,
        and the first segment of each epoch."""
        epoch, last = start.epoch, None
        for index in itertools.count(start.index):
            later = [one for one in self._firsts if one > epoch and self._firsts[one] <= index]
            if later:
                epoch = max(later)
                if self._firsts[epoch] != index or self.head(epoch).is_root:
                    break
            name = SegmentName(epoch, index)
            if name not in self.listing.segments:
                break
            last = name
        return last

    def walk(self, start: Position) -> Iterator[tuple[Segment, Position]]:
        """The segments from a position on, verified, each with the position after it."""
        at = start
        while (name := self.next_name(at)) is not None:
            segment = self.segment(name)
            header = segment.header
            if header.predecessor != at.predecessor:
                raise Damaged(f"{name.name} does not follow the segment before it")
            try:
                segment.read()
            except Damaged as error:
                raise Damaged(f"{name.name}: {error}") from None
            at = Position(header.epoch, header.index + 1, segment.digest, header.last)
            yield segment, at


def start_of(manifest: Manifest) -> Position:
    """Where the batches after a base are."""
    return Position(manifest.epoch, manifest.index, manifest.predecessor, manifest.batch)
