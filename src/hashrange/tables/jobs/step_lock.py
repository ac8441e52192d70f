"""Lets the steps of jobs run one at a time, and closes their open resources when the work is over.

Programs without a server may sweep on several threads, and a step may be waiting for a bucket that does not
answer while the database is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Final

_END_SECONDS_MAX: Final = 1.0


class StepLock:
    """The lock that a runner's step holds. `close` closes the open resources of the steps."""

    def __init__(self, close: Callable[[], None]) -> None:
        self._close = close
        self._lock = Lock()
        self._is_over = False

    @contextmanager
    def held(self) -> Iterator[None]:
        """Run a block that holds the lock."""
        with self._lock:
            try:
                yield
            finally:
                if self._is_over:
                    self._close()

    def end(self) -> None:
        """Close open resources. If a step does not end within a moment, it closes them at its end: it may
        wait a long time for a bucket, but the caller must not."""
        self._is_over = True
        if self._lock.acquire(timeout=_END_SECONDS_MAX):
            try:
                self._close()
            finally:
                self._lock.release()
