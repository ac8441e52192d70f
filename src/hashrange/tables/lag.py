"""Global indexes that lag behind, so that programs can be tested against eventual consistency.

With `Settings.gsi_delay_seconds` a change of an index entry goes into a queue first, and the sweep takes it
to the index when its time has come, in the order in which the items changed:

    ("change", sequence) → a `Change`, packed by msgspec
"""

from __future__ import annotations

from itertools import islice
from typing import NamedTuple

import msgspec

from hashrange.clock import BEHIND_SECONDS_MAX, has_come
from hashrange.storage.api import Reader, Transaction
from hashrange.tables import indexes
from hashrange.tables.catalog import LAG_SPACE
from hashrange.tables.indexes import Entry
from hashrange.tables.table import Index

_CHANGE = b"change"


class Change(NamedTuple):
    """A change of one index entry that has not reached the index yet; `due` in epoch seconds."""

    due: float
    space: int
    before: Entry | None
    after: Entry | None


_ENCODE = msgspec.msgpack.Encoder()
_DECODE = msgspec.msgpack.Decoder(Change)


def enqueue(
    txn: Transaction, index: Index, before: Entry | None, after: Entry | None, due: float
) -> None:
    """Have one entry replaced by another at the time `due`."""
    txn.append(LAG_SPACE, _CHANGE, _ENCODE.encode(Change(due, index.space, before, after)))


def arrive(
    txn: Transaction, spaces: dict[int, Index], now: float, delay_seconds: float, limit: int
) -> int:
    """Take up to `limit` changes that are due to their indexes; how many there were.

    `spaces` are the indexes that still exist: changes of others are dropped. None waits for much longer than
    `delay_seconds`, or one of a time when the clock was ahead would hold up all that came after it.
    """
    arrived = 0
    for place, stored in list(islice(txn.scan(LAG_SPACE, _CHANGE), limit)):
        change = _DECODE.decode(stored)
        if not has_come(change.due, now, delay_seconds + BEHIND_SECONDS_MAX):
            break
        index = spaces.get(change.space)
        if index is not None:
            indexes.settle(txn, index, change.before, change.after)
        txn.delete(LAG_SPACE, _CHANGE, place)
        arrived += 1
    return arrived


def waiting_spaces(reader: Reader) -> set[int]:
    """The spaces of the indexes that changes wait for."""
    return {_DECODE.decode(stored).space for _, stored in reader.scan(LAG_SPACE, _CHANGE)}


def next_due(reader: Reader) -> float | None:
    """When the next change is due (epoch seconds), or None where nothing waits."""
    for _, stored in reader.scan(LAG_SPACE, _CHANGE):
        return _DECODE.decode(stored).due
    return None
