"""A batch of the embedded engine, and the callers that wait for the outcomes of its bodies.

Refuses to know: when the batch is committed, and whether the commit works.
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
    """The writes of some bodies, and the callers that wait until these writes are durable."""

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
    """Deliver outcomes, on the calling thread."""
    for done, result, error in outcomes:
        try:
            done(result, error)
        except Exception:  # the other receivers get their outcomes all the same
            _log.exception("the receiver of an outcome failed")


def commit_failed(cause: str) -> CommitFailed:
    """The error for all callers that wait for a failed batch."""
    return CommitFailed(
        f"The write could not be made durable and was not applied: {cause}. Check the disk's free space and "
        "health; the store takes writes again as soon as the disk does."
    )


def call(callback: Callable[[], None]) -> None:
    """Deliver on the calling thread: how outcomes are delivered before `deliver_on` says otherwise."""
    callback()
