"""Watching the requests of a database, while there are fault rules, the lab is on, somebody records requests
or their costs or looks on, or policies decide.

A `Watch` makes a `Passage` for each request. The database asks the passage what happens to the request
(`faults`), and reports how the request ended, for the recorders (`costs`) and the onlookers (`sights`).
Without any of them a database has no watch, and its requests only compare an attribute with None.

An observer that fails never stops, refuses or changes a request: whatever it raises goes to `Watch.failed`.
Only the parts that are made to refuse may refuse: fault rules, the lab, and policies that are enforced.

Refuses to know rules, and how a request is executed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, TypeVar

from hashrange import pace
from hashrange.costs import noting
from hashrange.costs.noting import Items
from hashrange.costs.record import Record, Recorder
from hashrange.errors import InternalServerError, ServiceError
from hashrange.faults.fates import Fate
from hashrange.operations.context import NONE_LEFT, Answer, Caller, Encode, Operation, Request, scope_of
from hashrange.pace.workers import Later
from hashrange.settings import Settings
from hashrange.storage.api import Engine
from hashrange.storage.failures import StorageError
from hashrange.storage.loops import Done
from hashrange.tables.data.capacity import NO_BILL, Bill
from hashrange.watching.sights import Onlooker, Sight

if TYPE_CHECKING:
    from hashrange.faults import Faults
    from hashrange.lab import Lab
    from hashrange.watching.tape import Tape

T = TypeVar("T")
Body = Callable[[Any], Any]


_RECORDERS: Final = "recorders"
_RULES: Final = "fault rules"
_LAB: Final = "lab"
_POLICIES: Final = "policies"


class Watch:
    """The watchers of a database: its rules and its lab, if there are any, its recorders and onlookers.

    `failed` is called with the name of an observer, and the error with which it has failed.
    """

    def __init__(
        self,
        engine: Engine,
        settings: Settings,
        faults: Faults | None,
        lab: Lab | None,
        recorders: tuple[Recorder, ...],
        onlookers: tuple[Onlooker, ...],
        tape: Tape | None,
        failed: Callable[[str, Exception], None],
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.faults = faults
        self.lab = lab
        self.recorders = recorders
        self.onlookers = onlookers
        self.tape = tape
        self.failed = failed

    def let(self, observer: str, otherwise: T, look: Callable[..., T], *seen: Any) -> T:
        """What an observer makes of what it sees; `otherwise` if it fails."""
        try:
            return look(*seen)
        except Exception as error:
            self.failed(observer, error)
            return otherwise

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
        self._sent = b""
        self._where = noting.NOWHERE
        self._statement: Any = None
        self._line = ""
        if self.records:
            watch.let(_RECORDERS, None, self._take_down, request, tape)

    def _take_down(self, request: Request, tape: Tape | None) -> None:
        """Note what is recorded of the request: it is emptied once it has been performed."""
        if tape is not None:
            self._sent = tape.sent(request)
        self._where = noting.places(self._operation, request)
        self._statement = request.get("Statement")
        # Later it may be another thread.
        self._line = next(filter(None, [recorder.line() for recorder in self._watch.recorders]), "")

    def decide(self) -> frozenset[int]:
        """Let the rules and the lab decide what happens to the request, which is well-formed.

        Returns the members of a batch that stay unprocessed. Raises the error of a fault that comes before
        the request is performed, and that of a batch for which there is no throughput.
        """
        left = NONE_LEFT
        watch = self._watch
        if watch.faults is not None:
            decide = watch.faults.decide
            fate = self._fate = watch.let(_RULES, None, decide, self._operation, self._request, self.caller)
            if fate is not None:
                if fate.error is not None and not fate.performed:
                    raise fate.error
                left = fate.left
        if watch.lab is not None:
            try:
                left |= watch.lab.left(self._operation, self._request, self.caller)
            except (ServiceError, StorageError):
                raise
            except Exception as error:
                watch.failed(_LAB, error)
        self._left = left
        return left

    def body(self, body: Body, entry: Operation, now: float) -> Body:
        """The body that the engine runs instead of the request's own. It first decides whether policies allow
        the request, if its caller is identified. `now` is the database's time."""
        watch = self._watch
        if self.caller.identified is not None:
            body = self._judged(body, now)
        if watch.lab is not None:
            body = watch.lab.body(entry, self._operation, self._request, self.caller, body)
        return body

    def _judged(self, body: Body, now: float) -> Body:
        """The body, after policies have been asked. Where they only look on, it runs if they fail."""
        from hashrange.access.judging import judged

        watch = self._watch
        failed = None if self.caller.identified.refuses else partial(watch.failed, _POLICIES)
        try:
            return judged(
                body, self._operation, self._request, self.caller, watch.settings, now, failed
            )
        except Exception as error:
            if failed is None:
                raise
            failed(error)
            return body

    def end(self, error: Exception | None, answer: Answer | None) -> tuple[Exception | None, float]:
        """The error to tell, if any, and the seconds until then. `error` is that of the request itself,
        `answer` its answer."""
        counted, size = Items(), 0
        if self.counts and answer is not None:
            counted = self._counted(answer)
            size = self._size(answer) if self.records else 0
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
                self._watch.let(_RULES, None, self._watch.faults.pass_time, fate.virtual_seconds)
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
            self._watch.let(type(onlooker).__name__, None, onlooker.see, sight)

    def _note(
        self, error: Exception | None, delay_seconds: float, counted: Items, answer_bytes: int, answer: Any
    ) -> None:
        watch = self._watch
        tape = watch.tape
        record = watch.let(_RECORDERS, None, self._record, error, counted, answer_bytes)
        for recorder in watch.recorders if record is not None else ():
            watch.let(_RECORDERS, None, recorder.add, record)
        if tape is not None:
            seconds = perf_counter() - self._began + delay_seconds
            answer = answer if error is None else None
            about = record, self._sent, self.caller, self._began, seconds, error, answer
            is_known = bool(self._sent) and record is not None
            if not is_known or not watch.let(_RECORDERS, False, tape.take, *about):
                tape.miss()

    def _record(self, error: Exception | None, counted: Items, answer_bytes: int) -> Record | None:
        watch = self._watch
        code = "" if error is None else error.code if isinstance(error, ServiceError) else _FAULT
        scope = scope_of(self.caller.account_id, self.caller.region, watch.settings)
        return noting.record(
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

    def _counted(self, answer: Answer) -> Items:
        return self._watch.let(
            _RECORDERS, Items(), noting.items, self._operation, self._request, answer
        )

    def _size(self, answer: Any) -> int:
        return self._watch.let(_RECORDERS, 0, noting.size_of, answer)

    def encoding(self, encode: Encode) -> Encode:
        """`encode`; for those who record or look on, it also counts the items of the answer."""
        if not self.counts:
            return encode

        def encoded(answer: Answer) -> tuple[Any, Items]:
            counted = self._counted(answer)
            return encode(answer), counted

        return encoded

    def deliver(self, done: Done, later: Later) -> Done:
        """`done`, called with the outcome that the rules decide on, after the delay that they decide on."""

        def ended(answer: Any, error: Exception | None) -> None:
            # The body is done. If its turn ended an observer, the request would be done once more.
            pace.turn().end()
            counted, size = Items(), 0
            if self.counts and error is None:
                answer, counted = answer
                size = self._size(answer)
            error, seconds = self._end(error, counted, size, answer)
            report = partial(done, answer if error is None else None, error)
            if seconds > 0:
                later(seconds, report)
            else:
                report()

        return ended


_FAULT = InternalServerError.__name__
