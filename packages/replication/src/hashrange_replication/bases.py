"""Makes bases: a checkpoint of the store, of which only files go to the bucket that it does not have.

    DIRECTORY/copy/checkpoint    the checkpoint, while it is shipped; its SST files are hard links
    backups/                     the folders of backups in the data directory belong to a base as well
    access.key                   so does the key of access, if the copy is sealed: otherwise anyone who reads
                                 the copy could open what the key seals

An SST file never changes, and its object is named by its content. So a base costs what was written since the
one before it, and what compactions have rewritten. A new base is due when the chain is broken, a day after
the last one, and when the segments since then have become as large as it: a restore reads both.

Refuses to know: batches and segments.
"""

from __future__ import annotations

import hashlib
import logging
import math
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from hashrange.buckets import CHANGED, CHUNK_BYTES, BucketError
from hashrange.files.regular import open_to_read
from hashrange.storage.embedded.files.mark import read_mark
from hashrange_replication.chain import list_copy
from hashrange_replication.failures import CopyError
from hashrange_replication.format.manifests import BaseFile, Manifest, encode_manifest
from hashrange_replication.format.names import file_name
from hashrange_replication.format.objects import Writer
from hashrange_replication.format.sealing import Key
from hashrange_replication.lease import Lease
from hashrange_replication.place import Place
from hashrange_replication.shipper import Shipper
from hashrange_replication.state import FOLDER

_log = logging.getLogger("hashrange.replication")

EVERY_SECONDS: Final = 24 * 3600.0
"""The longest time between two bases of a store that is written to."""
SEGMENT_BYTES_MIN: Final = 256 * 1024 * 1024
"""Segments of fewer bytes are no reason for a new base."""
BACKUPS_SECONDS: Final = 60.0
"""How often it is looked whether there are new backups."""
_CHECKPOINT: Final = "checkpoint"
_BACKUPS: Final = "backups"
_ACCESS_KEY: Final = "access.key"
_MILLIS: Final = 1_000

_Kept = tuple[int, int, int, int]


class Checkpointing(Protocol):
    """The engine, as this module needs it."""

    def checkpoint(self, directory: str) -> None: ...


@dataclass(slots=True)
class Made:
    """What a base took."""

    manifest: Manifest
    new_files: int = 0
    new_bytes: int = 0


class Bases:
    """Makes the bases of a data directory. One thread at a time."""

    def __init__(
        self,
        engine: Checkpointing,
        directory: Path,
        place: Place,
        key: Key | None,
        shipper: Shipper,
        lease: Lease,
        *,
        clock: Callable[[], float],
        now: Callable[[], float],
    ) -> None:
        self._engine = engine
        self._directory = directory
        self._place = place
        self._key = key
        self._shipper = shipper
        self._lease = lease
        self._clock = clock
        self._now = now
        self._hashes: dict[Path, tuple[_Kept, str]] = {}
        self._made_at = 0.0
        self._bytes = 0
        self._segment_bytes = 0
        self._batch = -1
        self._backups = self._fingerprint()
        self._seen = self._backups
        self._looked_at = now()
        self.new_epoch = False
        """Whether the next chain needs an epoch of its own, because one was begun in the present epoch."""
        self.problem = ""
        self.share = 0.0
        """How much of the base that is being made is in the bucket."""
        self.until = math.inf
        """The time (of `now`) at which a base is given up that is not made by then."""

    def continues(self, bytes_: int, batch: int) -> None:
        """The chain goes on behind a base of an earlier process."""
        self._made_at, self._bytes, self._batch = self._now(), bytes_, batch
        self.new_epoch = True

    def due(self) -> str:
        """Why a base is due; "" if none is."""
        shipper = self._shipper
        if self._lease.fenced is not None:
            return ""
        if shipper.broken or not shipper.has_base:
            return shipper.broken or "the chain has no base yet"
        if shipper.told > self._batch:
            if self._now() - self._made_at >= EVERY_SECONDS:
                return "the last one is old"
            if shipper.shipped_bytes - self._segment_bytes >= max(SEGMENT_BYTES_MIN, self._bytes):
                return "the segments since the last one are as large as it"
        if self._now() - self._looked_at >= BACKUPS_SECONDS:
            self._looked_at = self._now()
            seen, self._seen = self._seen, self._fingerprint()
            if seen == self._seen != self._backups:  # no backup is being made
                return "there are new backups"
        return ""

    def make(self) -> Made:
        """Make a base, and a new chain before it if the present one is broken. Raises CopyError,
        StorageError, BucketError, OSError; then nothing of it counts, and it may be tried again."""
        shipper, lease = self._shipper, self._lease
        self.share = 0.0
        listing = list_copy(self._place)
        if shipper.broken:
            if self.new_epoch:
                lease.renew(new_epoch=True)
            self.new_epoch = True
            shipper.begin(lease.epoch, listing.last_index() + 1)
        end = shipper.end  # before the checkpoint: later batches are in this segment or behind it
        segment_bytes = shipper.shipped_bytes
        backups = self._fingerprint()
        folder = self._directory / FOLDER / _CHECKPOINT
        try:
            shutil.rmtree(folder, ignore_errors=True)
            self._engine.checkpoint(str(folder))
            mark = read_mark(folder)
            assert mark is not None  # the engine has written it
            made = Made(
                Manifest(
                    epoch=end.epoch,
                    batch=mark.batch,
                    moment=int(self._clock() * _MILLIS),
                    store_id=mark.store_id,
                    data_format=mark.format,
                    index=end.index,
                    predecessor=end.predecessor,
                    files=[],
                )
            )
            self._ship_files(folder, set(listing.files), made)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if shipper.end.epoch != end.epoch or shipper.broken:
            raise CopyError(f"the chain was broken while its base was made: {shipper.broken}")
        self._put(made.manifest)
        batch = mark.batch
        shipper.based(end.epoch, batch)
        lease.base = batch
        self._made_at, self._bytes = self._now(), made.manifest.bytes
        self._segment_bytes, self._batch, self._backups = segment_bytes, batch, backups
        fields = {"copy": self._place.shown, "batch": batch, "bytes": made.manifest.bytes}
        _log.info("a base was made", extra={"fields": fields | {"new_bytes": made.new_bytes}})
        return made

    def _put(self, manifest: Manifest) -> None:
        try:
            self._place.put(manifest.name.name, encode_manifest(manifest, self._key), new=True)
        except BucketError as error:
            # Nothing was committed since the last base, or an answer was lost: what is there is as good.
            if error.code != CHANGED:
                raise

    def _ship_files(self, folder: Path, there: set[str], made: Made) -> None:
        found = [(f"rocks/{path.name}", path) for path in sorted((folder / "rocks").iterdir())]
        beside = list(self._beside())
        total = sum(path.stat().st_size for _, path in found + beside) or 1
        done = 0
        for shown, path in found + beside:
            self._check_time()
            try:
                self._ship_file(shown, path, there, made)
            except FileNotFoundError:
                if (shown, path) in found:
                    raise  # (a backup may be deleted meanwhile)
            else:
                done += made.manifest.files[-1].bytes if made.manifest.files else 0
            self.share = min(1.0, done / total)
        self.share = 1.0
        paths = {path for _, path in found + beside}
        self._hashes = {path: kept for path, kept in self._hashes.items() if path in paths}

    def _ship_file(self, shown: str, path: Path, there: set[str], made: Made) -> None:
        sha256, size = self._hash(path)
        name = file_name(sha256, self._key.id if self._key is not None else "")
        if name not in there:
            with open_to_read(path) as file, self._place.create(name) as sink:
                digest = hashlib.sha256()
                writer = Writer(sink.write, {"kind": "file", "sha256": sha256, "bytes": size}, self._key)
                while piece := file.read(4 * CHUNK_BYTES):
                    self._check_time()
                    digest.update(piece)
                    writer.write(piece)
                writer.finish()
                if digest.hexdigest() != sha256:
                    raise OSError(f"{path} changes while it is read")
            there.add(name)
            made.new_files += 1
            made.new_bytes += size
        made.manifest.files.append(BaseFile(shown, size, sha256))

    def _check_time(self) -> None:
        if self._now() >= self.until:
            raise CopyError("the server ends")

    def _hash(self, path: Path) -> tuple[str, int]:
        """The SHA-256 of a file, and its size. Hard links to the same file are read once."""
        status = path.stat()
        kept = (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)
        known = self._hashes.get(path)
        if known is None or known[0] != kept:
            with open_to_read(path) as file:
                digest = hashlib.sha256()
                while piece := file.read(4 * CHUNK_BYTES):
                    digest.update(piece)
                known = (kept, digest.hexdigest())
            self._hashes[path] = known
        return known[1], status.st_size

    def _beside(self) -> Iterator[tuple[str, Path]]:
        """The files of the data directory that belong to it beside the store."""
        root = self._directory / _BACKUPS
        for path in sorted(root.rglob("*")) if root.is_dir() else ():
            if path.is_file() and not path.is_symlink():
                yield path.relative_to(self._directory).as_posix(), path
        if self._key is not None and (self._directory / _ACCESS_KEY).is_file():
            yield _ACCESS_KEY, self._directory / _ACCESS_KEY

    def _fingerprint(self) -> dict[str, int]:
        """What is known of the files beside the store without reading them."""
        found = {}
        for shown, path in self._beside():
            try:
                found[shown] = path.stat().st_size
            except FileNotFoundError:
                continue
        return found
