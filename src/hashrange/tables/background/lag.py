"""Global indexes that lag behind, so that programs can be tested against eventual consistency.

With `Settings.gsi_delay_seconds` a change of an index entry goes into a queue first. The sweep makes the
change in the index when its time has come, in the order in which the items changed:

    ("change", sequence) → a `Change`, packed by msgspec
    ("mark", "")         → the sequence at which the sweep begins: no change below it is still waiting

Sequences only grow, so the mark only grows.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from hashrange.clock import BEHIND_SECONDS_MAX, has_come
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.background.bites import Damage, Done, Limit
from hashrange.tables.data import indexes
from hashrange.tables.data.indexes import Entry
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, Table
from hashrange.tables.spaces import LAG_SPACE

CHANGE = b"change"
_MARK = b"mark"


class Change(NamedTuple):
    """A change of an index entry that has not reached the index yet; `due` is in epoch seconds."""

    due: float
    space: int
    before: Entry | None
    after: Entry | None


_ENCODE = msgspec.msgpack.Encoder()
_DECODE = msgspec.msgpack.Decoder(Change)


def encode(change: Change) -> bytes:
    """The stored form of a change."""
    return _ENCODE.encode(change)


def decode(stored: bytes) -> Change:
    """The change whose stored form this is."""
    return _DECODE.decode(stored)


def enqueue(
    txn: Transaction, index: Index, before: Entry | None, after: Entry | None, due: float
) -> None:
    """Queue the replacement of the entry `before` by `after`, for the time `due`."""
    txn.append(LAG_SPACE, CHANGE, _ENCODE.encode(Change(due, index.space, before, after)))


def arrive(
    txn: Transaction, spaces: dict[int, Index], now: float, delay_seconds: float, limit: Limit
) -> Done:
    """Apply a bite of the due changes to their indexes.

    `spaces` are the indexes that existed a while ago; other indexes are looked up. A change of an index that
    no longer exists is dropped. So is a change that cannot be decoded; the checker will report the entry that
    lacks it.

    A change whose time is further away than `delay_seconds` is made now: it was queued while the clock was
    ahead, and would make all later changes wait. When a change is due, the changes before it are made too,
    even if their times are later.
    """
    left, bytes_left = limit
    changes_: list[tuple[bytes, Change | str]] = []
    taken = 0
    more = False
    for place, stored in txn.scan(LAG_SPACE, CHANGE, _mark(txn)):
        if left <= 0 or bytes_left <= 0:
            more = True
            break
        left -= 1
        bytes_left -= len(stored)
        change = _decoded(stored)
        changes_.append((place, change))
        if isinstance(change, str):
            taken += taken == len(changes_) - 1
        elif has_come(change.due, now, delay_seconds + BEHIND_SECONDS_MAX):
            taken = len(changes_)
    damages: list[Damage] = []
    looked_up = False
    for place, change in changes_[:taken]:
        if isinstance(change, str):
            damages.append(Damage(CHANGE, place, change))
        else:
            if change.space not in spaces and not looked_up:
                spaces, looked_up = spaces_of_indexes(catalog.definitions(txn)), True
            index = spaces.get(change.space)
            if index is not None:
                indexes.settle(txn, index, change.before, change.after)
        txn.delete(LAG_SPACE, CHANGE, place)
    if taken:
        txn.put(LAG_SPACE, _MARK, b"", changes_[taken - 1][0] + b"\x00")
    return Done(taken, damages, more and taken == len(changes_))


def _decoded(stored: bytes) -> Change | str:
    """A stored change, or why it cannot be decoded."""
    try:
        return _DECODE.decode(stored)
    except (msgspec.MsgspecError, ValueError) as error:
        return repr(error)


def spaces_of_indexes(tables: Iterable[Table]) -> dict[int, Index]:
    """The indexes of tables by their spaces."""
    return {index.space: index for table in tables for index in table.indexes}


def drop_first(txn: Transaction) -> bytes:
    """Drop the first waiting change, because it cannot be made; returns its place."""
    place = next(iter(txn.scan(LAG_SPACE, CHANGE, _mark(txn), likely=1)))[0]
    txn.delete(LAG_SPACE, CHANGE, place)
    txn.put(LAG_SPACE, _MARK, b"", place + b"\x00")
    return place


def _mark(reader: Reader) -> bytes:
    return reader.get(LAG_SPACE, _MARK, b"") or b""


def waiting_spaces(reader: Reader) -> set[int]:
    """The spaces of the indexes with waiting changes."""
    spaces: set[int] = set()
    for _, stored in reader.scan(LAG_SPACE, CHANGE, _mark(reader)):
        with contextlib.suppress(msgspec.MsgspecError, ValueError):
            spaces.add(_DECODE.decode(stored).space)
    return spaces


def next_due(reader: Reader) -> float | None:
    """When the next change is due (epoch seconds), or None if no change waits."""
    for _, stored in reader.scan(LAG_SPACE, CHANGE, _mark(reader)):
        try:
            return _DECODE.decode(stored).due
        except (msgspec.MsgspecError, ValueError):
            return 0.0  # at once, because `arrive` skips it
    return None
