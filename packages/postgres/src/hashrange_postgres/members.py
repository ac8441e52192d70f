"""A body that commits in a group, and the error for its caller if the group fails.

Refuses to know: when the group is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Any, Final

from hashrange.storage.failures import CommitFailed, CommitUnknown, Stopped
from hashrange.storage.loops import Done
from hashrange_postgres.cache import Key

TRIES_MAX: Final = 6
"""A body that has to run again more often, because of other engines, runs under the store's lock."""


class Member:
    """A body in a group, and its caller: `done` of a submitted one, `gate` of a thread that waits. `again`
    says that the thread is to run the body again."""

    __slots__ = (
        "again",
        "body",
        "done",
        "failed",
        "gate",
        "losses",
        "misses",
        "missing",
        "raised",
        "result",
        "stopped",
        "store",
        "waits_since",
    )

    def __init__(self, body: Callable[[Any], Any], done: Done | None) -> None:
        self.body = body
        self.done = done
        self.gate = Lock()
        self.again = False
        self.failed: Exception | None = None
        self.losses = 0  # how often it had to run again, because other engines had changed what it reads
        self.result: Any = None
        self.raised: Exception | None = None
        self.missing: Sequence[Key] = ()
        self.misses = 0  # how often it ended because records were missing
        self.store = False  # it runs under the lock of the store
        self.waits_since = 0.0  # when it did not get the store's lock for the first time
        self.stopped: BaseException | None = None  # the exception that ended it on the commit thread


def outcomes_of(
    members: Iterable[Member], error: Exception | None
) -> list[tuple[Done, Any, Exception | None]]:
    """The outcomes of submitted bodies, all of which failed if `error` is given. Wakes the threads that wait
    for other bodies."""
    outcomes: list[tuple[Done, Any, Exception | None]] = []
    for member in members:
        if member.done is None:
            member.failed = error
            member.gate.release()
        elif member.stopped is not None:
            outcomes.append((member.done, None, Stopped(f"The body was ended by {member.stopped!r}.")))
        elif error is not None:
            outcomes.append((member.done, None, error))
        else:
            outcomes.append((member.done, member.result, member.raised))
    return outcomes


def commit_failed(cause: str) -> CommitFailed:
    """The error for all callers that wait for a group that was not committed."""
    return CommitFailed(
        f"The write could not be made durable and was not applied: {cause}. Look at PostgreSQL and its log; "
        "the store takes writes again as soon as PostgreSQL does."
    )


def commit_unknown(cause: str) -> CommitUnknown:
    return CommitUnknown(
        f"The store cannot tell whether the write was made durable: {cause}. Read what it wrote before you "
        "repeat it, or repeat it with its token."
    )
