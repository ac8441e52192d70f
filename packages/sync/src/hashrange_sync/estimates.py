"""What a first copy will take, before it begins: items, capacity units of the cloud, time and money.

All figures are upper bounds from what DescribeTable says, which is up to six hours old: items that are equal
on both sides already cost less. In an empty table nothing is looked for.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from hashrange.prices import on_demand
from hashrange_sync.deciding import SideName
from hashrange_sync.settings import Pair
from hashrange_sync.sides.definitions import Table

_READ_UNIT_BYTES = 4096
_WRITE_UNIT_BYTES = 1024
ITEMS_A_SECOND = 1_500
"""About what one process copies, without a limit."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """items: those of the sides that are read. reads, writes: units of the cloud. seconds: at the pair's
    rate. money: the price on demand, as a text."""

    items: int
    bytes: int
    reads: int
    writes: int
    seconds: int
    money: str

    def __str__(self) -> str:
        minutes = ceil(self.seconds / 60)
        return (
            f"about {self.items:,} items of {self.bytes:,} bytes, {self.reads:,} read and {self.writes:,} "
            f"write units of the cloud ({self.money} on demand), "
            f"{minutes:,} minute{'s' if minutes != 1 else ''}"
        )


def estimate(pair: Pair, tables: Mapping[SideName, Table], region: str) -> Estimate:
    """What a first copy of a pair takes at most."""
    cloud, edge = tables["cloud"], tables["edge"]
    goes_down, goes_up = pair.direction != "up", pair.direction != "down"
    reads = writes = items = size = 0
    if goes_down:
        reads += ceil(cloud.bytes / _READ_UNIT_BYTES)
        items, size = cloud.items, cloud.bytes
    if goes_up:
        average = edge.bytes / edge.items if edge.items else 0
        reads += edge.items * max(1, ceil(average / _READ_UNIT_BYTES)) if cloud.items else 0
        writes += edge.items * max(1, ceil(average / _WRITE_UNIT_BYTES)) * (1 + len(cloud.indexes))
        items, size = items + edge.items, size + edge.bytes
    at_rate = (reads + writes) / pair.rate if pair.rate else 0
    seconds = ceil(max(at_rate, items / ITEMS_A_SECOND))
    return Estimate(items, size, reads, writes, seconds, str(on_demand(region, reads=reads, writes=writes)))
