"""Waiting on the clock of a database: a program that sleeps advances the clock, and goes on at once.

Waiters, retries and loops of a program sleep by `time.sleep` and `asyncio.sleep`. In a block of `passing` the
database's clock advances by what they ask for, and the thread sleeps a millisecond at most.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import TYPE_CHECKING, Any, Final
from unittest import mock

if TYPE_CHECKING:
    from hashrange.testing.moments import LocalClock

_REAL_SECONDS_MAX: Final = 0.001


def _is_our_own() -> bool:
    """Whether a thread of a server sleeps, which is not part of the program."""
    return threading.current_thread().name.startswith("hashrange")


@contextmanager
def passing(clock: LocalClock) -> Iterator[None]:
    """Let the clock pass while this process sleeps, on any thread."""
    real, real_async, changing = time.sleep, asyncio.sleep, Lock()

    def advance(seconds: float) -> None:
        with changing:  # only one thread at a time may change a clock
            clock.advance(seconds)

    def sleep(seconds: float, /) -> None:
        if _is_our_own():
            real(seconds)
            return
        if seconds > 0:
            advance(seconds)
        real(min(seconds, _REAL_SECONDS_MAX))

    async def sleep_async(delay: float, result: Any = None) -> Any:
        if _is_our_own():
            return await real_async(delay, result)
        if delay > 0:
            advance(delay)
        return await real_async(min(delay, _REAL_SECONDS_MAX), result)

    with mock.patch.object(time, "sleep", sleep), mock.patch.object(asyncio, "sleep", sleep_async):
        yield
