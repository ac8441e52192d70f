"""The event loop that outcomes are delivered on, and that runs bodies again.

Outcomes and tasks are posted to the loop; one call of `deliver` hands over everything posted until the loop
gets to it. Without a loop, the posting thread does the work. A closed loop accepts nothing: its outcomes are
dropped, and its tasks run on the posting thread.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Iterable
from threading import Lock, get_ident
from typing import Any, Final

from hashrange.storage.api import Done, LoopWatch

_log = logging.getLogger(__name__)

_TASKS_PER_TURN: Final = 64
LOOP_SECONDS_MAX: Final = 1.0
"""If the event loop does not handle an answer of PostgreSQL for about this long, a thread does."""

Outcome = tuple[Done, Any, Exception | None]
Task = Callable[[], None]
"""Runs bodies. Must not raise."""


def call(callback: Callable[[], None]) -> None:
    """Deliver on the calling thread: the default until `deliver_on` sets another way."""
    callback()


class Loop:
    """The event loop of an engine. `told` is called on it after outcomes were delivered."""

    def __init__(self, told: Callable[[], None]) -> None:
        self._told = told
        self._lock = Lock()
        self._deliver: Callable[[Callable[[], None]], None] = call
        self.defer: Callable[[Callable[[], None]], object] | None = None
        self._watch: LoopWatch | None = None
        self._outcomes: list[Outcome] = []
        self._tasks: deque[Task] = deque()
        self._posted = False
        self._runners: set[int] = set()  # the threads that run tasks
        self._closing = False
        self._dead = False  # the event loop is closed

    @property
    def is_limited(self) -> bool:
        """Whether bodies that run as tasks may take only a turn, because an event loop runs them."""
        return self.defer is not None and not self._closing and not self._dead

    @property
    def watching(self) -> LoopWatch | None:
        """How to have the loop wait for answers of PostgreSQL, if it can."""
        return self._watch if self.is_limited else None

    def use(
        self,
        deliver: Callable[[Callable[[], None]], None],
        defer: Callable[[Callable[[], None]], object] | None,
        watch: LoopWatch | None,
    ) -> None:
        """Deliver by this loop from now on."""
        with self._lock:
            self._deliver, self.defer, self._watch = deliver, defer, watch
            self._dead = False
            self._posted = False  # an earlier loop may never make the call it was asked for
        self._wake()

    def post(self, outcomes: Iterable[Outcome] = (), tasks: Iterable[Task] = ()) -> None:
        """Have outcomes delivered and tasks run. Called without any lock."""
        with self._lock:
            self._outcomes += outcomes
            self._tasks.extend(tasks)
        self._wake()

    def run(self, outcomes: Iterable[Outcome] = (), tasks: Iterable[Task] = ()) -> None:
        """Deliver outcomes and run tasks in this round. Called on the loop's thread, without any lock."""
        with self._lock:
            self._outcomes += outcomes
            self._tasks.extend(tasks)
        self._run()

    def close(self) -> None:
        """Run the waiting tasks on this thread, and later tasks on the threads that post them."""
        self._closing = True
        self._run_tasks()
        self._wake()

    def _wake(self) -> None:
        if get_ident() in self._runners:
            return  # this thread runs tasks, and afterwards handles what they have posted
        if self._closing and self._tasks:
            self._run_tasks()
        with self._lock:
            if self._posted or not (self._outcomes or self._tasks):
                return
            self._posted = self._deliver is not call
            deliver = self._deliver
        try:
            deliver(self._run)
        except Exception as error:
            # The frames of a logged traceback would keep connections open.
            _log.error("outcomes could not be delivered: %s", repr(error))
            with self._lock:
                self._posted = False
                self._dead = True
            self._run_tasks()
            with self._lock:
                self._outcomes.clear()

    def _run(self) -> None:
        """Called by the loop."""
        with self._lock:
            self._posted = False
            outcomes, self._outcomes = self._outcomes, []
        tell(outcomes)
        whole = self._run_tasks(_TASKS_PER_TURN if self.is_limited else None)
        with self._lock:
            more, self._outcomes = self._outcomes, []
        tell(more)
        if not whole and self.defer is not None:
            self.defer(self._run)
        if outcomes or more:
            self._told()

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


def tell(outcomes: Iterable[Outcome]) -> None:
    """Deliver outcomes, on the calling thread."""
    for done, result, error in outcomes:
        try:
            done(result, error)
        except Exception:  # the other receivers still get their outcomes
            _log.exception("the receiver of an outcome failed")
