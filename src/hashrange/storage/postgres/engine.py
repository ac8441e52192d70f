"""The engine over PostgreSQL. This module runs the bodies; see the package for what makes them serializable.

The life of a write:

1. `submit` (or `write`) runs the body on the caller's thread, under the engine's only lock, over the known
   records. If records are missing, they are fetched, and the body runs again: on the event loop, or on the
   thread that waits in `write`.
2. `commits` sends one group after another, and delivers the outcomes of its bodies.
3. A body that reads more than records runs alone: on the thread of `write`, or on a thread of the engine.

While the collecting group is full, submitted bodies wait in a queue, in order, and run when the next group
collects. So `submit` never waits.

Refuses to know: what records mean.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from threading import Lock
from typing import Any, Final, TypeVar

from hashrange import pace
from hashrange.clock import StoreClock
from hashrange.errors import bare
from hashrange.storage.api import (
    CommitFailed,
    CommitFault,
    Done,
    LoopWatch,
    Reader,
    Stopped,
    StorageError,
    StoreClosed,
    Transaction,
    Unsupported,
)
from hashrange.storage.postgres import schema as schemas
from hashrange.storage.postgres.alone import Alone
from hashrange.storage.postgres.bodies import Contended, Missing, NeedsAlone
from hashrange.storage.postgres.cache import Catalog, Key
from hashrange.storage.postgres.commits import Commits
from hashrange.storage.postgres.connections import (
    Lost,
    Pool,
    Refused,
    close,
    connect,
    unreachable,
)
from hashrange.storage.postgres.direct import Statements
from hashrange.storage.postgres.fetching import Fetched, Fetching, Wanted
from hashrange.storage.postgres.loops import Loop
from hashrange.storage.postgres.members import LOSSES_MAX, Member, commit_failed, discover
from hashrange.storage.postgres.reads import Attempt, Reads
from hashrange.storage.postgres.upkeep import Upkeep
from hashrange.storage.postgres.writer import Writer

T = TypeVar("T")

CACHE_BYTES: Final = 256 * 1024 * 1024
MEASURE_SECONDS: Final = 10.0
"""How often the clock is compared with that of PostgreSQL."""
CONNECTIONS_MAX: Final = 7
"""Connections for reads and upkeep. There is one more on which the event loop reads, and one that writes."""


class PostgresEngine:
    """The store in a schema of a PostgreSQL database, which is made if it is missing.

    `url` is a connection string of PostgreSQL, `postgresql://user@host/database`. Other engines may use the
    store at the same time.
    """

    name = "postgresql"

    def __init__(
        self,
        url: str,
        *,
        schema: str = schemas.SCHEMA,
        cache_bytes: int = CACHE_BYTES,
        batch_bodies_max: int = 1_024,
    ) -> None:
        """Raises UnknownFormat, StorageError."""
        try:
            connection = connect(url)
        except Lost as error:
            raise unreachable(str(error)) from None
        try:
            schemas.prepare(connection, schema)
        finally:
            close(connection)
        statements = Statements(schema)
        catalog = Catalog()
        self._loop = Loop(self._told)
        self._writer = Writer(url, statements, catalog, self._loop, "hashrange")
        try:
            self._writer.connect_again()
        except (Lost, Refused) as error:
            raise unreachable(str(error)) from None
        self._pool = Pool(url, CONNECTIONS_MAX)
        self._fetching = Fetching(
            self._pool, statements, catalog, self._loop, self._learn, self._settled_by_fetch
        )
        self._commits = Commits(
            self._writer,
            catalog,
            self._loop,
            bodies_max=batch_bodies_max,
            cache_bytes=cache_bytes,
            rerun=self._rerun,
            run_queued=self._run_queued,
        )
        self._alone = Alone(self._commits)
        self._reads = Reads(self._pool, statements, catalog, self._commits.cache, self._fetching)
        self._upkeep = Upkeep(self._pool, statements, catalog)
        self.clock = StoreClock(self._upkeep.ask_time)
        self._threads = ThreadPoolExecutor(CONNECTIONS_MAX, thread_name_prefix="hashrange-bodies")
        self._closing = Lock()
        self._fetching.now(Wanted(()))  # the catalog's version, so that bodies can run
        atexit.register(self.close)

    def _told(self) -> None:
        self._commits.told()

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

    # Reads.

    def read(self, body: Callable[[Reader], T]) -> T:
        if self._commits.closed:
            raise StoreClosed
        return self._reads.read(body)

    def submit_read(self, body: Callable[[Reader], Any], done: Done) -> None:
        if self._commits.closed:
            done(None, StoreClosed())
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

    def _fetched_for_read(self, attempt: Attempt, found: Fetched | StorageError) -> None:
        """Run a read body again, as a task of the loop."""
        if isinstance(found, StorageError):
            self._settled(attempt.done, None, found)
            return
        turn = self._begin_turn()
        try:
            ended = attempt.run(found)
        except BaseException as error:  # it concerns only this body; the others still run
            self._settled(attempt.done, None, _stopped(error))
            return
        finally:
            turn.end()
        if ended:
            self._settled(attempt.done, attempt.result, attempt.raised)
        else:
            self._go_on_reading(attempt)

    # Writes.

    def write(self, body: Callable[[Transaction], T]) -> T:
        commits = self._commits
        with commits.lock:
            commits.check_usable()
            commits.unsettled += 1
        try:
            return self._write(body)  # type: ignore[no-any-return]
        finally:
            commits.settled(1)

    def _write(self, body: Callable[[Transaction], Any]) -> Any:
        commits = self._commits
        member = Member(body, None)
        member.gate.acquire()
        while member.losses <= LOSSES_MAX:
            try:
                with commits.lock:
                    commits.wait_for_room()
                    if commits.broken is not None:
                        raise commit_failed(commits.broken)
                    waits = commits.perform(member)
                    if waits:
                        commits.release_now()
            except Missing as missing:
                self._fetching.now(self._missed(member, missing))
                continue
            except Contended as contended:
                commits.wait_for_locks(member, contended.keys)
                waits = True
            except NeedsAlone:
                break
            if waits:
                member.gate.acquire()
            if member.again:
                member.again = False
                if member.missing:
                    self._fetching.now(Wanted(member.missing))
                continue
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
        return self._alone.run(body)

    def submit(self, body: Callable[[Transaction], Any], done: Done) -> None:
        commits = self._commits
        member = Member(body, done)
        pace.acquire(commits.lock)
        keys: list[Any] | None = None
        alone = False
        contended: list[Key] | None = None
        error: StorageError | None = None
        try:
            commits.check_usable()
            if commits.queued or commits.full:
                commits.queued.append(member)
                commits.unsettled += 1
                return
            waits = self._take(member)
            if waits:
                commits.unsettled += 1
        except Missing as missing:
            keys = missing.keys
            commits.unsettled += 1
        except NeedsAlone:
            alone = True
            commits.unsettled += 1
        except Contended as one:
            contended = one.keys
            commits.unsettled += 1
        except StorageError as refused:
            error = refused
        finally:
            commits.lock.release()
        if error is not None:
            done(None, error)
        elif keys is not None:
            member.misses = 1
            self._fetching.later(Wanted(keys), partial(self._fetched_for_write, member))
        elif alone:
            self._go_alone(member)
        elif contended is not None:
            commits.wait_for_locks(member, contended)
        elif not waits:
            done(member.result, member.raised)

    def _take(self, member: Member) -> bool:
        """Run a submitted body; whether its outcome waits for the group. Needs the lock."""
        waits = self._commits.perform(member)
        if waits:
            self._commits.ask()
        return waits

    def _missed(self, member: Member, missing: Missing) -> Wanted:
        """The records to fetch for a body that was ended; called without any lock."""
        return Wanted(discover(member, missing.keys, self._commits.catalog.state, self._commits.cache))

    def _fetched_for_write(self, member: Member, found: Fetched | StorageError) -> None:
        """Run a body again, as a task of the loop."""
        assert member.done is not None
        if isinstance(found, StorageError):
            self._settled(member.done, None, commit_failed(str(found)))
            return
        self._run_member(member)

    def _run_member(self, member: Member, *, queued: bool = False) -> None:
        """Run a submitted body whose outcome was not delivered by `submit`, as a task of the loop."""
        done = member.done
        assert done is not None
        turn = self._begin_turn()
        try:
            ended = self._try_member(member, queued)
        except CommitFailed as error:
            self._settled(done, None, error)
        except BaseException as error:  # it concerns only this body; the others still run
            self._settled(done, None, _stopped(error))
        else:
            if ended:
                self._settled(done, member.result, member.raised)
        finally:
            turn.end()

    def _try_member(self, member: Member, queued: bool) -> bool:
        """Whether a body has its outcome; otherwise it waits for something. Raises CommitFailed, and the
        exception that ends the body."""
        commits = self._commits
        try:
            with commits.lock:
                if commits.broken is not None:
                    raise commit_failed(commits.broken)
                if commits.full and not queued:
                    commits.queued.append(member)
                    return False
                return not self._take(member)
        except Missing as missing:
            self._fetching.later(self._missed(member, missing), partial(self._fetched_for_write, member))
        except Contended as contended:
            commits.wait_for_locks(member, contended.keys)
        except NeedsAlone:
            self._go_alone(member)
        return False

    def _run_queued(self) -> None:
        """Run as many queued bodies as the collecting group has room for, each as a task of the loop."""
        commits = self._commits
        with commits.lock:
            if commits.full or not commits.queued:
                return
            member = commits.queued.popleft()
        self._run_member(member, queued=True)
        self._loop.post(tasks=[self._run_queued])

    def _rerun(self, members: list[Member]) -> None:
        """Run submitted bodies that lost again, over the current records."""
        for member in members:
            if member.losses > LOSSES_MAX:
                self._go_alone(member)
            else:
                then = partial(self._fetched_for_write, member)
                self._fetching.later(Wanted(member.missing), then, at_once=True)

    def _go_alone(self, member: Member) -> None:
        assert member.done is not None
        self._threads.submit(self._aside, partial(self._alone.run, member.body), member.done)

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
            failed = _stopped(error)
        finally:
            turn.task = None
        self._settled(done, result, failed)

    def _begin_turn(self) -> pace.Turn:
        turn = pace.turn()
        turn.begin(pace.TURN_SECONDS if self._loop.is_limited else pace.WITHOUT_END)
        return turn

    def _begun(self) -> None:
        commits = self._commits
        with commits.lock:
            commits.unsettled += 1

    def _settled(self, done: Done, result: Any, error: Exception | None) -> None:
        self._loop.post([(done, result, error)])
        self._commits.settled(1)

    def deliver_on(
        self,
        deliver: Callable[[Callable[[], None]], None],
        defer: Callable[[Callable[[], None]], object] | None = None,
        watch: LoopWatch | None = None,
    ) -> None:
        self._loop.use(deliver, defer, watch)
        self._fetching.release()
        self._commits.release()

    # The store.

    def refusing(self) -> str | None:
        return self._commits.broken

    def checkpoint(self, directory: str) -> None:
        raise Unsupported("The PostgreSQL engine has no checkpoint; use pg_dump or pg_basebackup instead.")

    def upkeep(self) -> None:
        if not self._commits.closed:
            self._upkeep.begin()
            with suppress(StorageError):  # PostgreSQL is unreachable: the clock runs on
                self.clock.measure(MEASURE_SECONDS)

    def close(self) -> None:
        with self._closing:
            commits = self._commits
            with commits.lock:
                if commits.closed:
                    return
                commits.closed = True
            self._loop.close()
            self._fetching.release()
            commits.drain()
            self._threads.shutdown()
            self._fetching.close()
            commits.end()
            self._upkeep.close()
            self._pool.close()
            atexit.unregister(self.close)


def _stopped(error: BaseException) -> Stopped:
    return Stopped(f"The body was ended by {error!r}.")
