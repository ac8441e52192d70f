"""What observes the requests of a database: a subclass of `Observer` overrides the methods that it needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from hashrange.operations.context import NONE_LEFT, Operation

if TYPE_CHECKING:
    from hashrange.observing.observed import ObservedRequest

Body = Callable[[Any], Any]


class Observer:
    """The methods are called in this order, each for the observers of a lower `rank` first; a method that is
    not overridden costs nothing. They must be quick, and are called from any thread.

    An exception is the observer's failure: it is logged, and the request goes on as if nobody had looked.
    Where `fails_closed`, and in `wraps`, the exception is the request's error instead.

    bills: the request gets a bill, which `ended` needs; by default where that is overridden.
    records: `ObservedRequest.record` is wanted, which has the sizes and places of the request.
    numbers_connections: `Caller.connection` is wanted.
    """

    name = ""
    """The observer's name in the log; "" is that of the class."""
    rank = 50
    fails_closed = False
    bills: bool | None = None
    records = False
    numbers_connections = False

    def begins(self, seen: ObservedRequest) -> None:
        """The request has arrived. It was not checked yet, so it may have any form. May set `seen.caller`."""

    def decides(self, seen: ObservedRequest) -> frozenset[int]:
        """The request is well-formed. Returns the members of a batch that stay unprocessed; to refuse the
        request, set `seen.refusal`."""
        return NONE_LEFT

    def wraps(self, seen: ObservedRequest, body: Body, entry: Operation, now: float) -> Body:
        """The body that the engine runs in place of `body`. `now` is the database's time."""
        return body

    def settles(self, seen: ObservedRequest) -> None:
        """The request has an outcome. May set `seen.error`, and `seen.delay_seconds` of the answer."""

    def ended(self, seen: ObservedRequest) -> None:
        """The request has ended, and `seen` has all that is known of it. The request itself may be changed
        when this returns, so keep no part of it."""
