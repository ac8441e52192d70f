"""Which items a pair keeps equal, and which of their attributes."""

from __future__ import annotations

from collections.abc import Sequence

from hashrange_sync.items import Item, Value, same
from hashrange_sync.settings import Filter, Pair, Prefix, Wanted


class Scope:
    """The filter and the shared attributes of a pair. `key` are the names of the key attributes, the
    partition key first."""

    def __init__(self, pair: Pair, key: Sequence[str]) -> None:
        self.key = tuple(key)
        self._filter: Filter = pair.filter
        self._only = frozenset([*pair.attributes, *key]) if pair.attributes else None
        # (the mark of the cloud's items is its own)
        self._withheld = frozenset([*pair.withhold, pair.mark]) - set(key)

    def key_of(self, item: Item) -> Item:
        """The key of an item."""
        return {name: item[name] for name in self.key}

    def shared(self, item: Item | None) -> Item | None:
        """The part of an item that both sides share."""
        if item is None or (self._only is None and self._withheld.isdisjoint(item)):
            return item
        return {name: value for name, value in item.items() if self._is_shared(name)}

    def own(self, item: Item | None) -> Item:
        """The attributes of an item that stay on its side."""
        return {name: value for name, value in (item or {}).items() if not self._is_shared(name)}

    def _is_shared(self, name: str) -> bool:
        return name not in self._withheld and (self._only is None or name in self._only)

    def covers(self, key: Item) -> bool:
        """Whether items with this key can be in the scope."""
        prefix = self._filter.prefix
        return not prefix or str(key[self.key[0]].get("S", "")).startswith(prefix)

    def concerns(self, *images: Item | None) -> bool:
        """Whether an item is in the scope, by its image on one of the sides: an item that leaves the filter
        on one side still takes this last change to the other."""
        where = self._filter.where
        return not where or any(
            image is not None and all(matches(image.get(name), wanted) for name, wanted in where.items())
            for image in images
        )


def matches(value: Value | None, wanted: Wanted) -> bool:
    """Whether an attribute is as a filter says."""
    if value is None:
        return False
    if isinstance(wanted, Prefix):
        return str(value.get("S", "\0")).startswith(wanted.prefix)
    if isinstance(wanted, list):
        return any(matches(value, one) for one in wanted)
    if isinstance(wanted, bool):
        return same(value, {"BOOL": wanted})
    return same(value, {"N": str(wanted)} if isinstance(wanted, int) else {"S": wanted})
