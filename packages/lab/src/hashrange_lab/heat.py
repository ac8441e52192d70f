"""Where the requests go: by table and global index, by part of these, and to the busiest partition keys.

It counts while somebody looks: a page of the console, or `hashrange top`. Each item that a request names
counts once, and so does a Query, for the index that it reads; a Scan names none. A write counts for a global
index too if it changed the index and shows the index's key, as a put does. The parts of a table are
sixteenths of the hashes of its partition keys, in the order of a Scan, as DynamoDB's partitions are ranges of
these hashes.

The keys are in one sketch of bounded size (`insights.sketch`), so of many keys it has those that are used
most, and knows by how much their counts may be too low.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, NamedTuple

import orjson

from hashrange.clock import Clock, SystemClock
from hashrange.database import Database
from hashrange.encoding import partition_of_one
from hashrange.insights.sketch import Count, Sketch
from hashrange.insights.throttled import throttled
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.operations import REGISTRY
from hashrange.operations.context import OPERATOR
from hashrange.operations.targets import Target, name_in, targets_of_any
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog

PARTS: Final = 16
KEYS_MAX: Final = 500
PLACES_MAX: Final = 400
LEARNT_MAX: Final = 200
"""How many tables are looked up when counting begins; others are when they are used."""
_KEY_CHARACTERS_MAX: Final = 2_100
"""A partition key has 2,048 bytes at most."""
_CONSUMERS: Final = frozenset(name for name, operation in REGISTRY.items() if operation.consumes)


class TableOrIndex(NamedTuple):
    """A table, by its scope and name, or a global index of it; `index_name` is "" for the table."""

    scope: str
    table: str
    index_name: str = ""

    @property
    def full_name(self) -> str:
        """The table's full name."""
        return f"{self.scope}/{self.table}" if self.scope else self.table


class Hot(NamedTuple):
    """A partition key's value: its place, the part of the table, and the attribute in DynamoDB's JSON."""

    place: TableOrIndex
    part: int
    key: str


@dataclass(slots=True)
class Warmth:
    """The counts of a table or an index: requests without a key, items by part, and throttled ones."""

    others: int = 0
    reads: list[int] = field(default_factory=lambda: [0] * PARTS)
    writes: list[int] = field(default_factory=lambda: [0] * PARTS)
    throttles: int = 0

    @property
    def total(self) -> int:
        return sum(self.reads) + sum(self.writes) + self.others


class Heat(Observer):
    """The counts of one database since `since`, of `seen` requests. Thread-safe. `names` are the partition
    keys of tables and indexes, as far as `learn` has looked them up; those of the tables in `unknown` are
    still to be looked up. `is_over` returns whether the server has stopped, so that nobody looks any more."""

    def __init__(
        self,
        database: Database,
        is_over: Callable[[], bool],
        clock: Clock = SystemClock(),  # noqa: B008 (stateless)
    ) -> None:
        self.since = 0.0
        self.seen = 0
        self.names: dict[TableOrIndex, str] = {}
        self.unknown: set[TableOrIndex] = set()
        self._database = database
        self._is_over = is_over
        self._clock = clock
        self._lock = threading.Lock()
        self._clear()

    def _clear(self) -> None:
        self._warmth: dict[TableOrIndex, Warmth] = {}
        self._keys: Sketch[Hot] = Sketch(KEYS_MAX)

    def begin(self) -> None:
        """Count from now on, from zero."""
        with self._lock:
            self._clear()
            self.since = self._clock.now()
            self.seen = 0
            self.names = {}
        self._database.observers.observe(self, True)

    def end(self) -> None:
        """Count no longer."""
        self._database.observers.observe(self, False)
        with self._lock:
            self._clear()

    def learn(self, *, every: bool = False) -> None:
        """Look up the keys of the tables in `unknown`, or those of the first tables by their names."""
        with self._lock:
            places = list(self.unknown)
            self.unknown.clear()

        def look(reader: Reader) -> dict[TableOrIndex, str]:
            names: dict[TableOrIndex, str] = {}
            tables = [catalog.find(reader, place.table, place.scope) for place in places]
            if every:
                tables += islice(catalog.definitions(reader), LEARNT_MAX)
            for table in tables:
                if table is None:
                    continue
                scope, _, name = table.full_name.rpartition("/")
                names[TableOrIndex(scope, name)] = table.key.partition[0].name
                for index in table.indexes:
                    if index.is_global and index.vector is None:
                        names[TableOrIndex(scope, name, index.name)] = index.key.partition[0].name
            return names

        learnt = self._database.engine.read(look)
        with self._lock:
            self.names |= learnt

    def ended(self, seen: ObservedRequest) -> None:
        """Count a request."""
        if self._is_over():
            self._database.observers.observe(self, False)  # (the database may be used further)
            return
        if seen.caller.access_key == OPERATOR or seen.operation not in _CONSUMERS:
            return
        named = targets_of_any(seen.operation, seen.request)
        if not named:
            return
        scope = seen.scope
        is_write = _is_write(seen)
        refused = throttled(seen, named)
        changed = _changed_indexes(seen) if is_write else set()
        with self._lock:
            self.seen += 1
            for target in named:
                if target.table:
                    is_refused = target.member in refused
                    self._count_target(scope, target, is_write, is_refused)
                    for table, index in changed:
                        if table == target.table and not is_refused:
                            self._count_index(TableOrIndex(scope, table, index), target.attributes)

    def _count_target(self, scope: str, target: Target, is_write: bool, is_refused: bool) -> None:
        place = TableOrIndex(scope, target.table)
        if target.index is not None:
            of_index = TableOrIndex(scope, target.table, target.index)
            if of_index in self.names:
                place = of_index
        self._count(place, target.attributes, is_write, is_refused)

    def _count_index(self, place: TableOrIndex, attributes: Mapping[str, Any] | None) -> None:
        name = self.names.get(place)
        if name is not None and isinstance(attributes, dict) and name in attributes:
            self._count(place, attributes, True, False)

    def _count(
        self, place: TableOrIndex, attributes: Mapping[str, Any] | None, is_write: bool, is_refused: bool
    ) -> None:
        warmth = self._warmth.get(place)
        if warmth is None:
            if len(self._warmth) >= PLACES_MAX:
                return
            warmth = self._warmth[place] = Warmth()
        warmth.throttles += is_refused
        name = self.names.get(place)
        if name is None:
            self.unknown.add(place)
        value = attributes.get(name) if name and isinstance(attributes, dict) else None
        part = _part_of(value)
        if name is None or value is None or part is None:
            warmth.others += 1
            return
        (warmth.writes if is_write else warmth.reads)[part] += 1
        count = self._keys.add(Hot(place, part, orjson.dumps({name: value}).decode()), is_write=is_write)
        count.throttles += is_refused

    def places(self) -> list[tuple[TableOrIndex, Warmth]]:
        """The tables and indexes, busiest first."""
        with self._lock:
            return sorted(self._warmth.items(), key=lambda pair: -pair[1].total)

    def keys(self, number: int) -> list[Count[Hot]]:
        """The busiest keys, busiest first."""
        with self._lock:
            return self._keys.most_frequent(number)


def _changed_indexes(seen: ObservedRequest) -> set[tuple[str, str]]:
    """The tables and global indexes that a write changed."""
    return {(name_in(part.table_name), index) for part in seen.bill for index in part.global_ if part.writes}


def _is_write(seen: ObservedRequest) -> bool:
    entry = REGISTRY[seen.operation]
    try:
        return entry.is_write(seen.request)
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
