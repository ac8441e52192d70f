"""Compares both tables item by item, and changes nothing. Works without a state."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from hashrange_sync.deciding import SideName
from hashrange_sync.items import Item, digest
from hashrange_sync.scopes import Scope
from hashrange_sync.sides.calls import Side
from hashrange_sync.sides.reading import items_of, pieces, scan_page

_PAGE_ITEMS: Final = 500
_KEYS: Final = 50


@dataclass(slots=True)
class Comparison:
    """How two tables differ: the items that were compared, and those that differ: by kind (`differs`,
    `only cloud`, `only edge`) how many, and the first keys."""

    compared: int = 0
    differing: dict[str, int] = field(default_factory=dict)
    keys: list[tuple[str, Item]] = field(default_factory=list)

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return not self.differing


def verify(sides: Mapping[SideName, Side], scope: Scope, keys_max: int = 20) -> Comparison:
    """Compare the shared parts of both tables. Items that change meanwhile are read again once. Raises
    `SyncError`."""
    found = Comparison()
    for name, other in _DIRECTIONS:
        for page in _pages(sides[name], scope):
            read = items_of(
                sides[other], sides[other].table, {mark: scope.key_of(item) for mark, item in page.items()}
            )
            for mark, item in page.items():
                if name == "edge" and mark in read:
                    continue  # (it was compared when the cloud was scanned, or is new)
                _compare(sides, scope, name, item, read.get(mark), found, keys_max)
    return found


_DIRECTIONS: Final[tuple[tuple[SideName, SideName], ...]] = (("cloud", "edge"), ("edge", "cloud"))


def _pages(side: Side, scope: Scope) -> Iterator[dict[bytes, Item]]:
    start = None
    while True:
        items, start = scan_page(side, start, 0, 1, _PAGE_ITEMS)
        held = [item for item in items if scope.covers(scope.key_of(item))]
        for part in pieces(held, _KEYS):
            yield {digest(scope.key_of(item)): item for item in part}
        if start is None:
            return


def _compare(
    sides: Mapping[SideName, Side],
    scope: Scope,
    name: SideName,
    item: Item,
    other: Item | None,
    found: Comparison,
    keys_max: int,
) -> None:
    if not scope.concerns(item, other):
        return
    found.compared += 1
    if digest(scope.shared(item)) == digest(scope.shared(other)):
        return
    key = scope.key_of(item)
    mark = digest(key)
    images = {one: items_of(side, side.table, {mark: key}).get(mark) for one, side in sides.items()}
    cloud, edge = scope.shared(images["cloud"]), scope.shared(images["edge"])
    if digest(cloud) == digest(edge):
        return
    kind = "only edge" if cloud is None else "only cloud" if edge is None else "differs"
    found.differing[kind] = found.differing.get(kind, 0) + 1
    if len(found.keys) < keys_max:
        found.keys.append((kind, key))
