"""Finds out whether files of a store are missing or damaged, before RocksDB opens them.

RocksDB itself would drop the records that it cannot read, and carry on without a word.

RocksDB gives each record a sequence number, without gaps. The MANIFEST says up to which number they are in
SST files; the write-ahead logs go on from there; the mark (`mark`) says up to which number writes were
acknowledged. Therefore:

- A number that is missing between two records, or before the first, is a hole: its record was written and
  is lost.
- A log that ends, or becomes unreadable, at or behind the mark has a torn tail, as a killed process or a
  crashed machine leaves it. This is no damage: the engine begins a batch only when the batch before it is
  durable, so only the last batch can be torn, and no client was told that it succeeded.
- If another crash follows before the MANIFEST names the log of the new start, this log stays behind the torn
  one. It begins with the number after the last one that can be read, so nothing is missing between them.
- Logs that end before the mark have lost acknowledged writes.

Nothing here changes a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from struct import Struct
from typing import Final

from hashrange.storage.embedded.keys import BATCH_KEY, unpack_batch
from hashrange.storage.embedded.logs import BadBytes, read_log
from hashrange.storage.embedded.manifest import (
    Manifest,
    Sst,
    UnreadableManifest,
    newest_manifest,
    read_manifest,
)
from hashrange.storage.embedded.mark import Mark

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
    missing_ssts: list[Sst] = field(default_factory=list)
    damaged_logs: list[str] = field(default_factory=list)
    sequence: int = 0  # the last sequence number that can be read
    batch: int = 0  # the last batch in the logs; 0: none


def examine(rocks: Path, mark: Mark | None) -> Examined:
    """Look at the files of the store in the folder `rocks`. Raises OSError."""
    found = Examined()
    if not rocks.is_dir():
        found.damage.append(Damage("the folder rocks is missing, with all records", "rocks"))
        return found
    try:
        manifest = found.manifest = read_manifest(rocks)
    except UnreadableManifest as error:
        found.damage.append(Damage(f"{error}: the files of the store are not known without it"))
        newest = newest_manifest(rocks)
        if newest is None or "CURRENT " not in str(error):
            return found
        try:
            manifest = found.manifest = read_manifest(rocks, newest)
        except UnreadableManifest as another:
            found.damage.append(Damage(str(another)))
            return found
    if mark is not None and mark.store_id and manifest.store_id and mark.store_id != manifest.store_id:
        found.damage.append(
            Damage(
                f"rocks holds another store, {manifest.store_id}; the file STORE belongs to {mark.store_id}",
                "rocks",
            )
        )
        return found
    for sst in sorted(manifest.ssts.values(), key=lambda sst: sst.number):
        _examine_sst(rocks, sst, found)
    _examine_logs(rocks, manifest, mark, found)
    return found


def live_logs(rocks: Path, manifest: Manifest) -> list[Path]:
    """The write-ahead logs with records that no SST file holds yet, the oldest first."""
    numbered = [(int(path.stem), path) for path in rocks.glob("*.log") if path.stem.isdigit()]
    return [path for number, path in sorted(numbered) if number >= manifest.log_number]


def sequences_of(payload: bytes) -> tuple[int, int]:
    """The first and the last sequence number of a batch in a log. Raises ValueError."""
    if len(payload) < _BATCH_HEAD_BYTES:
        raise ValueError("a record that is no batch")
    first, records = _batch_head(payload)
    return first, first + records - 1


def batch_number(payload: bytes) -> int:
    """The number that the engine gave to a batch; 0 for one that it did not number."""
    at = payload.rfind(_BATCH_NOTE)
    if at < 0:
        return 0
    at += len(_BATCH_NOTE)
    note = payload[at : at + 16]
    return unpack_batch(note)[0] if len(note) == 16 else 0


def _examine_sst(rocks: Path, sst: Sst, found: Examined) -> None:
    try:
        size = (rocks / sst.name).stat().st_size
    except FileNotFoundError:
        what = "is missing"
    else:
        if size == sst.size_bytes:
            return
        what = f"has {size} bytes instead of {sst.size_bytes}"
    found.missing_ssts.append(sst)
    held = f"it held {sst.size_bytes} bytes of records"
    found.damage.append(Damage(f"rocks/{sst.name} {what}; {held}", f"rocks/{sst.name}"))


@dataclass(slots=True)
class _Reached:
    """How far `_examine_logs` has read the logs."""

    sequence: int
    batch: int = 0
    doubt: tuple[str, BadBytes] | None = None  # bytes that hold no record, the first of them


def _examine_logs(rocks: Path, manifest: Manifest, mark: Mark | None, found: Examined) -> None:
    logs = live_logs(rocks, manifest)
    reached = _Reached(manifest.last_sequence)
    last = b""
    for log in logs:
        begins = True
        for entry in read_log(log.read_bytes()):
            if isinstance(entry, BadBytes):
                if reached.doubt is None:
                    reached.doubt = (log.name, entry)
                begins = False
                continue
            first, end = _sequences(entry.payload)
            if begins and first == reached.sequence + 1:
                reached.doubt = None  # the torn tail of the log before
            begins = False
            if first > reached.sequence + 1 or reached.doubt is not None:
                before = batch_number(last) if last else 0
                found.damage.append(_hole(log.name, reached, before, first, batch_number(entry.payload)))
                if reached.doubt is not None:
                    found.damaged_logs.append(reached.doubt[0])
            reached.doubt = None
            reached.sequence = max(reached.sequence, end)
            last = entry.payload
    found.sequence = reached.sequence
    found.batch = batch_number(last) if last else 0
    if not logs:
        found.damage.append(Damage("the write-ahead log is missing: rocks holds no .log file", "rocks"))
    if mark is None or reached.sequence >= mark.sequence:
        return
    found.damage.append(_end(logs[-1].name if logs else "", reached, found.batch, mark))
    if reached.doubt is not None:
        found.damaged_logs.append(reached.doubt[0])


def _sequences(payload: bytes) -> tuple[int, int]:
    try:
        return sequences_of(payload)
    except ValueError:
        return 0, 0


def _hole(log: str, reached: _Reached, before: int, first: int, after: int) -> Damage:
    lost = _lost(reached.sequence, first - 1, before, after - 1 if after else 0)
    if reached.doubt is None:
        return Damage(f"{lost}: no log holds them, and rocks/{log} goes on behind them", f"rocks/{log}")
    name, bad = reached.doubt
    return Damage(
        f"rocks/{name} is damaged at byte {bad.offset} ({bad.cause}, {bad.end - bad.offset} bytes); {lost}; "
        "the log goes on behind them",
        f"rocks/{name}",
    )


def _end(log: str, reached: _Reached, batch: int, mark: Mark) -> Damage:
    lost = _lost(reached.sequence, mark.sequence, batch, mark.batch)
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

