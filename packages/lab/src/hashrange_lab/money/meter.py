"""Counts what the requests to a database consume: by table, operation and caller, by access pattern, by
minute.

    meter = begin(database, published())
    …
    meter.counted(database, "us-east-1")

A meter is an observer. Without one the requests pay nothing. Its memory is bounded:
beyond `ROWS_MAX` rows the callers are no longer distinguished, beyond `PATTERNS_MAX` patterns the expressions
are not, and a table's or index's minutes are those of the last day. The requests of the console and of other
operators' tools are not counted. Thread-safe. Refuses to know what anything costs.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from hashrange.insights.throttled import throttled
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.observing.patterns import expressions_of
from hashrange.operations.context import OPERATOR, Request
from hashrange.operations.targets import name_in, targets_of_any
from hashrange.tables.items.capacity import Consumed
from hashrange_lab.money.agents import tag
from hashrange_lab.money.counts import OTHERS, Counted, Minute, Pattern, Series, Usage
from hashrange_lab.money.stored import stored

if TYPE_CHECKING:
    from hashrange.database import Database
    from hashrange.prices import Book

ROWS_MAX: Final = 2_000
PATTERNS_MAX: Final = 500
PLACES_MAX: Final = 200
"""The most tables and indexes whose minutes are kept."""
MINUTES_MAX: Final = 1_440
TABLES_MAX: Final = 1_000
"""The most tables whose sizes are told."""


def begin(database: Database, book: Book) -> Meter:
    """The running meter of a database, which begins now if there is none; the prices of `book` are shown from
    now on."""
    meter = running(database)
    if meter is None:
        meter = Meter(database)
        database.observers.observe(meter)
    meter.book = book
    return meter


def end(database: Database) -> None:
    """End the counting, and forget the counts."""
    meter = running(database)
    if meter is not None:
        database.observers.observe(meter, False)


def running(database: Database) -> Meter | None:
    """The meter of a database; None if nothing is counted."""
    return next((each for each in database.observers.all if isinstance(each, Meter)), None)


class Meter(Observer):
    """The counts of one database since `since`. `book` has the prices that the server shows."""

    book: Book

    def __init__(self, database: Database) -> None:
        self._database = database
        self._lock = threading.Lock()
        self.reset()

    def reset(self) -> None:
        """Count from zero."""
        with self._lock:
            self.since = self._database.clock.now()
            self._rows: dict[tuple[str, str, str, str], Usage] = {}
            self._patterns: dict[tuple[str, str, str, str], Pattern] = {}
            self._series: dict[tuple[str, str], deque[Minute]] = {}
            self._folded = 0

    def ended(self, seen: ObservedRequest) -> None:
        """Count a request."""
        if seen.caller.access_key == OPERATOR:
            return
        now = self._database.clock.now()
        refused = self._throttled(seen)
        text = expressions_of(seen.request) if seen.bill else ""
        with self._lock:
            for table, index in refused:
                minute = self._minute(table, index, now)
                if minute is not None:
                    minute.throttled += 1
            for part in seen.bill:
                self._count(seen, part, text, now)

    def _throttled(self, seen: ObservedRequest) -> set[tuple[str, str]]:
        """The tables and indexes that had no throughput for a request, or for members of it."""
        if seen.error is None and not seen.left:
            return set()
        scope, named = seen.scope, targets_of_any(seen.operation, seen.request)
        refused = throttled(seen, named)
        return {
            (_full(scope, target.table), target.index or "")
            for target in named
            if target.table and target.member in refused
        }

    def _count(self, seen: ObservedRequest, part: Consumed, text: str, now: float) -> None:
        table = _full(seen.scope, name_in(part.table_name))
        own = part.table + sum(part.local.values())
        places = {"": own, **part.global_}
        # A read of an index reads nothing of its table.
        read_index = next(iter((*part.global_, *part.vectors)), "") if not part.writes and not own else ""
        retried = seen.caller.attempt > 1
        for index, units in places.items():
            counts = index == read_index
            if not units and not counts and not part.stream:
                continue
            row = self._row(table, index, seen.operation, tag(seen.caller.agent))
            row.requests += counts
            if part.writes:
                row.write_units += units
            else:
                row.read_units += units
            row.retried += units if retried else 0.0
            row.stream_reads += part.stream if not index else 0
            self._add_minute(table, index, now, 0.0 if part.writes else units, units if part.writes else 0.0)
        for index, bytes_ in part.vectors.items():
            row = self._row(table, index, seen.operation, tag(seen.caller.agent))
            if part.writes:
                row.vector_bytes_written += bytes_
            else:
                row.vector_bytes_searched += bytes_
                row.requests += not own and index not in places and index == read_index
        self._count_pattern(seen, table, read_index, part, text, sum(places.values()))

    def _row(self, table: str, index: str, operation: str, caller: str) -> Usage:
        key = (table, index, operation, caller)
        row = self._rows.get(key)
        if row is None:
            if len(self._rows) >= ROWS_MAX:
                # A table that comes even later than that is counted with the others.
                known = (table, index, operation, OTHERS) in self._rows or len(self._rows) < 2 * ROWS_MAX
                key = (table, index, operation, OTHERS) if known else (OTHERS, "", OTHERS, OTHERS)
            row = self._rows.setdefault(key, Usage(*key))
        return row

    def _count_pattern(
        self, seen: ObservedRequest, table: str, index: str, part: Consumed, text: str, units: float
    ) -> None:
        key = (table, index, seen.operation, text)
        pattern = self._patterns.get(key)
        if pattern is None:
            if len(self._patterns) >= PATTERNS_MAX:
                self._folded += 1
                key = (OTHERS, "", seen.operation, "")
            pattern = self._patterns.setdefault(key, Pattern(*key))
        pattern.requests += 1
        if part.writes:
            pattern.write_units += units
        else:
            pattern.read_units += units
            counted = seen.counted
            # The counts are those of the whole request, so with several tables they belong to none.
            if counted.read is not None and counted.returned is not None and len(seen.bill) == 1:
                pattern.read_items += counted.read
                pattern.returned_items += counted.returned
            if _is_consistent(seen.operation, seen.request):
                pattern.consistent += units
                pattern.consistent_requests += 1
        pattern.members += _members(seen.request)

    def _add_minute(self, table: str, index: str, now: float, reads: float, writes: float) -> None:
        if reads or writes:
            minute = self._minute(table, index, now)
            if minute is not None:
                minute.reads += reads
                minute.writes += writes

    def _minute(self, table: str, index: str, now: float) -> Minute | None:
        series = self._series.get((table, index))
        if series is None:
            if len(self._series) >= PLACES_MAX:
                return None
            series = self._series[table, index] = deque(maxlen=MINUTES_MAX)
        at = int(now // 60) * 60
        # If the clock was set back, what follows belongs to the last minute: a series only goes forwards.
        if not series or series[-1].at < at:
            series.append(Minute(at))
        return series[-1]

    def counted(self, region: str) -> Counted:
        """A copy of all counts, with the sizes of the tables. `region` is the server's."""
        with self._lock:
            counted = Counted(
                self.since,
                self._database.clock.now(),
                region,
                [_copy(row) for row in self._rows.values()],
                [_copy(pattern) for pattern in self._patterns.values()],
                [
                    Series(table, index, [_copy(minute) for minute in minutes])
                    for (table, index), minutes in self._series.items()
                ],
                [],
                self._folded,
            )
        counted.stored = self._database.engine.read(lambda reader: stored(reader, TABLES_MAX))
        return counted


def _is_consistent(operation: str, request: Request) -> bool:
    """Whether a request reads strongly consistently. A transaction does so too, but cannot do otherwise."""
    if operation == "BatchGetItem":
        tables = request.get("RequestItems")
        parts = tables.values() if isinstance(tables, Mapping) else ()
        return any(isinstance(part, Mapping) and part.get("ConsistentRead") is True for part in parts)
    return request.get("ConsistentRead") is True


def _members(request: Request) -> int:
    """How many members a transaction has; 0 for other requests."""
    items = request.get("TransactItems", request.get("TransactStatements"))
    return len(items) if isinstance(items, list) else 0


def _copy(struct: Any) -> Any:
    return msgspec.structs.replace(struct)


def _full(scope: str, table: str) -> str:
    return f"{scope}/{table}" if scope else table
