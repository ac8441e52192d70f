"""Merges changes into ordered records, so that a scan shows writes that are not in the store yet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol, TypeVar


class Ordered(Protocol):
    """A value that can be sorted."""

    def __lt__(self, other: Any, /) -> bool: ...

    def __gt__(self, other: Any, /) -> bool: ...


Key = TypeVar("Key", bound=Ordered)


def merged(
    records: Iterable[tuple[Key, bytes]], changes: Mapping[Key, bytes | None], reverse: bool
) -> Iterator[tuple[Key, bytes]]:
    """Records in order, with `changes` applied (None: the record is removed)."""
    keys = iter(sorted(changes, reverse=reverse))
    changed = next(keys, None)
    for key, value in records:
        while changed is not None and (changed > key if reverse else changed < key):
            new = changes[changed]
            if new is not None:
                yield changed, new
            changed = next(keys, None)
        if changed != key:
            yield key, value
    while changed is not None:
        new = changes[changed]
        if new is not None:
            yield changed, new
        changed = next(keys, None)
