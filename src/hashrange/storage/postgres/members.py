"""A body in a group, its run, and the error for its caller if the group fails.

Refuses to know: when the group is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Any, Final

from hashrange import pace
from hashrange.errors import bare
from hashrange.storage.api import CommitFailed, CommitUnknown, Done, Stopped
from hashrange.storage.postgres.bodies import Contended, GroupTransaction, Layer, NeedsAlone
from hashrange.storage.postgres.cache import Cache, CatalogState, Key, Peeked
from hashrange.storage.postgres.groups import Group

LOSSES_MAX: Final = 6
"""A body that lost to other engines this often runs alone."""


class Member:
    """A body in a group, and its caller: `done` of a submitted one, `gate` of a thread that waits. `again`
    says that the thread is to run the body again."""

    __slots__ = (
        "again",
        "body",
        "done",
        "failed",
        "gate",
        "locks",
        "losses",
        "misses",
        "missing",
        "raised",
        "result",
        "stopped",
    )

    def __init__(self, body: Callable[[Any], Any], done: Done | None) -> None:
        self.body = body
        self.done = done
        self.gate = Lock()
        self.again = False
        self.failed: Exception | None = None
        self.losses = 0
        self.result: Any = None
        self.raised: Exception | None = None
        self.missing: Sequence[Key] = ()
        self.misses = 0  # how often it ended because records were missing
        self.locks: dict[Key, None] = {}  # the records to lock before it runs
        self.stopped: BaseException | None = None  # the exception that ended it on the commit thread


def run_into(group: Group, txn: GroupTransaction, member: Member) -> bool:
    """Run a body, and add its reads and writes to the group. Returns whether its outcome waits for the group.
    Raises a `BaseException` of the body that is not an `Exception`."""
    writes = False
    try:
        member.result = member.body(txn)
        member.raised = None
        writes = txn.wrote()
    except Exception as error:
        member.result, member.raised = None, bare(error)
    if txn.needs_locks:
        raise Contended(list(txn.reads))
    if not (writes or txn.reads or txn.read_catalog):
        return False
    group.add(txn, writes=writes)
    return True


def discover(member: Member, keys: list[Key], state: CatalogState, cache: Cache) -> list[Key]:
    """The records to fetch for a body that misses `keys`; called without any lock.

    A body that misses records for the second time, such as one that puts ten items, will probably miss more.
    So it makes a trial run, as if all unknown records were absent, to find out which records it reads. The
    run ends with the thread's turn, or when the body does something unsupported or raises an exception.
    Raises any other `BaseException` that ends the body.
    """
    member.misses += 1
    if member.misses != 2:
        return keys
    txn = GroupTransaction(Layer(0), None, Peeked(cache), state, {})
    discovered = txn.discovered = []
    try:
        member.body(txn)
    except MemoryError:
        raise
    except (Exception, NeedsAlone, pace.TurnOver):
        pass
    return [*keys, *discovered]


def outcomes_of(
    members: Sequence[Member], error: Exception | None
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
