"""A batch of the embedded engine, and the callers that wait for the outcomes of its bodies.

Refuses to know: when the batch is committed, and whether the commit works.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from threading import Lock
from typing import Final

from hashrange.storage.embedded.bodies import Layer
from hashrange.storage.embedded.keys import CLEARING
from hashrange.storage.failures import CommitError, CommitFailed, CommitFault, CommitUnknown, Moment
from hashrange.storage.loops import Outcome

_log = logging.getLogger(__name__)

# rocksdict holds the GIL while RocksDB takes a batch, so no other thread runs meanwhile: up to 15 ms per
# megabyte were measured while the machine handed out memory for the first time. One more sync per megabyte
# costs little.
BATCH_BYTES_MAX: Final = 1024 * 1024


class Waiter:
    """A thread in `write` that waits for its batch."""

    __slots__ = ("failed", "gate")

    def __init__(self) -> None:
        self.failed: Exception | None = None
        self.gate = Lock()
        self.gate.acquire()


class Prevented(Exception):
    """A test's fault kept all writes of a batch from reaching RocksDB."""


class Batch(Layer):
    """The writes of some bodies, and the callers that wait until these writes are durable.

    `unknown` says why the store cannot tell whether the writes are durable, `held_back` why a follower has
    forbidden to acknowledge them. `is_told`: `records` are all records of batches of another store.
    """

    __slots__ = ("bodies", "bytes", "held_back", "is_told", "outcomes", "unknown", "waiters")

    def __init__(self) -> None:
        super().__init__()
        self.outcomes: list[Outcome] = []
        self.waiters: list[Waiter] = []
        self.bodies = 0
        self.bytes = 0
        self.unknown: str | None = None
        self.held_back: str | None = None
        self.is_told = False

    def meet(self, fault: CommitFault | None, moment: Moment) -> None:
        """Call a test's fault, if there is one, to fail the batch. Raises `Prevented` before the writes, the
        fault's exception after them, and nothing if the writes stand and their outcome is unknown."""
        if fault is None:
            return
        try:
            fault(moment)
        except Exception as error:
            if isinstance(error, CommitUnknown):
                self.unknown = str(error)
                _log.error("the store cannot tell whether a batch was committed: %s", self.unknown)
            if moment == "before":
                raise Prevented(str(error)) from error
            if self.unknown is None:
                raise

    def failure(self, cause: str) -> CommitError:
        """The error for its bodies when the batch has failed for this reason."""
        return commit_failed(cause) if self.unknown is None else _commit_unknown(self.unknown)

    def tell(self, batches: Iterable[Mapping[bytes, bytes | None]]) -> None:
        """Add batches of another store, as a `Follower` got them. The notes of deleted spaces stay until this
        store has dropped their records (`upkeep`)."""
        self.is_told = True
        records, cleared = self.records, set(self.cleared)
        for told in batches:
            for key, value in told.items():
                self.bytes += len(key) + (len(value) if value is not None else 0)
                if not key.startswith(CLEARING):
                    records[key] = value
                elif value is not None:
                    records[key] = value
                    cleared.add(int.from_bytes(key[-4:], "big"))
        self.cleared = cleared

    def full(self, bodies_max: int) -> bool:
        return self.bodies >= bodies_max or self.bytes >= BATCH_BYTES_MAX


def commit_failed(cause: str) -> CommitFailed:
    """The error for all callers that wait for a failed batch."""
    return CommitFailed(
        f"The write could not be made durable and was not applied: {cause}. Check the disk's free space and "
        "health; the store takes writes again as soon as the disk does."
    )


def _commit_unknown(cause: str) -> CommitUnknown:
    return CommitUnknown(
        f"The store cannot tell whether the write was made durable: {cause}. Read what it wrote before you "
        "repeat it, or repeat it with its token."
    )
