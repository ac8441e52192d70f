"""`Database.execute(operation, request)`: the whole database behind one call, and its background work.

This is what a server, the in-process client and the tests talk to. It knows the order in which a request
is judged (shape, rules, storage) and hands bodies to the engine; it knows no bytes, no sockets, no threads.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any

from hashrange import shapes
from hashrange.clock import Clock, SystemClock, has_come
from hashrange.errors import (
    INTERNAL,
    InternalServerError,
    SerializationException,
    UnknownOperationException,
    ValidationException,
)
from hashrange.operations import REGISTRY
from hashrange.operations.context import Answer, Caller, Context, Operation, Request
from hashrange.settings import Settings
from hashrange.storage.api import CommitFailed, Engine
from hashrange.tables import catalog, overview, states, sweeps
from hashrange.tables.items import Occasion

__all__ = ["Caller", "Database", "Settings"]

_log = logging.getLogger("hashrange")

Done = Callable[[Answer | None, Exception | None], None]

_ANYONE = Caller()


class Database:
    """A database over an engine. Thread-safe as far as its engine is."""

    def __init__(
        self,
        engine: Engine,
        *,
        settings: Settings = Settings(),  # noqa: B008 (immutable)
        clock: Clock = SystemClock(),  # noqa: B008 (stateless)
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.clock = clock
        self._next_sweep = 0.0

    def execute(self, operation: str, request: Request, caller: Caller = _ANYONE) -> Answer:
        """Run one operation and return its answer; what it wrote is durable then.

        `request` is the decoded JSON of the API's request and is normalised in place; the answer may
        hold `orjson.Fragment` values. Raises `ServiceError`.
        """
        entry = REGISTRY.get(operation)
        if entry is None:
            raise UnknownOperationException
        try:
            body = self._prepare(entry, operation, request, caller)
            return self.engine.write(body) if entry.is_write(request) else self.engine.read(body)
        except (SerializationException, ValidationException):
            shapes.check_types(operation, request)
            raise
        except CommitFailed as error:
            _log.error("commit failed: %s", error)
            raise InternalServerError(INTERNAL) from error

    def submit(self, operation: str, request: Request, caller: Caller, done: Done) -> None:
        """As `execute`, without waiting for a commit: `done` gets the answer or the exception.

        `done` is called at once for reads and errors, later through `engine.deliver_on` for writes.
        """
        entry = REGISTRY.get(operation)
        if entry is None:
            done(None, UnknownOperationException())
            return
        try:
            body = self._prepare(entry, operation, request, caller)
            is_write = entry.is_write(request)
            if not is_write:
                answer = self.engine.read(body)
        except Exception as error:
            done(None, self._translated(operation, request, error))
            return
        if not is_write:
            done(answer, None)
            return

        def finished(answer: Any, error: Exception | None) -> None:
            done(answer, self._translated(operation, request, error) if error is not None else None)

        self.engine.submit(body, finished)

    def _prepare(
        self, entry: Operation, operation: str, request: Request, caller: Caller
    ) -> Callable[[Any], Answer]:
        shapes.check(operation, request)
        context = Context(caller, self.clock.now(), self.settings, _new_id)
        return entry.prepare(request, context)

    def _translated(self, operation: str, request: Request, error: Exception) -> Exception:
        """The error that the client sees: type errors come before all rules, as in DynamoDB."""
        if isinstance(error, SerializationException | ValidationException):
            try:
                shapes.check_types(operation, request)
            except Exception as earlier:
                return earlier
        elif isinstance(error, CommitFailed):
            _log.error("commit failed: %s", error)
            return InternalServerError(INTERNAL)
        return error

    def sweep(self) -> float:
        """Do the background work that is due: states of tables, expired items, new and lagging indexes.

        Returns the seconds until it wants to run again; 0 while more is due.
        """
        tables = self.engine.read(lambda reader: list(catalog.definitions(reader)))
        # The time is drawn after the definitions were read, as `states.end` asks for.
        occasion = Occasion(self.clock.now(), self.settings)
        wait = states.end(self.engine, tables, occasion.now, self.settings)
        return min(wait, sweeps.sweep(self.engine, occasion))

    def settle(self) -> None:
        """Sweep until nothing more is due: what a change of the clock made due is done then."""
        while self.sweep() <= 0:
            pass

    def overview(self, after: str = "", tables_max: int | None = None) -> list[dict[str, Any]]:
        """The tables as an operator sees them: state, sizes, and how far builds under way are.

        At most `tables_max` of them, those whose names come after `after`, in the order of the names.
        """
        return self.engine.read(lambda reader: overview.tables(reader, after, tables_max))

    def tend(self) -> None:
        """Sweep if it is time to: for a program without a server, which calls this now and then.

        The in-process client does so before every request.
        """
        now = self.clock.now()
        # A clock that was set back must not put the background work off.
        if has_come(self._next_sweep, now, self.settings.sweep_seconds):
            self._next_sweep = now + self.sweep()

    def close(self) -> None:
        """Close the engine. Idempotent."""
        self.engine.close()


def _new_id() -> str:
    return str(uuid.uuid4())
