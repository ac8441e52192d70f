"""Proposes the entities of a table from a sample of its items, by patterns of their keys.

USER#42 has the pattern USER#*: words that a separator follows stay, every second part is a value. A word
alone, such as PROFILE, stays if it is in capitals, or if several partitions have it as a sort key. Items
whose keys have no pattern are distinguished by an attribute that names their type, or by their attributes.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec.structs import replace

from hashrange_console.items.sources import TableOrIndex
from hashrange_console.stored import EntityRule
from hashrange_console.values import Item, Value

LITERALS_MAX: Final = 12
"""The most words that stay in one place of a key: if there are more, they are values."""
TYPE_NAMES: Final = (
    "type", "_type", "Type", "entity", "Entity", "entityType", "entity_type", "EntityType", "__typename",
    "_et", "__edb_e__", "kind", "Kind", "model", "itemType", "item_type", "recordType", "record_type",
)  # fmt: skip
"""Names of attributes by which programs distinguish types of items."""
_SEPARATORS: Final = re.compile(r"([#:|/]+)")
_WORD: Final = re.compile(r"[A-Za-z][A-Za-z_\-]*")
_CAPITALS: Final = re.compile(r"[A-Z][A-Z_\-]+")
_ALIKE: Final = 0.5
"""The share of common attributes from which on items are of the same kind."""


def like(text: str, pattern: str) -> bool:
    """Whether a text has a pattern, in which * stands for any text. It takes no longer than a search."""
    first, *parts = pattern.split("*")
    if not parts:
        return text == pattern
    place, end = len(first), len(text) - len(parts[-1])
    if place > end or not text.startswith(first) or not text.endswith(parts[-1]):
        return False
    for part in parts[:-1]:
        place = text.find(part, place, end)
        if place < 0:
            return False
        place += len(part)
    return True


def fits(rule: EntityRule, source: TableOrIndex, item: Item) -> bool:
    """Whether an item is of an entity. `source` is its table."""
    if not like(text_of(item, source.partition[0][0]), rule.partition):
        return False
    if source.sort and not like(text_of(item, source.sort[0][0]), rule.sort or "*"):
        return False
    if rule.attribute and item.get(rule.attribute) != {"S": rule.value}:
        return False
    return all(name in item for name in rule.has)


def text_of(item: Item, name: str) -> str:
    """The value of an attribute of a key as a text."""
    return str(next(iter(item[name].values()))) if name in item else ""


def proposed(source: TableOrIndex, items: Sequence[Item]) -> list[EntityRule]:
    """The entities of some items, the most frequent first."""
    names = [source.partition[0][0], *(name for name, _ in source.sort[:1])]
    kept = [_words(source, items, name, is_sort=place > 0) for place, name in enumerate(names)]
    groups: dict[tuple[str, ...], list[Item]] = defaultdict(list)
    for item in items:
        key = tuple(pattern_of(item, name, words) for name, words in zip(names, kept, strict=True))
        groups[key].append(item)
    counted: list[tuple[int, EntityRule]] = []
    for patterns, members in groups.items():
        partition, sort = [*patterns, ""][:2]
        whole = EntityRule(name=_name(partition, sort), partition=partition, sort=sort)
        counted += _split(whole, source, members) if set(patterns) == {"*"} else [(len(members), whole)]
    counted.sort(key=lambda pair: (-pair[0], pair[1].partition, pair[1].sort))
    return _distinct([rule for _, rule in counted])


def pattern_of(item: Item, name: str, words: set[tuple[int, str]]) -> str:
    """The pattern of a key's attribute. `words` are the words that stay, with their places."""
    if "S" not in item.get(name, ()):
        return "*"
    parts = _SEPARATORS.split(item[name]["S"])
    shown = [
        part if place % 2 or (place, part) in words else "*" if part else ""
        for place, part in enumerate(parts)
    ]
    return "".join(shown) or "*"


def pattern_of_value(value: Value) -> str:
    """The pattern of a value by itself: a word before a separator stays, and a word in capitals."""
    if "S" not in value:
        return "*"
    parts = value["S"].replace("|", "#").split("#")
    words = {(0, parts[0])} if len(parts) > 1 or (parts[0].isupper() and parts[0].isalpha()) else set()
    return pattern_of({"": value}, "", words)


def _words(source: TableOrIndex, items: Sequence[Item], name: str, *, is_sort: bool) -> set[tuple[int, str]]:
    """The words of a key's attribute that are no values, with their places among the parts."""
    partitions: dict[tuple[int, str], set[str]] = defaultdict(set)
    for item in items:
        if "S" not in item.get(name, ()):
            continue
        parts = _SEPARATORS.split(item[name]["S"])
        owner = text_of(item, source.partition[0][0])
        # Parts and separators take turns: every fourth is a word, if a value follows each.
        for place in range(0, len(parts), 4):
            word, is_last = parts[place], place == len(parts) - 1
            if (_CAPITALS if is_last and not is_sort else _WORD).fullmatch(word):
                partitions[place, word].add(owner if is_last and not _CAPITALS.fullmatch(word) else "")
    stays = {
        (place, word) for (place, word), owners in partitions.items() if "" in owners or len(owners) > 1
    }
    counts = Counter(place for place, _ in stays)
    return {(place, word) for place, word in stays if counts[place] <= LITERALS_MAX}


def _split(whole: EntityRule, source: TableOrIndex, items: list[Item]) -> list[tuple[int, EntityRule]]:
    """Items whose keys say nothing, by their types or by their attributes."""
    for name in TYPE_NAMES:
        values = Counter(item[name]["S"] for item in items if "S" in item.get(name, ()))
        if 1 < len(values) <= LITERALS_MAX and values.total() == len(items):
            return [
                (count, replace(whole, name=value or "Item", attribute=name, value=value))
                for value, count in values.items()
            ]
    clusters = _clusters(items, {name for name, _ in source.keys})
    if len(clusters) > 1:
        own = [frozenset.intersection(*names) for names in clusters]
        others = [
            frozenset().union(*(names for other in clusters if other is not cluster for names in other))
            for cluster in clusters
        ]
        has = [tuple(sorted(mine - theirs)) for mine, theirs in zip(own, others, strict=True)]
        if all(has):
            return [
                (len(cluster), replace(whole, name=f"Item with {names[0]}", has=names))
                for cluster, names in zip(clusters, has, strict=True)
            ]
    return [(len(items), whole)]


def _clusters(items: list[Item], keys: set[str]) -> list[list[frozenset[str]]]:
    """The attributes of items, those that are alike together."""
    clusters: list[list[frozenset[str]]] = []
    for item in items:
        names = frozenset(item) - keys
        for cluster in clusters:
            both = names | cluster[0]
            if not both or len(names & cluster[0]) / len(both) >= _ALIKE:
                cluster.append(names)
                break
        else:
            if len(clusters) == LITERALS_MAX:
                return []
            clusters.append([names])
    return clusters


def _name(partition: str, sort: str) -> str:
    """A name from the words of the patterns: User order for USER#* and ORDER#*."""
    words = dict.fromkeys(word.lower() for word in re.findall(r"[A-Za-z]{2,}", f"{partition} {sort}"))
    return " ".join(words).capitalize() or "Item"


def _distinct(rules: Iterable[EntityRule]) -> list[EntityRule]:
    """The rules with names that differ."""
    counts: Counter[str] = Counter()
    named = []
    for rule in rules:
        counts[rule.name] += 1
        again = counts[rule.name]
        named.append(rule if again == 1 else replace(rule, name=f"{rule.name} {again}"))
    return named
