"""Judges the requests to a database while a server has a gate, or a test a policy: `Judging`, an observer."""

from __future__ import annotations

import threading
from functools import partial
from typing import Any

from hashrange.database import Database
from hashrange.observing.observer import Body, ObservedRequest, Observer
from hashrange.operations.context import Operation
from hashrange_access.judging.accounts import acting
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judge import judged


def guard(database: Database, gate: Gate) -> None:
    """Let `gate` identify the callers of a database's requests, and judge the requests."""
    database.observers.guard(gate)
    database.part("access", "judging").begin()


class Judging(Observer):
    """The judge of a database's requests by identified callers; others pass. Thread-safe.

    It judges while there were more calls of `begin` than of `end`. If it fails on a request that policies
    could refuse, the request fails.
    """

    name = "policies"
    rank = 0
    fails_closed = True
    bills = False

    def __init__(self, database: Database) -> None:
        self._settings = database.settings
        self._observers = database.observers
        self._lock = threading.Lock()
        self._begun = 0

    def begin(self) -> None:
        """Begin to judge."""
        self._count(1)

    def end(self) -> None:
        """End what one call of `begin` began."""
        self._count(-1)

    def _count(self, begun: int) -> None:
        with self._lock:
            self._begun += begun
            self._observers.observe(self, self._begun > 0)

    def begins(self, seen: ObservedRequest) -> None:
        """Let a request act in the account whose tables it names."""
        if seen.caller.identified is not None:
            seen.caller = acting(seen.operation, seen.request, seen.caller, self._settings)

    def wraps(self, seen: ObservedRequest, body: Body, entry: Operation, now: float) -> Body:
        """The body, after policies have been asked. Where they only look on, the body runs if they fail."""
        identified: Any = seen.caller.identified
        if identified is None:
            return body
        failed = None if identified.refuses else partial(self._observers.failed, self.name)
        try:
            return judged(body, seen.operation, seen.request, seen.caller, self._settings, now, failed)
        except Exception as error:
            if failed is None:
                raise
            failed(error)
            return body
