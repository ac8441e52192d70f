"""The first copy, and the comparison of both tables after a gap: one walk, beside the changes.

Each side that the pair reads from is scanned in segments, and every item is compared with what both sides
agreed on. So whatever is new or changed is found. What was deleted in a gap is found by digests of hash
ranges: the keys that a scan has seen, and those that should be there, are summed up in `_RANGES` ranges by
the hash of the key, and only the items of ranges with different sums are looked at one by one.

How far each segment has come is stored after each page, so a walk goes on where it was.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final, NamedTuple

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
        self._ahead: tuple[SideName, list[Callable[[], _Scanned]]] | None = None
        self._changed: set[bytes] = set()
        progress.items = sum(int(one["items"]["N"]) for one in self._stored.values())

    def changed(self, marks: Iterable[bytes]) -> None:
        """These items were changed: what was scanned of them ahead is over."""
        self._changed.update(marks)

    def step(self) -> bool:
        """Look at a page of some segments, or at what was deleted. Returns whether the walk goes on. Raises
        `SyncError`."""
        ahead = self._ahead or self._scan(self._due())
        if ahead is not None:
            name, scans = ahead
            self._look(name, [scan() for scan in scans])
            return True
        if not self._is_first:
            # (before the first copy nothing was agreed on, so nothing can be missing)
            for name in self._sides:
                self._missing(name)
        members = [self._state.segment_member(segment, None) for segment in self._stored]
        for part in pieces(members, 90):
            self._state.commit(part)
        self._state.note(sweep=None)
        return False

    def _due(self, scanned: Mapping[str, Item | None] | None = None) -> list[tuple[SideName, int, Item | None]]:
        """The next pages: side, segment and where it goes on, after those just `scanned`."""
        for name in self._sides:
            due: list[tuple[SideName, int, Item | None]] = []
            for segment in range(self._segments):
                place = f"{name}#{segment}"
                stored = self._stored.get(place, {})
                start = stored.get("start", {}).get("M")
                is_done = stored.get("done", {}).get("BOOL", False)
                if scanned is not None and place in scanned:
                    start, is_done = scanned[place], scanned[place] is None
                if not is_done:
                    due.append((name, segment, start))
            if due:
                return due[:_PAGES_MAX]
        return []

    def _scan(
        self, due: Sequence[tuple[SideName, int, Item | None]]
    ) -> tuple[SideName, list[Callable[[], _Scanned]]] | None:
        """Begin to scan pages, if there are any, and remember from now on what changes."""
        self._changed = set()
        if not due:
            return None
        scans = [partial(self._scanned, *one) for one in due]
        if self._pool is None:
            return due[0][0], [partial(_itself, scan()) for scan in scans]
        return due[0][0], [self._pool.submit(scan).result for scan in scans]

    def _look(self, name: SideName, scanned: Sequence[_Scanned]) -> None:
        """Look at pages, while the next are scanned."""
        looks = {page.segment: self._looks(name, page.items) for page in scanned}
        self._ahead = self._scan(self._due({f"{name}#{page.segment}": page.following for page in scanned}))
        everything = [look for of_segment in looks.values() for look in of_segment]
        self.changed(look.mark for look in everything)
        states = self._applier.apply(everything)
        members = []
        for segment, items, following in scanned:
            stored = self._stored.get(f"{name}#{segment}")
            count = int(stored["items"]["N"]) if stored else 0
            values: dict[str, Any] = {
                "done": {"BOOL": following is None},
                "items": {"N": str(count + len(items))},
                **({} if following is None else {"start": {"M": following}}),
            }
            if not self._is_first:
                sums = Sums(bytes(stored["seen"]["B"]) if stored else b"")
                for look in looks[segment]:
                    if states[look.mark].of(name):
                        sums.add(look.mark)
                values["seen"] = {"B": sums.packed}
            members.append(self._state.segment_member(f"{name}#{segment}", values))
            self._stored[f"{name}#{segment}"] = values
            self.progress.items += len(items)
            if items:
                self._empty.discard(name)
        self._state.commit(members)

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

    def _scanned(self, name: SideName, segment: int, start: Item | None) -> _Scanned:
        side = self._sides[name]
        return _Scanned(segment, *scan_page(side, start, segment, self._segments, _PAGE_ITEMS))

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
