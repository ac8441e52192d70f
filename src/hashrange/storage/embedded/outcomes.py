"""A batch of the embedded engine, and who waits for the outcomes of its bodies.

Refuses to know: when it is committed, and whether that works.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from threading import Lock
from typing import Any, Final

from hashrange.storage.api import CommitFailed, Done
from hashrange.storage.embedded.bodies import Layer

_log = logging.getLogger(__name__)

BATCH_BYTES_MAX: Final = 4 * 1024 * 1024

Outcome = tuple[Done, Any, Exception | None]


class Waiter:
    """A thread in `write` that waits for its batch."""

    __slots__ = ("failed", "gate")

    def __init__(self) -> None:
        self.failed: Exception | None = None
        self.gate = Lock()
        self.gate.acquire()


class Batch(Layer):
    """What some bodies wrote, and who waits until it is durable."""

    __slots__ = ("bodies", "bytes", "outcomes", "waiters")

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []
        self.waiters: list[Waiter] = []
        self.bodies = 0
        self.bytes = 0

    def full(self, bodies_max: int) -> bool:
        return self.bodies >= bodies_max or self.bytes >= BATCH_BYTES_MAX


def tell(outcomes: list[Outcome]) -> None:
    """Deliver outcomes, on the thread that is here."""
    for done, result, error in outcomes:
        try:
            done(result, error)
        except Exception:  # the others are to hear of theirs all the same
            _log.exception("the receiver of an outcome failed")


def commit_failed(cause: str) -> CommitFailed:
    """What everybody hears who waits for a batch that failed."""
    return CommitFailed(
        f"The write could not be made durable and was not applied: {cause}. Check the disk's free space and "
        "health; the store takes writes again as soon as the disk does."
    )


def call(callback: Callable[[], None]) -> None:
    """Deliver on the thread that is here, where nobody said otherwise."""
    callback()
