"""Threads for work that takes too long for the event loop.

There are few threads, because Python code runs on one core at a time: the threads keep the event loop free,
and make nothing faster. Work starts in the order in which it came. The caller ensures that one client
does not submit all the work. The threads are started with the first piece of work, so a program without long
work has none. Beside them are `call_now`, `call_later` and `hold_up`, for programs without an event loop.

Refuses to know: what the work is.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from hashrange.pace import turns
from hashrange.pace.turns import Abandoned, Task

THREADS_MAX: Final = 2

Later = Callable[[float, Callable[[], None]], object]
"""Calls a function after a number of seconds."""

_log = logging.getLogger("hashrange")


class Workers:
    """A pool of threads. `tasks` are the tasks of the work that has not ended."""

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self.tasks: set[Task] = set()
        self._closed = False

    def start(self, work: Callable[[], None]) -> Task:
        """Do `work` on a thread, unless its task is abandoned before. Raises RuntimeError when the workers
        are closed."""
        if self._closed:
            raise RuntimeError("the workers are closed")
        if self._pool is None:
            self._pool = ThreadPoolExecutor(THREADS_MAX, thread_name_prefix="hashrange-worker")
        task = Task()
        self.tasks.add(task)
        try:
            self._pool.submit(self._run, task, work)
        except RuntimeError:
            self.tasks.discard(task)
            raise
        return task

    def _run(self, task: Task, work: Callable[[], None]) -> None:
        turn = turns.turn()
        turn.task = task
        try:
            if not task.abandoned:
                work()
        except Abandoned:
            pass
        except Exception:
            _log.exception("work on a worker thread failed")
        finally:
            turn.task = None
            self.tasks.discard(task)

    def close(self) -> None:
        """Abandon the work that is under way, and wait for its end. Idempotent."""
        self._closed = True
        for task in tuple(self.tasks):
            task.abandon()
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)


def call_now(callback: Callable[[], None]) -> None:
    """Call `callback` on this thread."""
    callback()


def call_later(seconds: float, callback: Callable[[], None]) -> object:
    """Call `callback` on a thread of its own when this many seconds have passed."""
    timer = threading.Timer(seconds, callback)
    timer.daemon = True
    timer.start()
    return timer


def hold_up(seconds: float) -> None:
    """Hold the calling thread up."""
    threading.Event().wait(seconds)
