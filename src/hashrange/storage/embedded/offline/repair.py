"""Makes a sound store of the readable records of a damaged one; the rest is lost.

The order allows a repair that was cut off to be repeated:

1. The files that are about to change are kept in the folder `damaged-N` of the data directory, as links or
   copies.
2. The sound records of the logs are written to one log, each once and in their order, so that RocksDB also
   replays the records after a hole, and never an old value over a new one.
3. SST files with bytes after their end are cut to their length. The readable records of a damaged file are
   written once more. They are found by comparing the store with the store as it would be without that file,
   so deletions are kept too.
4. The MANIFEST is rewritten without the SST files that are missing or damaged.
5. RocksDB opens the store, and the mark is set to what it holds.

In a range of keys that cannot be read, old versions of records may reappear: those that the damaged file had
replaced, if older files still hold them.

Refuses to know: what records mean, and so whether they still fit together.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from rocksdict import Rdict, WriteBatch

from hashrange.files.durable import sync_directory, write_durably
from hashrange.storage.embedded import disk
from hashrange.storage.embedded.files.damage import live_logs
from hashrange.storage.embedded.files.directory import lock, make_private, write_format
from hashrange.storage.embedded.files.manifest import (
    Manifest,
    UnreadableManifest,
    read_manifest,
    without_ssts,
)
from hashrange.storage.embedded.files.mark import NAME, Mark, write_mark
from hashrange.storage.embedded.keys import BATCH_KEY, unpack_batch
from hashrange.storage.embedded.offline.salvage import BadRange, StoredRecords, cut, sound_log, walk
from hashrange.storage.failures import StorageError

_CACHE_BYTES: Final = 32 * 1024 * 1024
_BATCH_RECORDS: Final = 1_000


def aside(directory: Path) -> Path:
    """The next folder `damaged-N` of a data directory, which does not exist yet."""
    number = 1
    while (directory / f"damaged-{number}").exists():
        number += 1
    return directory / f"damaged-{number}"


def repair(directory: Path) -> Iterator[str]:
    """Make the store in a directory sound; yields a line of text for each step.

    Raises DataDirectoryLocked, UnknownFormat, StorageError.
    """
    try:
        held = lock(directory)
        try:
            yield from _Repair(directory).run()
        finally:
            if held is not None:
                os.close(held)
    except (OSError, UnreadableManifest) as error:
        raise StorageError(f"The store in {directory} could not be repaired: {error}") from error


class _Repair:
    """One repair of one directory, which is locked."""

    __slots__ = ("_aside", "_directory", "_rocks")

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._rocks = directory / "rocks"
        self._aside = aside(directory)

    def run(self) -> Iterator[str]:
        store = StoredRecords(self._directory, locked=True)
        try:
            for _ in store.verify(lambda what, records: None):
                pass
            manifest = store.found.manifest
            if manifest is None:
                raise StorageError(
                    f"The store in {self._directory} cannot be repaired: its MANIFEST is lost or damaged; "
                    "restore a copy of the directory. To start with an empty store, use a new directory."
                )
            if not store.found.damage and not store.bad_ranges:
                return
            logs = live_logs(self._rocks, manifest) if store.found.damaged_logs else []
            damaged_ssts = {bad.sst for bad in store.bad_ranges} & manifest.ssts.keys()
            long_ssts = {sst.number for sst in store.found.long_ssts}
            self._set_aside(manifest, logs, damaged_ssts | store.unusable_ssts | long_ssts)
            yield f"what is changed is kept in {self._aside}"
            if logs:
                self._rewrite_logs(logs, manifest)
                yield f"rocks/{logs[0].name} holds the sound records of the log now"
            for sst in store.found.long_ssts:
                write_durably(self._rocks / sst.name, cut(self._rocks / sst.name, sst))
                yield f"rocks/{sst.name} ends where it did"
            if self._name_manifest(manifest):
                yield f"rocks/CURRENT names {manifest.name}"
            self._remove(store.unusable_ssts)
            if damaged_ssts:
                written = self._save_readable(store, damaged_ssts)
                yield f"{written} records and deletions of damaged SST files were written again"
                self._remove(damaged_ssts)
            for number in sorted(damaged_ssts | store.unusable_ssts):
                yield f"rocks/{number:06}.sst is not part of the store any more"
        finally:
            store.close()
        yield self._set_mark()

    def _set_aside(self, manifest: Manifest, logs: list[Path], ssts: set[int]) -> None:
        names = ["CURRENT", manifest.name, *(log.name for log in logs)]
        names += [manifest.ssts[number].name for number in ssts]
        # RocksDB deletes files that the MANIFEST does not name, and a damaged MANIFEST may name too few.
        known = {sst.name for sst in manifest.ssts.values()}
        names += [path.name for path in self._rocks.glob("*.sst") if path.name not in known]
        kept = self._aside / "rocks"
        kept.mkdir(parents=True)
        for name in names:
            if not (self._rocks / name).exists():
                continue
            if name.endswith(".sst"):
                try:
                    os.link(self._rocks / name, kept / name)  # RocksDB never changes an SST file
                    continue
                except OSError:  # a file system without links
                    pass
            shutil.copy2(self._rocks / name, kept / name)
        if (self._directory / NAME).exists():
            shutil.copy2(self._directory / NAME, self._aside / NAME)
        make_private(self._aside)
        sync_directory(kept)
        sync_directory(self._aside)
        sync_directory(self._directory)

    def _rewrite_logs(self, logs: list[Path], manifest: Manifest) -> None:
        """Put the sound records of all logs into the first one."""
        write_durably(logs[0], sound_log(logs, manifest))
        for log in logs[1:]:
            log.unlink()
        sync_directory(self._rocks)

    def _name_manifest(self, manifest: Manifest) -> bool:
        """Make CURRENT name the MANIFEST; returns whether it named another file before."""
        current, line = self._rocks / "CURRENT", f"{manifest.name}\n".encode()
        if current.exists() and current.read_bytes() == line:
            return False
        write_durably(current, line)
        return True

    def _remove(self, ssts: set[int]) -> None:
        """Rewrite the MANIFEST without some SST files."""
        manifest = read_manifest(self._rocks)
        ssts = ssts & manifest.ssts.keys()
        if ssts:
            write_durably(self._rocks / manifest.name, without_ssts(self._rocks, manifest, ssts))

    def _save_readable(self, store: StoredRecords, ssts: set[int]) -> int:
        """Write the readable records of damaged SST files once more; returns how many."""
        written = 0
        # The damaged files are still a part of the store while it is opened for writing: do not compact them.
        without = store.without(ssts)
        db = disk.open_rocks(self._directory, cache_bytes=_CACHE_BYTES, compact=False)
        try:
            batch = WriteBatch(raw_mode=True)
            for key, value in _differences(db, without, store.bad_ranges):
                if value is None:
                    batch.delete(key)
                else:
                    batch.put(key, value)
                written += 1
                if batch.len() >= _BATCH_RECORDS:
                    db.write(batch)
                    batch = WriteBatch(raw_mode=True)
            if batch.len():
                db.write(batch)
            db.flush_wal(True)
            db.flush()
        finally:
            without.close()
            db.close()
        return written

    def _set_mark(self) -> str:
        db = disk.open_rocks(self._directory, cache_bytes=_CACHE_BYTES)
        try:
            note = db.get(BATCH_KEY)
            sequence = db.latest_sequence_number()
        finally:
            db.close()
        batch = unpack_batch(note)[0] if note is not None else 0
        store_id = read_manifest(self._rocks).store_id
        write_mark(self._directory, Mark(True, store_id, batch, sequence))
        write_format(self._directory)
        return f"the store can be served again; its last batch is {batch}"


def _differences(whole: Rdict, less: Rdict, bad: list[BadRange]) -> Iterator[tuple[bytes, bytes | None]]:
    """The records of `whole` that differ from `less` (None: deleted in `whole`), outside the `bad` ranges."""
    low = b""
    for high, after in [*((span.low, span.high) for span in bad), (b"\xff" * 40, b"")]:
        if low < high:
            yield from _differences_between(whole, less, low, high)
        low = after


def _differences_between(
    whole: Rdict, less: Rdict, low: bytes, high: bytes
) -> Iterator[tuple[bytes, bytes | None]]:
    others = walk(less, low, high, lambda bad: None)
    other = next(others, None)
    for key, value in walk(whole, low, high, lambda bad: None):
        while other is not None and other[0] < key:
            yield other[0], None
            other = next(others, None)
        if other is not None and other[0] == key:
            same = other[1] == value
            other = next(others, None)
            if same:
                continue
        yield key, value
    while other is not None:
        yield other[0], None
        other = next(others, None)
