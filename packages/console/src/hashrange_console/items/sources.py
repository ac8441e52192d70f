"""What a request can read: a table, or one of its indexes, with its key and its size."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hashrange_console.tables.listing import indexes_of, keys_of
from hashrange_console.values import Item

Key = tuple[str, str]
"""The name of an attribute of a key, and its type."""


@dataclass(frozen=True, slots=True)
class TableOrIndex:
    """A table (`index` is "") or an index. `projected` are the attributes that an index has; None: all."""

    table: str
    index: str
    partition: tuple[Key, ...]
    sort: tuple[Key, ...]
    items: int
    size: int
    projected: frozenset[str] | None = None
    is_global: bool = False

    @property
    def keys(self) -> tuple[Key, ...]:
        return self.partition + self.sort

    @property
    def average(self) -> float:
        """The average size of an item, in bytes."""
        return self.size / self.items if self.items else 0.0

    def holds(self, item: Item) -> bool:
        """Whether an item has all attributes of the key, with their types."""
        return all(kind in item.get(name, ()) for name, kind in self.keys)


def sources_of(described: dict[str, Any]) -> Iterator[TableOrIndex]:
    """The table that DescribeTable described, and its indexes that can be read."""
    own = keys_of(described)
    yield _source(described, "", own, described["ItemCount"], described["TableSizeBytes"])
    all_global = {index["IndexName"] for index in described.get("GlobalSecondaryIndexes", ())}
    for name, index in indexes_of(described).items():
        is_global = name in all_global
        if is_global and (index.get("IndexStatus") != "ACTIVE" or index.get("Backfilling")):
            continue
        keys = keys_of(described, name)
        projection = index["Projection"]
        projected = None
        if projection["ProjectionType"] != "ALL":
            names = {key[0] for key in (*own, *keys)}
            projected = frozenset(names | set(projection.get("NonKeyAttributes", ())))
        yield _source(
            described, name, keys, index["ItemCount"], index["IndexSizeBytes"], projected, is_global=is_global
        )


def _source(
    described: dict[str, Any],
    index: str,
    keys: list[tuple[str, str, str]],
    items: int,
    size: int,
    projected: frozenset[str] | None = None,
    *,
    is_global: bool = False,
) -> TableOrIndex:
    partition = tuple((name, kind) for name, role, kind in keys if role == "HASH")
    sort = tuple((name, kind) for name, role, kind in keys if role == "RANGE")
    return TableOrIndex(described["TableName"], index, partition, sort, items, size, projected, is_global)
