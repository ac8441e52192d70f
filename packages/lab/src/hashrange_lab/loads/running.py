"""Runs a load on an event loop of its own, until it ends or somebody interrupts it with Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Final

from hashrange.server.run import new_event_loop

TICK_SECONDS: Final = 1.0


def run(load: Coroutine[Any, Any, None], tick: Callable[[], None]) -> bool:
    """Run a load, and call `tick` once a second. Returns whether it came to its end: after Ctrl-C it is
    cancelled."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        return runner.run(_run(load, tick))


async def _run(load: Coroutine[Any, Any, None], tick: Callable[[], None]) -> bool:
    loop = asyncio.get_running_loop()
    task = loop.create_task(load)
    ticking = loop.create_task(_tick(tick))
    interrupt = Interrupt(task)
    is_main = _on_interrupt(loop, interrupt)
    try:
        await task
    except asyncio.CancelledError:
        if not interrupt.came:
            raise
        return False
    finally:
        ticking.cancel()
        if is_main:
            loop.remove_signal_handler(signal.SIGINT)
    return True


class Interrupt:
    """Cancels a load; `came`: it has."""

    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task
        self.came = False

    def __call__(self) -> None:
        self.came = True
        self._task.cancel()


def _on_interrupt(loop: asyncio.AbstractEventLoop, interrupt: Callable[[], None]) -> bool:
    try:
        loop.add_signal_handler(signal.SIGINT, interrupt)
    except (NotImplementedError, RuntimeError, ValueError):  # Windows, or not the main thread
        return False
    return True


async def _tick(tick: Callable[[], None]) -> None:
    while True:
        await asyncio.sleep(TICK_SECONDS)
        tick()


async def together(works: list[Awaitable[None]]) -> None:
    """Do several works at a time; if one raises, the others are cancelled and its error is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
