"""Does the due background work of a server on threads beside the event loop.

Each `Sweeper` has a thread: one for work that needs only the store, and one for each lane of work that may
wait a long time for something else (`Database.aside`). The threads are daemons, so a bucket that does not
answer cannot keep the process from ending: the job's current step is repeated after the next start.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread
from typing import Any, Final

from hashrange.storage.failures import CommitError, StorageError

# While more background work is due, a sweep rests for this share of the processor time of its bites. The time
# in which a bite waits for the disk counts as rest.
_REST_SHARE: Final = 0.25
_REST_SECONDS_MAX: Final = 0.05
_SECONDS_MAX: Final = 60.0
_RETRY_SECONDS: Final = 5.0

_log = logging.getLogger(__name__)


class Sweeper:
    """Calls `sweep` when it is due, until `stopping` is set, then `release`; both on its thread."""

    def __init__(
        self, name: str, sweep: Callable[[], float], release: Callable[[], None], stopping: asyncio.Event
    ) -> None:
        self._name = name
        self._sweep = sweep
        self._release = release
        self._stopping = stopping
        self._given: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start, on the running event loop."""
        Thread(target=self._work, name=f"hashrange-{self._name}", daemon=True).start()
        self._task = asyncio.get_running_loop().create_task(self._run())

    async def once(self) -> float:
        """Sweep once; returns the seconds until the next sweep is due, or infinity if the server stops
        meanwhile."""
        swept = asyncio.ensure_future(self._aside(self._sweep))
        stopped = asyncio.ensure_future(self._stopping.wait())
        await asyncio.wait([swept, stopped], return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        return swept.result() if swept.done() else math.inf

    async def end(self, seconds_max: float | None) -> None:
        """Wait for the end of the work, but at most `seconds_max`; work that still runs then is abandoned."""
        if self._task is None:
            return
        await asyncio.wait([self._task], timeout=seconds_max)
        if not self._task.done():
            self._task.cancel()
            _log.warning("pending background work is abandoned", extra={"fields": {"work": self._name}})
        self._given.put(None)

    def _aside(self, work: Callable[[], Any]) -> asyncio.Future[Any]:
        """Do `work` on the thread."""
        future: Future[Any] = Future()
        self._given.put((future, work))
        return asyncio.wrap_future(future)

    def _work(self) -> None:
        while (given := self._given.get()) is not None:
            future, work = given
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(work())
            except BaseException as error:
                future.set_exception(error)
            del given, future, work

    async def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                wait_seconds, rest_seconds = await self._aside(self._bite)
            except CommitError:  # the engine has logged it once for the whole batch
                wait_seconds = rest_seconds = _RETRY_SECONDS
            except StorageError as error:  # its text is enough
                _log.error("background work failed: %s", error)
                wait_seconds = rest_seconds = _RETRY_SECONDS
            except Exception:
                _log.exception("background work failed")
                wait_seconds = rest_seconds = _RETRY_SECONDS
            wait_seconds = min(max(wait_seconds, rest_seconds), _SECONDS_MAX)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), wait_seconds)
        await self._aside(self._release)

    def _bite(self) -> tuple[float, float]:
        """Do a bite of the work. Returns the seconds until the next bite is due, and the seconds to rest
        before it."""
        began, used = time.perf_counter(), time.thread_time()
        wait_seconds = self._sweep()
        used = time.thread_time() - used
        waited = time.perf_counter() - began - used
        rest_seconds = used * _REST_SHARE - waited
        return wait_seconds, min(max(rest_seconds, 0.0), _REST_SECONDS_MAX)
