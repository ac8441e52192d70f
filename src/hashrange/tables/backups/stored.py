"""What is stored of a backup.

    ("backup", scope / id) → the `Backup`

An id begins with the time of its request in milliseconds, so that the backups of a scope lie in the order of
their times. The items themselves are in the files of a folder (`files`).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final, Literal

import msgspec

from hashrange.encoding import successor
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.backups.backuper import BACKUP
from hashrange.tables.backups.files import DataFile
from hashrange.tables.definitions import catalog
from hashrange.tables.spaces import BACKUP_SPACE

Status = Literal["CREATING", "AVAILABLE", "DELETED"]


class Backup(msgspec.Struct, frozen=True):
    """A backup. `table` is the table as the API describes it: SourceTableDetails, SourceTableFeatureDetails
    and AttributeDefinitions.

    While it is CREATING, `files` are the files that are whole, `place` is the address of the next item to
    write, in hex, and `items` and `bytes` count those in `files`; `stamp` is the moment;
    `is_read`: there is no next item. It is DELETED until
    its files are gone. `problem` says why a restore found that the files cannot be used.
    """

    id: str
    name: str
    scope: str
    region: str
    account_id: str
    created: float
    table_name: str
    table_id: str
    table: dict[str, Any]
    folder: str
    status: Status = "CREATING"
    stamp: int = 0
    files: tuple[DataFile, ...] = ()
    place: str = ""
    items: int = 0
    bytes: int = 0
    is_read: bool = False
    problem: str | None = None

    @property
    def table_full_name(self) -> str:
        """The name of the table that no other table has."""
        return f"{self.scope}/{self.table_name}" if self.scope else self.table_name


_ENCODE: Final = msgspec.json.Encoder()
_DECODE: Final = msgspec.json.Decoder(Backup)


def _sort(scope: str, id_: str) -> bytes:
    return f"{scope}/{id_}".encode()


def find(reader: Reader, scope: str, id_: str) -> Backup | None:
    """The backup with this id, or None."""
    stored = reader.get(BACKUP_SPACE, BACKUP, _sort(scope, id_))
    return _DECODE.decode(stored) if stored is not None else None


def save(txn: Transaction, backup: Backup) -> None:
    """Store a backup, new or changed."""
    txn.put(BACKUP_SPACE, BACKUP, _sort(backup.scope, backup.id), _ENCODE.encode(backup))


def forget(txn: Transaction, backup: Backup) -> None:
    """Remove what is stored of a backup."""
    txn.delete(BACKUP_SPACE, BACKUP, _sort(backup.scope, backup.id))


def of_scope(reader: Reader, scope: str, after: str = "") -> Iterator[Backup]:
    """The backups of a scope, the oldest first, from the one behind the id `after` on, without those that are
    DELETED."""
    prefix = f"{scope}/".encode()
    low = _sort(scope, after) + b"\x00" if after else prefix
    for _, stored in reader.scan(BACKUP_SPACE, BACKUP, low, successor(prefix)):
        with suppress(msgspec.MsgspecError):  # `damaged` tells of it
            backup = _DECODE.decode(stored)
            if backup.status != "DELETED":
                yield backup


def every(reader: Reader) -> Iterator[Backup]:
    """The backups of all scopes, without those of `damaged`."""
    for _, stored in reader.scan(BACKUP_SPACE, BACKUP):
        with suppress(msgspec.MsgspecError):
            yield _DECODE.decode(stored)


def damaged(reader: Reader) -> Iterator[tuple[str, Exception]]:
    """The backups whose records cannot be decoded: scope and id, and the error."""
    for sort, stored in reader.scan(BACKUP_SPACE, BACKUP):
        try:
            _DECODE.decode(stored)
        except msgspec.MsgspecError as error:
            yield sort.decode(errors="backslashreplace"), error


def is_in_use(reader: Reader, id_: str) -> bool:
    """Whether a table is being restored from a backup."""
    return any(
        table.restore is not None and table.restore.backup == id_ and table.gone_at is None
        for table in catalog.definitions(reader)
    )
