"""`Database.execute(operation, request)`: the whole database behind one call, and its background work.

    with Database.open("data") as database:      # on disk
    with Database.in_memory() as database:       # nothing is kept

This is what a server, the in-process client and the tests talk to. It knows the order in which a request
is judged (shape, rules, storage) and hands bodies to the engine; it knows no bytes and no sockets.

`submit` is for an event loop: a body runs at once on the loop's thread, but for a turn of a few milliseconds
at most (`pace`). A body that takes longer runs again on a thread of `workers`, and its outcome comes through
the function that was given to `deliver_on`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hashrange import pace, shapes
from hashrange.clock import Clock, SystemClock, has_come
from hashrange.errors import (
    INTERNAL,
    InternalServerError,
    RequestViolation,
    SerializationException,
    UnknownOperationException,
    ValidationException,
    bare,
)
from hashrange.operations import REGISTRY
from hashrange.operations.context import Answer, Caller, Context, Operation, Request
from hashrange.pace import Task, TurnOver
from hashrange.settings import Settings
from hashrange.storage import drafts
from hashrange.storage.api import CommitFailed, Engine, Stopped, StorageError
from hashrange.tables.background import sweeps
from hashrange.tables.background.units import Background
from hashrange.tables.data.items import Occasion
from hashrange.tables.definitions import catalog, states
from hashrange.tables.inspection import overview
from hashrange.workers import Workers

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Background", "Caller", "Database", "Settings"]

_log = logging.getLogger("hashrange")

Done = Callable[[Any, Exception | None], None]
"""Called exactly once with `(answer, None)` or `(None, exception)`."""

Encode = Callable[[Answer], Any]

_ANYONE = Caller()


class Database:
    """A database over an engine. Thread-safe as far as its engine is. A context manager, which closes it.

    `turn_seconds` is how long a body of `submit` may keep the calling thread. `clients` holds the boto3
    clients that `hashrange.client` made for this database, so that asking for one again costs nothing.
    """

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
        self.background = Background()
        self._next_sweep = 0.0
        self.turn_seconds = pace.TURN_SECONDS
        self._workers = Workers()
        self._turn = pace.turn()
        self._deliver: Callable[[Callable[[], None]], None] = _call
        self.clients: dict[tuple[str, ...], Any] = {}

    @staticmethod
    def open(
        path: str | Path,
        *,
        settings: Settings = Settings(),  # noqa: B008 (immutable)
        clock: Clock = SystemClock(),  # noqa: B008 (stateless)
    ) -> Database:
        """The durable database in the directory `path`, which is made where it is missing.

        Raises DataDirectoryLocked, UnknownFormat, StoreDamaged or StorageError (`storage.api`) if the
        directory cannot be used.
        """
        # Imported here, because RocksDB's library takes a while to load, and a database in memory needs none.
        from hashrange.storage.embedded import EmbeddedEngine

        return Database(EmbeddedEngine(path), settings=settings, clock=clock)

    @staticmethod
    def in_memory(
        *,
        settings: Settings = Settings(),  # noqa: B008 (immutable)
        clock: Clock = SystemClock(),  # noqa: B008 (stateless)
    ) -> Database:
        """An empty database in the memory of this process; its tables are gone when it is closed."""
        from hashrange.storage.memory import MemoryEngine

        return Database(MemoryEngine(), settings=settings, clock=clock)

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

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
        except CommitFailed as error:  # the engine has logged it, once for all that it fails
            raise InternalServerError(INTERNAL) from error

    def submit(
        self, operation: str, request: Request, caller: Caller, done: Done, encode: Encode
    ) -> Task | None:
        """As `execute`, without waiting: `done` gets what `encode` makes of the answer, or the exception.

        `done` is called at once for most reads and errors, later through the functions of `deliver_on` for
        writes. A request that takes long goes on on a thread, and `submit` returns the task, which may be
        abandoned. Must be called on the thread that called `deliver_on`.
        """
        entry = REGISTRY.get(operation)
        if entry is None:
            done(None, UnknownOperationException())
            return None
        try:
            body = self._prepare(entry, operation, request, caller)
            is_write = entry.is_write(request)
        except Exception as error:
            done(None, self.translated(operation, request, error))
            return None
        asked = _Asked(self, operation, request, body, is_write, done, encode)
        turn = self._turn
        turn.begin(self.turn_seconds)
        try:
            if is_write:
                self.engine.submit(asked.run, asked.finish)
            else:
                self.engine.submit_read(asked.run, asked.finish)
        except TurnOver:
            return self._workers.start(asked.run_aside)
        finally:
            turn.end()
        return None

    def start_aside(self, work: Callable[[], None]) -> Task:
        """Have `work` done on a thread: reading a large request, and then `run_aside`."""
        return self._workers.start(work)

    def run_aside(
        self, operation: str, request: Request, caller: Caller, done: Done, encode: Encode
    ) -> None:
        """As `submit`, on a thread of `start_aside`: the request takes the time that it takes."""
        entry = REGISTRY.get(operation)
        try:
            if entry is None:
                raise UnknownOperationException
            body = self._prepare(entry, operation, request, caller)
            is_write = entry.is_write(request)
        except Exception as error:
            self.deliver(partial(done, None, bare(self.translated(operation, request, error))))
            return
        _Asked(self, operation, request, body, is_write, done, encode).run_aside()

    def go_on_aside(self, asked: _Asked) -> None:
        """Have a request that was stopped go on on a thread."""
        self._workers.start(asked.run_aside)

    def works_aside(self) -> bool:
        """Whether requests are at work on the threads for those that take long."""
        return self._workers.waiting > 0

    def deliver(self, callback: Callable[[], None]) -> None:
        """Have `callback` called as late outcomes are."""
        self._deliver(callback)

    def deliver_on(
        self,
        deliver: Callable[[Callable[[], None]], None],
        defer: Callable[[Callable[[], None]], object] | None = None,
    ) -> None:
        """Have late outcomes delivered by `deliver`, as `Engine.deliver_on` says; the calling thread is the
        one that will call `submit`."""
        self._turn = pace.turn()
        self._deliver = deliver
        self.engine.deliver_on(deliver, defer)

    def _prepare(
        self, entry: Operation, operation: str, request: Request, caller: Caller
    ) -> Callable[[Any], Answer]:
        older = self.settings.older_words
        shapes.check(operation, request, older=older)
        context = Context(caller, self.clock.now(), self.settings, _new_id)
        try:
            return entry.prepare(request, context)
        except RequestViolation as error:
            raise shapes.spoken(operation, request, error, older=older) from None

    def translated(self, operation: str, request: Request, error: Exception) -> Exception:
        """The error that the client sees: type errors come before all rules, as in DynamoDB."""
        if isinstance(error, SerializationException | ValidationException):
            try:
                shapes.check_types(operation, request)
            except Exception as earlier:
                return earlier
        elif isinstance(error, CommitFailed):  # the engine has logged it, once for all that it fails
            refused = InternalServerError(INTERNAL)
            refused.__cause__ = error
            return refused
        elif isinstance(error, StorageError):
            # Its text says all; where in the code it came up says nothing.
            _log.error("the store failed: %s", error)
            return InternalServerError(INTERNAL)
        return error

    def sweep(self) -> float:
        """Do the background work that is due: states of tables, expired items, new and lagging indexes.

        Returns the seconds until it wants to run again; 0 while more is due.
        """
        tables = self.engine.read(lambda reader: list(catalog.definitions(reader)))
        # The time is drawn after the definitions were read, as `states.end` asks for.
        occasion = Occasion(self.clock.now(), self.settings)
        wait = self.background.guard(
            "states of tables",
            lambda: states.end(self.engine, tables, occasion.now, self.settings),
            self.settings.sweep_seconds,
        )
        return min(wait, sweeps.sweep(self.engine, occasion, self.background))

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
        """End what is under way, and close the engine. Idempotent.

        Requests after that raise StoreClosed (`storage.api`), which says what to do.
        """
        self._workers.close()
        self.engine.close()
        self.clients.clear()


class _Asked:
    """One request of `submit` after its preparation, and what becomes of it.

    A class, because functions within `submit` would hold themselves in a cycle where they are compiled.
    """

    __slots__ = ("body", "database", "done", "encode", "is_write", "operation", "request")

    def __init__(
        self,
        database: Database,
        operation: str,
        request: Request,
        body: Callable[[Any], Answer],
        is_write: bool,
        done: Done,
        encode: Encode,
    ) -> None:
        self.database = database
        self.operation = operation
        self.request = request
        self.body = body
        self.is_write = is_write
        self.done = done
        self.encode = encode

    def run(self, reader: Any) -> Any:
        """The body that the engine runs: it encodes its answer as well."""
        return self.encode(self.body(reader))

    def finish(self, answer: Any, error: Exception | None) -> None:
        """Tell the outcome, unless it is that the body has to run elsewhere."""
        if error is None:
            self.done(answer, None)
        elif isinstance(error, Stopped):
            self.database.go_on_aside(self)
        else:
            self.done(None, self.database.translated(self.operation, self.request, error))

    def run_aside(self) -> None:
        """Run the body on this thread, however long it takes, and have the outcome told."""
        database = self.database
        engine = database.engine
        try:
            answer = drafts.write_aside(engine, self.run) if self.is_write else engine.read(self.run)
        except Exception as error:
            told = database.translated(self.operation, self.request, error)
            database.deliver(partial(self.done, None, bare(told)))
            return
        database.deliver(partial(self.done, answer, None))


def _call(callback: Callable[[], None]) -> None:
    callback()


def _new_id() -> str:
    return str(uuid.uuid4())
