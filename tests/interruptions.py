"""What happens between two steps: engines and workers that let a test act there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest

from hashrange import pace
from hashrange.pace import turns
from hashrange.storage.api import Transaction
from hashrange.storage.memory import MemoryEngine
from hashrange.tables.background import sweeps
from hashrange.tables.bites import Limit
from hashrange.tables.writes import builds

T = TypeVar("T")


def in_small_bites(patch: pytest.MonkeyPatch) -> None:
    """Do background work in bites of a few items, and nothing of it at once: much can happen in between."""
    patch.setattr(sweeps, "BITE_ITEMS", 3)
    patch.setattr(builds, "AT_ONCE", Limit(2))


class Killed(BaseException):
    """The process ends here, between the reads of a bite and its write."""


class Interrupted:
    """An engine that does something before a bite of background work writes what follows from the records
    that the bite has read: before the first write, or after `spared` others."""

    def __init__(self, engine: Any = None) -> None:
        self._engine = engine or MemoryEngine()
        self.before_write: Callable[[], None] | None = None
        self.spared = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def write(self, body: Callable[[Transaction], T]) -> T:
        if self.spared:
            self.spared -= 1
            return self._engine.write(body)
        before, self.before_write = self.before_write, None
        if before is not None:
            before()
        return self._engine.write(body)


class Stopping:
    """An engine whose event loop's turn is over after some records; `records` counts them."""

    def __init__(self, after: int, inner: Any = None) -> None:
        self.inner = inner or MemoryEngine()
        self.after = after
        self.records = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def read(self, body: Callable[[Any], Any]) -> Any:
        return self.inner.read(lambda reader: body(_Reader(self, reader)))

    def submit_read(self, body: Callable[[Any], Any], done: Callable[[Any, Any], None]) -> None:
        self.inner.submit_read(lambda reader: body(_Reader(self, reader)), done)

    def counted(self, rows: Iterator[Any]) -> Iterator[Any]:
        for row in rows:
            self.records += 1
            yield row
            if self.records >= self.after and pace.turn().is_limited():
                pace.turn().left = -1.0
                turns._watch.due = 0.0


class _Reader:
    def __init__(self, engine: Stopping, reader: Any) -> None:
        self._engine = engine
        self._reader = reader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._reader, name)

    def scan(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        return self._engine.counted(self._reader.scan(*arguments, **options))

    def scan_space(self, *arguments: Any, **options: Any) -> Iterator[Any]:
        return self._engine.counted(self._reader.scan_space(*arguments, **options))


class Between:
    """Workers that call `between`, on the thread of the loop, before they take over a piece of work."""

    def __init__(self, workers: Any, between: Callable[[], None]) -> None:
        self._workers = workers
        self._between = between

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workers, name)

    def start(self, work: Callable[[], None]) -> Any:
        pace.turn().end()  # the turn that is over is not that of the requests in between
        self._between()
        return self._workers.start(work)
