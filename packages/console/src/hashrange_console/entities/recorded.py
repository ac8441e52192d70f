"""How programs use a table: which operations, on which index, by which patterns of keys, and how often.

Somebody starts the recording on a table's page of access patterns. It is of all tables, and goes on until
somebody stops it or the server stops; before that it costs nothing. What it keeps is bounded: if an operation
compares a key with too many patterns, these are counted as one.

Requests that the console itself makes are left out.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from dataclasses import dataclass, field, replace
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from hashrange.clock import Clock, SystemClock, show_moment
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.observing.patterns import Show, key_of
from hashrange.operations import REGISTRY
from hashrange.operations.targets import Target, targets_of_any
from hashrange.server.admin.application import json, read_json, subject_of
from hashrange.server.admin.port import Subject
from hashrange_console import looks
from hashrange_console.entities.patterns import pattern_of_value
from hashrange_console.live.feed import is_taken
from hashrange_console.reach import View

TABLES_MAX: Final = 100
USES_MAX: Final = 200
"""The most uses of a table that are distinguished; further ones are only counted."""
PATTERNS_MAX: Final = 12
"""The most patterns with which one operation compares the same attributes, before they are taken for one."""
_PATTERN_CHARACTERS_MAX: Final = 100
_CONSUMERS: Final = frozenset(name for name, operation in REGISTRY.items() if operation.consumes)


class Use(NamedTuple):
    """A way to use a table. `source` is the index, "" for the table itself; `key` is how the request names or
    compares keys, "" if it does not, as a Scan and a statement."""

    operation: str
    source: str
    key: str = ""


@dataclass(slots=True)
class Count:
    """How many requests used a table in one way, how many of them failed, and when the last came (epoch
    seconds)."""

    requests: int = 0
    failed: int = 0
    last: float = 0.0


@dataclass(slots=True)
class _Table:
    """The uses of a table. `others` are the requests whose use found no room, `kinds` the uses that differ in
    the patterns of values only. `key_names` are the table's own, once they are known."""

    uses: dict[Use, Count] = field(default_factory=dict)
    kinds: dict[Use, set[Use]] = field(default_factory=lambda: defaultdict(set))
    others: int = 0
    key_names: tuple[str, ...] = ()


class Uses(Observer):
    """The uses of the tables of one server, since `since`. Thread-safe."""

    bills = False

    def __init__(self, subject: Subject, clock: Clock = SystemClock()) -> None:  # noqa: B008 (stateless)
        self.is_on = False
        self.since = 0.0
        self._subject = subject
        self._clock = clock
        self._lock = threading.Lock()
        self._tables: dict[tuple[str, str], _Table] = {}

    def start(self) -> None:
        """Record from now on, and forget what was recorded before."""
        with self._lock:
            self._tables = {}
            self.since, self.is_on = self._clock.now(), True
        self._subject.database.observers.observe(self)

    def stop(self) -> None:
        """Record no more. What was recorded stays."""
        self._subject.database.observers.observe(self, False)
        with self._lock:
            self.is_on = False

    def ended(self, seen: ObservedRequest) -> None:
        """Count a request."""
        if not is_taken(self._subject, self, seen) or seen.operation not in _CONSUMERS:
            return
        now = self._clock.now()
        targets = targets_of_any(seen.operation, seen.request)
        scope = seen.scope
        with self._lock:
            used = {
                (target.table, _use(seen, target, table, _any), _use(seen, target, table, _pattern))
                for target in targets
                if target.table and (table := self._table(scope, target.table)) is not None
            }
            for name, kind, use in used:
                _count(self._tables[scope, name], kind, use, now, failed=seen.error is not None)

    def _table(self, scope: str, name: str) -> _Table | None:
        table = self._tables.get((scope, name))
        if table is None and len(self._tables) < TABLES_MAX:
            table = self._tables[scope, name] = _Table()
        return table

    def know(self, scope: str, name: str, key_names: tuple[str, ...]) -> None:
        """Note the names of a table's key, by which the items of puts are distinguished."""
        with self._lock:
            table = self._table(scope, name)
            if table is not None:
                table.key_names = key_names

    def of(self, scope: str, name: str) -> tuple[list[tuple[Use, Count]], int]:
        """The uses of a table, the most frequent first, and the number of requests of other uses."""
        with self._lock:
            table = self._tables.get((scope, name), _Table())
            uses = [(use, replace(count)) for use, count in table.uses.items()]
            return sorted(uses, key=lambda pair: (-pair[1].requests, pair[0])), table.others


def _any(value: Any) -> str:
    return "*"


def _pattern(value: Any) -> str:
    if not isinstance(value, dict) or not isinstance(value.get("S"), str):
        return "*"  # (a refused request has any form)
    return pattern_of_value(value)[:_PATTERN_CHARACTERS_MAX]


def _use(seen: ObservedRequest, target: Target, table: _Table, show: Show) -> Use:
    """The use of a table by a target of a request; the values of its key are as `show` has them."""
    key = key_of(seen.operation, seen.request, target, table.key_names, show)
    return Use(seen.operation, target.index or "", key)


def _count(table: _Table, kind: Use, use: Use, now: float, *, failed: bool) -> None:
    """Count a use; if there are too many of its kind, only the kind."""
    if use not in table.uses and len(table.kinds[kind]) >= PATTERNS_MAX:
        use = kind
    count = table.uses.get(use)
    if count is None:
        if len(table.uses) >= USES_MAX:
            table.others += 1
            return
        count = table.uses[use] = Count()
        table.kinds[kind].add(use)
    count.requests += 1
    count.failed += failed
    count.last = now


class Switch(msgspec.Struct, forbid_unknown_fields=True):
    """Whether to record; `table` is the table whose page asks."""

    table: str
    on: bool


async def switch(view: View) -> Response:
    """Start the recording, or stop it."""
    sent = await read_json(view.request, Switch)
    uses = uses_of(view)
    if sent.on:
        uses.start()
    else:
        uses.stop()
    return json({"href": looks.href(f"/console/t/{sent.table}/entities", view="access", scope=view.scope)})


def uses_of(view: View) -> Uses:
    """The recording of the view's server. It is made when it is first asked for."""
    state = view.request.app.state
    if not hasattr(state, "uses"):
        state.uses = Uses(subject_of(view.request))
    uses: Uses = state.uses
    return uses


def shown(view: View, table: str, key_names: tuple[str, ...]) -> dict[str, Any]:
    """What the page shows of the recording."""
    uses = uses_of(view)
    if uses.is_on:
        uses.know(view.full_scope, table, key_names)
    recorded, others = uses.of(view.full_scope, table)
    return {
        "is_on": uses.is_on,
        "since": show_moment(uses.since),
        "began": uses.since > 0,
        "rows": [
            {
                "operation": use.operation,
                "source": use.source,
                "key": use.key,
                "requests": count.requests,
                "failed": count.failed,
                "last": show_moment(count.last),
                "href": looks.href(
                    "/console/requests", table=table, operation=use.operation, scope=view.scope
                ),
            }
            for use, count in recorded
        ],
        "others": others,
    }
