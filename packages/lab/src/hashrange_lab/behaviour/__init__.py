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

from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.observing.observer import Body, ObservedRequest, Observer
from hashrange.operations.context import NONE_LEFT, Operation
from hashrange.storage.failures import StorageError
from hashrange_lab.behaviour.eventual import Eventual
from hashrange_lab.behaviour.throttling import Throttling, Ticket

__all__ = ["Eventual", "Lab", "Throttling"]


class Lab(Observer):
    """The lab of one database, an observer while a part of it is on."""

    name = "lab"
    rank = 20

    def __init__(self, database: Database) -> None:
        self._settings = database.settings
        self._observe = database.observers.observe
        self.throttling = Throttling(
            database.engine, database.settings, lambda: database.clock, self._changed
        )
        self.eventual = Eventual(database.settings, lambda: database.clock, self._changed)

    @property
    def is_on(self) -> bool:
        """Whether requests have to pass the lab."""
        return self.throttling.is_on or self.eventual.is_on

    def begin(self) -> None:
        """Let the requests pass the lab, if its settings say so."""
        self._changed()

    def _changed(self) -> None:
        self.bills = self.throttling.is_on
        self._observe(self, self.is_on)

    def decides(self, seen: ObservedRequest) -> frozenset[int]:
        """Refuse a batch for which there is no throughput, or leave members of it unprocessed."""
        try:
            return self.throttling.left(seen.operation, seen.request, seen.caller)
        except (ServiceError, StorageError) as error:
            seen.refusal = error
            return NONE_LEFT

    def wraps(self, seen: ObservedRequest, body: Body, entry: Operation, now: float) -> Body:
        """The body, throttled, and with reads of the past."""
        if not entry.consumes:
            return body
        operation, request, caller = seen.operation, seen.request, seen.caller
        if self.throttling.is_on:
            body = Ticket(self.throttling, operation, request, caller, self._settings, body).run
        if self.eventual.is_on:
            body = self.eventual.body(entry, operation, request, caller, body)
        return body
