"""`Database.execute(operation, request)`: the whole database behind one call, and its background work.

This is what a server, the in-process client and the tests talk to. It knows the order in which a request
is judged (shape, rules, storage) and hands bodies to the engine; it knows no bytes, no sockets, no threads.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from typing import Any

import msgspec

from hashrange import shapes
from hashrange.clock import Clock, SystemClock
from hashrange.errors import (
    INTERNAL,
    InternalServerError,
    UnknownOperationException,
    ValidationException,
)
from hashrange.operations import REGISTRY
from hashrange.operations.context import Answer, Caller, Context, Request
from hashrange.settings import Settings
from hashrange.storage.api import CommitFailed, Engine, Transaction
from hashrange.tables import catalog, expiry, records, tokens, writes
from hashrange.tables.table import Table, TimeToLive

__all__ = ["Caller", "Database", "Settings"]

_log = logging.getLogger("hashrange")

Done = Callable[[Answer | None, Exception | None], None]

# The background work is done in bites of this many items, so that requests never wait long behind one.
_BITE = 200
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

    def execute(self, operation: str, request: Request, caller: Caller = _ANYONE) -> Answer:
        """Run one operation and return its answer; what it wrote is durable then.

        `request` is the decoded JSON of the API's request and is normalised in place; the answer may
        hold `orjson.Fragment` values. Raises `ServiceError`.
        """
        entry = REGISTRY.get(operation)
        if entry is None:
            raise UnknownOperationException
        try:
            body = self._prepare(operation, request, caller)
            return self.engine.write(body) if entry.writes else self.engine.read(body)
        except ValidationException:
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
            body = self._prepare(operation, request, caller)
            if not entry.writes:
                answer = self.engine.read(body)
        except Exception as error:
            done(None, self._translated(operation, request, error))
            return
        if not entry.writes:
            done(answer, None)
            return

        def finished(answer: Any, error: Exception | None) -> None:
            done(answer, self._translated(operation, request, error) if error is not None else None)

        self.engine.submit(body, finished)

    def _prepare(self, operation: str, request: Request, caller: Caller) -> Callable[[Any], Answer]:
        shapes.check(operation, request)
        context = Context(caller, self.clock.now(), self.settings, _new_id)
        return REGISTRY[operation].prepare(request, context)

    def _translated(self, operation: str, request: Request, error: Exception) -> Exception:
        """The error that the client sees: type errors come before all rules, as in DynamoDB."""
        if isinstance(error, ValidationException):
            try:
                shapes.check_types(operation, request)
            except Exception as earlier:
                return earlier
        elif isinstance(error, CommitFailed):
            _log.error("commit failed: %s", error)
            return InternalServerError(INTERNAL)
        return error

    def sweep(self) -> float:
        """Do the background work that is due: delete expired items, forget tokens, remove tables.

        Returns the seconds until it wants to run again; 0 while more is due. Each step is a small
        transaction of its own, so a sweep may be stopped at any point.
        """
        now = self.clock.now()
        more = False
        for table in self.engine.read(lambda reader: list(catalog.definitions(reader))):
            if table.gone_at is not None and now >= table.gone_at:
                self.engine.write(lambda txn, table=table: catalog.remove(txn, table))  # type: ignore[misc]
            elif table.ttl is not None:
                more |= self._sweep_expired(table, table.ttl, now)
        forgotten = self.engine.write(lambda txn: tokens.forget_expired(txn, now, _BITE))
        return 0.0 if more or forgotten == _BITE else self.settings.sweep_seconds

    def _sweep_expired(self, table: Table, ttl: TimeToLive, now: float) -> bool:
        """Delete a bite of a table's expired items, or go on building its queue; whether more is due."""
        if not ttl.built:
            self.engine.write(lambda txn: _build_queue(txn, table.name, ttl, now))
            return True
        places = self.engine.read(lambda reader: expiry.due(reader, ttl, now, _BITE))
        if places:
            self.engine.write(lambda txn: _expire(txn, table.name, ttl, places, self.settings, now))
        return len(places) == _BITE

    def close(self) -> None:
        """Close the engine. Idempotent."""
        self.engine.close()


def _new_id() -> str:
    return str(uuid.uuid4())


def _build_queue(txn: Transaction, name: str, ttl: TimeToLive, now: float) -> None:
    """One step of adding the items that were there before time to live was switched on."""
    table = catalog.find(txn, name, now)
    if table is None or table.ttl != ttl:
        return
    if expiry.build_step(txn, table, ttl, _BITE):
        catalog.save(txn, msgspec.structs.replace(table, ttl=msgspec.structs.replace(ttl, built=True)))


def _expire(
    txn: Transaction,
    name: str,
    ttl: TimeToLive,
    places: list[tuple[int, bytes, bytes]],
    settings: Settings,
    now: float,
) -> None:
    """Delete the items at `places` that still expire at the time that the queue says."""
    table = catalog.find(txn, name, now)
    if table is None or table.ttl != ttl:
        return
    for place in places:
        seconds, partition, sort = place
        record = txn.get(table.space, partition, sort)
        item = records.item_of(record) if record is not None else None
        if item is None or expiry.expires_at(ttl.attribute, item) != seconds:
            expiry.forget(txn, ttl, place)
        else:
            writes.remove(txn, table, partition, sort, settings)
