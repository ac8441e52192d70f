"""Runs one body: into a group, under locks, or for nothing, to find out what it reads.

Refuses to know: when a body runs, and when its group is committed.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from hashrange import pace
from hashrange.errors import bare
from hashrange_postgres.bodies import GroupTransaction, Layer, Missing, NeedsLocks
from hashrange_postgres.cache import CATALOG_SPACE, Cache, CatalogState, Key, Peeked
from hashrange_postgres.direct import DirectTransaction
from hashrange_postgres.groups import Group
from hashrange_postgres.members import Member
from hashrange_postgres.wire.connections import Trouble


def run_into(
    group: Group,
    txn: GroupTransaction,
    member: Member,
    *,
    store_is_busy: bool = False,
    cautious: bool = False,
) -> bool:
    """Run a body, and add its reads and writes to the group. Returns whether its outcome waits for the group.
    Raises a `BaseException` of the body that is not an `Exception`. `store_is_busy`: no body that needs the
    store's lock may join, because the others would wait for the lock with it. `cautious`: nor any body that
    only updates records, because it would fail the group too often; it is better off with their locks."""
    writes = False
    try:
        member.result = member.body(txn)
        member.raised = None
        writes = txn.wrote()
    except Exception as error:
        member.result, member.raised = None, bare(error)
    if txn.needs_locks or (cautious and txn.only_updates()):
        raise NeedsLocks(list(txn.reads))
    if store_is_busy and txn.read_absent():
        raise NeedsLocks
    if not (writes or txn.reads or txn.read_catalog):
        return False
    group.add(txn, writes=writes)
    group.members.append(member)
    return True


class Held(Enum):
    """The result of a run under locks: the body is in its group, or has its outcome without it; it waits for
    more locks; it has to run as if it held none."""

    JOINED = 1
    ENDED = 2
    WAITS = 3
    ELSEWHERE = 4


def run_under_locks(group: Group, txn: GroupTransaction, member: Member, limited: bool) -> Held:
    """Run a body over locked records. `limited`: for one turn only, as an event loop would."""
    turn = pace.turn()
    turn.begin(pace.TURN_SECONDS if limited else pace.WITHOUT_END)
    try:
        return Held.JOINED if run_into(group, txn, member) else Held.ENDED
    except NeedsLocks as more:
        member.needs(more.keys)
        return Held.WAITS
    except Missing as more:
        if any(key[0] == CATALOG_SPACE for key in more.keys):
            member.missing = more.keys  # taking locks does not fetch the catalog
            return Held.ELSEWHERE
        member.needs(more.keys)
        return Held.WAITS
    except BaseException as error:  # it concerns only this body; the others still run
        member.stopped = error
        return Held.ENDED
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
    nothing: dict[Key, Any] = {}
    txn = GroupTransaction(Layer(0), None, Peeked(cache), state, nothing)
    discovered = txn.discovered = []
    try:
        member.body(txn)
    except MemoryError:
        raise
    except (Exception, NeedsLocks, pace.TurnOver):
        pass
    return [*keys, *discovered]
