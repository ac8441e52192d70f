"""The lab: what breaks programs on AWS and never happens on a laptop, made to happen on purpose.

    database.lab.throttling     requests are refused when there is no throughput for them
    database.lab.eventual       reads show what was some time ago

    throttling   decides which requests are refused, and charges the others
    resources    the throughput of a table or an index
    partitions   their partitions, and how these are split
    buckets      token buckets on the database's clock
    touched      which records a body touches
    metrics      the counts of throttling, as CloudWatch names them
    eventual     reads of the past, for reads without ConsistentRead

All of it follows the database's clock, so a test decides when seconds pass. While the lab is off, it does not
observe the database's requests. docs/lab.md of this package describes the lab.
"""

from __future__ import annotations

import threading

from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.observing.observer import Body, ObservedRequest, Observer
from hashrange.operations.context import NONE_LEFT, Operation
from hashrange.storage.failures import StorageError
from hashrange_lab.behaviour.eventual import Eventual
from hashrange_lab.behaviour.throttling import Throttled, Throttling

__all__ = ["Eventual", "Lab", "Throttling"]


class Lab(Observer):
    """The lab of one database, an observer while a part of it is on."""

    name = "lab"
    # After the fault rules, and around the judge of access: what policies refuse consumes nothing.
    rank = 20

    def __init__(self, database: Database) -> None:
        self._observers = database.observers
        self._lock = threading.Lock()
        self.throttling = Throttling(database, self.begin)
        self.eventual = Eventual(database, self.begin)

    @property
    def is_on(self) -> bool:
        """Whether requests have to pass the lab."""
        return self.throttling.is_on or self.eventual.is_on

    def begin(self) -> None:
        """Observe the requests while anything is on."""
        with self._lock:
            self.bills = self.throttling.is_on
            self._observers.observe(self, self.is_on)

    def decides(self, seen: ObservedRequest) -> frozenset[int]:
        """Leave the members of a batch for which there is no throughput; refuse it if that is all of them."""
        try:
            return self.throttling.left(seen)
        except (ServiceError, StorageError) as error:
            seen.refusal = error
            return NONE_LEFT

    def wraps(self, seen: ObservedRequest, body: Body, entry: Operation, now: float) -> Body:
        """The body over what the request may see, and charged with what it consumes."""
        if not entry.consumes:
            return body
        if self.throttling.is_on:
            body = Throttled(self.throttling, seen, body).run
        if self.eventual.is_on:
            body = self.eventual.body(seen, body, entry)
        return body
