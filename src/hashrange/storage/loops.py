"""The event loop of an engine: it hears the outcomes of submitted bodies, and runs the bodies that `submit`
could not run. All engines use it, so they know no event loop themselves.

- `Loop` delivers outcomes and runs tasks. One call of `deliver` hands over everything posted until the loop
  gets to it, so a batch wakes the loop once.
- `Queue` keeps the bodies that an engine has no room for, and runs them when it has.
- `Gathering` has a commit start when the rounds of the loop bring no more bodies.

Without an event loop the posting thread does the work. A loop that is closed (its `deliver` raises) accepts
nothing: the outcomes are dropped, and the tasks run on the posting thread. When another loop takes over, it
gets the outcomes and the tasks that the former loop has not got to.

Refuses to know: what bodies do, and what commits are.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock, get_ident
from typing import Any, Final, Generic, TypeVar

from hashrange import pace
from hashrange.storage.failures import Stopped, StorageError

_log = logging.getLogger(__name__)

T = TypeVar("T")
B = TypeVar("B")

TASKS_PER_TURN: Final = 64
ROUNDS_MAX: Final = 8

Done = Callable[[Any, "Exception | None"], None]
"""Called exactly once with `(result, None)` or `(None, exception)`."""

Outcome = tuple[Done, Any, "Exception | None"]
"""The outcome of a body, and its receiver."""

Task = Callable[[], None]
"""Runs a body, or does other work of an engine on the loop. Must not raise."""

LoopWatch = Callable[[int, "Callable[[], None] | None"], object]
"""Called with a descriptor and a callback, which the event loop calls whenever there is something to read
from the descriptor. None in place of the callback ends the watch."""


def call(callback: Callable[[], None]) -> None:
    """Deliver on the calling thread: the default until `Loop.use` sets another way."""
    callback()


def _nothing() -> None:
    pass


class Loop:
    """The event loop that an engine delivers to.

    The engine's `delivered` is called on the loop after outcomes were delivered: their receivers may have
    submitted more. Its `left` is called, on any thread, when a loop may never make the calls it was asked
    for, because it is closed, or another loop has taken over.
    """

    def __init__(self, delivered: Callable[[], None] = _nothing, left: Callable[[], None] = _nothing) -> None:
        self._delivered = delivered
        self._left = left
        self._lock = Lock()
        self._deliver: Callable[[Callable[[], None]], None] = call
        self.defer: Callable[[Callable[[], None]], object] | None = None
        self._watch: LoopWatch | None = None
        self._outcomes: list[Outcome] = []
        self._tasks: deque[Task] = deque()
        self._waits = False  # the calls of `deliver` come later
        self._posted = False  # a call of `deliver` is still to come
        self._runners: set[int] = set()  # the threads that run tasks
        self._closing = False
        self._dead = False  # the event loop is closed

    def use(
        self,
        deliver: Callable[[Callable[[], None]], None],
        defer: Callable[[Callable[[], None]], object] | None = None,
        watch: LoopWatch | None = None,
    ) -> None:
        """Use the event loop whose thread calls this and will call `submit`. An engine that was given no
        loop delivers outcomes, and runs queued bodies, on threads of its own.

        `deliver(callback)` has the loop call `callback`, for example by `call_soon_threadsafe`. It is called
        on any thread, and must not block. If it raises, the loop counts as closed.

        `defer(callback)`, for example `call_soon`, has the loop call `callback` in its next round, when the
        caller of `submit` has nothing more to submit for now. It is called on the loop's thread only. A
        commit starts in such a round, so that it holds all bodies that were submitted together. With `defer`,
        a body takes no longer than a turn (`pace.TURN_SECONDS`), and queued bodies run a few at a time.

        `watch(descriptor, callback)`, for example by `add_reader` and `remove_reader`, has the loop call
        `callback` whenever there is something to read, and `watch(descriptor, None)` ends this. It is called
        on the loop's thread only, by an engine whose records another program keeps, and with `defer` only.

        Each call replaces all functions. A callback of the former loop may still be called, at any time or
        never.
        """
        with self._lock:
            self._deliver, self.defer, self._watch = deliver, defer, watch
            self._waits = deliver is not call
            self._dead = False
            self._posted = False  # an earlier loop may never make the call it was asked for
        self._left()
        self._wake()

    @property
    def is_limited(self) -> bool:
        """Whether an event loop runs bodies, for a turn each, and makes the calls that were deferred."""
        return self.defer is not None and not self._closing and not self._dead

    @property
    def watching(self) -> LoopWatch | None:
        """How to have the loop wait for data from a descriptor, if it can."""
        return self._watch if self.is_limited else None

    def post(self, outcomes: Iterable[Outcome] = (), tasks: Iterable[Task] = ()) -> None:
        """Have outcomes delivered and tasks run. Called on any thread, without any lock."""
        with self._lock:
            if outcomes:
                self._outcomes += outcomes
            if tasks:
                self._tasks.extend(tasks)
            usual = not self._runners and not self._closing
            if usual:
                if self._posted:
                    return
                self._posted = self._waits
                deliver = self._deliver
        if usual:
            self._hand_over(deliver)
        else:
            self._wake()

    def run(self, outcomes: Iterable[Outcome] = (), tasks: Iterable[Task] = ()) -> None:
        """Deliver outcomes and run tasks in this round. Called on the loop's thread, without any lock."""
        with self._lock:
            self._outcomes += outcomes
            self._tasks.extend(tasks)
        self._run()

    def in_turn(self, run: Callable[[], T], done: Done) -> T | Outcome:
        """Run a body that `submit` could not run, for no longer than a turn if an event loop runs it.
        Returns what `run` returns, or the outcome for `done` if `run` raises: the error of the engine, or
        `Stopped`. `run` itself catches what its body may raise."""
        turn = pace.turn()
        turn.begin(pace.TURN_SECONDS if self.is_limited else pace.WITHOUT_END)
        try:
            return run()
        except StorageError as error:
            return done, None, error
        except BaseException as error:  # it concerns only this body; the others still run
            return done, None, stopped(error)
        finally:
            turn.end()

    def close(self) -> None:
        """Run the waiting tasks on this thread, and later tasks on the threads that post them. Outcomes are
        delivered as before."""
        self._closing = True
        self._run_tasks()
        self._wake()

    def _wake(self) -> None:
        if self._runners and get_ident() in self._runners:
            return  # this thread runs tasks, and afterwards handles what they have posted
        if self._closing and self._tasks:
            self._run_tasks()
        with self._lock:
            if self._posted or not (self._outcomes or self._tasks):
                return
            self._posted = self._waits
            deliver = self._deliver
        self._hand_over(deliver)

    def _hand_over(self, deliver: Callable[[Callable[[], None]], None]) -> None:
        try:
            deliver(self._run)
        except Exception as error:
            self._refused(deliver, error)

    def _refused(self, deliver: Callable[[Callable[[], None]], None], error: Exception) -> None:
        """Do without the event loop, which is closed, unless another one has taken over meanwhile."""
        with self._lock:
            replaced = self._deliver is not deliver
            died = not replaced and not self._dead
            if not replaced:
                self._posted, self._dead = False, True
        if replaced:
            self._wake()
            return
        # The frames of a logged traceback would keep an engine open.
        _log.error("outcomes could not be delivered: %s", repr(error))
        self._run_tasks()
        with self._lock:
            self._outcomes.clear()
        if died:
            self._left()

    def _run(self) -> None:
        """Called by the loop."""
        with self._lock:
            self._posted = False
            outcomes, self._outcomes = self._outcomes, []
        tell(outcomes)
        delivered = bool(outcomes)
        if self._tasks:
            whole = self._run_tasks(TASKS_PER_TURN if self.is_limited else None)
            with self._lock:
                outcomes, self._outcomes = self._outcomes, []
            tell(outcomes)
            delivered = delivered or bool(outcomes)
            if not whole and self.defer is not None:
                self.defer(self._run)
        if delivered and self.is_limited:
            self._delivered()

    def _run_tasks(self, tasks_max: int | None = None) -> bool:
        """Run at most `tasks_max` tasks. Returns whether all are done."""
        thread = get_ident()
        if thread in self._runners:
            return True  # called by a task that this loop is running
        self._runners.add(thread)
        done = 0
        try:
            while True:
                with self._lock:
                    if not self._tasks:
                        return True
                    if done == tasks_max:
                        return False
                    task = self._tasks.popleft()
                done += 1
                try:
                    task()
                except Exception:
                    _log.exception("a task of the engine failed")
        finally:
            self._runners.discard(thread)


class Queue(Generic[B]):
    """The `bodies` that an engine has no room for, in order.

    `lock` is the engine's lock, and guards `bodies`. `run` runs a body as a task of the loop, under the lock;
    it returns the function, if any, that is to be called next without the lock.
    """

    __slots__ = ("_is_full", "_lock", "_loop", "_run", "bodies")

    def __init__(
        self,
        loop: Loop,
        lock: Lock,
        is_full: Callable[[], bool],
        run: Callable[[B], Callable[[], None] | None],
    ) -> None:
        self._loop = loop
        self._lock = lock
        self._is_full = is_full
        self._run = run
        self.bodies: deque[B] = deque()

    def go_on(self) -> None:
        """Run the bodies that there is room for, if any; called without the lock."""
        if self.bodies:
            self._loop.post(tasks=[self._run_next])

    def _run_next(self) -> None:
        with self._lock:
            if not self.bodies or self._is_full():
                return
            then = self._run(self.bodies.popleft())
        if then is not None:
            then()
        self.go_on()


class Gathering:
    """Has a commit start when the rounds of the event loop bring no more bodies.

    A commit of many bodies costs hardly more than a commit of a few. So while each round submits more bodies,
    the commit waits for one more round, up to ROUNDS_MAX rounds and `bodies_max` bodies. `bodies` tells how
    many a commit would hold now, 0 if none may begin. Both it and `start` are called on the loop, under the
    engine's lock; `start` returns the function, if any, that is to be called next without the lock.
    """

    __slots__ = ("_asked", "_bodies", "_bodies_max", "_collected", "_lock", "_loop", "_rounds", "_start")

    def __init__(
        self,
        loop: Loop,
        lock: Lock,
        bodies_max: int,
        bodies: Callable[[], int],
        start: Callable[[], Callable[[], None] | None],
    ) -> None:
        self._loop = loop
        self._lock = lock
        self._bodies_max = bodies_max
        self._bodies = bodies
        self._start = start
        self._asked = False  # the loop was asked to call `_round`
        self._collected = self._rounds = 0

    def ask(self) -> bool:
        """Have the loop start a commit soon. Returns False if there is no loop that could. Called on the
        loop's thread; needs the lock."""
        loop = self._loop
        if not loop.is_limited or loop.defer is None:
            return False
        if not self._asked:
            self._asked = True
            self._collected = self._rounds = 0
            loop.defer(self._round)
        return True

    def forget(self) -> None:
        """Ask again next time, because the loop that was asked may never make the call. Needs the lock."""
        self._asked = False

    def _round(self) -> None:
        loop = self._loop
        with self._lock:
            bodies = self._bodies()
            more = self._collected < bodies < self._bodies_max and self._rounds < ROUNDS_MAX
            if more and loop.is_limited and loop.defer is not None:
                self._collected = bodies
                self._rounds += 1
                loop.defer(self._round)
                return
            self._asked = False
            then = self._start()
        if then is not None:
            then()


def tell(outcomes: Iterable[Outcome]) -> None:
    """Deliver outcomes, on the calling thread."""
    for done, result, error in outcomes:
        try:
            done(result, error)
        except Exception:  # the other receivers still get their outcomes
            _log.exception("the receiver of an outcome failed")


def stopped(error: BaseException) -> Stopped:
    """The outcome of a body that was ended by an exception which a body does not raise by itself."""
    return Stopped(f"The body was ended by {error!r}.")
