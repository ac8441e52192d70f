"""The first copy, and the comparison of both tables after a gap: one walk, beside the changes.

Each side that the pair reads from is scanned in segments, and every item is compared with what both sides
agreed on. So whatever is new or changed is found. What was deleted in a gap is found by digests of hash
ranges: the keys that a scan has seen, and those that should be there, are summed up in `_RANGES` ranges by
the hash of the key, and only the items of ranges with different sums are looked at one by one.

How far each segment has come is stored after each page, so a walk goes on where it was.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final

from hashrange_sync.deciding import SideName
from hashrange_sync.items import Item, digest
from hashrange_sync.sides.calls import Side
from hashrange_sync.sides.reading import pieces, scan_page
from hashrange_sync.stored.status import Progress
from hashrange_sync.stored.table import StateTable
from hashrange_sync.work.applying import Applier, Look

_RANGES: Final = 4096
_PAGE_ITEMS: Final = 500
_PAGES_MAX: Final = 2
"""Not more than what is read of a stream at a time: the echoes of a copy keep up with the copy."""
_MISSING_MAX: Final = 50
"""So many items, of which nobody knows how large they are, are in memory at a time."""
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
    same until the walk ends. `pool` scans some of them side by side."""

    def __init__(
        self,
        sides: Mapping[SideName, Side],
        state: StateTable,
        applier: Applier,
        progress: Progress,
        segments: int,
        pool: ThreadPoolExecutor | None = None,
    ) -> None:
        self.progress = progress
        self._sides = sides
        self._state = state
        self._applier = applier
        self._segments = segments
        self._pool = pool
        self._stored = state.segments()
        progress.items = sum(int(one["items"]["N"]) for one in self._stored.values())

    def step(self) -> bool:
        """Look at a page of some segments, or at what was deleted. Returns whether the walk goes on. Raises
        `SyncError`."""
        for name in self._sides:
            due = [
                segment
                for segment in range(self._segments)
                if not (stored := self._stored.get(f"{name}#{segment}")) or not stored["done"]["BOOL"]
            ]
            if due:
                self._look(name, due[:_PAGES_MAX])
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

    def _look(self, name: SideName, segments: Sequence[int]) -> None:
        """Look at the next pages of segments, which are scanned side by side."""
        scan = partial(self._scanned, name)
        scanned = list(self._pool.map(scan, segments) if self._pool else map(scan, segments))
        looks = {
            segment: self._looks(name, items) for segment, (items, _) in zip(segments, scanned, strict=True)
        }
        states = self._applier.apply([look for of_segment in looks.values() for look in of_segment])
        members = []
        for segment, (items, following) in zip(segments, scanned, strict=True):
            stored = self._stored.get(f"{name}#{segment}")
            sums = Sums(bytes(stored["seen"]["B"]) if stored else b"")
            for look in looks[segment]:
                if states[look.mark].of(name):
                    sums.add(look.mark)
            count = int(stored["items"]["N"]) if stored else 0
            values = {
                "done": {"BOOL": following is None},
                "items": {"N": str(count + len(items))},
                "seen": {"B": sums.packed},
                **({} if following is None else {"start": {"M": following}}),
            }
            members.append(self._state.segment_member(f"{name}#{segment}", values))
            self._stored[f"{name}#{segment}"] = values
            self.progress.items += len(items)
        self._state.commit(members)

    def _looks(self, name: SideName, items: Sequence[Item]) -> list[Look]:
        scope = self._applier.rules.scope
        keys = [(item, scope.key_of(item)) for item in items]
        return [
            Look(
                key,
                digest(key),
                {name: item},
                {name: digest(scope.shared(item))},
                outside=not scope.concerns(item),
            )
            for item, key in keys
            if scope.covers(key)
        ]

    def _scanned(self, name: SideName, segment: int) -> tuple[list[Item], Item | None]:
        stored = self._stored.get(f"{name}#{segment}")
        start = stored.get("start", {}).get("M") if stored else None
        return scan_page(self._sides[name], start, segment, self._segments, _PAGE_ITEMS)

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
            if state.of(name) and range_of(mark := digest(key)) in different:
                looks.append(Look(key, mark))
            if len(looks) == _MISSING_MAX:
                self._applier.apply(looks)
                looks = []
        self._applier.apply(looks)
