"""Finds out whether files of a store are missing or damaged, before RocksDB opens them.

RocksDB itself would silently drop the records that it cannot read.

RocksDB gives each record a sequence number, without gaps. The MANIFEST says up to which number records are in
SST files; the write-ahead logs continue from there; the mark (`mark`) says up to which number writes were
acknowledged. Therefore:

- A number that is missing between two records, or before the first, is a hole: its record was written and
  is lost.
- A log that ends, or becomes unreadable, at or behind the mark has a torn tail, as a killed process or a
  crashed machine leaves it. This is no damage: the engine begins a batch only when the batch before it is
  durable, so only the last batch can be torn, and no client was told that it succeeded.
- If another crash follows before the MANIFEST names the log of the new start, that log follows the torn
  one. It begins with the number after the last readable one, so no number is missing between them.
- Logs that end before the mark have lost acknowledged writes.
- A number that is no higher than the one before it, or than those in SST files, belongs to a record that was
  copied or moved: RocksDB never writes a number twice. RocksDB would replay old values over new ones, or
  stop.

Nothing here changes a file.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from operator import itemgetter
from pathlib import Path
from struct import Struct
from time import monotonic
from typing import Final, NamedTuple

from hashrange.storage.embedded.files.logs import BadBytes, LogRecord, read_log
from hashrange.storage.embedded.files.manifest import (
    Manifest,
    Sst,
    UnreadableManifest,
    newest_manifest,
    read_manifest,
)
from hashrange.storage.embedded.files.mark import Mark
from hashrange.storage.embedded.keys import BATCH_KEY, unpack_batch

_log = logging.getLogger(__name__)

# A start that reads the logs for longer than this logs its progress, and again after each such period.
_TELL_SECONDS: Final = 3.0
_MIB: Final = 1024 * 1024

_batch_head = Struct("<QI").unpack_from
_BATCH_HEAD_BYTES: Final = 12
# The engine's note of the batch's number, as RocksDB puts it into a batch: type, key, value.
_BATCH_NOTE: Final = bytes((1, len(BATCH_KEY))) + BATCH_KEY + bytes((16,))


@dataclass(frozen=True, slots=True)
class Damage:
    """A file that is missing or damaged. `message` names the file, and the records that are lost with it."""

    message: str
    file: str = ""


@dataclass(slots=True)
class Examined:
    """The result of `examine`: the damage, and how far the logs can be read."""

    damage: list[Damage] = field(default_factory=list)
    manifest: Manifest | None = None
    missing_ssts: list[Sst] = field(default_factory=list)  # also those that are too short
    long_ssts: list[Sst] = field(default_factory=list)  # with bytes behind their end
    damaged_logs: bool = False  # whether the logs hold anything except records, each once and in order
    torn: dict[str, int] = field(default_factory=dict)  # by log: where its torn tail begins
    sequence: int = 0  # the last sequence number that can be read
    batch: int = 0  # the last batch in the logs; 0: none


def examine(rocks: Path, mark: Mark | None) -> Examined:
    """Look at the files of the store in the folder `rocks`. Raises OSError."""
    examined = Examined()
    if not rocks.is_dir():
        examined.damage.append(Damage("the folder rocks is missing, with all records", "rocks"))
        return examined
    try:
        manifest = examined.manifest = read_manifest(rocks)
    except UnreadableManifest as error:
        examined.damage.append(Damage(f"{error}: the files of the store are not known without it"))
        newest = newest_manifest(rocks)
        if newest is None or "CURRENT " not in str(error):
            return examined
        try:
            manifest = examined.manifest = read_manifest(rocks, newest)
        except UnreadableManifest as another:
            examined.damage.append(Damage(str(another)))
            return examined
    if mark is not None and mark.store_id and manifest.store_id and mark.store_id != manifest.store_id:
        examined.damage.append(
            Damage(
                f"rocks holds another store, {manifest.store_id}; the file STORE belongs to {mark.store_id}",
                "rocks",
            )
        )
        return examined
    for sst in sorted(manifest.ssts.values(), key=lambda sst: sst.number):
        _examine_sst(rocks, sst, examined)
    _examine_logs(rocks, manifest, mark, examined)
    return examined


def live_logs(rocks: Path, manifest: Manifest) -> list[Path]:
    """The write-ahead logs with records that no SST file holds yet, the oldest first."""
    numbered = [(int(path.stem), path) for path in rocks.glob("*.log") if path.stem.isdigit()]
    return [path for number, path in sorted(numbered) if number >= manifest.log_number]


def sequences_of(payload: bytes) -> tuple[int, int]:
    """The first and the last sequence number of a batch in a log. Raises ValueError."""
    if len(payload) < _BATCH_HEAD_BYTES:
        raise ValueError("a record that is not a batch")
    first, records = _batch_head(payload)
    return first, first + records - 1


def in_sequence(payloads: Iterable[bytes], after: int) -> Iterator[bytes]:
    """The batches of logs with sequence numbers above `after`, each once, in the order in which they were
    written. If two have the same numbers, the first one counts."""
    numbered = []
    for payload in payloads:
        with suppress(ValueError):
            numbered.append((*sequences_of(payload), payload))
    for first, last, payload in sorted(numbered, key=itemgetter(0)):
        if after < first <= last:
            yield payload
            after = last


def batch_number(payload: bytes) -> int:
    """The number that the engine gave to a batch; 0 if it gave none."""
    at = payload.rfind(_BATCH_NOTE)
    if at < 0:
        return 0
    at += len(_BATCH_NOTE)
    note = payload[at : at + 16]
    return unpack_batch(note)[0] if len(note) == 16 else 0


def _examine_sst(rocks: Path, sst: Sst, examined: Examined) -> None:
    try:
        size = (rocks / sst.name).stat().st_size
    except FileNotFoundError:
        what = "is missing"
    else:
        if size == sst.size_bytes:
            return
        what = f"has {size} bytes instead of {sst.size_bytes}"
        if size > sst.size_bytes:
            examined.long_ssts.append(sst)
            examined.damage.append(Damage(f"rocks/{sst.name} {what}", f"rocks/{sst.name}"))
            return
    examined.missing_ssts.append(sst)
    held = f"it held {sst.size_bytes} bytes of records"
    examined.damage.append(Damage(f"rocks/{sst.name} {what}; {held}", f"rocks/{sst.name}"))


class _Placed(NamedTuple):
    """A batch in the logs: where it is, and which sequence numbers it has."""

    offset: int
    first: int
    last: int
    batch: int


def _entries(logs: list[Path]) -> Iterator[tuple[str, _Placed | BadBytes]]:
    """The contents of the logs, in order. Logs its progress if reading takes long."""
    sizes = [log.stat().st_size for log in logs]
    before, tell_at = 0, monotonic() + _TELL_SECONDS
    for log, size in zip(logs, sizes, strict=True):
        for entry in read_log(log.read_bytes()):
            if monotonic() >= tell_at:
                tell_at = monotonic() + _TELL_SECONDS
                read = {"read_mib": (before + entry.offset) // _MIB, "of_mib": sum(sizes) // _MIB}
                _log.info("reading the log of the store", extra={"fields": read})
            yield log.name, _placed(entry)
        before += size


def _placed(entry: LogRecord | BadBytes) -> _Placed | BadBytes:
    if isinstance(entry, BadBytes):
        return entry
    try:
        first, last = sequences_of(entry.payload)
    except ValueError as error:
        return BadBytes(entry.offset, entry.end, str(error))
    return _Placed(entry.offset, first, last, batch_number(entry.payload))


@dataclass(slots=True)
class _Reached:
    """How far `_examine_logs` has read the logs."""

    sequence: int  # the highest number so far
    previous: int  # the last number of the batch before
    batch: int = 0  # the number of the batch before
    doubt: tuple[str, BadBytes] | None = None  # the first bytes that hold no record


def _examine_logs(rocks: Path, manifest: Manifest, mark: Mark | None, examined: Examined) -> None:
    logs = live_logs(rocks, manifest)
    entries = list(_entries(logs))
    firsts = {entry.first for _, entry in entries if isinstance(entry, _Placed)}
    damage_before = len(examined.damage)
    reached = _Reached(manifest.last_sequence, manifest.last_sequence)
    before = ""
    for log, entry in entries:
        begins, before = log != before, log
        if isinstance(entry, BadBytes):
            reached.doubt = reached.doubt or (log, entry)
            examined.torn[log] = entry.offset
            continue
        if begins and entry.first == reached.sequence + 1:
            reached.doubt = None  # the torn tail of the log before
        if entry.first <= reached.sequence and entry.first != reached.previous + 1:
            examined.damage.append(_going_back(log, reached, entry))
        elif entry.first > reached.sequence + 1 and reached.sequence + 1 in firsts:
            examined.damage.append(_too_early(log, reached, entry))
        elif entry.first > reached.sequence + 1 or reached.doubt is not None:
            examined.damage.append(_hole(log, reached, entry))
        reached.doubt = None
        reached.previous = entry.last
        reached.sequence = max(reached.sequence, entry.last)
        reached.batch = entry.batch
    bad = any(isinstance(entry, BadBytes) for _, entry in entries)
    examined.damaged_logs = bad or len(examined.damage) > damage_before
    examined.sequence = reached.sequence
    examined.batch = reached.batch
    if not logs:
        examined.damage.append(Damage("the write-ahead log is missing: rocks holds no .log file", "rocks"))
    if mark is None or reached.sequence >= mark.sequence:
        return
    examined.damage.append(_end(logs[-1].name if logs else "", reached, mark))


def _going_back(log: str, reached: _Reached, entry: _Placed) -> Damage:
    message = (
        f"rocks/{log} goes back at byte {entry.offset}, from the write with number {reached.previous} to "
        f"number {entry.first}: a part of it was copied or moved, or belongs to an older state of the store"
    )
    return Damage(message, f"rocks/{log}")


def _too_early(log: str, reached: _Reached, entry: _Placed) -> Damage:
    message = (
        f"rocks/{log} goes on with number {entry.first} at byte {entry.offset}, and has the writes from "
        f"number {reached.sequence + 1} on at another place: a part of it was moved"
    )
    return Damage(message, f"rocks/{log}")


def _hole(log: str, reached: _Reached, entry: _Placed) -> Damage:
    last_batch = entry.batch - 1 if entry.batch else 0
    lost = _lost(reached.sequence, entry.first - 1, reached.batch, last_batch)
    if reached.doubt is None:
        return Damage(f"{lost}: no log holds them, and rocks/{log} goes on behind them", f"rocks/{log}")
    name, bad = reached.doubt
    return Damage(
        f"rocks/{name} is damaged at byte {bad.offset} ({bad.cause}, {bad.end - bad.offset} bytes); {lost}; "
        "the log goes on behind them",
        f"rocks/{name}",
    )


def _end(log: str, reached: _Reached, mark: Mark) -> Damage:
    lost = _lost(reached.sequence, mark.sequence, reached.batch, mark.batch)
    if reached.doubt is not None:
        name, bad = reached.doubt
        what = f"rocks/{name} is damaged at byte {bad.offset} ({bad.cause})"
        return Damage(f"{what}; {lost}, which were acknowledged", f"rocks/{name}")
    return Damage(f"{lost}, which were acknowledged: the logs end before them", f"rocks/{log}")


def _lost(sequence: int, last: int, batch: int, last_batch: int) -> str:
    """Words for the writes that are lost: those after `sequence` and `batch`, up to `last` and
    `last_batch`."""
    writes = max(last - sequence, 0)
    if last_batch and batch < last_batch:
        first_batch = f"{batch + 1}" if batch else "?"
        return f"lost are the batches {first_batch} to {last_batch} with {writes} writes"
    return f"lost are {writes} writes behind number {sequence}"
