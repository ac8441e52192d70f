"""Runs one body: into a group, again under its locks, or for nothing, to find out what it reads.

Refuses to know: when a body runs, and when its group is committed.
"""

from __future__ import annotations

from enum import Enum

from hashrange import pace
from hashrange.errors import bare
from hashrange_postgres.bodies import GroupTransaction, Layer, Missing, NeedsStore
from hashrange_postgres.cache import Cache, CatalogState, Key, Peeked
from hashrange_postgres.direct import DirectTransaction
from hashrange_postgres.groups import Group
from hashrange_postgres.members import TRIES_MAX, Member
from hashrange_postgres.wire.connections import Trouble


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
    if not (writes or txn.reads or txn.read_catalog):
        return False
    group.add(txn, writes=writes)
    group.members.append(member)
    return True


class Rerun(Enum):
    """The result of another run: the body is in its group, or has its outcome without it; it needs records
    that are not locked, or the store's lock."""

    JOINED = 1
    ENDED = 2
    ELSEWHERE = 3
    ALONE = 4


def run_again(group: Group, txn: GroupTransaction, member: Member, limited: bool) -> Rerun:
    """Run a body over locked records. `limited`: for one turn only, as an event loop does."""
    turn = pace.turn()
    turn.begin(pace.TURN_SECONDS if limited else pace.WITHOUT_END)
    try:
        return Rerun.JOINED if run_into(group, txn, member) else Rerun.ENDED
    except NeedsStore:
        member.store = True
        return Rerun.ALONE
    except Missing as more:
        member.missing = more.keys
        member.losses += 1
        member.store = member.losses > TRIES_MAX
        return Rerun.ALONE if member.store else Rerun.ELSEWHERE
    except BaseException as error:  # it concerns only this body; the others still run
        member.stopped = error
        return Rerun.ENDED
    finally:
        turn.end()


def run_alone(group: Group, txn: DirectTransaction, member: Member) -> None:
    """Run a body under the store's lock. It has no time limit, but lets other threads run. Raises `Trouble`
    of its statements."""
    turn = pace.turn()
    turn.task = pace.Task()
    try:
        member.result = member.body(txn)
        member.raised = None
    except Exception as error:
        member.result, member.raised = None, bare(error)
    except Trouble:
        raise
    except BaseException as error:
        member.stopped = error
    else:
        group.take(txn)
    finally:
        turn.task = None
    group.members.append(member)


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
    txn = GroupTransaction(Layer(0), None, Peeked(cache), state)
    discovered = txn.discovered = []
    try:
        member.body(txn)
    except MemoryError:
        raise
    except (Exception, NeedsStore, pace.TurnOver):
        pass
    return [*keys, *discovered]
