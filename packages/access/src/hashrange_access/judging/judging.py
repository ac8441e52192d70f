"""Judges the requests to a database while a server has a gate, or a test a policy: `Judging`, an observer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import partial
from typing import Any

from hashrange.database import Database
from hashrange.errors import AccessDeniedException
from hashrange.observing.observer import Body, ObservedRequest, Observer
from hashrange.operations.context import Operation
from hashrange.settings import Settings
from hashrange_access.judging.accounts import acting
from hashrange_access.judging.acts import acts
from hashrange_access.judging.gate import Gate
from hashrange_access.judging.judge import Judge


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
            return _judged(body, seen, self._settings, now, failed)
        except Exception as error:
            if failed is None:
                raise
            failed(error)
            return body


def _judged(
    body: Body,
    seen: ObservedRequest,
    settings: Settings,
    now: float,
    failed: Callable[[Exception], None] | None,
) -> Body:
    """The body of a request, which first decides whether policies allow the request: it raises
    AccessDeniedException. `now` is the time of the condition keys, in epoch seconds. `failed` is told, of a
    request that is not to be refused, why it cannot be judged."""
    judge = Judge(seen.caller, settings, now, failed)
    if seen.operation == "BatchExecuteStatement":
        # Imported here, because most programs use no statements.
        from hashrange_access.judging.batches import judged_batch

        return judged_batch(judge, body, seen.request, seen.caller, settings, now)
    wanted = acts(seen.operation, seen.request)

    def judged_body(reader: Any) -> Any:
        for act in wanted:
            refusal = judge.refusal(act, reader)
            if refusal is not None:
                raise AccessDeniedException(refusal)
        return body(reader)

    return judged_body
