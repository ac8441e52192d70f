"""`Database.execute(operation, request)`: the whole database behind one call, and its background work.

    with Database.open("data") as database:      # on disk
    with Database.in_memory() as database:       # nothing is kept

The server, the in-process client and the tests call this class. It checks a request in DynamoDB's order
(shape, rules, storage) and gives the request's body to the engine. It knows no wire format and no sockets.

`submit` is for an event loop. It runs a body at once on the loop's thread, but stops it after a turn of a few
milliseconds (`pace`). A stopped body runs again on a worker thread, and its outcome is delivered by the
function passed to `deliver_on`.

While anybody observes requests (`observing`), the observers see each request, and its outcome.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any

from hashrange import pace, shapes
from hashrange.clock import Clock, SystemClock, has_come, is_real
from hashrange.errors import (
    INTERNAL,
    InternalServerError,
    RequestViolation,
    SerializationException,
    UnknownOperationException,
    ValidationException,
    bare,
    unacknowledged,
)
from hashrange.insights.counting import Counting
from hashrange.observing.observers import Observers
from hashrange.operations import REGISTRY, bulk_put, export_filter
from hashrange.operations.context import (
    NONE_LEFT,
    Answer,
    Caller,
    Context,
    Operation,
    Request,
    RequestSettings,
    scope_of,
)
from hashrange.operations.execution import Execution
from hashrange.pace import Task, TurnOver, freeing
from hashrange.pace.workers import Later, Workers, call_later, call_now, hold_up
from hashrange.settings import Settings
from hashrange.storage import drafts
from hashrange.storage.api import Engine
from hashrange.storage.capabilities import Rewinding, Snapshot, clock_of
from hashrange.storage.failures import CommitError, StorageError, StoreClosed, Unsupported
from hashrange.storage.loops import LoopWatch
from hashrange.tables.background import sweeps
from hashrange.tables.background.sharing import sharing_of
from hashrange.tables.background.units import Background
from hashrange.tables.inspection import overview
from hashrange.tables.jobs.ondemand import Jobs

if TYPE_CHECKING:
    from pathlib import Path

    from hashrange.costs import Costs
    from hashrange.faults import Faults
    from hashrange.operations.travel import Travel

__all__ = ["Background", "Caller", "Database", "Settings"]
_log = logging.getLogger("hashrange")

Wait = Callable[[float], None]

_ANYONE = Caller()


class Database:
    """A database over an engine, and a context manager that closes it. It is thread-safe if its engine is.

    `turn_seconds` is the time for which a body of `submit` may keep the calling thread. `clients` caches the
    boto3 clients that `hashrange.client` made for this database. `insights` has the busiest keys of tables.
    The default `clock` is that of the program that stores the records, or the machine's.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        settings: Settings = Settings(),  # noqa: B008 (immutable)
        clock: Clock | None = None,
    ) -> None:
        self.engine = engine
        self.settings = settings
        self._request_settings = RequestSettings(settings)
        self.clock = clock if clock is not None else clock_of(engine)
        self.background = Background(sharing=sharing_of(engine, _new_id()))
        self.jobs = Jobs(engine, settings, export_filter=export_filter, scope_of=scope_of, bulk_put=bulk_put)
        self._next_sweep = 0.0
        self._kept = self.background.kept
        self.turn_seconds = pace.TURN_SECONDS
        self._workers = Workers()
        self._tasks = self._workers.tasks
        self._turn = pace.turn()
        self.observers = Observers(engine, settings)
        self.insights = Counting(self.observers.observe, lambda: self.clock)
        self.background.listed = self.insights.look_at
        self._deliver: Callable[[Callable[[], None]], None] = call_now
        self._later: Later = call_later
        self.clients: dict[tuple[str, ...], Any] = {}
        self._faults: Faults | None = None
        self._parts: dict[str, Any] = {}
        if settings.is_lab_on:
            self.lab.begin()

    @staticmethod
    def open(
        path: str | Path,
        *,
        settings: Settings = Settings(),  # noqa: B008 (immutable)
        clock: Clock = SystemClock(),  # noqa: B008 (stateless)
    ) -> Database:
        """The durable database in the directory `path`, which is created if it is missing.

        Raises DataDirectoryLocked, UnknownFormat, StoreDamaged or StorageError (`storage.failures`) if the
        directory cannot be used.
        """
        # Imported here because RocksDB's library loads slowly, and a database in memory does not need it.
        from hashrange.storage.embedded import EmbeddedEngine

        return Database(EmbeddedEngine(path), settings=settings.with_data_dir(str(path)), clock=clock)

    @staticmethod
    def in_memory(
        *,
        settings: Settings = Settings(),  # noqa: B008 (immutable)
        clock: Clock = SystemClock(),  # noqa: B008 (stateless)
    ) -> Database:
        """An empty database in the memory of this process; its tables are lost when it is closed."""
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

    @property
    def faults(self) -> Faults:
        """The fault rules of this database (`hashrange.faults`)."""
        if self._faults is None:
            from hashrange.faults import Faults

            self._faults = Faults(lambda: self.clock, self.observers.observe)
        return self._faults

    @property
    def lab(self) -> Any:
        """What this database imitates of AWS: a `Lab` of the ring. Raises `rings.Missing`."""
        return self.part("lab", "lab")

    def part(self, ring: str, name: str) -> Any:
        """A part of this database that a ring adds (`rings.Ring.parts`). Raises `rings.Missing`."""
        part = self._parts.get(name)
        if part is None:
            from hashrange import rings

            part = self._parts.setdefault(name, rings.needed(ring, "parts", name)(self))
        return part

    @property
    def travel(self) -> Travel:
        """The past of this database's tables (`hashrange.operations.travel`)."""
        from hashrange.operations.travel import Travel

        return Travel(self.engine, lambda: self.clock, self.settings, _new_id)

    def import_errors(self, arn: str, first: int = 0, errors_max: int | None = None) -> list[Answer]:
        """The errors of the items of an import: `tables.jobs.imports.import_records.errors_of`."""
        from hashrange.tables.jobs.imports.import_records import errors_of

        return self.engine.read(lambda reader: errors_of(reader, arn, first, errors_max))

    def costs(self) -> Costs:
        """A record of what each request costs while its block runs: ``with database.costs() as costs:``."""
        from hashrange.costs import Costs

        return Costs(self.observers.observe)

    def execute(
        self, operation: str, request: Request, caller: Caller = _ANYONE, wait: Wait | None = None
    ) -> Answer:
        """Run one operation and return its answer. Its writes are durable when this returns.

        `request` is the decoded JSON of the API's request and is normalised in place; the answer may
        hold `orjson.Fragment` values, also one for the list of all items. Raises `ServiceError`. If a fault
        delays the answer, `wait` is called with the seconds; without `wait` the calling thread waits.
        """
        return self.perform(Execution(operation, request, caller), wait)

    def perform(self, execution: Execution, wait: Wait | None = None) -> Answer:
        """As `execute`."""
        result: Any = None
        failure: Exception | None = None
        try:
            self._make_ready(execution)
            run = execution.run
            result = self.engine.write(run) if execution.is_write else self.engine.read(run)
        except Exception as error:
            if execution.observed is None:
                # (a variable for this error would make a reference cycle with its traceback)
                raise self.translated(execution, error)  # noqa: B904 (it is the same error, or has its cause)
            failure = self.translated(execution, error)
        if execution.observed is not None:
            failure, seconds = execution.observed.end(failure, result)
            if seconds > 0:
                (wait or hold_up)(seconds)
        if failure is not None:
            raise failure
        return result  # type: ignore[no-any-return]

    def _make_ready(self, execution: Execution, turn: pace.Turn | None = None) -> None:
        """Check a request, ask its observers, and set what the engine runs. Raises the error of a request
        that is refused. `turn` is the turn that ends where preparation may not be repeated."""
        operation, request = execution.operation, execution.request
        entry = REGISTRY.get(operation)
        if entry is None:
            raise UnknownOperationException
        execution.entry = entry
        active = self.observers.active
        observed = None
        if active is not None:
            observed = execution.observed = active.begin(operation, request, execution.caller)
            execution.caller = observed.caller
        body = self._prepare(entry, operation, request, execution.caller)
        execution.is_write = entry.is_write(request)
        if observed is not None:
            if turn is not None:
                turn.end()  # fault rules must decide only once per request
            left = observed.decide()
            if left:
                body = self._prepare(entry, operation, request, execution.caller, left)
            body = observed.body(body, entry, self.clock.now())
        execution.body = body

    def submit(self, execution: Execution) -> Task | None:
        """Like `execute`, without waiting: `execution.done` gets what `execution.encode` returned, or an
        exception.

        For most reads and errors `done` is called before this returns. For writes it is called later,
        through the functions of `deliver_on`. A long request continues on a worker thread; `submit`
        then returns its task, which may be abandoned. Must be called on the thread that called `deliver_on`.

        Raises TurnOver (`pace`) if the turn ended while the request was prepared, for example for a long
        statement. The request then had no effect. But a part of `request` may be normalised, and a
        transaction's token is compared with the request as it was sent: so parse it again for `run_aside`.
        """
        turn = self._turn
        execution.owner = self
        # Preparation gets a full turn, because a request that is stopped there has to be parsed again.
        turn.begin(self.turn_seconds)
        try:
            try:
                self._make_ready(execution, turn)
            except Exception as error:
                turn.end()
                execution.tell(None, self.told(execution, error))
                return None
            # (beside work on threads each turn is shorter)
            seconds = self.turn_seconds
            turn.begin(min(pace.BUSY_TURN_SECONDS, seconds) if self._tasks else seconds)
            engine = self.engine
            try:
                if execution.is_write:
                    execution.keeps = not engine.runs_once
                    engine.submit(execution.run, execution.finish)
                else:
                    engine.submit_read(execution.run, execution.finish)
            except TurnOver:
                return self._workers.start(partial(self._run_aside, execution))
            return None
        finally:
            turn.end()

    def start_aside(self, work: Callable[[], None]) -> Task:
        """Do `work` on a worker thread: parse a large request, and then call `run_aside`."""
        return self._workers.start(work)

    def run_aside(self, execution: Execution) -> None:
        """Like `submit`, on a worker thread without a time limit. May empty the dict `request`."""
        execution.owner = self
        request = execution.request
        try:
            self._make_ready(execution)
        except Exception as error:
            self.deliver(partial(execution.tell, None, bare(self.told(execution, error))))
            return
        self._run_aside(execution)
        if execution.observed is None:  # otherwise an observer may still need the request
            freeing.take_apart(request)

    def _run_aside(self, execution: Execution) -> None:
        """Run the body on this thread without a time limit, and deliver the outcome."""
        execution.keeps = True
        engine = self.engine
        try:
            if execution.is_write:
                answer = drafts.write_aside(engine, execution.run)
            else:
                answer = engine.read(execution.run)
        except Exception as error:
            self.deliver(partial(execution.tell, None, bare(self.told(execution, error))))
            return
        self.deliver(partial(execution.tell, answer, None))

    def go_on_aside(self, execution: Execution) -> None:
        """Run a stopped request again on a worker thread; end it if the database was closed meanwhile."""
        try:
            self._workers.start(partial(self._run_aside, execution))
        except RuntimeError:
            execution.finish(None, StoreClosed())

    def tell_observed(self, execution: Execution, answer: Any, error: Exception | None) -> None:
        """Tell the outcome that the observers of a request settle on, after the delay that they decide on."""
        observed = execution.observed
        assert observed is not None
        # The body is done. If its turn ended an observer, the request would be done once more.
        pace.turn().end()
        error, seconds = observed.end(error, answer)
        report = partial(execution.done, answer if error is None else None, error)
        if seconds > 0:
            self._later(seconds, report)
        else:
            report()

    def works_aside(self) -> bool:
        """Whether long requests are running on worker threads."""
        return bool(self._tasks)

    def deliver(self, callback: Callable[[], None]) -> None:
        """Call `callback` on the thread that late outcomes are delivered on."""
        self._deliver(callback)

    def deliver_on(
        self,
        deliver: Callable[[Callable[[], None]], None],
        defer: Callable[[Callable[[], None]], object] | None = None,
        later: Later | None = None,
        watch: LoopWatch | None = None,
    ) -> None:
        """Deliver late outcomes as `storage.loops.Loop.use` does, and those that a fault delays through
        `later`, on the thread of `deliver`. Must be called on the thread that will call `submit`."""
        self._turn = pace.turn()
        self._deliver = deliver
        self._later = later or call_later
        self.engine.loop.use(deliver, defer, watch)

    def _prepare(
        self,
        entry: Operation,
        operation: str,
        request: Request,
        caller: Caller,
        left: frozenset[int] = NONE_LEFT,
    ) -> Callable[[Any], Any]:
        known = self._request_settings
        if known.settings is not self.settings:
            known = self._request_settings = RequestSettings(self.settings)
        test = entry.test
        if test is None:
            test = entry.test = shapes.test_of(operation)
        if not shapes.quick.fits(test, request):
            shapes.check(operation, request, known.newer)
        scope = scope_of(caller.account_id, caller.region, self.settings) if known.has_scopes else ""
        billed, kept = self.observers.bills, self._kept
        context = Context(caller, self.clock.now(), self.settings, _new_id, scope, billed, left, kept)
        try:
            return entry.prepare(request, context)
        except RequestViolation as error:
            raise shapes.spoken(operation, request, error, known.newer) from None

    def translated(self, execution: Execution, error: Exception) -> Exception:
        """The error of the request. As in DynamoDB, a type error takes precedence over a rule's error."""
        if isinstance(error, SerializationException | ValidationException):
            try:
                shapes.check_types(execution.operation, execution.request)
            except Exception as earlier:
                return earlier
        elif isinstance(error, CommitError):  # the engine has logged it once for the whole batch
            return unacknowledged(error)
        return error

    def told(self, execution: Execution, error: Exception) -> Exception:
        """The error that a client is told."""
        if isinstance(error, StorageError) and not isinstance(error, CommitError):
            # The text of the error is enough: a traceback would not help an operator.
            _log.error("the store failed: %s", error)
            return InternalServerError(INTERNAL)
        # (a variable for its result would make a reference cycle with its traceback)
        return self.translated(execution, error)

    def sweep(self) -> float:
        """Do the due work of all lanes (`sweep_…`). Returns the seconds until more work is due."""
        return min([self.sweep_tables(), *map(self.sweep_aside, self.jobs.lanes)])

    def sweep_tables(self) -> float:
        """Like `sweep`, for work that needs only the store: states, expiry, new and lagging indexes."""
        self.background.clock_is_real = is_real(self.clock)
        return sweeps.sweep(self.engine, self.clock.now, self.settings, self.background)

    def sweep_aside(self, lane: str) -> float:
        """Like `sweep`, for the work of a lane of `aside`, which may wait for something else."""
        self.background.clock_is_real = is_real(self.clock)
        units, background = [kind.units for kind in self.jobs.lanes[lane]], self.background
        at = background.aside[lane]
        return sweeps.sweep_aside(self.engine, self.clock.now, self.settings, background, units, at)

    def release(self, lane: str) -> None:
        """Close the files and connections of a lane. Its work continues from its stored position."""
        for kind in self.jobs.lanes[lane]:
            kind.forget()

    def settle(self) -> None:
        """Do all background work that is due, for example after the clock was changed."""
        while self.sweep() <= 0:
            pass

    def snapshot(self) -> Snapshot:
        """All tables, items and streams as they are now. Copies no items. Raises Unsupported as `restore`."""
        return self._rewinding().snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the state of `snapshot`, but not the clock; takes microseconds, and may be repeated. Raises
        Unsupported (`storage.failures`) for a database on disk."""
        self._rewinding().restore(snapshot)
        self._kept.clear()
        self.background.forget()
        for lane in self.jobs.lanes:
            self.release(lane)
        self._next_sweep = 0.0

    def _rewinding(self) -> Rewinding:
        engine = self.engine
        if isinstance(engine, Rewinding):
            return engine
        raise Unsupported(
            f"The {engine.name} engine keeps no snapshots. A database in memory does: use "
            "hashrange.Database.in_memory() or hashrange.local(), or copy the data directory."
        )

    def overview(self, after: str = "", tables_max: int | None = None) -> list[dict[str, Any]]:
        """The states, sizes and builds of at most `tables_max` tables whose names come after `after`."""
        return self.engine.read(lambda reader: overview.tables(reader, after, tables_max))

    def overview_of(self, full_name: str) -> dict[str, Any] | None:
        """What `overview` says of one table; None if there is none with this full name."""
        return self.engine.read(lambda reader: overview.table(reader, full_name))

    def tend(self) -> None:
        """Call `sweep` if it is due. The client in process does so before every request."""
        now = self.clock.now()
        # Setting the clock back must not delay the background work.
        if has_come(self._next_sweep, now, self.settings.sweep_seconds):
            self._next_sweep = now + self.sweep()

    def close(self) -> None:
        """End the running requests, and close the engine. Idempotent. Later requests raise StoreClosed."""
        self._workers.close()
        self.background.leave()
        self.engine.close()
        for kinds in self.jobs.lanes.values():
            for kind in kinds:
                kind.close()
        self._kept.clear()
        self.clients.clear()


def _new_id() -> str:
    return str(uuid.uuid4())
