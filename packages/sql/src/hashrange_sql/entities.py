"""Views of the entities of a table: the items of one kind, found by the patterns of keys in a sample."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from hashrange_console.entities.sampling import beginning, entities_of
from hashrange_console.items.sources import TableOrIndex
from hashrange_console.stored import EntityRule
from hashrange_sql.shapes import literal, quoted


@dataclass(frozen=True, slots=True)
class View:
    """A view: `condition` in SQL says which items of the table it has, and `columns` which attributes."""

    name: str
    condition: str
    columns: tuple[str, ...]


def views_of(sources: list[TableOrIndex], items: list[dict[str, Any]], known: Container[str]) -> list[View]:
    """The views of the entities in a sample of a table's items, of which `known` are the columns. Items that
    no condition tells apart have none."""
    made: dict[str, View] = {}
    for entity in entities_of(sources, items, (), 0.0).entities:
        rule = entity.rule
        condition = " AND ".join(_conditions(sources[0], rule))
        names = tuple(name for name, _, _ in entity.attributes if name in known)
        if condition and all(name in names for name in (rule.attribute, *rule.has) if name):
            made.setdefault(rule.name.lower(), View(rule.name, condition, names))
    return list(made.values())


def _conditions(table: TableOrIndex, rule: EntityRule) -> list[str]:
    found = _has_pattern(table.partition[0][0], rule.partition)
    for name, _ in table.sort[:1]:
        found += _has_pattern(name, rule.sort or "*")
    if rule.attribute:
        found.append(f"{quoted(rule.attribute)} = {literal(rule.value)}")
    return found + [f"{quoted(name)} IS NOT NULL" for name in rule.has]


def _has_pattern(name: str, pattern: str) -> list[str]:
    """Conditions of which DuckDB makes ranges where it can, so that they become a part of a Query."""
    prefix = beginning(pattern)
    if "*" not in pattern:
        return [f"{quoted(name)} = {literal(pattern)}"]
    found = [f"starts_with({quoted(name)}, {literal(prefix)})"] if prefix else []
    if pattern.strip("*") != prefix:
        like = "".join("%" if one == "*" else f"\\{one}" if one in "%_\\" else one for one in pattern)
        found.append(f"{quoted(name)} LIKE {literal(like)} ESCAPE '\\'")
    return found
