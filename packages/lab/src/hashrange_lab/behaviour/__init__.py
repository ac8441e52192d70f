"""The lab: what breaks programs on AWS and never happens on a laptop, made to happen on purpose.

    database.lab.throttling     requests are refused when there is no throughput for them
    database.lab.eventual       reads show what was some time ago

    throttling   decides which requests are refused, and charges the others
    resources    the throughput of a table or an index
    partitions   their partitions, and how these are split
    buckets      token buckets on the database's clock
    places       which records a body touches
    metrics      the counts of throttling, as CloudWatch names them
    eventual     reads of the past, for reads without ConsistentRead

All of it follows the database's clock, so a test decides when seconds pass. While the lab is off, the
database does not call it at all. docs/lab.md describes it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hashrange.clock import Clock
from hashrange.operations.context import Caller, Operation, Request
from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange_lab.behaviour.eventual import Eventual
from hashrange_lab.behaviour.throttling import Throttling, Ticket

__all__ = ["Eventual", "Lab", "Throttling"]


class Lab:
    """The lab of one database. `changed` is called when a part of it is turned on or off."""

    def __init__(
        self, engine: Engine, settings: Settings, clock: Callable[[], Clock], changed: Callable[[], None]
    ) -> None:
        self._settings = settings
        self._changed = changed
        self.throttling = Throttling(engine, settings, clock, changed)
        self.eventual = Eventual(settings, clock, changed)

    @property
    def is_on(self) -> bool:
        """Whether requests have to pass the lab."""
        return self.throttling.is_on or self.eventual.is_on

    def begin(self) -> None:
        """Let the requests pass the lab, if its settings say so."""
        self._changed()

    def left(self, operation: str, request: Request, caller: Caller) -> frozenset[int]:
        """The members of a batch that stay unprocessed. Raises `ServiceError` for one that is refused."""
        return self.throttling.left(operation, request, caller)

    def body(
        self,
        entry: Operation,
        operation: str,
        request: Request,
        caller: Caller,
        body: Callable[[Any], Any],
    ) -> Callable[[Any], Any]:
        """The body that the engine runs instead of the request's own `body`."""
        if not entry.consumes:
            return body
        if self.throttling.is_on:
            body = Ticket(self.throttling, operation, request, caller, self._settings, body).run
        if self.eventual.is_on:
            body = self.eventual.body(entry, operation, request, caller, body)
        return body
