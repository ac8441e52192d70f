"""The most frequent of many keys, in little memory: the space-saving sketch.

A sketch has room for a number of keys. A key that finds no room takes the place of the least frequent one,
and also its count, as the most that it may have missed. So no count is too low, a count is too high by
`over` at most, and a key that makes up more than a share of 1/room of all is always in the sketch.

Source: Metwally, Agrawal and El Abbadi, "Efficient computation of frequent and top-k elements in data
streams", 2005. Its list of equal counts is a heap here, whose counts may be out of date: they are corrected
when they come to its top.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush, heapreplace
from operator import attrgetter
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Count(Generic[K]):
    """How often a key came: `reads` and `writes` since it has its place, and `over`, which is what the place
    had before. `throttles`: how many of these were throttled, which the one who counts says."""

    __slots__ = ("key", "over", "reads", "throttles", "writes")

    def __init__(self, key: K, over: int) -> None:
        self.key = key
        self.over = over
        self.reads = 0
        self.writes = 0
        self.throttles = 0

    @property
    def least(self) -> int:
        """How often the key came at least."""
        return self.reads + self.writes

    @property
    def most(self) -> int:
        """How often the key came at most."""
        return self.reads + self.writes + self.over


class Sketch(Generic[K]):
    """The most frequent keys, with room for `keys_max`."""

    def __init__(self, keys_max: int) -> None:
        self._keys_max = keys_max
        self._counts: dict[K, Count[K]] = {}
        self._heap: list[tuple[int, int, K]] = []
        self._entered = 0

    def __len__(self) -> int:
        return len(self._counts)

    def add(self, key: K, *, is_write: bool, times: int = 1) -> Count[K]:
        """Count a key. Returns its count."""
        count = self._counts.get(key)
        if count is None:
            over = self._make_room() if len(self._counts) >= self._keys_max else 0
            count = self._counts[key] = Count(key, over)
            self._entered += 1
            heappush(self._heap, (over, self._entered, key))
        if is_write:
            count.writes += times
        else:
            count.reads += times
        return count

    def most_frequent(self, number: int) -> list[Count[K]]:
        """The keys with the highest counts, highest first."""
        return sorted(self._counts.values(), key=attrgetter("least"), reverse=True)[:number]

    def _make_room(self) -> int:
        """Remove the least frequent key, and return its count."""
        heap = self._heap
        while True:
            noted, entered, key = heap[0]
            most = self._counts[key].most
            if noted == most:
                heappop(heap)
                del self._counts[key]
                return most
            heapreplace(heap, (most, entered, key))
