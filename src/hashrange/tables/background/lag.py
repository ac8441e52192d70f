"""Global indexes that lag behind, so that programs can be tested against eventual consistency.

With `Settings.gsi_delay_seconds` a change of an index entry goes into a queue first, and the sweep takes it
to the index when its time has come, in the order in which the items changed:

    ("change", sequence) → a `Change`, packed by msgspec
    ("mark", "")         → the sequence below which no change waits any more, where the sweep begins

Sequences only grow, so the mark does too.
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

_CHANGE = b"change"
_MARK = b"mark"


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
    txn: Transaction, spaces: dict[int, Index], now: float, delay_seconds: float, limit: Limit
) -> Done:
    """Take a bite of the changes that are due to their indexes.

    `spaces` are indexes that existed a while ago; others are looked up. Changes of indexes that do not exist
    are dropped. So are those that cannot be decoded: the checker finds the entry that lacks its change. None
    waits for much longer than `delay_seconds`, or one of a time when the clock was ahead would hold up all
    that came after it. For that reason a change also takes those before it along, whose time may be later
    than its own.
    """
    left, bytes_left = limit
    found: list[tuple[bytes, Change | str]] = []
    taken = 0
    more = False
    for place, stored in txn.scan(LAG_SPACE, _CHANGE, _mark(txn)):
        if left <= 0 or bytes_left <= 0:
            more = True
            break
        left -= 1
        bytes_left -= len(stored)
        change = _decoded(stored)
        found.append((place, change))
        if isinstance(change, str):
            taken += taken == len(found) - 1
        elif has_come(change.due, now, delay_seconds + BEHIND_SECONDS_MAX):
            taken = len(found)
    damages: list[Damage] = []
    looked_up = False
    for place, change in found[:taken]:
        if isinstance(change, str):
            damages.append(Damage(_CHANGE, place, change))
        else:
            if change.space not in spaces and not looked_up:
                spaces, looked_up = spaces_of_indexes(catalog.definitions(txn)), True
            index = spaces.get(change.space)
            if index is not None:
                indexes.settle(txn, index, change.before, change.after)
        txn.delete(LAG_SPACE, _CHANGE, place)
    if taken:
        txn.put(LAG_SPACE, _MARK, b"", found[taken - 1][0] + b"\x00")
    return Done(taken, damages, more and taken == len(found))


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
    """Drop the first change that waits, which cannot be taken to its index; its place."""
    place = next(iter(txn.scan(LAG_SPACE, _CHANGE, _mark(txn))))[0]
    txn.delete(LAG_SPACE, _CHANGE, place)
    txn.put(LAG_SPACE, _MARK, b"", place + b"\x00")
    return place


def _mark(reader: Reader) -> bytes:
    return reader.get(LAG_SPACE, _MARK, b"") or b""


def waiting_spaces(reader: Reader) -> set[int]:
    """The spaces of the indexes that changes wait for."""
    found: set[int] = set()
    for _, stored in reader.scan(LAG_SPACE, _CHANGE, _mark(reader)):
        with contextlib.suppress(msgspec.MsgspecError, ValueError):
            found.add(_DECODE.decode(stored).space)
    return found


def next_due(reader: Reader) -> float | None:
    """When the next change is due (epoch seconds), or None where nothing waits."""
    for _, stored in reader.scan(LAG_SPACE, _CHANGE, _mark(reader)):
        try:
            return _DECODE.decode(stored).due
        except (msgspec.MsgspecError, ValueError):
            return 0.0  # at once: `arrive` passes over it
    return None
