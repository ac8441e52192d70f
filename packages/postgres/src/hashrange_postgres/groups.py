"""A group: the bodies that commit together, all that they read and write, and how far its commit has come.

    COLLECTING   bodies run, and join it. Only they read its writes.
    LOCKING      PostgreSQL locks its records, or does so next. All bodies may run over its writes: if its own
                 have to run again, it gets another version.
    RUNNING      its bodies run again under its locks, or one under the store's. Only they read its writes.
    SENT         it never changes any more, so all bodies may run over it. PostgreSQL has it, or gets it next.
    LOST         the connection was lost before the answer, so its outcome is looked up.

After that it was committed, and what it wrote is known; or it was not, and nobody reads it any more.

Refuses to know: threads, connections.
"""

from __future__ import annotations

from enum import Enum
from typing import Any, Final

from hashrange.storage.api import STAMP_BYTES
from hashrange_postgres import schema as schemas
from hashrange_postgres.bodies import GroupTransaction, Layer
from hashrange_postgres.cache import CATALOG_SPACE, Key
from hashrange_postgres.direct import DirectTransaction, signed
from hashrange_postgres.members import Member
from hashrange_postgres.waiting import STORE_MS_MIN
from hashrange_postgres.wire.connections import Bytes, Numbers
from hashrange_postgres.wire.statements import Arguments, arrays_of

_NOT_READ: Final = -1
_ABSENT: Final = 0
_LOOK, _PUT, _DELETE, _BE_ABSENT = 0, 1, 2, 3


class State(Enum):
    COLLECTING = 1
    LOCKING = 2
    RUNNING = 3
    SENT = 4
    LOST = 5


class _Log:
    """A log that a group appends to: its number in the group, where its records have their stamps, and the
    last of these stamps."""

    __slots__ = ("number", "stamp", "stamp_at")

    def __init__(self, number: int, stamp_at: int | None) -> None:
        self.number = number
        self.stamp_at = stamp_at
        self.stamp = b""


class Group(Layer):
    """The reads and writes of some bodies, which ran one after the other.

    `reads` has the version of each record that was read from below the group; `catalog` is the version of the
    catalog on which the bodies ran, None while there was no body, -1 if they cannot have run at one moment.
    `to_run` are bodies that have not joined it yet, but will under its locks.
    `under_store`: its only body runs under the store's lock, for which the group waits `store_ms`.
    `exclusive`: the group is committed under the store's lock, although its bodies ran without.
    """

    __slots__ = (
        "_bodies",
        "_body_stamp",
        "_deleted",
        "_last",
        "_last_spaces",
        "_logs",
        "_moment",
        "appended",
        "by_loop",
        "bytes",
        "catalog",
        "changes_catalog",
        "counts",
        "exclusive",
        "kept",
        "members",
        "reads",
        "sent_at",
        "state",
        "store_ms",
        "to_run",
        "tries",
        "under_store",
    )

    def __init__(self, version: int, alone: Member | None = None, store_ms: int = STORE_MS_MIN) -> None:
        """Without a body that runs `alone`, under the store's lock, the group collects."""
        self.state = State.COLLECTING if alone is None else State.RUNNING
        self.to_run = [alone] if alone is not None else []
        self.under_store = alone is not None
        self.store_ms = store_ms
        self.by_loop = False  # the event loop waits for its answer, and otherwise the commit thread
        self.sent_at = 0.0  # when its commit began, by the monotonic clock
        self.tries = 0  # how often PostgreSQL has refused it, because other engines were faster
        self._empty(version)

    def _empty(self, version: int) -> None:
        super().__init__(version)
        self.members: list[Member] = []
        self.catalog: int | None = None
        self.reads: dict[Key, int] = {}
        self.counts: dict[int, tuple[int, int]] = {}
        self.appended: list[tuple[int, bytes]] = []
        self._logs: dict[tuple[int, bytes], _Log] = {}
        self._moment = self._bodies = 0
        self.kept: list[tuple[int, Key, bytes]] = []
        self._last_spaces: set[int] = set()
        self._last: int | None = None
        self._body_stamp: int | None = None
        self._deleted: set[int] = set()
        self.changes_catalog = False
        self.exclusive = False
        self.bytes = 0

    def begin_again(self, version: int) -> None:
        """Forget what the bodies have read and written, because they run again."""
        self.to_run = self.bodies
        self._empty(version)
        self.state = State.RUNNING

    @property
    def bodies(self) -> list[Member]:
        """All its bodies."""
        return [*self.members, *self.to_run]

    def add(self, txn: GroupTransaction, *, writes: bool) -> None:
        """Add the reads of a body and, if it has not failed, its writes."""
        if self.catalog is None:
            self.catalog = txn.catalog.version
        elif self.catalog != txn.catalog.version:
            self.catalog = -1  # two bodies ran on different catalogs: the group must fail as changed
        reads = self.reads
        for key, version in txn.reads.items():
            if reads.setdefault(key, version) != version:
                self.catalog = -1  # two bodies read different versions of a record
        if not writes:
            return
        self.records.update(txn.own)
        for space, (records, bytes_) in txn.counts.items():
            before = self.counts.get(space, (0, 0))
            self.counts[space] = (before[0] + records, before[1] + bytes_)
        for appended in txn.appended:
            self._append(*appended)
        if txn.moment is not None:
            self._moment = max(self._moment, txn.moment)
            self.kept += [(self._bodies, key, value) for key, value in txn.kept.items()]
            self._bodies += 1
        self.late |= txn.late
        self.bytes += txn.bytes

    def _append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None) -> None:
        log = self._logs.get((space, partition))
        if log is None:
            log = self._logs[space, partition] = _Log(len(self._logs) + 1, stamp_at)
        if stamp_at is not None:
            # No stamp is below the one before it in this group; PostgreSQL compares with those of others.
            end = stamp_at + STAMP_BYTES
            log.stamp = max(log.stamp, value[stamp_at:end])
            value = value[:stamp_at] + log.stamp + value[end:]
        self.appended.append((log.number, value))

    def take(self, txn: DirectTransaction) -> None:
        """Take what a body writes that has run under the store's lock. What it read needs no comparison."""
        self.records = txn.written()
        self.counts = {space: counts for space, counts in txn.counts.items() if space not in txn.deleted}
        self._last_spaces, self._last = txn.last_spaces, txn.last
        self._body_stamp, self._deleted = txn.body_stamp, txn.deleted
        self.changes_catalog = bool(txn.deleted) or any(key[0] == CATALOG_SPACE for key in self.records)

    def wrote(self) -> bool:
        if self.records or self.counts or self.appended or self.kept:
            return True
        return bool(self._deleted or self._last_spaces) or self._body_stamp is not None

    @property
    def is_fixed(self) -> bool:
        """Whether other bodies may run over its writes. Those of a body under the store's lock are read after
        its commit: it may have deleted spaces."""
        return self.state is not State.RUNNING and not self.under_store

    def arguments(self, server: int, epoch: int) -> Arguments:
        """The arguments of `commit_group`."""
        assert self.catalog is not None
        count_space, count_records, count_bytes = _counted(self.counts)
        logs = self._logs.values()
        log_stamps = [log.stamp for log in logs if log.stamp_at is not None]
        kept_space, kept_partition, kept_sort = arrays_of([key for _, key, _ in self.kept])
        return self._records()._replace(
            server=server,
            epoch=epoch,
            version=self.version,
            catalog=self.catalog,
            changes_catalog=self.changes_catalog,
            count_space=count_space,
            count_records=count_records,
            count_bytes=count_bytes,
            log_space=Numbers([space for space, _ in self._logs]),
            log_partition=Bytes([partition for _, partition in self._logs]),
            log_stamp_at=Numbers([-1 if log.stamp_at is None else log.stamp_at for log in logs]),
            log_stamp=signed(int.from_bytes(max(log_stamps), "big")) if log_stamps else None,
            appended_log=Numbers([log for log, _ in self.appended]),
            appended_value=Bytes([value for _, value in self.appended]),
            moment=signed(self._moment),
            bodies=self._bodies,
            kept_body=Numbers([body for body, _, _ in self.kept]),
            kept_space=kept_space,
            kept_partition=kept_partition,
            kept_sort=kept_sort,
            kept_value=Bytes([value for *_, value in self.kept]),
            last_space=Numbers(sorted(self._last_spaces)),
            last=self._last,
            body_stamp=signed(self._body_stamp) if self._body_stamp is not None else None,
            cleared=Numbers(sorted(self._deleted)),
            format=schemas.FORMAT,
        )

    def _records(self) -> Arguments:
        """The arguments that say what was read and what is written, and under which locks."""
        reads, records = self.reads, self.records
        keys = sorted(reads.keys() | records.keys())
        seen, ops, values = Numbers(), Numbers(), Bytes()
        new = absent = updates = puts = deletes = blind_deletes = looks = looks_at_present = 0
        exclusive = self.exclusive or self.under_store
        for key in keys:
            version = reads.get(key, _NOT_READ)
            value = records.get(key)
            op = _PUT if value is not None else _DELETE if key in records else _LOOK
            if version == _ABSENT and op != _PUT:
                op = _BE_ABSENT
                absent += 1
            elif op == _LOOK:
                looks += 1
                looks_at_present += version > 0
            elif op == _DELETE:
                deletes += 1
                blind_deletes += version == _NOT_READ
            elif version == _ABSENT:
                new += 1
            elif version == _NOT_READ:
                puts += 1
            else:
                updates += 1
            seen.append(version)
            ops.append(op)
            values.append(value)
        space, partition, sort = arrays_of(keys)
        return Arguments(
            exclusive_ms=self.store_ms if exclusive else 0,
            locks=bool(looks or (blind_deletes and exclusive)),
            space=space,
            partition=partition,
            sort=sort,
            seen=seen,
            op=ops,
            value=values,
            present=looks_at_present + updates + deletes - blind_deletes,
            new=new,
            absent=absent,
            updates=updates,
            puts=puts,
            deletes=deletes,
            blind_deletes=blind_deletes,
        )

    def arrays_to_read(self) -> tuple[list[Any], list[Key]]:
        """The arguments of `fetch`, to compare what was read, and the addresses in their order."""
        keys = list(self.reads)
        return [*arrays_of(keys), Numbers(self.reads.values())], keys

    def arrays_to_lock(self) -> tuple[list[Any], list[Key]]:
        """The arguments of `lock_records`, and the addresses in their order."""
        reads = self.reads
        keys = list(reads.keys() | self.records.keys())
        return [*arrays_of(keys), Numbers([reads.get(key, _NOT_READ) for key in keys])], keys


def _counted(counts: dict[int, tuple[int, int]]) -> tuple[Numbers, Numbers, Numbers]:
    spaces = sorted(counts)
    records = Numbers([counts[space][0] for space in spaces])
    return Numbers(spaces), records, Numbers([counts[space][1] for space in spaces])
