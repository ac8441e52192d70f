"""Global indexes that lag behind, so that programs can be tested against eventual consistency.

With `Settings.gsi_delay_seconds` a change of an index entry goes into a queue first. The sweep makes the
change in the index when its time has come, in the order in which the items changed:

    ("change", sequence) → a `WaitingChange`, packed by msgspec
    ("mark", "")         → the sequence at which the sweep begins: no change below it is still waiting

Sequences only grow, so the mark only grows.

While a change of an index may wait, the index `lags`: its definition says so, and all its changes go through
the queue, also those of a server without the setting. A change that went past the queue would be undone by an
older one that still waits. A sweep without the setting ends this when the queue is empty.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from hashrange.clock import BEHIND_SECONDS_MAX, has_come
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.bites import Damage, Done, Limit
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Index, Table
from hashrange.tables.items import indexes
from hashrange.tables.items.indexes import Entry
from hashrange.tables.spaces import LAG_SPACE

CHANGE = b"change"
_MARK = b"mark"


class WaitingChange(NamedTuple):
    """A change of an index entry that has not reached the index yet; `due` is in epoch seconds."""

    due: float
    space: int
    before: Entry | None
    after: Entry | None


_ENCODE = msgspec.msgpack.Encoder()
_DECODE = msgspec.msgpack.Decoder(WaitingChange)


def encode(change: WaitingChange) -> bytes:
    """The stored form of a change."""
    return _ENCODE.encode(change)


def decode(stored: bytes) -> WaitingChange:
    """The change whose stored form this is."""
    return _DECODE.decode(stored)


def enqueue(
    txn: Transaction, full_name: str, index: Index, before: Entry | None, after: Entry | None, due: float
) -> None:
    """Queue the replacement of the entry `before` by `after`, for the time `due`. `full_name` is that of the
    index's table."""
    txn.append(LAG_SPACE, CHANGE, _ENCODE.encode(WaitingChange(due, index.space, before, after)))
    if not index.lags:
        mark_indexes(txn, full_name, True, index.space)


def arrive(txn: Transaction, names: dict[int, str], now: float, delay_seconds: float, limit: Limit) -> Done:
    """Apply a bite of the due changes to their indexes, and let no index lag any more if none is left and the
    setting is 0.

    `names` are the full names of the tables that had the lagging indexes a while ago, by the spaces of these.
    A change of an index that no longer exists is dropped. So is a change that cannot be decoded; the checker
    will report the entry that lacks it.

    A change whose time is further away than `delay_seconds` is made now: it was queued while the clock was
    ahead, and would make all later changes wait. When a change is due, the changes before it are made too,
    even if their times are later.
    """
    left, bytes_left = limit
    changes_: list[tuple[bytes, WaitingChange | str]] = []
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
    indexes_ = _Indexes(txn, names)
    for place, change in changes_[:taken]:
        if isinstance(change, str):
            damages.append(Damage(CHANGE, place, change))
        else:
            index = indexes_.of(change.space)
            if index is not None:
                indexes.settle(txn, index, change.before, change.after)
        txn.delete(LAG_SPACE, CHANGE, place)
    if taken:
        txn.put(LAG_SPACE, _MARK, b"", changes_[taken - 1][0] + b"\x00")
    if not delay_seconds and not more and taken == len(changes_):
        for name in sorted(set(names.values())):
            mark_indexes(txn, name, False)
    return Done(taken, damages, more and taken == len(changes_))


class _Indexes:
    """The indexes by their spaces, as the transaction sees them. `names` say where to look first."""

    __slots__ = ("_all", "_found", "_names", "_txn")

    def __init__(self, txn: Transaction, names: dict[int, str]) -> None:
        self._txn = txn
        self._names = names
        self._found: dict[int, Index | None] = {}
        self._all: dict[int, Index] | None = None

    def of(self, space: int) -> Index | None:
        """The index with this space; None if it was deleted."""
        if space not in self._found:
            self._found[space] = self._look_up(space)
        return self._found[space]

    def _look_up(self, space: int) -> Index | None:
        name = self._names.get(space)
        if name is not None:
            table = catalog.find_full(self._txn, name)
            return by_space([table] if table is not None else []).get(space)
        if self._all is None:
            self._all = by_space(catalog.definitions(self._txn))
        return self._all.get(space)


def by_space(tables: Iterable[Table]) -> dict[int, Index]:
    """The indexes of tables by their spaces."""
    return {index.space: index for table in tables for index in table.indexes}


def lagging(tables: Iterable[Table]) -> dict[int, str]:
    """The full names of the tables with lagging indexes, by the spaces of these."""
    return {index.space: table.full_name for table in tables for index in table.indexes if index.lags}


def mark_indexes(txn: Transaction, full_name: str, lags: bool, space: int | None = None) -> None:
    """Store whether the index with the space, or each index of the table, lags."""
    table = catalog.find_full(txn, full_name)
    if table is not None:
        changed = tuple(
            msgspec.structs.replace(index, lags=lags) if space in (None, index.space) else index
            for index in table.indexes
        )
        if changed != table.indexes:
            catalog.save(txn, msgspec.structs.replace(table, indexes=changed))


def _decoded(stored: bytes) -> WaitingChange | str:
    """A stored change, or why it cannot be decoded."""
    try:
        return _DECODE.decode(stored)
    except (msgspec.MsgspecError, ValueError) as error:
        return repr(error)


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
