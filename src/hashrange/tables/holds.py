"""Transactions that stay in flight, so that programs can be tested against conflicts.

Bodies run one after another, so no two transactions ever meet on their own. With
`Settings.transaction_seconds` a transaction holds its items for that time after it ran: another write of
such an item, or a transaction that reads it, is then refused as DynamoDB refuses a conflict.

    (HOLD_SPACE, digest of the item's address, "") → until when, in microseconds (8 bytes)
"""

from __future__ import annotations

from hashlib import blake2b

from hashrange.clock import BEHIND_SECONDS_MAX, has_come
from hashrange.errors import TransactionConflictException
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.catalog import HOLD_SPACE

CONFLICT = "Transaction is ongoing for the item"
_MICROS = 1_000_000


def _name(space: int, partition: bytes, sort: bytes) -> bytes:
    return blake2b(space.to_bytes(4) + partition + sort, digest_size=24).digest()


def check(
    reader: Reader, space: int, partition: bytes, sort: bytes, now: float, hold_seconds: float
) -> None:
    """Raise `TransactionConflictException` if a transaction holds the item; it does for `hold_seconds`."""
    until = reader.get(HOLD_SPACE, _name(space, partition, sort), b"")
    if until is not None and not _is_over(until, now, hold_seconds):
        raise TransactionConflictException(CONFLICT)


def _is_over(until: bytes, now: float, hold_seconds: float) -> bool:
    return has_come(int.from_bytes(until) / _MICROS, now, hold_seconds + BEHIND_SECONDS_MAX)


def hold(txn: Transaction, space: int, partition: bytes, sort: bytes, until: float) -> None:
    """Hold an item until the time `until` (epoch seconds)."""
    txn.put(HOLD_SPACE, _name(space, partition, sort), b"", int(until * _MICROS).to_bytes(8))


def forget_expired(txn: Transaction, now: float, hold_seconds: float) -> None:
    """Let go of what is not held any more."""
    for name, sort, until in list(txn.scan_space(HOLD_SPACE)):
        if _is_over(until, now, hold_seconds):
            txn.delete(HOLD_SPACE, name, sort)


def any_held(reader: Reader) -> bool:
    """Whether there is anything to let go of."""
    return any(True for _ in reader.scan_space(HOLD_SPACE))
