"""The requests that a server answers, for as long as a page shows them.

The feed is an onlooker of the database (`hashrange.watching`). It keeps the latest requests, and of those
that failed or took long some more, so that they are not lost among the others. Under load it keeps a part of
the requests, counts the rest, and never more than it can show.

Requests that the console itself makes are left out.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Final

import orjson

from hashrange.clock import Clock, SystemClock, show_moment
from hashrange.errors import AnswerLost, InternalServerError, ServiceError
from hashrange.operations.context import OPERATOR, Request
from hashrange.operations.targets import name_in, targets_of_any
from hashrange.server.admin.attention import Attention
from hashrange.server.admin.port import Subject
from hashrange.tables.items.capacity import NO_BILL, Bill
from hashrange.watching.sights import Onlooker, Sight

ROWS_MAX: Final = 500
NOTABLE_MAX: Final = 200
"""How many of the requests that failed or took long are kept beside the latest ones."""
SLOW_SECONDS: Final = 0.1
SENT_BYTES_MAX: Final = 16_384
"""The largest request that is kept whole; of a larger one the page shows the beginning."""
QUEUE_MAX: Final = 500
"""The most requests that wait for a stream."""
SENT_MAX: Final = 40
"""The most requests that a stream sends at a time; it sends ten times a second."""
KEPT_PER_SECOND: Final = 400
"""How many requests are kept in the long run; a burst may have as many as there is room for."""
_WHY_CHARACTERS_MAX: Final = 1_000
_NODES_MAX: Final = 2_000
"""The most values of a request that are looked at, to tell whether it is small enough to be kept."""
_TABLES_MAX: Final = 100


@dataclass(frozen=True, slots=True)
class Row:
    """A request that has ended. `sent` is its JSON, or the beginning of it if it `is_cut`. `why` is the text
    of an error, `code` its code; `by_rule`: a fault rule fired on it."""

    number: int
    moment: float
    operation: str
    tables: tuple[str, ...]
    caller: str
    seconds: float
    code: str
    why: str
    by_rule: bool
    read_units: float
    write_units: float
    read_items: int | None
    returned_items: int | None
    answer_bytes: int
    attempt: int
    sent: bytes
    is_cut: bool

    @property
    def at(self) -> str:
        return show_moment(self.moment)

    @property
    def milliseconds(self) -> str:
        return f"{self.seconds * 1e3:,.2f}" if self.seconds < 1 else f"{self.seconds * 1e3:,.0f}"

    @property
    def is_slow(self) -> bool:
        return self.seconds >= SLOW_SECONDS


@dataclass(frozen=True, slots=True)
class Wanted:
    """The requests that a page asks for. `key` are attributes of a key with their values."""

    operation: str = ""
    table: str = ""
    is_failed: bool = False
    slow_seconds: float = 0.0
    key: tuple[tuple[str, Any], ...] = ()

    def takes(
        self, operation: str, tables: tuple[str, ...], failed: bool, seconds: float, request: Request
    ) -> bool:
        """Whether a request is one of those."""
        if self.operation and operation != self.operation:
            return False
        if self.table and self.table not in tables:
            return False
        if (self.is_failed and not failed) or seconds < self.slow_seconds:
            return False
        return not self.key or self._names_key(operation, request)

    def _names_key(self, operation: str, request: Request) -> bool:
        return any(
            isinstance(target.attributes, dict)
            and (not self.table or target.table == self.table)
            and all(target.attributes.get(name) == value for name, value in self.key)
            for target in targets_of_any(operation, request)
        )

    def takes_row(self, row: Row) -> bool:
        """Whether a row that was kept is one of those. One that was too large to keep names no key."""
        request = {} if row.is_cut or not self.key else orjson.loads(row.sent)
        return self.takes(row.operation, row.tables, bool(row.code), row.seconds, request)


class Viewer:
    """A stream of rows. `skipped` counts those that came faster than it could send them."""

    def __init__(self, wanted: Wanted) -> None:
        self.wanted = wanted
        self.skipped = 0
        self.queue: deque[Row] = deque()


class Feed:
    """The requests of one server, newest last. Thread-safe; `attention` says whether somebody looks."""

    def __init__(self, subject: Subject, clock: Clock = SystemClock()) -> None:  # noqa: B008 (stateless)
        self.attention = Attention(self._start, self._stop)
        self.since = 0.0
        self.seen = 0
        self.skipped = 0
        self._subject = subject
        self._clock = clock
        self._lock = threading.Lock()
        self._number = 0
        self._latest: deque[Row] = deque(maxlen=ROWS_MAX)
        self._notable: deque[Row] = deque(maxlen=NOTABLE_MAX)
        self._viewers: list[Viewer] = []
        self._room = float(ROWS_MAX)
        self._room_at = perf_counter()

    def _start(self) -> None:
        with self._lock:
            self.since, self.seen, self.skipped = self._clock.now(), 0, 0
        self._subject.database.interest.show(self, True)

    def _stop(self) -> None:
        self._subject.database.interest.show(self, False)
        with self._lock:
            self._latest.clear()
            self._notable.clear()

    @property
    def newest(self) -> int:
        """The number of the newest request, 0 if there is none."""
        with self._lock:
            return self._number

    def open(self, viewer: Viewer, after: int) -> None:
        """Fill the queue of a viewer with the requests from now on, until `close`, beginning with those that
        are kept and have a number above `after`."""
        with self._lock:
            kept = {row.number: row for row in (*self._latest, *self._notable) if row.number > after}
            rows = [kept[number] for number in sorted(kept) if viewer.wanted.takes_row(kept[number])]
            viewer.queue.extend(rows[-QUEUE_MAX:])
            self._viewers.append(viewer)

    def close(self, viewer: Viewer) -> None:
        with self._lock:
            self._viewers.remove(viewer)

    def take(self, viewer: Viewer) -> list[Row]:
        """The next rows that came since the last call, oldest first."""
        with self._lock:
            return [viewer.queue.popleft() for _ in range(min(SENT_MAX, len(viewer.queue)))]

    def rows(self, wanted: Wanted, rows_max: int) -> list[Row]:
        """The rows that are kept, newest first."""
        with self._lock:
            kept = {row.number: row for row in (*self._latest, *self._notable)}
        chosen: list[Row] = []
        for number in sorted(kept, reverse=True):
            if wanted.takes_row(kept[number]):
                chosen.append(kept[number])
                if len(chosen) == rows_max:
                    break
        return chosen

    def row(self, number: int) -> Row | None:
        """The row with a number, if it is still kept."""
        with self._lock:
            return next((row for row in (*self._notable, *self._latest) if row.number == number), None)

    def see(self, sight: Sight) -> None:
        """Take a request."""
        if not is_taken(self._subject, self, sight):
            return
        tables = tables_of(sight.operation, sight.request)
        failed = sight.error is not None
        with self._lock:
            self.seen += 1
            self._number += 1
            takers: list[Viewer] = []
            for viewer in self._viewers:
                wanted = viewer.wanted
                if not wanted.takes(sight.operation, tables, failed, sight.seconds, sight.request):
                    continue
                if len(viewer.queue) < QUEUE_MAX:
                    takers.append(viewer)
                else:
                    viewer.skipped += 1
            is_kept = self._has_room()
            if not takers and not is_kept and not (failed or sight.seconds >= SLOW_SECONDS):
                self.skipped += 1
                return
            row = row_of(self._number, self._clock.now(), tables, sight)
            for viewer in takers:
                viewer.queue.append(row)
            self._keep(row, is_kept)

    def _keep(self, row: Row, is_kept: bool) -> None:
        if is_kept:
            self._latest.append(row)
        if row.code or row.is_slow:
            self._notable.append(row)
        elif not is_kept:
            self.skipped += 1

    def _has_room(self) -> bool:
        now = perf_counter()
        self._room = min(ROWS_MAX, self._room + KEPT_PER_SECOND * (now - self._room_at))
        self._room_at = now
        if self._room < 1:
            return False
        self._room -= 1
        return True


def is_taken(subject: Subject, onlooker: Onlooker, sight: Sight) -> bool:
    """Whether an onlooker takes a request: those of the console are left out, and no more come once the
    server stops."""
    if subject.plane.draining:
        subject.database.interest.show(onlooker, False)  # (the database may be used further)
        return False
    return sight.caller.access_key != OPERATOR


def tables_of(operation: str, request: Request) -> tuple[str, ...]:
    """The names of the tables that a request names."""
    name = request.get("TableName")
    if isinstance(name, str):
        return (name_in(name),)
    named = [target.table for target in targets_of_any(operation, request) if target.table]
    return tuple(dict.fromkeys(named))[:_TABLES_MAX]


def row_of(number: int, moment: float, tables: tuple[str, ...], sight: Sight) -> Row:
    """The row of a request."""
    code, why = _failure(sight.error)
    sent, is_cut = _kept(sight.request)
    caller = sight.caller
    read = write = 0.0
    for part in sight.bill or _bill_of(sight.error):
        units = part.table + sum(part.local.values()) + sum(part.global_.values())
        write += units if part.writes else 0.0
        read += 0.0 if part.writes else units + part.stream
    return Row(
        number,
        moment,
        sight.operation,
        tables,
        f"{caller.access_key or 'no key'} · {caller.region}",
        sight.seconds,
        code,
        why,
        sight.by_rule,
        read,
        write,
        sight.counted.read,
        sight.counted.returned,
        sight.answer_bytes,
        caller.attempt,
        sent,
        is_cut,
    )


def _failure(error: Exception | None) -> tuple[str, str]:
    """The code and the text of an error."""
    if error is None:
        return "", ""
    if isinstance(error, AnswerLost):
        return "AnswerLost", "The connection was closed before the answer."
    if not isinstance(error, ServiceError):
        return InternalServerError.__name__, "The server failed; its log has more."
    wire = error.wire()
    text = str(wire.get("message") or wire.get("Message") or "")
    for reason in wire.get("CancellationReasons", ())[:_TABLES_MAX]:
        if reason.get("Code") != "None":
            text += f" · {reason.get('Code')}: {reason.get('Message', '')}"
    return error.code, text[:_WHY_CHARACTERS_MAX]


def _bill_of(error: Exception | None) -> Bill:
    """What a refused request consumed."""
    bill: Bill | None = error.bill if isinstance(error, ServiceError) else None
    return bill or NO_BILL


def _kept(request: Request) -> tuple[bytes, bool]:
    """The JSON of a request, and whether it is only the beginning."""
    is_small = _is_small(request)
    kept = request if is_small else _beginning(request)
    try:
        sent = orjson.dumps(kept)
    except TypeError:  # nested too deeply
        return b"{}", True
    return (sent, not is_small) if len(sent) <= SENT_BYTES_MAX else (sent[:SENT_BYTES_MAX], True)


def _is_small(request: Request) -> bool:
    """Whether a request is small, found by looking at a part of it if it is not."""
    size = 0
    for nodes, value in enumerate(_walk(request)):
        size += len(value) if isinstance(value, str) else 1
        if nodes > _NODES_MAX or size > SENT_BYTES_MAX:
            return False
    return True


def _walk(request: Request) -> Iterator[Any]:
    """The names and values of a request, without recursion."""
    left: list[Any] = [request]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield from value
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)
        else:
            yield value


def _beginning(value: Any, depth: int = 0) -> Any:
    """The beginning of a large request: of texts, lists and maps the first part."""
    if isinstance(value, str):
        return value if len(value) <= 200 else f"{value[:200]}… ({len(value):,} characters)"
    if depth == 8:
        return "…"
    if isinstance(value, list):
        return [_beginning(member, depth + 1) for member in value[:10]]
    if isinstance(value, dict):
        first = list(value.items())[:50]
        return {name[:200]: _beginning(member, depth + 1) for name, member in first}
    return value
