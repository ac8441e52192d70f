"""The engine over PostgreSQL. This module runs the bodies; see the package for what makes them serializable.

The life of a write:

1. `submit` (or `write`) runs the body on the caller's thread, under the engine's only lock, over the known
   records. If records are missing, they are fetched, and the body runs again: on the event loop, or on the
   thread that waits in `write`.
2. `commits` sends one group after another, and delivers the outcomes of its bodies.
3. A body that reads more than records waits for the store's lock, and runs on the commit thread.

While the collecting group is full, submitted bodies wait in a queue, in order, and run when the next group
collects. So `submit` never waits.

Refuses to know: what records mean.
"""

from __future__ import annotations

import atexit
import select
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock
from time import monotonic
from typing import Any, Final, TypeVar

from hashrange import pace
from hashrange.errors import bare
from hashrange.storage.api import Reader, Transaction
from hashrange.storage.failures import (
    CommitFault,
    StorageError,
    StoreClosed,
    StoreOutgrown,
    Unsupported,
)
from hashrange.storage.loops import Done, Loop, Outcome, stopped
from hashrange_postgres import schema as schemas
from hashrange_postgres.bodies import Missing, NeedsStore
from hashrange_postgres.cache import Catalog
from hashrange_postgres.commits import Commits
from hashrange_postgres.fetching import Fetched, Fetching, FetchRequest
from hashrange_postgres.members import Member, commit_failed
from hashrange_postgres.reads import Attempt, Reads
from hashrange_postgres.running import discover
from hashrange_postgres.upkeep import Monitor, Upkeep
from hashrange_postgres.wire.connections import (
    Lost,
    Pool,
    Refused,
    close,
    unreachable,
)
from hashrange_postgres.wire.opening import first_connection
from hashrange_postgres.wire.statements import Statements
from hashrange_postgres.writer import Writer

T = TypeVar("T")

CACHE_BYTES: Final = 256 * 1024 * 1024
"""The most memory that the cache of records takes, unless it is given another size."""
ANSWER_SECONDS: Final = 20.0
"""How long PostgreSQL may take to confirm a commit, or to answer a read."""
_SLOW_SHARE: Final = 1 / 8
"""A commit that takes longer than this share of `answer_seconds` is a problem, which `/health` shows."""
REFUSAL_SECONDS: Final = 60.0
"""How long after PostgreSQL has refused a write this counts as a problem."""
CONNECTIONS_MAX: Final = 7
"""Connections for reads and upkeep. There is one more on which the event loop reads, and one that writes."""


class PostgresEngine:
    """The store in a schema of a PostgreSQL database, which is made if it is missing.

    `url` is a connection string of PostgreSQL, `postgresql://user@host/database`. Other engines may use the
    store at the same time.
    """

    name = "postgresql"
    runs_once = False  # a group that was overtaken runs its bodies again

    def __init__(
        self,
        url: str,
        *,
        schema: str = schemas.SCHEMA,
        cache_bytes: int = CACHE_BYTES,
        batch_bodies_max: int = 1_024,
        answer_seconds: float = ANSWER_SECONDS,
    ) -> None:
        """Raises UnknownFormat, StorageError."""
        if not hasattr(select, "poll"):
            raise StorageError(
                "Windows cannot wait for PostgreSQL as this server does. Run the server in WSL or in a "
                "container, or keep the tables in a directory (--data-dir)."
            )
        # The other half is for finding out what became of a commit, or for another try to read.
        statement_seconds = answer_seconds / 2
        connection = first_connection(url)
        try:
            schemas.prepare(connection, schema)
        finally:
            close(connection)
        statements = Statements(schema)
        catalog = Catalog()
        self.loop = Loop(self._told, self._left)
        self._writer = Writer(
            url, statements, catalog, self.loop, name="hashrange", seconds_max=statement_seconds
        )
        try:
            self._writer.connect_again()
        except (Lost, Refused) as error:
            raise unreachable(str(error)) from None
        self._pool = Pool(url, CONNECTIONS_MAX, statement_seconds)
        self._fetching = Fetching(
            self._pool, statements, catalog, self.loop, self._learn, self._settled_by_fetch
        )
        self._commits = Commits(
            self._writer,
            catalog,
            self.loop,
            bodies_max=batch_bodies_max,
            cache_bytes=cache_bytes,
            seconds_max=answer_seconds,
            rerun=self._rerun,
            run_queued=self._run_queued,
        )
        self._turns = self._commits.turns
        self._reads = Reads(self._pool, statements, catalog, self._turns.cache, self._fetching)
        self._upkeep = Upkeep(self._pool, statements, catalog)
        self._slow_seconds = answer_seconds * _SLOW_SHARE
        self._monitor = Monitor(self._pool, self._is_slow)
        self.clock = self._monitor.clock
        self._threads = ThreadPoolExecutor(CONNECTIONS_MAX, thread_name_prefix="hashrange-bodies")
        self._closing = Lock()
        self._fetching.now(FetchRequest(()))  # the catalog's version, so that bodies can run
        atexit.register(self.close)

    def _told(self) -> None:
        self._commits.told()

    def _left(self) -> None:
        """Have threads do what a former loop should have done."""
        self._fetching.release()
        self._commits.release()

    def _settled_by_fetch(self, bodies: int) -> None:
        self._commits.settled(bodies)

    def _learn(self, fetched: Fetched) -> None:
        self._commits.learn(fetched)

    @property
    def commit_fault(self) -> CommitFault | None:
        return self._commits.fault

    @commit_fault.setter
    def commit_fault(self, fault: CommitFault | None) -> None:
        self._commits.fault = fault

    @property
    def connected_to(self) -> str:
        return self._writer.connected_to

    def counts(self) -> dict[str, int]:
        commits, writer = self._commits, self._writer
        return {
            "fetches": self._fetching.statements_sent,
            "direct_reads": self._reads.direct_reads,
            "commits": writer.statements_sent,
            "lost_commits": commits.losses,
            "bodies_alone": writer.bodies_alone,
            "reconnections": writer.connections_made - 1,
        }

    def commit_seconds(self) -> float:
        return self._turns.commit_seconds()

    def problems(self) -> list[str]:
        commits, problems = self._commits, []
        seconds = self._turns.commit_seconds()
        silent_seconds = self._monitor.silent_seconds()
        if seconds > self._slow_seconds:
            waits_for = self._monitor.waits_for
            problems.append(f"a commit has been under way for {seconds:.0f} seconds{waits_for}")
        elif silent_seconds > self._slow_seconds:
            problems.append(f"PostgreSQL has not answered for {silent_seconds:.0f} seconds")
        if monotonic() - commits.refused_at < REFUSAL_SECONDS:
            problems.append(f"PostgreSQL has refused a write: {commits.refusal}")
        return problems

    # Reads.

    def read(self, body: Callable[[Reader], T]) -> T:
        if self._turns.closed:
            raise StoreClosed
        self._turns.catalog.check()
        return self._reads.read(body)

    def submit_read(self, body: Callable[[Reader], Any], done: Done) -> None:
        if self._turns.closed:
            done(None, StoreClosed())
            return
        if self._turns.catalog.outgrown:
            done(None, StoreOutgrown(self._turns.catalog.outgrown))
            return
        attempt = self._reads.attempt(body, done)
        if attempt.run(None):
            done(attempt.result, attempt.raised)
            return
        self._begun()
        self._go_on_reading(attempt)

    def _go_on_reading(self, attempt: Attempt) -> None:
        if attempt.direct:
            self._threads.submit(self._aside, partial(self._reads.directly, attempt.body), attempt.done)
        else:
            then = partial(self._fetched_for_read, attempt)
            self._fetching.later(attempt.wanted, then, attempt.verify)

    def _fetched_for_read(self, attempt: Attempt, fetched: Fetched | StorageError) -> None:
        """Run a read body again, as a task of the loop."""
        if isinstance(fetched, StorageError):
            self._settled(attempt.done, None, fetched)
            return
        outcome = self.loop.in_turn(partial(self._read_again, attempt, fetched), attempt.done)
        if outcome is not None:
            self._settled(*outcome)

    def _read_again(self, attempt: Attempt, fetched: Fetched) -> Outcome | None:
        if attempt.run(fetched):
            return attempt.done, attempt.result, attempt.raised
        self._go_on_reading(attempt)
        return None

    # Writes.

    def write(self, body: Callable[[Transaction], T]) -> T:
        turns = self._turns
        with turns.lock:
            turns.check_usable()
            turns.unsettled += 1
        try:
            return self._write(body)  # type: ignore[no-any-return]
        finally:
            self._commits.settled(1)

    def _write(self, body: Callable[[Transaction], Any]) -> Any:
        turns = self._turns
        member = Member(body, None)
        member.gate.acquire()
        while True:
            try:
                with turns.lock:
                    turns.wait_for_room()
                    waits = turns.perform(member)
                    if waits and turns.committing is None:
                        turns.release()
            except Missing as missing:
                self._fetching.now(self._missed(member, missing))
                continue
            except NeedsStore:
                self._commits.wait_for_store(member)
                waits = True
            if waits:
                member.gate.acquire()
            if not member.again:
                return _outcome(member)
            member.again = False
            if member.missing:
                self._fetching.now(FetchRequest(member.missing))

    def submit(self, body: Callable[[Transaction], Any], done: Done) -> None:
        turns = self._turns
        member = Member(body, done)
        needed: Missing | NeedsStore | None = None
        error: StorageError | None = None
        pace.acquire(turns.lock)
        try:
            turns.check_usable()
            queued = turns.queue.bodies
            if queued or turns.is_full():
                queued.append(member)
                turns.unsettled += 1
                return
            waits = self._take(member)
            if waits:
                turns.unsettled += 1
        except (Missing, NeedsStore) as needs:
            needed = needs
            turns.unsettled += 1
        except StorageError as refused:
            error = refused
        finally:
            turns.lock.release()
        if error is not None:
            done(None, error)
        elif isinstance(needed, Missing):
            member.misses = 1
            self._fetching.later(FetchRequest(needed.keys), partial(self._fetched_for_write, member))
        elif needed is not None:
            self._commits.wait_for_store(member)
        elif not waits:
            done(member.result, member.raised)

    def _take(self, member: Member) -> bool:
        """Run a submitted body; whether its outcome waits for the group. Needs the lock."""
        waits = self._turns.perform(member)
        if waits:
            self._commits.ask()
        return waits

    def _missed(self, member: Member, missing: Missing) -> FetchRequest:
        """The records to fetch for a body that was ended; called without any lock."""
        return FetchRequest(discover(member, missing.keys, self._turns.catalog.state, self._turns.cache))

    def _fetched_for_write(self, member: Member, fetched: Fetched | StorageError) -> None:
        """Run a body again, as a task of the loop."""
        assert member.done is not None
        if isinstance(fetched, StorageError):
            outgrown = isinstance(fetched, StoreOutgrown)
            self._settled(member.done, None, fetched if outgrown else commit_failed(str(fetched)))
            return
        self._run_member(member)

    def _run_member(self, member: Member, *, queued: bool = False) -> None:
        """Run a submitted body whose outcome was not delivered by `submit`, as a task of the loop."""
        assert member.done is not None
        outcome = self.loop.in_turn(partial(self._try_member, member, queued), member.done)
        if outcome is not None:
            self._settled(*outcome)

    def _try_member(self, member: Member, queued: bool) -> Outcome | None:
        """The outcome of a body; None: it waits for something. Raises CommitFailed, and the exception that
        ends the body."""
        turns = self._turns
        assert member.done is not None
        try:
            with turns.lock:
                if turns.broken is not None:
                    raise commit_failed(turns.broken)
                if turns.is_full() and not queued:
                    turns.queue.bodies.append(member)
                    return None
                if not self._take(member):
                    return member.done, member.result, member.raised
        except Missing as missing:
            self._fetching.later(self._missed(member, missing), partial(self._fetched_for_write, member))
        except NeedsStore:
            self._commits.wait_for_store(member)
        return None

    def _run_queued(self, member: Member) -> Callable[[], None]:
        """How a queued body runs, for which there is room: without the lock, because it may miss records."""
        return partial(self._run_member, member, queued=True)

    def _rerun(self, members: list[Member]) -> None:
        """Run submitted bodies that lost again, over the current records."""
        for member in members:
            then = partial(self._fetched_for_write, member)
            self._fetching.later(FetchRequest(member.missing), then, at_once=True)

    # Threads of the engine, and the loop.

    def _aside(self, work: Callable[[], Any], done: Done) -> None:
        """Run a body on a thread of the engine, as on a worker thread: it lets other threads run."""
        turn = pace.turn()
        turn.task = pace.Task()
        result: Any = None
        failed: Exception | None = None
        try:
            result = work()
        except Exception as error:
            failed = bare(error)
        except BaseException as error:
            failed = stopped(error)
        finally:
            turn.task = None
        self._settled(done, result, failed)

    def _begun(self) -> None:
        turns = self._turns
        with turns.lock:
            turns.unsettled += 1

    def _settled(self, done: Done, result: Any, error: Exception | None) -> None:
        self.loop.post([(done, result, error)])
        self._commits.settled(1)

    # The store.

    def refusing(self) -> str | None:
        if self._turns.catalog.outgrown:
            return str(StoreOutgrown(self._turns.catalog.outgrown))
        broken = self._turns.broken
        return broken and broken + self._monitor.waits_for

    def checkpoint(self, directory: str) -> None:
        raise Unsupported("The PostgreSQL engine has no checkpoint; use pg_dump or pg_basebackup instead.")

    def upkeep(self) -> None:
        if not self._turns.closed:
            self._upkeep.begin()
            self._monitor.start()

    def _is_slow(self) -> bool:
        return self._turns.broken is not None or self._turns.commit_seconds() > self._slow_seconds

    def close(self) -> None:
        with self._closing:
            turns = self._turns
            with turns.lock:
                if turns.closed:
                    return
                turns.closed = True
            self.loop.close()
            self._fetching.release()
            self._commits.drain()
            self._threads.shutdown()
            self._fetching.close()
            self._commits.end()
            self._upkeep.close()
            self._monitor.close()
            self._pool.close()
            atexit.unregister(self.close)


def _outcome(member: Member) -> Any:
    """The result of a body whose caller is a thread. Raises what the body raises, or why it has failed."""
    if member.failed is not None:
        raise member.failed
    if member.stopped is not None:
        raise member.stopped
    if member.raised is not None:
        try:
            raise member.raised
        finally:
            member.raised = None  # its traceback holds this frame
    return member.result
