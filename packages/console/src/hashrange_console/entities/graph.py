"""The graph of a table's entities, as the numbers of a drawing: entities on the left, on the right the
partitions of the table and its indexes in which they lie, and a line for each that is in one.

It is as wide as a phone; the template draws it as SVG. Refuses to know colours.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from hashrange_console.entities.sampling import Entity, Sample

WIDTH: Final = 360
_BOX: Final = 150
_RIGHT: Final = WIDTH - _BOX
_ROW: Final = 44
_HEIGHT: Final = 34
_CHARACTERS_MAX: Final = 19


@dataclass(frozen=True, slots=True)
class Box:
    """A box of the graph: its place, its texts, and a text for its title. `colour` is that of an entity."""

    x: int
    y: int
    text: str
    detail: str
    title: str
    colour: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """A line between two boxes, in the colour of an entity."""

    path: str
    colour: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A graph, `height` high."""

    height: int
    entities: list[Box]
    partitions: list[Box]
    lines: list[Edge]
    width: int = WIDTH
    box_width: int = _BOX
    box_height: int = _HEIGHT


def graph_of(sample: Sample) -> Graph:
    """The graph of the entities that have items in the sample."""
    entities = [entity for entity in sample.entities if entity.items]
    places: dict[tuple[str, str], int] = {}
    for source in sample.sources:
        for entity in entities:
            for use in entity.uses:
                if use.source is source:
                    places.setdefault((source.index, use.partition), len(places))
    rows = max(len(entities), len(places))
    left, right = _ys(len(entities), rows), _ys(len(places), rows)
    partitions = [
        _box(_RIGHT, right[place], pattern, index or "table", f"{index or 'the table'}: {pattern}")
        for (index, pattern), place in places.items()
    ]
    lines = [
        Edge(_path(left[row], right[places[use.source.index, use.partition]]), entity.colour)
        for row, entity in enumerate(entities)
        for use in entity.uses
    ]
    boxes = [_entity_box(entity, left[row]) for row, entity in enumerate(entities)]
    return Graph(rows * _ROW, boxes, partitions, lines)


def _ys(count: int, rows: int) -> list[int]:
    """The heights of some boxes, spread over the rows."""
    return [round((row + 0.5) * rows * _ROW / count) - _HEIGHT // 2 for row in range(count)]


def _entity_box(entity: Entity, y: int) -> Box:
    detail = f"{len(entity.items):,} item{'s' * (len(entity.items) != 1)}"
    return _box(0, y, entity.rule.name, detail, entity.rule.name, entity.colour)


def _box(x: int, y: int, text: str, detail: str, title: str, colour: str = "") -> Box:
    return Box(x, y, _cut(text), _cut(detail), title, colour)


def _cut(text: str) -> str:
    return text if len(text) <= _CHARACTERS_MAX else f"{text[:_CHARACTERS_MAX - 1]}…"


def _path(left: int, right: int) -> str:
    begin, end, middle = left + _HEIGHT // 2, right + _HEIGHT // 2, (_BOX + _RIGHT) // 2
    return f"M{_BOX} {begin} C{middle} {begin} {middle} {end} {_RIGHT} {end}"
