"""Watching the requests of a database, while there are fault rules, the lab is on, somebody records requests
or their costs or looks on, or policies decide.

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
from hashrange.operations.context import NONE_LEFT, Answer, Caller, Operation, Request, scope_of
from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.tables.data.capacity import NO_BILL, Bill
from hashrange.watching.outcomes import Done, Encode, Later
from hashrange.watching.sights import Onlooker, Sight

if TYPE_CHECKING:
    from hashrange.faults import Faults
    from hashrange.lab import Lab
    from hashrange.watching.tape import Tape

Body = Callable[[Any], Any]


class Watch:
    """The watchers of a database: its rules and its lab, if there are any, its recorders and onlookers."""

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        faults: Faults | None,
        lab: Lab | None,
        recorders: tuple[Recorder, ...],
        onlookers: tuple[Onlooker, ...],
        tape: Tape | None,
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.faults = faults
        self.lab = lab
        self.recorders = recorders
        self.onlookers = onlookers
        self.tape = tape

    def begin(self, operation: str, request: Request, caller: Caller) -> Passage:
        """The passage of a request, which may be wrong in any way."""
        return Passage(self, operation, request, caller)


class Passage:
    """One watched request. `caller` is who has sent it, in the account whose tables it names; `bill` is what
    it consumed, once that is known; `records`: whether there are recorders or a tape; `counts`: whether there
    are those or onlookers."""

    __slots__ = (
        "_began",
        "_fate",
        "_left",
        "_line",
        "_operation",
        "_request",
        "_sent",
        "_statement",
        "_watch",
        "_where",
        "bill",
        "caller",
        "counts",
        "records",
    )

    def __init__(self, watch: Watch, operation: str, request: Request, caller: Caller) -> None:
        self._watch = watch
        self._operation = operation
        self._request = request
        if caller.identified is not None:
            from hashrange.access.judging import acting

            caller = acting(operation, request, caller, watch.settings)
        self.caller = caller
        self._fate: Fate | None = None
        self._left = NONE_LEFT
        self.bill: Bill = NO_BILL
        tape = watch.tape
        self.records = bool(watch.recorders) or tape is not None
        self.counts = self.records or bool(watch.onlookers)
        self._began = perf_counter() if watch.onlookers or tape is not None else 0.0
        self._sent = tape.sent(request) if tape is not None else b""
        if self.records:
            # The request is emptied once it has been performed.
            self._where = noting.places(operation, request)
            self._statement = request.get("Statement")
            # Later it may be another thread.
            self._line = next(filter(None, [recorder.line() for recorder in watch.recorders]), "")

    def decide(self) -> frozenset[int]:
        """Let the rules and the lab decide what happens to the request, which is well-formed.

        Returns the members of a batch that stay unprocessed. Raises the error of a fault that comes before
        the request is performed, and that of a batch for which there is no throughput.
        """
        left = NONE_LEFT
        watch = self._watch
        if watch.faults is not None:
            fate = self._fate = watch.faults.decide(self._operation, self._request, self.caller)
            if fate is not None:
                if fate.error is not None and not fate.performed:
                    raise fate.error
                left = fate.left
        if watch.lab is not None:
            left |= watch.lab.left(self._operation, self._request, self.caller)
        self._left = left
        return left

    def body(self, body: Body, entry: Operation, now: float) -> Body:
        """The body that the engine runs instead of the request's own. It first decides whether policies allow
        the request, if its caller is identified. `now` is the database's time."""
        watch = self._watch
        if self.caller.identified is not None:
            from hashrange.access.judging import judged

            body = judged(body, self._operation, self._request, self.caller, watch.settings, now)
        if watch.lab is not None:
            body = watch.lab.body(entry, self._operation, self._request, self.caller, body)
        return body

    def end(self, error: Exception | None, answer: Answer | None) -> tuple[Exception | None, float]:
        """The error to tell, if any, and the seconds until then. `error` is that of the request itself,
        `answer` its answer."""
        counted, size = Items(), 0
        if self.counts and answer is not None:
            counted = noting.items(self._operation, self._request, answer)
            size = noting.size_of(answer) if self.records else 0
        return self._end(error, counted, size, answer)

    def _end(
        self, error: Exception | None, counted: Items, answer_bytes: int, answer: Any
    ) -> tuple[Exception | None, float]:
        fate = self._fate
        seconds = 0.0
        if isinstance(error, ServiceError) and error.bill is not None:
            # A condition that fails is charged too.
            self.bill = error.bill
        if fate is not None:
            if fate.virtual_seconds and self._watch.faults is not None:
                self._watch.faults.pass_time(fate.virtual_seconds)
            error = fate.error if fate.error is not None else error
            seconds = fate.delay_seconds
        if self.records:
            self._note(error, seconds, counted, answer_bytes, answer)
        if self._watch.onlookers:
            self._show(error, seconds, counted, answer_bytes)
        return error, seconds

    def _show(
        self, error: Exception | None, delay_seconds: float, counted: Items, answer_bytes: int
    ) -> None:
        sight = Sight(
            self._operation,
            self._request,
            self.caller,
            perf_counter() - self._began + delay_seconds,
            error,
            self.bill,
            counted,
            answer_bytes,
            self._fate is not None,
            self._left,
        )
        for onlooker in self._watch.onlookers:
            onlooker.see(sight)

    def _note(
        self, error: Exception | None, delay_seconds: float, counted: Items, answer_bytes: int, answer: Any
    ) -> None:
        watch = self._watch
        code = "" if error is None else error.code if isinstance(error, ServiceError) else _FAULT
        scope = scope_of(self.caller.account_id, self.caller.region, watch.settings)
        record = noting.record(
            self._operation,
            self._where,
            counted,
            self.bill,
            is_scan=noting.scans(self._operation, self._statement, watch.engine, scope),
            answer_bytes=0 if error is not None else answer_bytes,
            attempt=self.caller.attempt,
            error=code,
            line=self._line,
        )
        for recorder in watch.recorders:
            recorder.add(record)
        tape = watch.tape
        if tape is not None:
            seconds = perf_counter() - self._began + delay_seconds
            answer = answer if error is None else None
            tape.take(record, self._sent, self.caller, self._began, seconds, error, answer)

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
            error, seconds = self._end(error, counted, size, answer)
            report = partial(done, answer if error is None else None, error)
            if seconds > 0:
                later(seconds, report)
            else:
                report()

        return ended


_FAULT = InternalServerError.__name__
