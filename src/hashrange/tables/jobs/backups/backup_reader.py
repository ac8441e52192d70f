"""The items of a backup, in bites, as the restore of a table writes them.

Each file is compared with its checksum before its first item is read. The items are then checked as in
PutItem, and must be in the table's order, each key once.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from hashrange.encoding import PARTITION_BYTES
from hashrange.errors import ITEM_TOO_LARGE, ServiceError, ValidationException
from hashrange.files.regular import open_to_read
from hashrange.interchange import dynamodb_json
from hashrange.interchange.compression import DAMAGED, reader
from hashrange.interchange.lines import lines
from hashrange.interchange.rows import Bad
from hashrange.limits import ITEM_BYTES_MAX
from hashrange.tables.background import restoring
from hashrange.tables.bites import Limit
from hashrange.tables.definitions.table import Table
from hashrange.tables.items import keys, records
from hashrange.tables.jobs.backups import files
from hashrange.tables.jobs.backups.files import Damaged, DataFile
from hashrange.tables.writes.builds import Found
from hashrange.values import admit_item


class _Row(NamedTuple):
    address: bytes
    record: bytes


class Reading:
    """Reads a backup for the restore of `table`, from the address `low` on; b"": from the beginning."""

    def __init__(self, folder: Path, table: Table, low: bytes, pause: Callable[[], None]) -> None:
        self._folder = folder
        self._table = table
        self.place: bytes | None = low
        self._pause = pause
        self._rows = self._read(low)
        self._next: _Row | None = None
        self._is_begun = False

    def close(self) -> None:
        """Close the file that is being read."""
        self._rows.close()

    def take(self, limit: Limit) -> Found:
        """The next items, with their index entries. Raises `Damaged`."""
        low = self.place or b""
        if not self._is_begun:
            self._is_begun = True
            self._next = next(self._rows, None)
        derived: list[tuple[bytes, Any]] = []
        count, size = 0, 0
        while self._next is not None and count < limit.items and size < limit.bytes:
            address, record = self._next
            partition, sort = address[:PARTITION_BYTES], address[PARTITION_BYTES:]
            derived.append((address, restoring.derive(self._table, partition, sort, record)))
            count += 1
            size += len(record)
            self._next = next(self._rows, None)
        self.place = self._next.address if self._next is not None else None
        return Found(low, self.place, derived, [], size)

    def _read(self, low: bytes) -> Generator[_Row]:
        manifest = files.read_manifest(self._folder)
        first = 0
        if low:
            firsts = [bytes.fromhex(file.first) for file in manifest.files]
            first = max(bisect_right(firsts, low) - 1, 0)
        last = b""
        for file in manifest.files[first:]:
            for row in self._of(file):
                if row.address <= last:
                    raise Damaged(f"{self._folder / file.name} holds items that are not in order.")
                last = row.address
                if last >= low:
                    yield row

    def _of(self, file: DataFile) -> Generator[_Row]:
        """The items of one file."""
        path = self._folder / file.name
        files.check_content(self._folder, file, self._pause)
        count = 0
        try:
            with open_to_read(path) as opened, closing(reader(opened, "GZIP")) as source:
                for line, _ in lines(source, 0):
                    count += 1
                    row = self._row(path, count, line)
                    if count == 1 and row.address.hex() != file.first:
                        raise Damaged(f"{path} does not begin with the item that the manifest names.")
                    yield row
        except DAMAGED as error:
            raise Damaged(f"{path} cannot be decompressed: {error}") from None
        if count != file.items:
            raise Damaged(f"{path} holds {count} items, and not {file.items}.")

    def _row(self, path: Path, number: int, line: bytes | None) -> _Row:
        item = dynamodb_json.read(line) if line is not None else Bad("the line is too long")
        if isinstance(item, Bad):
            raise Damaged(f"{path}, line {number}: {item.message}")
        try:
            size = admit_item(item)
            if size > ITEM_BYTES_MAX:
                raise ValidationException(ITEM_TOO_LARGE)
            partition, sort = keys.address_of_item(self._table.key, item)
        except ServiceError as error:
            raise Damaged(f"{path}, line {number}: {error.message or error.code}") from None
        return _Row(partition + sort, records.pack(item, size))
