"""How much of the background work is done at a time, and what it had to leave out."""

from __future__ import annotations

from typing import Final, NamedTuple

BYTES_MAX: Final = 512 * 1024
"""What a bite reads or writes: an item may have 400 KB, so the number of items alone bounds nothing."""


class Limit(NamedTuple):
    """The most of one bite."""

    items: int
    bytes: int = BYTES_MAX


AT_ONCE: Final = Limit(1_000)
"""What a request does by itself of a build that it begins; larger ones are left to the sweep."""


class Damage(NamedTuple):
    """A record that the work passed over, and why."""

    partition: bytes
    sort: bytes
    error: str


class Done(NamedTuple):
    """What a bite of a queue came to: how many of its members it dealt with, those that it passed over, and
    whether more may be due."""

    handled: int
    damages: list[Damage]
    more: bool
