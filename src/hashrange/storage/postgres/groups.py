"""The reads and writes of a group of bodies, and their encoding for `commit_group` of `schema.sql`.

Refuses to know: when a group is committed.
"""

from __future__ import annotations

from typing import Any, Final

from hashrange.storage.api import STAMP_BYTES
from hashrange.storage.postgres.bodies import GroupTransaction, Layer
from hashrange.storage.postgres.cache import Key
from hashrange.storage.postgres.connections import Bytes, Decimals, Numbers
from hashrange.storage.postgres.direct import DirectTransaction, arrays_of

SLOTS: Final = 16
"""The number of rows per space that engines count into, so that few engines wait for each other."""

GROUP_BITS: Final = 40
"""A version is the number of an engine, followed by the number of its group in this many lower bits."""

EXCLUSIVE_AT: Final = 5
"""The index of the argument of `commit_group` that says whether it takes the exclusive lock."""

_NOT_READ: Final = -1
_ABSENT: Final = 0
_LOOK, _PUT, _DELETE = 0, 1, 2


def version_of(server: int, group: int) -> int:
    """The version of the records that this group of this engine writes."""
    return (server << GROUP_BITS) | group


class Group(Layer):
    """The reads and writes of some bodies, which ran one after the other.

    `reads` has the version of each record that they read from below the group; `catalog` is the version of
    the catalog on which they ran, None while there was no body.
    """

    __slots__ = ("_stamps", "appended", "bytes", "catalog", "counts", "exclusive", "kept", "moments", "reads")

    def __init__(self, version: int) -> None:
        super().__init__(version)
        self.catalog: int | None = None
        self.reads: dict[Key, int] = {}
        self.counts: dict[int, tuple[int, int]] = {}
        self.appended: list[tuple[int, bytes, bytes, int]] = []
        self._stamps: dict[tuple[int, bytes], bytes] = {}
        self.moments = Decimals()
        self.kept: list[tuple[int, Key, bytes]] = []
        self.exclusive = False
        self.bytes = 0

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
            self.moments.append(txn.moment)
            self.kept += [(len(self.moments), key, value) for key, value in txn.kept.items()]
        self.late |= txn.late
        self.bytes += txn.bytes

    def _append(self, space: int, partition: bytes, value: bytes, stamp_at: int | None) -> None:
        if stamp_at is None:
            self.appended.append((space, partition, value, -1))
            return
        # No stamp is below the one before it in this group; PostgreSQL compares with those of other groups.
        log, end = (space, partition), stamp_at + STAMP_BYTES
        stamp = self._stamps[log] = max(self._stamps.get(log, b""), value[stamp_at:end])
        self.appended.append((space, partition, value[:stamp_at] + stamp + value[end:], stamp_at))

    def wrote(self) -> bool:
        return bool(self.records or self.counts or self.appended or self.kept)

    def values(self, server: int, epoch: int, group: int) -> list[Any]:
        """The arguments of `commit_group`."""
        reads, records = self.reads, self.records
        keys = sorted(reads.keys() | records.keys())
        seen, ops, values = Numbers(), Numbers(), Bytes()
        new = updates = puts = deletes = blind_deletes = looks = looks_at_present = 0
        exclusive = self.exclusive
        for key in keys:
            version = reads.get(key, _NOT_READ)
            value = records.get(key)
            op = _PUT if value is not None else _DELETE if key in records else _LOOK
            if version == _ABSENT and op != _PUT:
                op = _LOOK
                exclusive = True  # nothing else keeps other engines from creating the record
            if op == _LOOK:
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
        locks = bool(looks or blind_deletes or (deletes and (updates or puts)))
        present = looks_at_present + updates + deletes - blind_deletes
        arguments: list[Any] = [
            server,
            epoch,
            group,
            self.version,
            server % SLOTS,
            exclusive,
            locks,
            self.catalog,
            False,
        ]
        arguments += [*arrays_of(keys), seen, ops, values]
        arguments += [present, new, updates, puts, deletes, blind_deletes]
        arguments += _counted(self.counts)
        logs = arrays_of([(space, partition, value) for space, partition, value, _ in self.appended])
        arguments += [*logs, Numbers([stamp_at for *_, stamp_at in self.appended])]
        arguments += _stamps(self._stamps)
        kept = arrays_of([key for _, key, _ in self.kept])
        bodies = Numbers([body for body, _, _ in self.kept])
        contents = Bytes([value for *_, value in self.kept])
        arguments += [self.moments, bodies, *kept, contents, Numbers(), Numbers(), None, Numbers()]
        return arguments

    def read_arrays(self) -> tuple[tuple[Any, ...], list[Key]]:
        """The arguments of `verify`, for a group that wrote nothing, and the addresses in their order."""
        keys = list(self.reads)
        return (*arrays_of(keys), Numbers(self.reads.values())), keys


def values_of_direct(
    txn: DirectTransaction, server: int, epoch: int, group: int, catalog: int, *, changes_catalog: bool
) -> list[Any]:
    """The arguments of `commit_group` for a body that ran under the exclusive lock."""
    own = {key: value for key, value in txn.own.items() if key[0] not in txn.deleted}
    keys = sorted(own)
    ops = Numbers([_PUT if own[key] is not None else _DELETE for key in keys])
    puts = sum(op == _PUT for op in ops)
    deletes = len(ops) - puts
    seen = Numbers([_NOT_READ] * len(keys))
    arguments: list[Any] = [server, epoch, group, version_of(server, group), server % SLOTS]
    arguments += [True, False, catalog, changes_catalog]
    arguments += [*arrays_of(keys), seen, ops, Bytes([own[key] for key in keys])]
    arguments += [0, 0, 0, puts, deletes, deletes]
    arguments += _counted({space: n for space, n in txn.counts.items() if space not in txn.deleted})
    arguments += [Numbers(), Bytes(), Bytes(), Numbers()]
    arguments += _stamps(txn.log_stamps)
    arguments += [Decimals(), Numbers(), Numbers(), Bytes(), Bytes(), Bytes()]
    arguments += [Numbers(txn.last), Numbers(txn.last.values()), txn.clock, Numbers(sorted(txn.deleted))]
    return arguments


def _counted(counts: dict[int, tuple[int, int]]) -> list[Numbers]:
    spaces = sorted(counts)
    records = Numbers([counts[space][0] for space in spaces])
    return [Numbers(spaces), records, Numbers([counts[space][1] for space in spaces])]


def _stamps(stamps: dict[tuple[int, bytes], bytes]) -> list[Any]:
    logs = sorted(stamps)
    spaces = Numbers([space for space, _ in logs])
    return [spaces, Bytes([partition for _, partition in logs]), Bytes([stamps[log] for log in logs])]
