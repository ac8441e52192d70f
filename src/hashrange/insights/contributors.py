"""Counts the keys of the tables and global indexes whose contributor insights are enabled.

It is an onlooker (`watching.sights`) while there are any. For each table or index there are up to four
rankings, as CloudWatch has rules on AWS:

    PKC, SKC   partition keys, and partition and sort keys, by what they consumed: read units and three times
               write units
    PKT, SKT   the same keys, by how often their requests were throttled

A ranking is a sketch with room for `KEYS_MAX` keys. It covers an hour of the database's clock; the one of the
hour before is kept beside it. A server counts the requests that it answers.

An item counts by its key in the request. The units of a batch or a transaction are divided equally among its
items on a table. A Query counts once, with its partition key. A write counts for an index if the request
shows the index's key, as a put does. Scans and PartiQL statements do not count; the latter as on AWS.

Source: Developer Guide, "CloudWatch contributor insights for DynamoDB: How it works".
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from hashrange.clock import Clock
from hashrange.insights.sketch import Sketch
from hashrange.insights.throttled import throttled
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.operations.targets import Target, name_in, targets_of_any
from hashrange.tables.definitions.table import KeySchema, Table
from hashrange.tables.items.capacity import Consumed

KEYS_MAX: Final = 200
WINDOW_SECONDS: Final = 3_600.0

_OPERATIONS: Final = frozenset(
    (
        *("GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchGetItem", "BatchWriteItem"),
        *("TransactGetItems", "TransactWriteItems"),
    )
)
_WRITE_WEIGHT: Final = 3
_PARTS_OF_A_UNIT: Final = 2
"""Read units come in halves, and a sketch counts whole numbers."""


class TableOrIndex(NamedTuple):
    """A table or a global index; `table` is a full name, `index_name` "" for the table."""

    table: str
    index_name: str


class Contributor(NamedTuple):
    """A key, as JSON, and what was counted: consumed units, or throttled requests. This may be too low by
    `missed`, at most."""

    key: bytes
    amount: float
    missed: float


@dataclass(slots=True)
class _Hour:
    """The rankings of an hour that began at `since` (epoch seconds), by their kinds."""

    since: float
    rankings: dict[str, Sketch[bytes]] = field(default_factory=dict)

    def add(self, kind: str, key: bytes, weight: int) -> None:
        ranking = self.rankings.get(kind)
        if ranking is None:
            ranking = self.rankings[kind] = Sketch(KEYS_MAX)
        ranking.add(key, is_write=False, times=weight)


@dataclass(slots=True)
class _Watched:
    """A table or an index that is counted: its key, whether what is accessed counts, and its hours."""

    key: KeySchema
    counts_access: bool
    hours: list[_Hour] = field(default_factory=list)

    def hour(self, now: float) -> _Hour:
        """The current hour, restarted if the clock was set back."""
        if not self.hours or not self.hours[0].since <= now < self.hours[0].since + WINDOW_SECONDS:
            latest = self.hours[:1] if self.hours and self.hours[0].since <= now else []
            self.hours = [_Hour(now), *latest]
        return self.hours[0]


class Ranking(NamedTuple):
    """The highest keys of a place in one hour. `kind` is PKC, PKT, SKC or SKT; `since` its beginning."""

    place: TableOrIndex
    kind: str
    since: float
    contributors: list[Contributor]


class Contributors(Observer):
    """The counts of one server. Thread-safe. `observe` begins and ends the observing of requests."""

    def __init__(self, observe: Callable[[Observer, bool], None], clock: Callable[[], Clock]) -> None:
        self._observe = observe
        self._clock = clock
        self._lock = threading.Lock()
        self._watched: dict[TableOrIndex, _Watched] = {}
        self._looks = False

    def look_at(self, tables: list[Table]) -> None:
        """Count from now on for those of all `tables` whose insights are enabled, and for no others."""
        wanted = dict(_enabled(tables))
        with self._lock:
            for place in self._watched.keys() - wanted.keys():
                del self._watched[place]
            for place, (key, counts_access) in wanted.items():
                known = self._watched.get(place)
                if known is None or known.key != key:
                    self._watched[place] = _Watched(key, counts_access)
                else:
                    known.counts_access = counts_access
        if self._looks != bool(wanted):
            self._looks = bool(wanted)
            self._observe(self, self._looks)

    def ended(self, seen: ObservedRequest) -> None:
        """Count a request."""
        if seen.operation not in _OPERATIONS:
            return
        named = targets_of_any(seen.operation, seen.request)
        scope = seen.scope
        refused = throttled(seen, named)
        now = self._clock().now()
        with self._lock:
            for target in named:
                if target.member in refused:
                    self._count_throttled(scope, target, now)
            for part in seen.bill:
                self._count_access(scope, part, [t for t in named if t.member not in refused], now)

    def _count_throttled(self, scope: str, target: Target, now: float) -> None:
        place = TableOrIndex(_full(scope, target.table), target.index or "")
        watched = self._watched.get(place)
        if watched is not None and isinstance(target.attributes, Mapping):
            for kind, key in _keys(watched.key, target.attributes):
                watched.hour(now).add(f"{kind}T", key, 1)

    def _count_access(self, scope: str, part: Consumed, named: list[Target], now: float) -> None:
        """Count what a request consumed on a table, for its items there."""
        table = name_in(part.table_name)
        mine = [target for target in named if target.table == table]
        weight = _PARTS_OF_A_UNIT * (_WRITE_WEIGHT if part.writes else 1)
        units = {"": part.table + sum(part.local.values()), **part.global_}
        for index, consumed in units.items():
            watched = self._watched.get(TableOrIndex(_full(scope, table), index))
            if watched is None or not watched.counts_access or not consumed:
                continue
            share = max(round(consumed * weight / max(len(mine), 1)), 1)
            for target in mine:
                if isinstance(target.attributes, Mapping):
                    for kind, key in _keys(watched.key, target.attributes):
                        watched.hour(now).add(f"{kind}C", key, share)

    def rankings(self, number: int) -> list[Ranking]:
        """The `number` highest keys of each ranking, of this hour and the one before."""
        found = []
        with self._lock:
            for place, watched in sorted(self._watched.items()):
                for hour in watched.hours:
                    for kind, ranking in sorted(hour.rankings.items()):
                        unit = _PARTS_OF_A_UNIT if kind.endswith("C") else 1
                        highest = [
                            Contributor(count.key, count.least / unit, count.over / unit)
                            for count in ranking.most_frequent(number)
                        ]
                        found.append(Ranking(place, kind, hour.since, highest))
        return found


def _enabled(tables: list[Table]) -> Iterator[tuple[TableOrIndex, tuple[KeySchema, bool]]]:
    """The tables and indexes whose keys are counted: their keys, and whether what is accessed counts."""
    for table in tables:
        for name in table.insights:
            insights = table.insights_of(name)
            index = table.index(name) if name else None
            if insights is not None and insights.status == "ENABLED":
                key = table.key if index is None else index.key
                yield TableOrIndex(table.full_name, name), (key, insights.mode != "THROTTLED_KEYS")


def _full(scope: str, table: str) -> str:
    return f"{scope}/{table}" if scope else table


def _keys(key: KeySchema, attributes: Mapping[str, Any]) -> Iterator[tuple[str, bytes]]:
    """The partition key (PK), and the partition and sort key (SK), that attributes of an item show."""
    partition = _values(key.partition, attributes)
    if partition is None:
        return
    yield "PK", orjson.dumps(partition)
    sort = _values(key.sort, attributes)
    if sort:
        yield "SK", orjson.dumps({**partition, **sort})


def _values(names: tuple[Any, ...], attributes: Mapping[str, Any]) -> dict[str, Any] | None:
    """The attributes of a key; None if one is missing, or of another type."""
    values: dict[str, Any] = {}
    for attribute in names:
        value = attributes.get(attribute.name)
        if not isinstance(value, Mapping) or list(value) != [attribute.type]:
            return None
        values[attribute.name] = value
    return values
