"""Watching the requests of a database, while there are fault rules, somebody records costs or looks on, or
policies decide.

A `Watch` makes a `Passage` for each request. The database asks the passage what happens to the request
(`faults`), and reports how the request ended, for the recorders (`costs`) and the onlookers (`sights`).
Without any of them a database has no watch, and its requests only compare an attribute with None.

Refuses to know rules, and how a request is executed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from hashrange.costs import noting
from hashrange.costs.noting import Items
from hashrange.costs.record import Recorder
from hashrange.errors import InternalServerError, ServiceError
from hashrange.faults.fates import Fate
from hashrange.operations.context import NONE_LEFT, Answer, Caller, Request, scope_of
from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.tables.data.capacity import NO_BILL, Bill
from hashrange.watching.sights import Onlooker, Sight

if TYPE_CHECKING:
    from hashrange.faults import Faults

Done = Callable[[Any, Exception | None], None]
Encode = Callable[[Answer], Any]
Later = Callable[[float, Callable[[], None]], object]


class Watch:
    """The watchers of a database: its rules, if there are any, its recorders and its onlookers."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        faults: Faults | None,
        recorders: tuple[Recorder, ...],
        onlookers: tuple[Onlooker, ...],
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.faults = faults
        self.recorders = recorders
        self.onlookers = onlookers

    def begin(self, operation: str, request: Request, caller: Caller) -> Passage:
        """The passage of a request, which may be wrong in any way."""
        return Passage(self, operation, request, caller)


class Passage:
    """One watched request. `bill` is what it consumed, once that is known; `records`: whether there are
    recorders; `counts`: whether there are recorders or onlookers."""

    __slots__ = (
        "_began",
        "_caller",
        "_fate",
        "_operation",
        "_request",
        "_statement",
        "_watch",
        "_where",
        "bill",
        "counts",
        "records",
    )

    def __init__(self, watch: Watch, operation: str, request: Request, caller: Caller) -> None:
        self._watch = watch
        self._operation = operation
        self._request = request
        self._caller = caller
        self._fate: Fate | None = None
        self.bill: Bill = NO_BILL
        self.records = bool(watch.recorders)
        self.counts = self.records or bool(watch.onlookers)
        self._began = perf_counter() if watch.onlookers else 0.0
        if self.records:
            # The request is emptied once it has been performed.
            self._where = noting.places(operation, request)
            self._statement = request.get("Statement")

    def decide(self) -> frozenset[int]:
        """Let the rules decide what happens to the request, which is well-formed.

        Returns the members of a batch that stay unprocessed. Raises the error of a fault that comes before
        the request is performed.
        """
        faults = self._watch.faults
        if faults is None:
            return NONE_LEFT
        fate = self._fate = faults.decide(self._operation, self._request, self._caller)
        if fate is None:
            return NONE_LEFT
        if fate.error is not None and not fate.performed:
            raise fate.error
        return fate.left

    def judged(self, body: Callable[[Any], Any], now: float) -> Callable[[Any], Any]:
        """The body of the request, which first decides whether policies allow it, if its caller is
        identified. `now` is the database's time."""
        if self._caller.identified is None:
            return body
        from hashrange.access.judging import judged

        return judged(body, self._operation, self._request, self._caller, self._watch.settings, now)

    def end(self, error: Exception | None, answer: Answer | None) -> tuple[Exception | None, float]:
        """The error to tell, if any, and the seconds until then. `error` is that of the request itself,
        `answer` its answer."""
        counted, size = Items(), 0
        if self.counts and answer is not None:
            counted = noting.items(self._operation, self._request, answer)
            size = noting.size_of(answer) if self.records else 0
        return self._end(error, counted, size)

    def _end(
        self, error: Exception | None, counted: Items, answer_bytes: int
    ) -> tuple[Exception | None, float]:
        fate = self._fate
        seconds = 0.0
        if fate is not None:
            if fate.virtual_seconds and self._watch.faults is not None:
                self._watch.faults.pass_time(fate.virtual_seconds)
            error = fate.error if fate.error is not None else error
            seconds = fate.delay_seconds
        if self.records:
            self._note(error, counted, answer_bytes)
        if self._watch.onlookers:
            self._show(error, seconds, counted, answer_bytes)
        return error, seconds

    def _show(
        self, error: Exception | None, delay_seconds: float, counted: Items, answer_bytes: int
    ) -> None:
        sight = Sight(
            self._operation,
            self._request,
            self._caller,
            perf_counter() - self._began + delay_seconds,
            error,
            self.bill,
            counted,
            answer_bytes,
            self._fate is not None,
            self._fate.left if self._fate is not None else NONE_LEFT,
        )
        for onlooker in self._watch.onlookers:
            onlooker.see(sight)

    def _note(self, error: Exception | None, counted: Items, answer_bytes: int) -> None:
        watch = self._watch
        code = "" if error is None else error.code if isinstance(error, ServiceError) else _FAULT
        scope = scope_of(self._caller.account_id, self._caller.region, watch.settings)
        record = noting.record(
            self._operation,
            self._where,
            counted,
            self.bill,
            is_scan=noting.scans(self._operation, self._statement, watch.engine, scope),
            answer_bytes=0 if error is not None else answer_bytes,
            attempt=self._caller.attempt,
            error=code,
        )
        for recorder in watch.recorders:
            recorder.add(record)

    def encoding(self, encode: Encode) -> Encode:
        """`encode`; for those who record or look on, it also counts the items of the answer."""
        if not self.counts:
            return encode

        def encoded(answer: Answer) -> tuple[Any, Items]:
            counted = noting.items(self._operation, self._request, answer)
            return encode(answer), counted

        return encoded

    def deliver(self, done: Done, later: Later) -> Done:
        """`done`, called with the outcome that the rules decide on, after the delay that they decide on."""

        def ended(answer: Any, error: Exception | None) -> None:
            counted, size = Items(), 0
            if self.counts and error is None:
                answer, counted = answer
                size = noting.size_of(answer)
            error, seconds = self._end(error, counted, size)
            report = partial(done, answer if error is None else None, error)
            if seconds > 0:
                later(seconds, report)
            else:
                report()

        return ended


_FAULT = InternalServerError.__name__
