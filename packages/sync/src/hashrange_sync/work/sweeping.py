"""The first copy, and the comparison of both tables after a gap: one walk, beside the changes.

Each side that the pair reads from is scanned in segments, and every item is compared with what both sides
agreed on. So whatever is new or changed is found. What was deleted in a gap is found by digests of hash
ranges: the keys that a scan has seen, and those that should be there, are summed up in `_RANGES` ranges by
the hash of the key, and only the items of ranges with different sums are looked at one by one.

How far each segment has come is stored after each page, so a walk goes on where it was. While a page is
looked at, the next is scanned; items that change in between are read again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, NamedTuple

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


class _Due(NamedTuple):
    """A page to scan: of a segment of a side, from `start` on; None: from the segment's first item."""

    side: SideName
    segment: int
    start: Item | None


class _Scanned(NamedTuple):
    """A page of a segment, and where the next begins; None: that was the last."""

    segment: int
    items: list[Item]
    following: Item | None


def _itself(page: _Scanned) -> _Scanned:
    return page


class Sweep:
    """A walk over the tables of a pair. `segments` is into how many parts each table is divided; it stays the
    same until the walk ends. `pool` scans some of them side by side, and ahead of what is looked at. `empty`
    are the sides whose tables seem to be empty: they come first, and items are not looked for there."""

    def __init__(
        self,
        sides: Mapping[SideName, Side],
        state: StateTable,
        applier: Applier,
        progress: Progress,
        segments: int,
        pool: ThreadPoolExecutor | None = None,
        empty: Collection[SideName] = (),
    ) -> None:
        self.progress = progress
        self._sides = {name: sides[name] for name in sorted(sides, key=lambda name: name not in empty)}
        self._empty = set(empty)
        self._state = state
        self._applier = applier
        self._segments = segments
        self._pool = pool
        self._is_first = progress.reason == FIRST
        self._stored = state.segments()
        self._ahead: list[tuple[_Due, Callable[[], _Scanned]]] = []
        self._changed: set[bytes] = set()
        progress.items = sum(int(one["items"]["N"]) for one in self._stored.values())

    def changed(self, marks: Iterable[bytes]) -> None:
        """These items were changed: what was scanned of them ahead is over."""
        self._changed.update(marks)

    def step(self) -> bool:
        """Look at a page of some segments, or at what was deleted. Returns whether the walk goes on. Raises
        `SyncError`."""
        if ahead := self._ahead or self._scan(self._due()):
            self._look(ahead[0][0].side, [scanned() for _, scanned in ahead])
            return True
        if not self._is_first:
            # (before the first copy nothing was agreed on, so nothing can be missing)
            self._look_for_missing()
        members = [self._state.segment_member(segment, None) for segment in self._stored]
        for part in pieces(members, 90):
            self._state.commit(part)
        self._state.note(sweep=None)
        return False

    def _due(self) -> list[_Due]:
        """The next pages of a side."""
        for name in self._sides:
            due = []
            for segment in range(self._segments):
                stored = self._stored.get(f"{name}#{segment}", {"done": {"BOOL": False}})
                if not stored["done"]["BOOL"]:
                    due.append(_Due(name, segment, stored.get("start", {}).get("M")))
            if due:
                return due[:_PAGES_MAX]
        return []

    def _scan(self, due: Sequence[_Due]) -> list[tuple[_Due, Callable[[], _Scanned]]]:
        """Begin to scan pages, and remember from now on what changes."""
        self._changed = set()
        if self._pool is None:
            return [(one, partial(_itself, self._scanned(one))) for one in due]
        return [(one, self._pool.submit(self._scanned, one).result) for one in due]

    def _look(self, name: SideName, scanned: Sequence[_Scanned]) -> None:
        """Look at pages, while the next are scanned."""
        looks = {page.segment: self._looks(name, page.items) for page in scanned}
        for segment, items, following in scanned:
            place = f"{name}#{segment}"
            stored = self._stored.get(place, {"items": {"N": "0"}})
            self._stored[place] = {
                **stored,
                "done": {"BOOL": following is None},
                "items": {"N": str(int(stored["items"]["N"]) + len(items))},
                **({} if following is None else {"start": {"M": following}}),
            }
            self.progress.items += len(items)
            if items:
                self._empty.discard(name)
        self._ahead = self._scan(self._due())
        everything = [look for of_segment in looks.values() for look in of_segment]
        self.changed(look.mark for look in everything)
        states = self._applier.apply(everything)
        for segment, found in looks.items() if not self._is_first else ():
            stored = self._stored[f"{name}#{segment}"]
            sums = Sums(bytes(stored["seen"]["B"]) if "seen" in stored else b"")
            for look in found:
                if states[look.mark].of(name):
                    sums.add(look.mark)
            stored["seen"] = {"B": sums.packed}
        places = [f"{name}#{segment}" for segment in looks]
        self._state.commit([self._state.segment_member(place, self._stored[place]) for place in places])

    def _looks(self, name: SideName, items: Sequence[Item]) -> list[Look]:
        scope = self._applier.rules.scope
        other: SideName = "edge" if name == "cloud" else "cloud"
        lacking = other if other in self._empty else None
        looks = []
        for item in items:
            key = scope.key_of(item)
            if not scope.covers(key):
                continue
            mark = digest(key)
            if mark in self._changed:
                looks.append(Look(key, mark))
                continue
            marks = {name: digest(scope.shared(item))}
            outside = not scope.concerns(item)
            looks.append(Look(key, mark, {name: item}, marks, outside=outside, lacking=lacking))
        return looks

    def _scanned(self, due: _Due) -> _Scanned:
        name, segment, start = due
        page = scan_page(self._sides[name], start, segment, self._segments, _PAGE_ITEMS)
        return _Scanned(segment, *page)

    def _look_for_missing(self) -> None:
        """Look at the items that should be on a side and were not seen there."""
        seen, expected = ({name: Sums() for name in self._sides} for _ in range(2))
        for segment, stored in self._stored.items():
            name, _, _ = segment.partition("#")
            if name in seen:
                seen[name].join(Sums(bytes(stored["seen"]["B"])))
        for mark, _, state in self._state.each_state():
            for name, sums in expected.items():
                if state.of(name):
                    sums.add(mark)
        different = {name: seen[name].different(sums) for name, sums in expected.items()}
        looks: list[Look] = []
        for mark, key, state in self._state.each_state() if any(different.values()) else ():
            if any(state.of(name) and range_of(mark) in ranges for name, ranges in different.items()):
                looks.append(Look(key, mark))
            if len(looks) == _MISSING_MAX:
                self._applier.apply(looks)
                looks = []
        self._applier.apply(looks)
