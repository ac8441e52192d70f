"""Transactions that stay in flight, so that programs can be tested against conflicts.

Bodies run one after another, so normally two transactions never conflict. With `Settings.transaction_seconds`
a transaction holds its items for that time after it ran. Another write of such an item, or a transaction that
reads it, is then refused with DynamoDB's error for a conflict.

    (HOLD_SPACE, digest of the item's address, "") → the end of the hold, in microseconds (8 bytes)
    and a queue by time of the digests (`queues`), in which the sweep finds the holds that are over
"""

from __future__ import annotations

from hashlib import blake2b
from itertools import islice
from math import ceil

from hashrange.clock import BEHIND_SECONDS_MAX, has_come
from hashrange.errors import TransactionConflictException
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.spaces import HOLD_SPACE
from hashrange.tables.writes import queues

CONFLICT = "Transaction is ongoing for the item"
_MICROS = 1_000_000


def _name(space: int, partition: bytes, sort: bytes) -> bytes:
    return blake2b(space.to_bytes(4) + partition + sort, digest_size=24).digest()


def check(
    reader: Reader, space: int, partition: bytes, sort: bytes, now: float, hold_seconds: float
) -> None:
    """Raise `TransactionConflictException` if a transaction holds the item. Holds last `hold_seconds`."""
    until = reader.get(HOLD_SPACE, _name(space, partition, sort), b"")
    if until is not None and not _is_over(until, now, hold_seconds):
        raise TransactionConflictException(CONFLICT)


def _is_over(until: bytes, now: float, hold_seconds: float) -> bool:
    return has_come(int.from_bytes(until) / _MICROS, now, hold_seconds + BEHIND_SECONDS_MAX)


def hold(txn: Transaction, space: int, partition: bytes, sort: bytes, until: float) -> None:
    """Hold an item until the time `until` (epoch seconds)."""
    name = _name(space, partition, sort)
    txn.put(HOLD_SPACE, name, b"", int(until * _MICROS).to_bytes(8))
    queues.add(txn, HOLD_SPACE, ceil(until), name)


def forget_expired(txn: Transaction, now: float, hold_seconds: float, limit: int) -> int:
    """Remove up to `limit` expired holds; returns how many places of the queue were examined."""
    due = list(islice(queues.due(txn, HOLD_SPACE, now), limit))
    ahead = list(islice(queues.ahead(txn, HOLD_SPACE, _latest(now, hold_seconds)), limit - len(due)))
    for seconds, name in due + ahead:
        until = txn.get(HOLD_SPACE, name, b"")
        if until is not None and _is_over(until, now, hold_seconds):
            txn.delete(HOLD_SPACE, name, b"")
        queues.remove(txn, HOLD_SPACE, seconds, name)
    if due:
        queues.done(txn, HOLD_SPACE, now, *due[-1])
    return len(due) + len(ahead)


def any_due(reader: Reader, now: float, hold_seconds: float) -> bool:
    """Whether any hold has expired."""
    due = queues.due(reader, HOLD_SPACE, now)
    ahead = queues.ahead(reader, HOLD_SPACE, _latest(now, hold_seconds))
    return next(due, None) is not None or next(ahead, None) is not None


def _latest(now: float, hold_seconds: float) -> int:
    """The last second in which a hold that began at `now` can end. A hold with a later end began before the
    clock was set back."""
    return ceil(now + hold_seconds + BEHIND_SECONDS_MAX)
