"""Deleted tables whose items are still needed.

A deleted table with point-in-time recovery keeps its last items for 35 days. A job that reads a table's past,
such as a restore, needs its items and its history until the job has ended. So `catalog.remove` keeps the
definition of such a table here, and with it the space of its items and the spans of its history, but not its
indexes, its queue and its collections. These items no longer change.

    space 0: ("dropped", scope / name 00 id) → the `Dropped`
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec

from hashrange import pace
from hashrange.clock import BEHIND_SECONDS_MAX
from hashrange.encoding import successor
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions.table import Table
from hashrange.tables.spaces import CATALOG_SPACE

DROPPED: Final = b"dropped"
PITR: Final = "pitr"
KEPT_SECONDS: Final = 35 * 24 * 3600.0


class Dropped(msgspec.Struct, frozen=True):
    """A deleted table. `table` is its definition, with the holds of jobs that still read its history; `at` is
    the time of the deletion (epoch seconds); no two tables of the same name have the same millisecond.
    `recoverable`: the items stay for 35 days, whether a job reads them or not. `readers` are the names of the
    restores that read the last state of the items."""

    table: Table
    at: float
    recoverable: bool
    readers: tuple[str, ...] = ()

    @property
    def expires(self) -> float:
        """When the items of a recoverable table are removed (epoch seconds)."""
        return self.at + KEPT_SECONDS


_ENCODE: Final = msgspec.json.Encoder()
_DECODE: Final = msgspec.json.Decoder(Dropped)


def keep(txn: Transaction, table: Table, now: float) -> list[int]:
    """Keep the parts of a deleted table that are still needed; returns the spaces that remain."""
    history = table.history
    if history is None:
        return []
    recoverable = history.hold(PITR) is not None
    holds = tuple(hold for hold in history.holds if hold.name != PITR)
    if not holds:
        # Only the current items can be recovered.
        history = None
    else:
        history = msgspec.structs.replace(history, holds=holds)
    deleted = msgspec.structs.replace(
        table,
        history=history,
        ttl=None,
        stream=None,
        outbox=None,
        destinations=(),
        collection_space=0,
        gone_at=None,
    )
    moments = {round(earlier.at, 3) for earlier in of_name(txn, table.full_name)}
    while round(now, 3) in moments:  # the clock may stand still
        now += 0.001
    dropped = Dropped(deleted, now, recoverable)
    save(txn, dropped)
    return spaces_of(dropped)


def spaces_of(dropped: Dropped) -> list[int]:
    """The spaces of a deleted table that stay."""
    history = dropped.table.history
    spans = () if history is None else history.spans
    return [dropped.table.space, *(span.space for span in spans)]


def save(txn: Transaction, dropped: Dropped) -> None:
    """Store a deleted table, new or changed."""
    place = _place(dropped.table.full_name, dropped.table.id)
    txn.put(CATALOG_SPACE, DROPPED, place, _ENCODE.encode(dropped))


def find(reader: Reader, full_name: str, table_id: str) -> Dropped | None:
    """The deleted table with this full name and id, or None."""
    stored = reader.get(CATALOG_SPACE, DROPPED, _place(full_name, table_id))
    return None if stored is None else _DECODE.decode(stored)


def of_name(reader: Reader, full_name: str) -> Iterator[Dropped]:
    """The deleted tables that had this full name."""
    prefix = _place(full_name, "")
    for _, stored in reader.scan(CATALOG_SPACE, DROPPED, prefix, successor(prefix)):
        with suppress(msgspec.MsgspecError, ValueError):  # `every` reports the error
            yield _DECODE.decode(stored)


def every(reader: Reader, scope: str | None = None) -> Iterator[tuple[str, Dropped | Exception]]:
    """The deleted tables of a scope, or of all, with the names under which they are stored. For a table that
    cannot be decoded it yields the error."""
    prefix = b"" if scope is None else f"{scope}/".encode()
    high = successor(prefix) if prefix else None
    for record in reader.scan(CATALOG_SPACE, DROPPED, prefix, high):
        pace.point()
        yield read_dropped(*record)


def read_dropped(place: bytes, stored: bytes) -> tuple[str, Dropped | Exception]:
    """The name and the table of a record of DROPPED; an error if it cannot be decoded."""
    name = place.replace(b"\x00", b"/").decode(errors="backslashreplace").removeprefix("/")
    try:
        return name, _DECODE.decode(stored)
    except (msgspec.MsgspecError, ValueError) as error:
        return name, error


def read_by(txn: Transaction, dropped: Dropped, name: str) -> None:
    """Keep the items of a deleted table until `release`, for a restore with this name."""
    save(txn, msgspec.structs.replace(dropped, readers=(*dropped.readers, name)))


def release(txn: Transaction, dropped: Dropped, name: str) -> None:
    """Release a deleted table, by the name of a hold."""
    if name in dropped.readers:
        readers = tuple(reader for reader in dropped.readers if reader != name)
        _settle(txn, msgspec.structs.replace(dropped, readers=readers))
        return
    history = dropped.table.history
    if history is None or history.hold(name) is None:
        return
    holds = tuple(hold for hold in history.holds if hold.name != name)
    if holds:
        history = msgspec.structs.replace(history, holds=holds)
    else:
        for span in history.spans:
            txn.delete_space(span.space)
        history = None
    table = msgspec.structs.replace(dropped.table, history=history)
    _settle(txn, msgspec.structs.replace(dropped, table=table))


def _settle(txn: Transaction, dropped: Dropped) -> None:
    """Store a deleted table, or remove it if it is no longer needed."""
    if dropped.table.history is None and not dropped.readers and not dropped.recoverable:
        forget(txn, dropped)
    else:
        save(txn, dropped)


def forget(txn: Transaction, dropped: Dropped) -> None:
    """Remove a deleted table with all its remaining records."""
    txn.delete(CATALOG_SPACE, DROPPED, _place(dropped.table.full_name, dropped.table.id))
    for space in spaces_of(dropped):
        txn.delete_space(space)


def is_due(dropped: Dropped, now: float) -> bool:
    """Whether `tend` has something to do."""
    return dropped.recoverable and (dropped.expires <= now or dropped.at > now + BEHIND_SECONDS_MAX)


def tend(txn: Transaction, full_name: str, table_id: str, now: float) -> None:
    """Remove a deleted table when its 35 days are over, as soon as no job reads it.

    If the clock was set back since the deletion, the 35 days begin now.
    """
    dropped = find(txn, full_name, table_id)
    if dropped is None or not is_due(dropped, now):
        return
    if dropped.at > now + BEHIND_SECONDS_MAX:
        save(txn, msgspec.structs.replace(dropped, at=now))
    else:
        _settle(txn, msgspec.structs.replace(dropped, recoverable=False))


def _place(full_name: str, table_id: str) -> bytes:
    """The place of the deleted table with an id."""
    scoped = full_name if "/" in full_name else f"/{full_name}"
    return f"{scoped}\x00{table_id}".encode()
