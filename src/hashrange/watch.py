"""Watching the requests of a database, while there are fault rules or somebody records costs.

A `Watch` makes a `Passage` for each request, and the database asks the passage what happens to the request
(`faults`). While nobody watches, a database has no watch, and its requests pay for comparing one attribute
with None.

Refuses to know rules, and how a request is executed.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from hashrange.faults.fates import Fate
from hashrange.operations.context import NONE_LEFT, Caller, Request

if TYPE_CHECKING:
    from hashrange.faults import Faults

Done = Callable[[Any, Exception | None], None]
Later = Callable[[float, Callable[[], None]], object]


class Watch:
    """The watchers of a database."""

    def __init__(self, faults: Faults) -> None:
        self.faults = faults

    def begin(self, operation: str, request: Request, caller: Caller) -> Passage:
        """The passage of a request, which may be wrong in any way."""
        return Passage(self, operation, request, caller)


class Passage:
    """One request that is watched."""

    __slots__ = ("_caller", "_fate", "_faults", "_operation", "_request")

    def __init__(self, watch: Watch, operation: str, request: Request, caller: Caller) -> None:
        self._faults = watch.faults
        self._operation = operation
        self._request = request
        self._caller = caller
        self._fate: Fate | None = None

    def decide(self) -> frozenset[int]:
        """Let the rules decide what happens to the request, which is well-formed.

        Returns the members of a batch that stay unprocessed. Raises the error of a fault that comes before
        the request is performed.
        """
        fate = self._fate = self._faults.decide(self._operation, self._request, self._caller)
        if fate is None:
            return NONE_LEFT
        if fate.error is not None and not fate.performed:
            raise fate.error
        return fate.left

    def end(self, error: Exception | None) -> tuple[Exception | None, float]:
        """The error to tell, if any, and the seconds until then; `error` is that of the request itself."""
        fate = self._fate
        if fate is None:
            return error, 0.0
        if fate.virtual_seconds:
            self._faults.pass_time(fate.virtual_seconds)
        return (fate.error if fate.error is not None else error), fate.delay_seconds

    def deliver(self, done: Done, later: Later) -> Done:
        """`done`, called with what is told of the outcome, when it is to be told."""

        def ended(answer: Any, error: Exception | None) -> None:
            error, seconds = self.end(error)
            told = partial(done, answer if error is None else None, error)
            if seconds > 0:
                later(seconds, told)
            else:
                told()

        return ended
