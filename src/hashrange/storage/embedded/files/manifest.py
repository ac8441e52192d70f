"""Reads from RocksDB's MANIFEST which files make up a store, without opening the store.

CURRENT names the MANIFEST, a log (`logs`) of edits. Each edit is a sequence of a tag and its fields,
all numbers varints. Together they say which SST files are live, and which records of the write-ahead logs the
SST files hold already: logs numbered below `log_number` are not needed any more, and `last_sequence` is the
highest sequence number of any record in an SST.

Torn edits at the end are not damage: RocksDB was killed before it synced them, and ignores them when it opens
the store. They are cut short; or the disk stored the length of the file but not its bytes, which are zeros
then, perhaps followed by later bytes. If such bytes were edits that counted, then the edits before them lack
a number that every store needs, or files that they name are missing, or numbers between the SST files and the
logs are missing. `damage` checks for the last two.

Edits that were copied or moved do not fit: a number decreases, or a file is added or removed twice.

Source: RocksDB's wiki, "MANIFEST". Refuses to know: records, and how to repair.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from hashrange.storage.embedded.files.logs import (
    CUT_SHORT,
    HEADER_BYTES,
    BadBytes,
    LogRecord,
    read_log,
    write_log,
)

# The tags of an edit that are read here, and the layout of their fields.
_COMPARATOR, _LOG_NUMBER, _NEXT_FILE, _LAST_SEQUENCE = 1, 2, 3, 4
_COMPACT_CURSOR, _DELETED_FILE, _PREVIOUS_LOG, _LOG_TO_KEEP = 5, 6, 9, 10
_NEW_FILE: Final = 103
_COLUMN_FAMILY, _COLUMN_FAMILY_NAME, _COLUMN_FAMILY_DROP, _COLUMN_FAMILY_MAX = 200, 201, 202, 203
_ATOMIC_GROUP: Final = 300
_IGNORABLE: Final = 1 << 13  # tags with this bit are followed by a length and that many bytes
_STORE_ID: Final = _IGNORABLE | 1

_NUMBERS: Final = frozenset({_LOG_NUMBER, _NEXT_FILE, _LAST_SEQUENCE, _PREVIOUS_LOG, _LOG_TO_KEEP})
# RocksDB opens no store whose edits lack one of these.
_NEEDED: Final = {
    _LOG_NUMBER: "the first log that is needed",
    _NEXT_FILE: "the number of the next file",
    _LAST_SEQUENCE: "the last sequence number",
}
_SKIPPED_NUMBERS: Final = frozenset({_COLUMN_FAMILY, _COLUMN_FAMILY_MAX, _ATOMIC_GROUP})
_CURRENT: Final = re.compile(rb"(MANIFEST-\d+)\n")
_SEQUENCE_BYTES: Final = 8  # at the end of each key: sequence number and type


class UnreadableManifest(Exception):
    """The MANIFEST cannot be read, so the files of the store are not known; the text says why."""


@dataclass(frozen=True, slots=True)
class Sst:
    """A live SST file, with the lowest and the highest key and sequence number in it."""

    number: int
    level: int
    size_bytes: int
    first_key: bytes
    last_key: bytes
    first_sequence: int
    last_sequence: int

    @property
    def name(self) -> str:
        return f"{self.number:06}.sst"


@dataclass(slots=True)
class Manifest:
    """The contents of a MANIFEST."""

    name: str
    store_id: str = ""
    ssts: dict[int, Sst] = field(default_factory=dict)
    numbers: dict[int, int] = field(default_factory=dict)  # tag -> the value in the last edit with the tag

    @property
    def log_number(self) -> int:
        """The number of the first log that is needed."""
        return self.numbers.get(_LOG_NUMBER, 0)

    @property
    def last_sequence(self) -> int:
        return self.numbers.get(_LAST_SEQUENCE, 0)


def read_manifest(rocks: Path, name: str | None = None) -> Manifest:
    """Read the MANIFEST that CURRENT names, or the one called `name`. Raises UnreadableManifest, OSError."""
    manifest = Manifest(name or _current(rocks))
    try:
        data = (rocks / manifest.name).read_bytes()
    except FileNotFoundError:
        raise UnreadableManifest(f"rocks/{manifest.name}, which rocks/CURRENT names, is missing") from None
    bad: BadBytes | None = None
    edits = 0
    for entry in read_log(data):
        if bad is not None:
            raise _damaged(manifest.name, bad)
        if isinstance(entry, BadBytes):
            bad = entry
            continue
        try:
            _apply(manifest, _Fields(entry.payload))
        except (IndexError, ValueError) as error:
            cause = f"it holds an edit that does not fit: {error}"
            raise _damaged(manifest.name, BadBytes(entry.offset, entry.end, cause)) from None
        edits += 1
    torn = bad is None or bad.cause == CUT_SHORT or not any(data[bad.offset : bad.offset + HEADER_BYTES])
    if not edits or not torn:
        raise _damaged(manifest.name, bad or BadBytes(0, 0, "it is empty"))
    for tag, name in _NEEDED.items():
        if tag not in manifest.numbers:
            end = BadBytes(len(data), len(data), "") if bad is None else bad
            raise _damaged(manifest.name, BadBytes(end.offset, end.end, f"no edit before it gives {name}"))
    return manifest


def newest_manifest(rocks: Path) -> str | None:
    """The name of the newest MANIFEST, for a store whose CURRENT is lost; None if there is no MANIFEST."""
    names = [path.name for path in rocks.glob("MANIFEST-*") if path.suffix != ".new"]
    return max(names, default=None)


def without_ssts(rocks: Path, manifest: Manifest, numbers: set[int]) -> bytes:
    """The bytes of a MANIFEST like `manifest`, without the SST files that have these `numbers`."""
    kept = [
        entry.payload
        for entry in read_log((rocks / manifest.name).read_bytes())
        if isinstance(entry, LogRecord)
    ]
    for number in sorted(numbers):
        level = manifest.ssts[number].level
        kept.append(_varint(_DELETED_FILE) + _varint(level) + _varint(number))
    return write_log(kept)


def _current(rocks: Path) -> str:
    try:
        name = (rocks / "CURRENT").read_bytes()
    except FileNotFoundError:
        raise UnreadableManifest("rocks/CURRENT is missing") from None
    match = _CURRENT.fullmatch(name)
    if match is None:
        raise UnreadableManifest("rocks/CURRENT does not name a MANIFEST")
    return match[1].decode()


def _damaged(name: str, bad: BadBytes) -> UnreadableManifest:
    return UnreadableManifest(f"rocks/{name} is damaged at byte {bad.offset}: {bad.cause}")


class _Fields:
    """Reads the fields of an edit, one after the other."""

    __slots__ = ("at", "data")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def number(self) -> int:
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
            shift += 7

    def text(self) -> bytes:
        length = self.number()
        end = self.at + length
        if end > len(self.data):
            raise ValueError("a field goes beyond its end")
        value, self.at = self.data[self.at : end], end
        return value


def _apply(manifest: Manifest, edit: _Fields) -> None:
    while edit.at < len(edit.data):
        tag = edit.number()
        if tag in _NUMBERS:
            value = edit.number()
            if tag in _NEEDED and value < manifest.numbers.get(tag, 0):
                raise ValueError(f"{_NEEDED[tag]} goes back from {manifest.numbers[tag]} to {value}")
            manifest.numbers[tag] = value
        elif tag == _STORE_ID:
            manifest.store_id = edit.text().decode("ascii", "replace")
        elif tag == _NEW_FILE:
            sst = _new_file(edit)
            if sst.number in manifest.ssts:
                raise ValueError(f"it adds {sst.name} once more")
            manifest.ssts[sst.number] = sst
        elif tag == _DELETED_FILE:
            edit.number()
            number = edit.number()
            if manifest.ssts.pop(number, None) is None:
                raise ValueError(f"it removes {number:06}.sst, which is not there")
        elif tag == _COMPACT_CURSOR:
            edit.number()
            edit.text()
        elif tag in _SKIPPED_NUMBERS:
            edit.number()
        elif tag & _IGNORABLE or tag in (_COMPARATOR, _COLUMN_FAMILY_NAME):
            edit.text()
        elif tag != _COLUMN_FAMILY_DROP:
            raise ValueError(f"tag {tag}")


def _new_file(edit: _Fields) -> Sst:
    level, number, size = edit.number(), edit.number(), edit.number()
    first, last = edit.text(), edit.text()
    first_sequence, last_sequence = edit.number(), edit.number()
    while edit.number() != 1:  # the mark of the end; all other fields have a length
        edit.text()
    return Sst(
        number,
        level,
        size,
        first[:-_SEQUENCE_BYTES],
        last[:-_SEQUENCE_BYTES],
        first_sequence,
        last_sequence,
    )


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value >= 0x80:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
