"""Which requests a mix makes, and for which keys: the workloads A to F of YCSB.

    a  half reads, half updates                      zipf
    b  95 % reads, 5 % updates                       zipf
    c  reads                                         zipf
    d  95 % reads, 5 % new items                     latest: new items are read most
    e  95 % queries of up to ten items, 5 % new      zipf
    f  half reads, half reads that end in an update  zipf

Items are numbers from 0. With `zipf` some are used much more often than others, wherever they are in the
table; with `latest` the newest are; with `uniform` all are used alike. Equal seeds give equal choices.

Source: Cooper et al., "Benchmarking Cloud Serving Systems with YCSB", 2010; the numbers are drawn as in Gray
et al., "Quickly Generating Billion-Record Synthetic Databases", 1994.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import blake2b
from random import Random
from typing import Final

READ: Final = "read"
UPDATE: Final = "update"
INSERT: Final = "insert"
QUERY: Final = "query"
CHANGE: Final = "read, then update"

ZIPF: Final = "zipf"
UNIFORM: Final = "uniform"
LATEST: Final = "latest"
DISTRIBUTIONS: Final = (ZIPF, UNIFORM, LATEST)

_THETA: Final = 0.99
"""How uneven the use of items is; YCSB's constant."""


@dataclass(frozen=True, slots=True)
class Mix:
    """The shares of the kinds of requests, which add up to 1, and the usual distribution of the items."""

    shares: Mapping[str, float]
    distribution: str = ZIPF

    def draw(self, random: Random) -> str:
        """The kind of the next request."""
        left = random.random()
        for kind, share in self.shares.items():
            left -= share
            if left < 0:
                return kind
        return next(iter(self.shares))


MIXES: Final = {
    "a": Mix({READ: 0.5, UPDATE: 0.5}),
    "b": Mix({READ: 0.95, UPDATE: 0.05}),
    "c": Mix({READ: 1.0}),
    "d": Mix({READ: 0.95, INSERT: 0.05}, LATEST),
    "e": Mix({QUERY: 0.95, INSERT: 0.05}),
    "f": Mix({READ: 0.5, CHANGE: 0.5}),
}


class Zipf:
    """Numbers below `count`, of which the smallest are drawn most often."""

    def __init__(self, count: int) -> None:
        self._count = count
        self._zeta = sum([1 / number**_THETA for number in range(1, count + 1)])
        self._alpha = 1 / (1 - _THETA)
        two = 1 + 0.5**_THETA
        self._eta = (1 - (2 / count) ** (1 - _THETA)) / (1 - two / self._zeta) if count > 2 else 0.0

    def draw(self, random: Random) -> int:
        """The next number."""
        drawn = random.random()
        share = drawn * self._zeta
        if share < 1:
            return 0
        if share < 1 + 0.5**_THETA:
            return min(1, self._count - 1)
        return min(int(self._count * (self._eta * drawn - self._eta + 1) ** self._alpha), self._count - 1)


def chooser(distribution: str, count: int, random: Random) -> Callable[[int], int]:
    """A function that chooses an item. It is called with the number of items that there are by now, which is
    at least `count`."""
    if distribution == UNIFORM:
        return random.randrange
    zipf = Zipf(count)
    if distribution == LATEST:
        return lambda items: items - 1 - zipf.draw(random)
    return lambda items: _scattered(zipf.draw(random)) % count


def _scattered(number: int) -> int:
    """A number that looks as if it were drawn, so that the items that are used most are not neighbours."""
    return int.from_bytes(blake2b(number.to_bytes(8), digest_size=8).digest())
