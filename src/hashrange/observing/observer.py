"""The one hook around a request: what observes requests, and the request that all observers see.

What observes is a subclass of `Observer`, which overrides the methods that it needs. `Active` are the
observers of a database at one moment. `Active.begin` makes an `ObservedRequest`: the database asks it what
happens to the request, and reports how the request ended. Without an observer there is no `Active`, and a
request only compares an attribute with None.

An observer that fails never stops, refuses or changes a request: what it raises goes to `Active.failed`.

Refuses to know any observer, and how a request is executed.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any, Final

from hashrange.errors import InternalServerError, ServiceError
from hashrange.observing import noting
from hashrange.observing.noting import Items
from hashrange.observing.record import Record
from hashrange.operations.context import NONE_LEFT, Answer, Caller, Operation, Request, scope_of
from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.tables.items.capacity import NO_BILL, Bill

Body = Callable[[Any], Any]

_NOT_COUNTED: Final = Items()


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


class Active:
    """The observers of a database at one moment: for each method of `Observer`, those that override it."""

    def __init__(
        self,
        observers: tuple[Observer, ...],
        engine: Engine,
        settings: Settings,
        failed: Callable[[str, Exception], None],
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.failed = failed
        self.begins = _with(observers, "begins")
        self.decides = _with(observers, "decides")
        self.wraps = _with(observers, "wraps")
        self.settles = _with(observers, "settles")
        self.ended = _with(observers, "ended")
        self.bills = any(
            observer in self.ended if observer.bills is None else observer.bills for observer in observers
        )
        self.records = any(observer.records for observer in observers)
        self.numbers_connections = any(observer.numbers_connections for observer in observers)

    def begin(self, operation: str, request: Request, caller: Caller) -> ObservedRequest:
        """A request that has arrived, which may be wrong in any way."""
        return ObservedRequest(self, operation, request, caller)


def _with(observers: tuple[Observer, ...], method: str) -> tuple[Observer, ...]:
    plain = getattr(Observer, method)
    return tuple([observer for observer in observers if getattr(type(observer), method) is not plain])


class ObservedRequest:
    """One request, as its observers see it.

    operation, request: what was asked; the request may have any form, because wrong requests are seen too.
    caller: who has sent it, in the account whose tables it names.
    began: when it arrived, by the performance counter.
    places, statement: the tables that it names and the text of its statement, if anybody `records`.
    left: the members of a batch that stay unprocessed, because observers decided so.
    refusal: the error by which an observer refuses the request before it is performed.
    by_rule: a fault rule fired on it.

    Known when it has ended:
    error, answer: that of the answer, None if it succeeded; and the answer, encoded or not.
    bill: what it consumed; `counted`: the items that it read and returned.
    seconds: those from its arrival to its outcome, with `delay_seconds`, by which the answer is held back.
    answer_bytes: 0 where nobody `records`, or the answer was not encoded.
    """

    __slots__ = (
        "_active", "_kept", "_record", "answer", "answer_bytes", "began", "bill", "by_rule", "caller",
        "counted", "delay_seconds", "error", "left", "line", "operation", "places", "refusal", "request",
        "seconds", "statement",
    )  # fmt: skip

    def __init__(self, active: Active, operation: str, request: Request, caller: Caller) -> None:
        self._active = active
        self._kept: dict[Observer, Any] = {}
        self._record: Record | None = None
        self.operation = operation
        self.request = request
        self.caller = caller
        self.began = perf_counter()
        self.places = noting.NOWHERE
        self.statement: Any = None
        self.line = ""
        self.left = NONE_LEFT
        self.refusal: Exception | None = None
        self.by_rule = False
        self.error: Exception | None = None
        self.answer: Any = None
        self.bill: Bill = NO_BILL
        self.counted = _NOT_COUNTED
        self.seconds = self.delay_seconds = 0.0
        self.answer_bytes = 0
        if active.records:
            self._let("records", self._take_down)
        for observer in active.begins:
            self._ask(observer, observer.begins)

    # -- For observers ----------------------------------------------------------------------------------

    def keep(self, observer: Observer, value: Any) -> None:
        """Keep what an observer wants to know of this request later: `kept` returns it."""
        self._kept[observer] = value

    def kept(self, observer: Observer) -> Any:
        """What `keep` has got from an observer; None: nothing."""
        return self._kept.get(observer)

    @property
    def scope(self) -> str:
        """The scope of the caller's tables."""
        return scope_of(self.caller.account_id, self.caller.region, self._active.settings)

    @property
    def record(self) -> Record:
        """What the request did and cost, for an observer that `records`, when it has ended."""
        if self._record is None:
            error = self.error
            self._record = noting.record(
                self.operation,
                self.places,
                self.counted,
                self.bill,
                is_scan=noting.scans(self.operation, self.statement, self._active.engine, self.scope),
                answer_bytes=0 if error is not None else self.answer_bytes,
                attempt=self.caller.attempt,
                error="" if error is None else error.code if isinstance(error, ServiceError) else _FAULT,
                line=self.line,
            )
        return self._record

    # -- For the database -------------------------------------------------------------------------------

    def decide(self) -> frozenset[int]:
        """Let the observers decide what happens to the request, which is well-formed.

        Returns the members of a batch that stay unprocessed. Raises the error of a refusal.
        """
        for observer in self._active.decides:
            left = self._ask(observer, observer.decides)
            if self.refusal is not None:
                raise self.refusal
            if left:
                self.left |= left
        return self.left

    def body(self, body: Body, entry: Operation, now: float) -> Body:
        """The body that the engine runs instead of the request's own. `now` is the database's time."""
        for observer in self._active.wraps:
            body = observer.wraps(self, body, entry, now)
        return body

    def count(self, answer: Answer) -> None:
        """Count the items of an answer that the body has made, if anybody sees the request when it has
        ended."""
        if self._active.ended:
            self.counted = _NOT_COUNTED
            self._let("records", self._count_items, answer)

    def end(self, error: Exception | None, answer: Any) -> tuple[Exception | None, float]:
        """The error to tell, if any, and the seconds until then. `error` is that of the request itself,
        `answer` its answer, encoded or not."""
        active = self._active
        if error is not None:
            # (a condition that fails is charged too)
            self.bill = (error.bill if isinstance(error, ServiceError) else None) or NO_BILL
        self.error = error
        for observer in active.settles:
            self._ask(observer, observer.settles)
        if active.ended:
            if answer is not None and active.records:
                self._let("records", self._measure, answer)
            self.answer = answer if self.error is None else None
            if error is not None:
                self.counted = _NOT_COUNTED
            self.seconds = perf_counter() - self.began + self.delay_seconds
            for observer in active.ended:
                self._ask(observer, observer.ended)
        return self.error, self.delay_seconds

    # -- Inside -----------------------------------------------------------------------------------------

    def _take_down(self) -> None:
        """Note the parts of the request that are recorded: it is emptied once it has been performed."""
        self.places = noting.places(self.operation, self.request)
        self.statement = self.request.get("Statement")

    def _count_items(self, answer: Answer) -> None:
        self.counted = noting.items(self.operation, self.request, answer)

    def _measure(self, answer: Any) -> None:
        self.answer_bytes = noting.size_of(answer)

    def _ask(self, observer: Observer, method: Callable[[ObservedRequest], Any]) -> Any:
        """What an observer's method returns; None if it fails."""
        try:
            return method(self)
        except Exception as error:
            if observer.fails_closed:
                raise
            self._active.failed(observer.name or type(observer).__name__, error)
            return None

    def _let(self, name: str, look: Callable[..., None], *seen: Any) -> None:
        try:
            look(*seen)
        except Exception as error:
            self._active.failed(name, error)


_FAULT: Final = InternalServerError.__name__
