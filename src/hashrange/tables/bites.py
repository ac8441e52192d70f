"""How much background work is done in a transaction (a bite), and the records that it skipped."""

from __future__ import annotations

from typing import Final, NamedTuple

BYTES_MAX: Final = 512 * 1024
"""The most bytes that a bite reads or writes. The number of items alone is not a bound: an item may have 400
KB."""


class Limit(NamedTuple):
    """The most items and bytes of a bite."""

    items: int
    bytes: int = BYTES_MAX


AT_ONCE: Final = Limit(1_000)
"""A request that begins a build does the whole build if it is not larger than this; otherwise the sweep does
it."""


class Damage(NamedTuple):
    """A damaged record that the background work skipped, and the reason."""

    partition: bytes
    sort: bytes
    error: str


class Done(NamedTuple):
    """The result of a bite of a queue: how many members were done, which damaged members were skipped, and
    whether more may be due."""

    handled: int
    damages: list[Damage]
    more: bool
