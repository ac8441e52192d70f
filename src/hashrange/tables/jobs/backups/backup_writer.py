"""A backup that is being written: its open file and its progress.

An unfinished file has another name until it is complete and durable. If the process ends before that, the
file is written again from its beginning.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, BinaryIO, Final

from hashrange.files.durable import make_directory, private, sync, sync_directory
from hashrange.interchange import dynamodb_json
from hashrange.interchange.compression import Digesting, gzip_writer
from hashrange.tables.items import records
from hashrange.tables.items.records import HEADER_BYTES
from hashrange.tables.jobs.backups import files
from hashrange.tables.jobs.backups.backup_records import Backup
from hashrange.tables.jobs.backups.files import DataFile

FILE_BYTES: Final = 64 * 1024 * 1024
"""A file ends when its lines have this many bytes."""

_UNFINISHED: Final = ".unfinished"
# Higher levels take several times as long, for a tenth of the size.
_LEVEL: Final = 3


class Writing:
    """Writes the files of a backup, from its `place` on."""

    def __init__(self, directory: Path, backup: Backup) -> None:
        self._folder = files.partial_of(directory, backup.folder)
        self.number = len(backup.files) + 1
        self.place = bytes.fromhex(backup.place)
        self.items = 0
        self.bytes = 0
        self._lines_bytes = 0
        self._first = b""
        self._file: BinaryIO | None = None
        self._gzip: Any = None
        self._sink: Digesting | None = None

    @property
    def is_full(self) -> bool:
        """Whether the file should end."""
        return self._lines_bytes >= FILE_BYTES

    def add(self, items: list[tuple[bytes, bytes]], following: bytes) -> None:
        """Write records, given with their addresses. `following` is the address of the next record."""
        if items:
            if self._gzip is None:
                self._open(items[0][0])
            lines = b"".join([dynamodb_json.write(record[HEADER_BYTES:]) for _, record in items])
            self._gzip.write(lines)
            self._lines_bytes += len(lines)
            self.items += len(items)
            self.bytes += sum(records.size_of(record) for _, record in items)
        self.place = following

    def end(self) -> DataFile | None:
        """End the file, and make it durable; None if no item was written since the last file."""
        if self._gzip is None or self._file is None or self._sink is None:
            return None
        self._gzip.close()
        self._file.flush()
        sync(self._file.fileno())
        self._file.close()
        name = files.data_name(self.number)
        path = self._folder / name
        path.with_name(path.name + _UNFINISHED).replace(path)
        sync_directory(path.parent)
        return DataFile(name, self.items, self._sink.count, self._sink.digest.hexdigest(), self._first.hex())

    def close(self) -> None:
        """Close an unfinished file, and remove it."""
        if self._file is not None and not self._file.closed:
            self._file.close()
            path = self._folder / files.data_name(self.number)
            path.with_name(path.name + _UNFINISHED).unlink(missing_ok=True)

    def _open(self, first: bytes) -> None:
        path = self._folder / files.data_name(self.number)
        make_directory(path.parent)
        unfinished = path.with_name(path.name + _UNFINISHED)
        self._file = open(unfinished, "wb", opener=private)  # noqa: SIM115 (`drop` or the end closes it)
        self._sink = Digesting(self._file, hashlib.sha256())
        self._gzip = gzip_writer(self._sink, _LEVEL)
        self._first = first
