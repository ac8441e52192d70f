"""Where the requests go: by table, by part of the table, and to the busiest keys.

It counts while a page shows it. Each item that a request names counts once; a Scan names none. The parts of a
table are sixteenths of the hashes of its partition keys, in the order of a Scan, as DynamoDB's partitions are
ranges of these hashes.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from hashrange.clock import Clock, SystemClock
from hashrange.console.live.attention import Attention
from hashrange.console.live.feed import is_taken, targets_of
from hashrange.encoding import partition_of_one
from hashrange.insights.sketch import Count, Sketch
from hashrange.operations import REGISTRY
from hashrange.operations.context import scope_of
from hashrange.server.admin.port import Subject
from hashrange.watching.sights import Sight

PARTS: Final = 16
KEYS_MAX: Final = 300
TABLES_MAX: Final = 200
_KEY_CHARACTERS_MAX: Final = 2_100
"""A partition key has 2,048 bytes at most."""
_CONSUMERS: Final = frozenset(name for name, operation in REGISTRY.items() if operation.consumes)


class Place(NamedTuple):
    """A table, by its scope and name."""

    scope: str
    table: str


class Hot(NamedTuple):
    """A partition key's value: its place, the part of the table, and the attribute in DynamoDB's JSON."""

    place: Place
    part: int
    key: str


@dataclass(slots=True)
class Warmth:
    """The counts of one table: requests without a key, and items by part."""

    others: int = 0
    reads: list[int] = field(default_factory=lambda: [0] * PARTS)
    writes: list[int] = field(default_factory=lambda: [0] * PARTS)

    @property
    def total(self) -> int:
        return sum(self.reads) + sum(self.writes) + self.others


class Heat:
    """The counts of one server since `since`, of `seen` requests. Thread-safe. `names` are the partition keys
    of tables, which the page looks up for the tables in `unknown`."""

    def __init__(self, subject: Subject, clock: Clock = SystemClock()) -> None:  # noqa: B008 (stateless)
        self.attention = Attention(self._start, self._stop)
        self.since = 0.0
        self.seen = 0
        self.names: dict[Place, str] = {}
        self.unknown: set[Place] = set()
        self._subject = subject
        self._clock = clock
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._tables: dict[Place, Warmth] = {}
        self._keys: Sketch[Hot] = Sketch(KEYS_MAX)

    def _start(self) -> None:
        with self._lock:
            self._clear()
            self.since = self._clock.now()
            self.names = {}
        self._subject.database.interest.show(self, True)

    def _stop(self) -> None:
        self._subject.database.interest.show(self, False)
        with self._lock:
            self._clear()

    def see(self, sight: Sight) -> None:
        """Count a request."""
        if not is_taken(self._subject, self, sight) or sight.operation not in _CONSUMERS:
            return
        settings = self._subject.database.settings
        scope = scope_of(sight.caller.account_id, sight.caller.region, settings)
        is_write = _is_write(sight)
        with self._lock:
            self.seen += 1
            for target in targets_of(sight.operation, sight.request):
                if target.table:
                    self._count(Place(scope, target.table), target.attributes, is_write)

    def _count(self, place: Place, attributes: Mapping[str, Any] | None, is_write: bool) -> None:
        warmth = self._tables.get(place)
        if warmth is None:
            if len(self._tables) >= TABLES_MAX:
                return
            warmth = self._tables[place] = Warmth()
        name = self.names.get(place)
        if name is None:
            self.unknown.add(place)
        value = attributes.get(name) if name and isinstance(attributes, dict) else None
        part = _part_of(value)
        if name is None or value is None or part is None:
            warmth.others += 1
            return
        (warmth.writes if is_write else warmth.reads)[part] += 1
        self._keys.add(Hot(place, part, orjson.dumps({name: value}).decode()), is_write=is_write)

    def tables(self) -> list[tuple[Place, Warmth]]:
        """The tables, busiest first."""
        with self._lock:
            return sorted(self._tables.items(), key=lambda pair: -pair[1].total)

    def keys(self, number: int) -> list[Count[Hot]]:
        """The busiest keys, busiest first."""
        with self._lock:
            return self._keys.most_frequent(number)


def _is_write(sight: Sight) -> bool:
    entry = REGISTRY[sight.operation]
    try:
        return entry.is_write(sight.request)
    except (AttributeError, KeyError, TypeError):  # the request is wrong
        return entry.writes


def _part_of(value: Any) -> int | None:
    """The part of its table in which a partition key is; None if it is none."""
    try:
        if len(orjson.dumps(value)) > _KEY_CHARACTERS_MAX * 4:
            return None
        return partition_of_one(value)[0] * PARTS // 256
    except Exception:  # the request has any form, because a refused one is counted too
        return None
