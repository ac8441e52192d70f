"""The first copy, and the comparison of both tables after a gap: one walk, beside the changes.

Each side that the pair reads from is scanned in segments, and every item is compared with what both sides
agreed on. So whatever is new or changed is found. What was deleted in a gap is found by digests of hash
ranges: the keys that a scan has seen, and those that should be there, are summed up in `_RANGES` ranges by
the hash of the key, and only the items of ranges with different sums are looked at one by one.

How far each segment has come is stored after each page, so a walk goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hashrange_sync.deciding import SideName
from hashrange_sync.items import digest
from hashrange_sync.sides.calls import Side
from hashrange_sync.sides.reading import pieces, scan_page
from hashrange_sync.stored.status import Progress
from hashrange_sync.stored.table import StateTable
from hashrange_sync.work.applying import ITEMS_MAX, Applier, Look

_RANGES: Final = 4096
_PAGE_ITEMS: Final = 500
FIRST: Final = "first copy"


class Sums:
    """For each range of hashes, the exclusive or of digests of keys."""

    def __init__(self, packed: bytes = b"") -> None:
        self._sums = list(memoryview(packed).cast("Q")) if packed else [0] * _RANGES

    def add(self, mark: bytes) -> None:
        """Add a key, or take it away again, by its digest."""
        self._sums[range_of(mark)] ^= int.from_bytes(mark[8:], "little")

    def join(self, other: Sums) -> None:
        """Add the keys of others."""
        self._sums = [one ^ two for one, two in zip(self._sums, other._sums, strict=True)]

    def different(self, other: Sums) -> set[int]:
        """The ranges in which the keys differ."""
        return {place for place in range(_RANGES) if self._sums[place] != other._sums[place]}

    @property
    def packed(self) -> bytes:
        """All sums as bytes."""
        return b"".join(one.to_bytes(8, "little") for one in self._sums)


def range_of(mark: bytes) -> int:
    """The range of a key, by its digest."""
    return int.from_bytes(mark[:2]) % _RANGES


class Sweep:
    """A walk over the tables of a pair. `segments` is into how many parts each table is divided; it stays the
    same until the walk ends."""

    def __init__(
        self,
        sides: Mapping[SideName, Side],
        state: StateTable,
        applier: Applier,
        progress: Progress,
        segments: int,
    ) -> None:
        self.progress = progress
        self._sides = sides
        self._state = state
        self._applier = applier
        self._segments = segments
        self._stored = state.segments()
        progress.items = sum(int(one["items"]["N"]) for one in self._stored.values())

    def step(self) -> bool:
        """Look at one page, or at what was deleted. Returns whether the walk goes on. Raises `SyncError`."""
        for name in self._sides:
            for segment in range(self._segments):
                stored = self._stored.get(f"{name}#{segment}")
                if stored is None or not stored["done"]["BOOL"]:
                    self._page(name, segment, stored)
                    return True
        if self.progress.reason != FIRST:
            # (before the first copy nothing was agreed on, so nothing can be missing)
            for name in self._sides:
                self._missing(name)
        members = [self._state.segment_member(segment, None) for segment in self._stored]
        for part in pieces(members, 90):
            self._state.commit(part)
        self._state.note(sweep=None)
        return False

    def _page(self, name: SideName, segment: int, stored: Mapping[str, Any] | None) -> None:
        start = stored.get("start", {}).get("M") if stored else None
        sums = Sums(bytes(stored["seen"]["B"]) if stored else b"")
        items, following = scan_page(self._sides[name], start, segment, self._segments, _PAGE_ITEMS)
        scope = self._applier.rules.scope
        looks = [
            Look(key, {name: item}, {name: digest(scope.shared(item))}, outside=not scope.concerns(item))
            for item in items
            if scope.covers(key := scope.key_of(item))
        ]
        for part in pieces(looks, ITEMS_MAX):
            for mark, state in self._applier.apply(part).items():
                if state.of(name):
                    sums.add(mark)
        count = int(stored["items"]["N"]) if stored else 0
        values = {
            "done": {"BOOL": following is None},
            "items": {"N": str(count + len(items))},
            "seen": {"B": sums.packed},
            **({} if following is None else {"start": {"M": following}}),
        }
        self._state.commit([self._state.segment_member(f"{name}#{segment}", values)])
        self._stored[f"{name}#{segment}"] = values
        self.progress.items += len(items)

    def _missing(self, name: SideName) -> None:
        """Look at the items that should be on a side and were not seen there."""
        seen, expected = Sums(), Sums()
        for segment, stored in self._stored.items():
            if segment.partition("#")[0] == name:
                seen.join(Sums(bytes(stored["seen"]["B"])))
        for key, state in self._state.each_state():
            if state.of(name):
                expected.add(digest(key))
        different = seen.different(expected)
        looks: list[Look] = []
        for key, state in self._state.each_state() if different else ():
            if state.of(name) and range_of(digest(key)) in different:
                looks.append(Look(key))
            if len(looks) == ITEMS_MAX:
                self._applier.apply(looks)
                looks = []
        if looks:
            self._applier.apply(looks)
