"""Reads all records of a damaged data directory that can be read, for the checker and the repair.

Nothing in the directory is changed. RocksDB is opened, for reading only, on a scratch folder elsewhere. This
folder holds links to the sound files of the store, and a MANIFEST and logs without the missing and damaged
parts. So reading works on a read-only disk, and for a store that RocksDB would refuse.

A walk that meets damage continues after it. RocksDB does not say where a damaged block ends, so the walk
searches for the next readable key, first near the damage and then further away; this takes a few hundred
reads of the block. If several blocks near each other are damaged, a sound block between them may count as
damaged.

Refuses to know: what records mean.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeVar

from rocksdict import Rdict, ReadOptions

from hashrange.storage import features
from hashrange.storage.api import Address, Totals
from hashrange.storage.embedded import disk
from hashrange.storage.embedded.batches import keys_under, needs_of
from hashrange.storage.embedded.files.damage import Damage, Examined, examine, in_sequence, live_logs
from hashrange.storage.embedded.files.directory import (
    DamagedFormat,
    check_copied,
    examine_directory,
    lock,
    read_format,
)
from hashrange.storage.embedded.files.logs import LogRecord, read_log, write_log
from hashrange.storage.embedded.files.manifest import Manifest, Sst, without_ssts
from hashrange.storage.embedded.files.mark import NAME, DamagedMark, read_mark
from hashrange.storage.embedded.keys import (
    CLEARING,
    HEAD_BYTES,
    after,
    pack,
    space_bound,
    space_range,
    totals_key,
    unpack_totals,
)
from hashrange.storage.failures import StorageError, StoreDamaged

T = TypeVar("T")
_Record = tuple[bytes, bytes]

_CACHE_BYTES: Final = 32 * 1024 * 1024
_END: Final = b"\xff" * 40  # above every key
_PROBE_BYTES: Final = 48  # the search looks at this many bytes of a key
_SST_NAME: Final = re.compile(r"(\d+)\.sst( offset (\d+))?")
_BITE_RECORDS: Final = 10_000


@dataclass(frozen=True, slots=True)
class BadRange:
    """A range of keys, excluding the last, in which some records cannot be read."""

    low: bytes
    high: bytes
    sst: int  # the number of the file that holds them; 0: not known
    cause: str

    @property
    def spaces(self) -> tuple[int, int]:
        """The first and the last space in the range."""
        return int.from_bytes(self.low[:4].ljust(4, b"\0"), "big"), int.from_bytes(self.high[:4], "big")


class StoredRecords:
    """The records of the store in a directory, as far as they can be read."""

    def __init__(self, directory: Path, *, locked: bool = False) -> None:
        """`locked`: the caller holds the directory's lock.

        Raises DataDirectoryLocked, UnknownFormat, StorageError.
        """
        self.directory = directory
        self._lock: int | None = None
        self._scratch: TemporaryDirectory[str] | None = None
        self._db: Rdict | None = None
        self._unusable: dict[int, str] = {}
        self.bad_ranges: list[BadRange] = []
        self._cleared: frozenset[int] = frozenset()
        try:
            if not locked:
                self._lock = lock(directory, shared=True)
            check_copied(directory)
            has_format, broken = True, ""
            try:
                has_format = read_format(directory)
            except DamagedFormat as error:
                broken = str(error)
            if not has_format and not (directory / NAME).exists():
                raise StorageError(f"{directory} is not a Hashrange data directory: nothing was checked.")
            self.found = _examine(directory, has_format, broken)
            self._open()
        except OSError as error:
            self.close()
            raise StorageError(f"The data directory {directory} cannot be read: {error}") from error
        except BaseException:
            self.close()
            raise

    @property
    def db(self) -> Rdict:
        """The readable store."""
        assert self._db is not None
        return self._db

    @property
    def cleared(self) -> frozenset[int]:
        """The spaces that were deleted, and may still have records."""
        return self._cleared

    @property
    def readable(self) -> bool:
        """Whether records can be read at all."""
        return self._db is not None

    @property
    def unusable_ssts(self) -> set[int]:
        """The SST files that cannot be read at all."""
        return {sst.number for sst in self.found.missing_ssts} | self._unusable.keys()

    def read(self, body: Callable[[SkippingReader], T]) -> T:
        """Run a read body like an engine."""
        assert self._db is not None
        return body(SkippingReader(self._db, self._cleared))

    def verify(self, progress: Callable[[str, int], None]) -> Iterator[Damage | BadRange]:
        """Read every record once. Yields the damage of the files first, then the ranges that cannot be
        read."""
        yield from self.found.damage
        while self._db is not None:
            self.bad_ranges = []
            for number, _ in enumerate(walk(self._db, b"", _END, self.bad_ranges.append), 1):
                if number % _BITE_RECORDS == 0:
                    progress("records", number)
            unusable = {bad.sst: bad.cause for bad in self.bad_ranges if self._covers(bad)}
            if not unusable:
                break
            self._exclude(unusable)
            yield from self._losses(unusable)
        yield from self.bad_ranges

    def without(self, numbers: set[int]) -> Rdict:
        """Open the store as it would be without some SST files; the caller closes it."""
        return self._open_without(self.unusable_ssts | numbers, f"without-{len(numbers)}")

    def close(self) -> None:
        """Unlock the directory, and remove the scratch folders."""
        if self._db is not None:
            self._db.close()
            self._db = None
        if self._scratch is not None:
            self._scratch.cleanup()
            self._scratch = None
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _open(self) -> None:
        if self.found.manifest is None:
            return
        self._scratch = TemporaryDirectory(prefix="hashrange-check-")
        while True:
            try:
                self._db = self._open_without(self.unusable_ssts, f"open-{len(self._unusable)}")
            except StorageError as error:
                unusable = self._found_unusable(str(error))
                if not unusable and "Corruption" not in str(error):
                    raise
                if not unusable:
                    self.found.damage.append(
                        Damage(f"RocksDB cannot open the store: {_in_rocks(str(error))}")
                    )
                    return
                self._unusable |= dict.fromkeys(unusable, _in_rocks(str(error)))
                self.found.damage += self._losses(dict.fromkeys(unusable, "it cannot be opened"))
                continue
            needs: list[bytes] = []
            with suppress(StorageError, Exception):
                needs = needs_of(self._db)
                notes = keys_under(self._db, CLEARING)
                self._cleared = frozenset(int.from_bytes(key[-4:], "big") for key in notes)
            features.check(f"The data directory {self.directory}", needs)
            return

    def _exclude(self, unusable: dict[int, str]) -> None:
        self._unusable |= unusable
        if self._db is not None:
            self._db.close()
        self._db = self._open_without(self.unusable_ssts, f"open-{len(self._unusable)}")

    def _covers(self, bad: BadRange) -> bool:
        """Whether a bad range lies in a file that cannot be read at all."""
        sst = self.found.manifest.ssts.get(bad.sst) if self.found.manifest is not None else None
        return sst is not None and bad.low <= sst.first_key and bad.high > sst.last_key

    def _found_unusable(self, error: str) -> set[int]:
        """The SST files because of which RocksDB did not open the store. Its error may not name the file."""
        assert self.found.manifest is not None
        usable = self.found.manifest.ssts.keys() - self.unusable_ssts
        match = _SST_NAME.search(error)
        if match is not None and int(match[1]) in usable:
            return {int(match[1])}
        return self._refused(sorted(usable)) if usable and self._opens(set()) else set()

    def _refused(self, ssts: list[int]) -> set[int]:
        """The files among `ssts` that RocksDB refuses, found by halving the set until RocksDB opens it."""
        if self._opens(set(ssts)):
            return set()
        if len(ssts) == 1:
            return {*ssts}
        half = len(ssts) // 2
        return self._refused(ssts[:half]) | self._refused(ssts[half:])

    def _opens(self, ssts: set[int]) -> bool:
        """Whether RocksDB opens the store with only these SST files, and without its logs."""
        assert self._scratch is not None
        assert self.found.manifest is not None
        others = self.found.manifest.ssts.keys() - ssts
        with TemporaryDirectory(dir=self._scratch.name) as name:
            show(self.directory / "rocks", Path(name), self.found.manifest, others, logged=False)
            try:
                disk.open_rocks(Path(name), cache_bytes=_CACHE_BYTES, read_only=True).close()
            except StorageError:
                return False
        return True

    def _losses(self, unusable: dict[int, str]) -> list[Damage]:
        assert self.found.manifest is not None
        return [
            Damage(
                f"rocks/{number:06}.sst cannot be read ({cause}); it held "
                f"{self.found.manifest.ssts[number].size_bytes} bytes of records",
                f"rocks/{number:06}.sst",
            )
            for number, cause in unusable.items()
        ]

    def _open_without(self, ssts: set[int], name: str) -> Rdict:
        """Open a scratch folder that shows the store without some SST files."""
        assert self._scratch is not None
        assert self.found.manifest is not None
        scratch = Path(self._scratch.name) / name
        show(self.directory / "rocks", scratch, self.found.manifest, ssts)
        return disk.open_rocks(scratch, cache_bytes=_CACHE_BYTES, read_only=True)


def _examine(directory: Path, has_format: bool, broken: str) -> Examined:
    """The damage of the files. `broken`: what is wrong with FORMAT."""
    try:
        examined = examine_directory(directory, has_format, read_mark(directory))
    except DamagedMark as error:
        examined = examine(directory / "rocks", None)
        examined.damage.insert(0, Damage(str(error), NAME))
    if broken:
        examined.damage.insert(0, Damage(broken, "FORMAT"))
    return examined


def show(rocks: Path, scratch: Path, manifest: Manifest, without: set[int], *, logged: bool = True) -> None:
    """Fill `scratch/rocks` with links to the sound files of a store; `logged`: with its logs."""
    view = scratch / "rocks"
    view.mkdir(parents=True)
    (view / "CURRENT").write_text(f"{manifest.name}\n")
    (view / manifest.name).write_bytes(without_ssts(rocks, manifest, without))
    for number, sst in manifest.ssts.items():
        if number not in without:
            file = rocks / sst.name
            if file.stat().st_size > sst.size_bytes:  # RocksDB would refuse the store
                (view / sst.name).write_bytes(cut(file, sst))
            else:
                (view / sst.name).symlink_to(file.resolve())
    logs = live_logs(rocks, manifest)
    if logs and logged:
        (view / logs[0].name).write_bytes(sound_log(logs, manifest))


def cut(file: Path, sst: Sst) -> bytes:
    """The content of an SST file, without bytes after its end."""
    with file.open("rb") as content:
        return content.read(sst.size_bytes)


def sound_log(logs: list[Path], manifest: Manifest) -> bytes:
    """One log with the sound records of `logs`, each once, in the order in which they were written."""
    entries = (entry for log in logs for entry in read_log(log.read_bytes()))
    payloads = (entry.payload for entry in entries if isinstance(entry, LogRecord))
    return write_log(in_sequence(payloads, manifest.last_sequence))


class SkippingReader:
    """The `Reader` of a damaged store: scans leave out records that cannot be read, gets raise
    StoreDamaged."""

    __slots__ = ("_cleared", "_db")

    def __init__(self, db: Rdict, cleared: frozenset[int]) -> None:
        self._db = db
        self._cleared = cleared

    def get(self, space: int, partition: bytes, sort: bytes) -> bytes | None:
        return None if space in self._cleared else self._get(pack(space, partition, sort))

    def _get(self, key: bytes) -> bytes | None:
        try:
            return self._db.get(key)
        except Exception as error:
            raise StoreDamaged(str(error)) from None

    def get_many(self, addresses: Iterable[Address | tuple[int, bytes, bytes]]) -> list[bytes | None]:
        return [self.get(space, partition, sort) for space, partition, sort in addresses]

    def scan(
        self,
        space: int,
        partition: bytes,
        low: bytes = b"",
        high: bytes | None = None,
        *,
        reverse: bool = False,
        likely: int | None = None,
    ) -> Iterator[_Record]:
        prefix = pack(space, partition, b"")
        walked = self._walk(space, prefix + low, after(prefix) if high is None else prefix + high)
        records = [*walked][::-1] if reverse else walked
        for key, value in records:
            yield key[len(prefix) :], value

    def scan_space(
        self,
        space: int,
        low: tuple[bytes, bytes] = (b"", b""),
        high: tuple[bytes, bytes] | None = None,
        *,
        likely: int | None = None,
    ) -> Iterator[tuple[bytes, bytes, bytes]]:
        start, end = space_range(space)
        first = next(self._walk(space, start, end), None)
        if first is None:
            return
        length = first[0][4]
        if low != (b"", b""):
            start = space_bound(space, *low, length)
        if high is not None:
            end = space_bound(space, *high, length)
        for key, value in self._walk(space, start, end):
            partition_end = HEAD_BYTES + key[4]
            yield key[HEAD_BYTES:partition_end], key[partition_end:], value

    def totals(self, space: int) -> Totals:
        value = None if space in self._cleared else self._get(totals_key(space))
        return Totals(0, 0) if value is None else Totals(*unpack_totals(value))

    def _walk(self, space: int, low: bytes, high: bytes) -> Iterator[_Record]:
        if low >= high or space in self._cleared:
            return iter(())
        return walk(self._db, low, high, _nobody)


def _nobody(bad: BadRange) -> None:
    """Ignores damage that was reported before."""


def walk(db: Rdict, low: bytes, high: bytes, damaged: Callable[[BadRange], None]) -> Iterator[_Record]:
    """The readable records between two keys; calls `damaged` for each range that cannot be read."""
    options = ReadOptions()
    options.set_iterate_upper_bound(high)
    while low < high:
        last = None
        records: Iterator[Any] = db.items(from_key=low, read_opt=options)
        for last, value in records:
            yield last, value
        start = low if last is None else last + b"\x00"
        if start >= high:
            return  # a seek to the end fails if the block behind it is damaged
        key, cause = _first(db, options, start)
        if not cause and key is None:
            return
        if key is not None and key > low:
            low = key  # the walk ended too early, but can go on now
            continue
        resume = _next_readable(db, options, start, high)
        damaged(_bad_range(start, resume, cause or "a record cannot be read"))
        low = resume


def _first(db: Rdict, options: ReadOptions, key: bytes) -> tuple[bytes | None, str]:
    """The first key at or after `key`, and the error if it cannot be read ("" if it can).

    It makes a new iterator each time, because an iterator that failed to seek may fail at sound blocks later.
    """
    iterator = db.iter(options)
    iterator.seek(key)
    try:
        iterator.status()
    except Exception as error:
        return None, str(error)
    return (bytes(iterator.key()) if iterator.valid() else None), ""


def _next_readable(db: Rdict, options: ReadOptions, low: bytes, high: bytes) -> bytes:
    """The first readable key found after the unreadable key `low`; `high` if none is found before it."""
    width = max(len(low), len(high), _PROBE_BYTES)
    start, end = (int.from_bytes(key.ljust(width, b"\0"), "big") for key in (low, high))

    def readable(offset: int) -> bool:
        return not _first(db, options, (start + offset).to_bytes(width, "big"))[1]

    step = 1
    while start + step < end and not readable(step):
        step *= 2
    bad = step // 2
    if start + step >= end:
        step = end - start - 1
        if step <= bad or not readable(step):
            return high
    while step - bad > 1:
        middle = (bad + step) // 2
        if readable(middle):
            step = middle
        else:
            bad = middle
    found_key = _first(db, options, (start + step).to_bytes(width, "big"))[0]
    return high if found_key is None else found_key


def _in_rocks(error: str) -> str:
    """The error text of RocksDB, with files named as in the data directory."""
    return re.sub(r"\S*/rocks/", "rocks/", error.rpartition("cannot be opened: ")[2])


def _bad_range(low: bytes, high: bytes, cause: str) -> BadRange:
    match = _SST_NAME.search(cause)
    words = re.sub(r"\s+in \S*/(\d+\.sst)", r" in rocks/\1", cause)
    return BadRange(low, high, int(match[1]) if match else 0, words)
