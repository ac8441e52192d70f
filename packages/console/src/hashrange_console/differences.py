"""Where two states of an item differ: the paths of what was added, removed and changed.

    address.city   "Bern" → "Basel"
    lines[2]       added

A change of one member of a map or a list is a change at the member's path. A list whose members moved is one
change as a whole, because no short expression says what happened. Refuses to know HTML, and where the states
come from.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

import orjson

from hashrange.values import equal
from hashrange_console.values import MEMBERS, Cell, Item, Value, cell

_PLAIN_NAME: Final = re.compile(r"\w[\w-]*")
_LONG: Final = 60
_BEFORE_DIFFERENCE: Final = 24
_SHOWN: Final = 160
CHANGES_MAX: Final = 50

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A path at which two states of an item differ; None where there is no value."""

    path: Path
    before: Value | None
    after: Value | None

    @property
    def name(self) -> str:
        return shown_path(self.path)

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"

    @property
    def cells(self) -> tuple[Cell | None, Cell | None]:
        """What a page shows of the value before and after; of long texts the part that differs."""
        before, after = self.before, self.after
        if before and after and "S" in before and "S" in after:
            return _texts(before["S"], after["S"])
        return cell(before), cell(after)

    @property
    def members(self) -> tuple[list[Cell | None], list[Cell | None]]:
        """The members of a set that were removed and added; none where this is not a change of a set."""
        if not self.before or not self.after:
            return [], []
        kind = next(iter(self.before))
        if kind not in MEMBERS or kind not in self.after:
            return [], []
        old, new = self.before[kind], self.after[kind]
        before, after = set(old), set(new)
        return (
            [cell({MEMBERS[kind]: member}) for member in old if member not in after],
            [cell({MEMBERS[kind]: member}) for member in new if member not in before],
        )


def differences(before: Item, after: Item) -> list[Difference]:
    """The differences of two items, whose values are in normal form."""
    return list(_of_members((), before, after))


def whole(before: Item, after: Item) -> list[Difference]:
    """The attributes that differ, each as a whole."""
    return [
        Difference((name,), before.get(name), after.get(name))
        for name in {**before, **after}
        if not same(before.get(name), after.get(name))
    ]


@dataclass(frozen=True, slots=True)
class AttributeChange:
    """A difference as pages show it, by the text of its path."""

    path: str
    before: Cell | None
    after: Cell | None

    @property
    def kind(self) -> str:
        if self.before is None:
            return "added"
        return "removed" if self.after is None else "changed"


@dataclass(frozen=True, slots=True)
class Changes:
    """The first differences, and whether there are more of them."""

    shown: tuple[AttributeChange, ...]
    has_more: bool


def changes(
    before: Item | None,
    after: Item | None,
    without: frozenset[str] = frozenset(),
    changes_max: int = CHANGES_MAX,
) -> Changes:
    """The first differences of two states of an item, except of the attributes `without`."""
    old = {name: value for name, value in (before or {}).items() if name not in without}
    new = {name: value for name, value in (after or {}).items() if name not in without}
    first = tuple(islice(_of_members((), old, new), changes_max + 1))
    shown = tuple(AttributeChange(difference.name, *difference.cells) for difference in first[:changes_max])
    return Changes(shown, len(first) > changes_max)


def same(first: Value | None, second: Value | None) -> bool:
    """Whether two values are equal, or both are missing."""
    if first is None or second is None:
        return first is second
    return equal(first, second)


def _of_members(path: Path, before: Item, after: Item) -> Iterator[Difference]:
    for name in {**before, **after}:
        yield from _between((*path, name), before.get(name), after.get(name))


def _between(path: Path, before: Value | None, after: Value | None) -> Iterator[Difference]:
    if same(before, after):
        return
    if before is not None and after is not None:
        if "M" in before and "M" in after:
            yield from _of_members(path, before["M"], after["M"])
            return
        if "L" in before and "L" in after:
            members = _of_lists(path, before["L"], after["L"])
            if members is not None:
                yield from members
                return
    yield Difference(path, before, after)


def _of_lists(path: Path, before: list[Value], after: list[Value]) -> list[Difference] | None:
    """The differences of two lists: of members at equal places, of members added at the end, or of members
    removed. None if the lists differ in another way."""
    if len(before) == len(after):
        pairs = enumerate(zip(before, after, strict=True))
        return [member for number, pair in pairs for member in _between((*path, number), *pair)]
    if len(before) < len(after):
        if not all(map(same, before, after)):
            return None
        return [Difference((*path, n), None, after[n]) for n in range(len(before), len(after))]
    removed: list[Difference] = []
    place = 0
    for number, old in enumerate(before):
        if place < len(after) and same(old, after[place]):
            place += 1
        else:
            removed.append(Difference((*path, number), old, None))
    return removed if place == len(after) else None


def shown_path(path: Path) -> str:
    """A path as text: address.lines[0]; a name with other characters is in quotes."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            name = step if _PLAIN_NAME.fullmatch(step) else orjson.dumps(step).decode()
            text += f".{name}" if text else name
    return text


def _texts(before: str, after: str) -> tuple[Cell, Cell]:
    shorter = min(len(before), len(after))
    start = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    start = max(0, start - _BEFORE_DIFFERENCE) if start > _LONG else 0

    def part(text: str) -> Cell:
        shown = text[start : start + _SHOWN]
        return Cell("S", f'"{"…" * bool(start)}{shown}{"…" * (start + _SHOWN < len(text))}"')

    return part(before), part(after)
