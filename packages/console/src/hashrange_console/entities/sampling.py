"""The entities of a table as the pages show them: from a sample of its items, and what users corrected.

The sample is read in SEGMENTS places of the table, so that a few large partitions do not fill it.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any, Final

from hashrange_console import looks, stored
from hashrange_console.ask.conditions import Condition
from hashrange_console.entities.patterns import fits, pattern_of_value, proposed
from hashrange_console.items.requests import consumed_units
from hashrange_console.items.sources import TableOrIndex, sources_of
from hashrange_console.reach import View
from hashrange_console.reach import text_of as key_text_of
from hashrange_console.stored import EntityRule
from hashrange_console.values import NAMES, Item

SEGMENTS: Final = 4
SEGMENT_ITEMS: Final = 125
COLOURS: Final = 8
_PATTERNS_MAX: Final = 3
"""The most patterns that an entity has in an index, before they are taken for one."""


@dataclass(frozen=True, slots=True)
class Use:
    """An entity in a table or an index: the pattern of the partition, and the one of the sort key ("" if it
    has none). `example` is an item there."""

    source: TableOrIndex
    partition: str
    sort: str
    example: Item


@dataclass(frozen=True, slots=True)
class Entity:
    """An entity: its rule, its place in the list, its items in the sample, whether a user corrected it."""

    rule: EntityRule
    number: int
    items: list[Item]
    corrected: bool
    attributes: list[tuple[str, str, int]] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)

    @property
    def colour(self) -> str:
        return f"e{self.number % COLOURS}"


@dataclass(frozen=True, slots=True)
class Sample:
    """The items of a sample, the entities that they are of, those of none, and what reading them took."""

    table: TableOrIndex
    sources: list[TableOrIndex]
    items: list[Item]
    entities: list[Entity]
    others: list[Item]
    units: float

    def of(self, item: Item) -> Entity | None:
        """The entity of an item."""
        return next((entity for entity in self.entities if fits(entity.rule, self.table, item)), None)

    def href(self, view: View, item: Item) -> str:
        """The address of an item."""
        key = key_text_of({name: item[name] for name, _ in self.table.keys})
        return looks.href(f"/console/t/{self.table.table}/item", key=key, scope=view.scope)


async def sampled(view: View, table: str) -> Sample:
    """The entities of a table. Raises `Refused`."""
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    sources = [*sources_of(described)]
    items: list[Item] = []
    units = 0.0
    for segment in range(SEGMENTS):
        sent: dict[str, Any] = {"TableName": table, "Limit": SEGMENT_ITEMS}
        sent |= {"Segment": segment, "TotalSegments": SEGMENTS, "ReturnConsumedCapacity": "TOTAL"}
        answer = await view.read("Scan", sent)
        items += answer["Items"]
        units += consumed_units(answer) or 0.0
    return entities_of(sources, items, await stored.entities(view, table), units)


def entities_of(
    sources: list[TableOrIndex], items: list[Item], rules: tuple[EntityRule, ...], units: float
) -> Sample:
    """The entities of some items: those of the rules, then those that the other items are proposed to be."""
    table = sources[0]
    entities, others = _sorted(sources, [*rules], items, corrected=True, first=0)
    more, left = _sorted(sources, proposed(table, others), others, corrected=False, first=len(entities))
    return Sample(table, sources, items, [*entities, *more], left, units)


def _sorted(
    sources: list[TableOrIndex], rules: list[EntityRule], items: list[Item], *, corrected: bool, first: int
) -> tuple[list[Entity], list[Item]]:
    """The entities of the rules with their items, and the items of none."""
    members: dict[int, list[Item]] = defaultdict(list)
    others: list[Item] = []
    for item in items:
        place = next((place for place, rule in enumerate(rules) if fits(rule, sources[0], item)), None)
        (others if place is None else members[place]).append(item)
    entities = [
        Entity(rule, first + place, members[place], corrected, _attributes(members[place]))
        for place, rule in enumerate(rules)
    ]
    for entity in entities:
        entity.uses.extend(_uses(sources, entity))
    return entities, others


def _attributes(items: list[Item]) -> list[tuple[str, str, int]]:
    """The attributes of some items: name, types, and in how many percent of the items they are."""
    kinds: dict[str, set[str]] = defaultdict(set)
    counts: Counter[str] = Counter()
    for item in items:
        for name, value in item.items():
            kinds[name] |= {NAMES[kind] for kind in value}
            counts[name] += 1
    ordered = sorted(counts, key=lambda name: (-counts[name], name))
    return [
        (name, " or ".join(sorted(kinds[name])), round(100 * counts[name] / len(items))) for name in ordered
    ]


def _uses(sources: list[TableOrIndex], entity: Entity) -> list[Use]:
    """The partitions of the table and its indexes in which an entity has items."""
    uses: list[Use] = []
    for source in sources:
        there = [item for item in entity.items if source.holds(item)]
        if not there:
            continue
        if not source.index:
            uses.append(Use(source, entity.rule.partition, entity.rule.sort, there[0]))
            continue
        sort = source.sort[0][0] if source.sort else ""
        examples = {_partition(source, item): item for item in reversed(there)}
        if len(examples) > _PATTERNS_MAX:
            examples = {"*": there[0]}
        for partition, item in sorted(examples.items()):
            uses.append(Use(source, partition, pattern_of_value(item[sort]) if sort else "", item))
    return uses


def _partition(source: TableOrIndex, item: Item) -> str:
    return ", ".join(pattern_of_value(item[name]) for name, _ in source.partition)


def beginning(pattern: str) -> str:
    """The text with which all values of a pattern begin."""
    return pattern.partition("*")[0]


def conditions_of(use: Use, *, whole: bool = False) -> list[Condition]:
    """The conditions that ask for an entity where it is used: its partition, and the beginning of its sort
    key; `whole`: one item."""
    conditions = [Condition((name,), "=", (use.example[name],)) for name, _ in use.source.partition]
    for name, kind in use.source.sort[:1]:
        prefix = beginning(use.sort)
        if whole:
            conditions.append(Condition((name,), "=", (use.example[name],)))
        elif prefix and kind == "S":
            conditions.append(Condition((name,), "begins_with", ({"S": prefix},)))
    return conditions
