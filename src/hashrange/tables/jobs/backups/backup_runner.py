"""The background work of backups.

    a backup that is CREATING     a bite of the table's past goes to the open file; when the file is whole and
                                  durable, one transaction stores its entry and the place of the next item
    a restore from a backup       a bite of the files goes to the new table (`background.restoring`)
    a backup that is DELETED      its folder is removed, then what is stored of it
    the directory of all backups  folders that users have copied there become backups

After a crash each of these continues at the place that its last transaction stored. A temporary error, such
as a full disk, makes the step fail, and it is tried again later (`background.units`). A restore whose backup
turns out to be damaged is given up: its table is removed. A backup or a restore that fails again and again by
an error that cannot pass is given up too: the backup is deleted, because its API has no state for a failure.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from hashrange.files.durable import make_directory
from hashrange.settings import Settings
from hashrange.storage.api import Engine, Reader, Transaction
from hashrange.storage.failures import StorageError
from hashrange.tables.background import restoring, sweeps
from hashrange.tables.background.units import Bite, Tables, Unit, described, failing
from hashrange.tables.bites import Limit
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Restore, Table
from hashrange.tables.history.past import Past
from hashrange.tables.items import records
from hashrange.tables.jobs.backups import backup_records, files
from hashrange.tables.jobs.backups.backup_reader import Reading
from hashrange.tables.jobs.backups.backup_records import Backup
from hashrange.tables.jobs.backups.backup_writer import Writing
from hashrange.tables.jobs.backups.files import Damaged, DataFile, Manifest
from hashrange.tables.jobs.steps import Steps
from hashrange.tables.writes import builds

ScopeOf = Callable[[str, str, Settings], str]
"""The scope of the tables of an account and a region."""


_log = logging.getLogger("hashrange")


class BackupLost(StorageError):
    """The record of the backup from which a table is restored is missing, because the store was damaged."""


class Runner:
    """Does the work of backups, and keeps the files open that are being written and read."""

    def __init__(self, engine: Engine, settings: Settings, scope_of: ScopeOf) -> None:
        self._engine = engine
        self._settings = settings
        self._scope_of = scope_of
        self._writings: Steps[Writing] = Steps()
        self._readings: Steps[Reading] = Steps()
        self._refused: dict[str, files.Seen] = {}

    def forget(self) -> None:
        """Close all files, because the store's contents were replaced."""
        self._writings.forget()
        self._readings.forget()

    def close(self) -> None:
        """Close all files, because the store is closed."""
        self._writings.end()
        self._readings.end()

    def units(self, tables: Tables) -> Iterator[Unit]:
        """The work that may be due. `tables` reads the store's tables."""
        engine = self._engine
        backups = engine.read(lambda reader: list(backup_records.every(reader)))
        restored = [backup for backup in tables() if _is_read(backup)]
        with self._writings.held():
            self._writings.keep_only({backup.id for backup in backups if backup.status == "CREATING"})
        with self._readings.held():
            self._readings.keep_only({table.id for table in restored})
        for backup in backups:
            if backup.status == "CREATING":
                yield Unit(f"backup {backup.id}", partial(self._write, backup.scope, backup.id))
            elif backup.status == "DELETED":
                yield Unit(f"deleted backup {backup.id}", partial(self._remove, backup))
        for table in restored:
            step = partial(self._restore, table.full_name, table.id)
            yield Unit(f"restore of {table.full_name}", step)
        for name, error in engine.read(lambda reader: list(backup_records.damaged(reader))):
            yield failing(f"backup {name}", error)
        yield Unit("directory of backups", partial(self._find, backups))

    def overview(self) -> list[dict[str, Any]]:
        """All backups, for operators."""
        backups = self._engine.read(lambda reader: list(backup_records.every(reader)))
        return [self._shown(backup) for backup in backups]

    def _shown(self, backup: Backup) -> dict[str, Any]:
        writing = self._writings.opened.get(backup.id)
        place = writing.place if writing is not None else bytes.fromhex(backup.place)
        progress = 1.0 if backup.is_read else builds.share_before(place)
        return {
            "id": backup.id,
            "name": backup.name,
            "table": backup.table_full_name,
            "status": backup.status,
            "created": backup.created,
            "items": backup.items,
            "bytes": backup.bytes,
            "folder": str(Path(self._settings.backup_dir, backup.folder)),
            "progress": round(progress, 4),
            "problem": backup.problem,
        }

    def _directory(self) -> Path:
        if not self._settings.backup_dir:
            raise StorageError("There is no directory of backups: give --backup-dir.")
        return Path(self._settings.backup_dir)

    # -- writing

    def _write(self, scope: str, id_: str, bite: Bite) -> bool:
        """Write a bite of a backup; returns whether more is due."""

        def give_up(error: Exception) -> bool:
            if not self._writings.has_tried_enough(id_, error):
                return False
            bite.write(
                self._engine,
                partial(_give_up, scope=scope, id_=id_, error=described(error), now=bite.occasion.now),
            )
            return True

        return self._writings.run(id_, partial(self._write_bite, scope, id_, bite), give_up)

    def _write_bite(self, scope: str, id_: str, bite: Bite) -> bool:
        engine, directory = self._engine, self._directory()
        backup = engine.read(partial(backup_records.find, scope=scope, id_=id_))
        if backup is None or backup.status != "CREATING":
            return False
        if not backup.is_read:
            backup = self._write_items(directory, backup, bite)
            if not backup.is_read:
                return True
        folder, unfinished = directory / backup.folder, files.partial_of(directory, backup.folder)
        if not folder.is_dir():  # otherwise the process ended right after publishing it
            make_directory(unfinished)
            files.write_manifest(unfinished, _manifest(backup))
            files.publish(unfinished, folder)
        bite.write(engine, partial(_complete, scope=scope, id_=id_))
        return False

    def _write_items(self, directory: Path, backup: Backup, bite: Bite) -> Backup:
        engine = self._engine
        writing = self._writings.opened.get(backup.id)
        if writing is None or writing.number != len(backup.files) + 1:
            writing = self._writings.opened[backup.id] = Writing(directory, backup)

        def look(reader: Reader, low: bytes, limit: Limit) -> builds.Found:
            table = backup_records.source_of(reader, backup)
            past = Past(reader, table, backup.stamp)
            return builds.look(past, table.space, low, limit, _record)

        part = sweeps.look_in_parts(engine, bite, writing.place, look)
        bite.damaged(part.damages)
        writing.add(part.derived, part.high or b"")
        if part.high is not None and not writing.is_full:
            return backup
        file = writing.end()
        del self._writings.opened[backup.id]
        return bite.write(
            engine, partial(_advance, before=backup, file=file, writing=writing, is_read=part.high is None)
        )

    # -- restoring

    def _restore(self, name: str, table_id: str, bite: Bite) -> bool:
        """Restore a bite of a table; returns whether more is due."""

        def give_up(error: Exception) -> bool:
            is_damaged = isinstance(error, Damaged)
            if not is_damaged and not self._readings.has_tried_enough(table_id, error):
                return False
            problem = str(error) if is_damaged else described(error)
            bite.write(
                self._engine,
                partial(_fail, name=name, table_id=table_id, error=problem, now=bite.occasion.now),
            )
            return True

        return self._readings.run(table_id, partial(self._restore_bite, name, table_id, bite), give_up)

    def _restore_bite(self, name: str, table_id: str, bite: Bite) -> bool:
        engine, occasion = self._engine, bite.occasion
        begun = engine.read(partial(_restored, name=name, table_id=table_id))
        if begun is None:
            return False
        table, _, backup, low = begun
        reading = self._readings.opened.get(table_id)
        if reading is None or reading.place != low:
            self._readings.close_one(table_id)
            folder = self._directory() / backup.folder
            reading = self._readings.opened[table_id] = Reading(folder, table, low, bite.pause)
        part = reading.take(bite.limit)

        def body(txn: Transaction) -> None:
            current = _restored(txn, name, table_id)
            if current is None:
                return
            table, restore, backup, _ = current
            if restoring.write(txn, table, part) and part.high is None:
                if backup.problem is not None:  # somebody repaired the files
                    backup_records.save(txn, msgspec.structs.replace(backup, problem=None))
                catalog.save(txn, restoring.completed(txn, table, restore, occasion.now, occasion.settings))

        bite.write(engine, body)
        return part.high is not None

    # -- deleting and finding

    def _remove(self, backup: Backup, bite: Bite) -> bool:
        """Remove the files of a deleted backup."""
        with self._writings.held():
            directory = self._directory()
            removed = directory / f".{backup.folder}.deleted"
            folder = directory / backup.folder
            if folder.is_dir():
                # The folder must not be found as a backup while only a part of it is left.
                files.publish(folder, removed)
            for path in (removed, files.partial_of(directory, backup.folder)):
                if path.is_dir():
                    shutil.rmtree(path)
            self._engine.write(partial(backup_records.forget, record=backup))
        return False

    def _find(self, backups: list[Backup], bite: Bite) -> bool:
        """Make backups of the folders that users have copied into the directory."""
        directory = self._directory()
        known = {backup.folder for backup in backups}
        try:
            names = sorted(entry.name for entry in os.scandir(directory) if entry.is_dir())
        except FileNotFoundError:
            return False
        names = [name for name in names if name not in known and not name.startswith(".")]
        self._refused = {name: seen for name, seen in self._refused.items() if name in names}
        errors: list[OSError] = []
        for name in names:
            seen = self._refused.get(name)
            try:
                if (seen is None or seen.has_changed()) and (directory / name / files.MANIFEST).is_file():
                    self._admit(directory / name)
            except OSError as error:
                errors.append(error)
            bite.pause()
        if errors:
            raise errors[0]
        return False

    def _admit(self, folder: Path) -> None:
        """Make a backup of a folder; if it holds none, remember its state."""
        seen = files.Seen.of(folder)
        try:
            manifest = files.read_manifest(folder)
            files.check_sizes(folder, manifest)
        except Damaged as error:
            # The folder is read again when it has changed: it may be a backup that is being copied.
            self._refused[folder.name] = seen.beside(error.path)
            fields = {"folder": str(folder), "reason": str(error)}
            _log.warning("a folder holds no whole backup", extra={"fields": fields})
            return
        self._refused.pop(folder.name, None)
        scope = self._scope_of(manifest.account_id, manifest.region, self._settings)
        self._engine.write(partial(_found, backup=_backup_of(manifest, scope, folder.name)))


def _record(partition: bytes, sort: bytes, record: bytes) -> bytes:
    """The record, if its item can be read: a damaged record does not go into a file."""
    records.item_of(record)
    return record


def _is_read(table: Table) -> bool:
    return table.restore is not None and table.restore.backup is not None and table.gone_at is None


def _restored(reader: Reader, name: str, table_id: str) -> tuple[Table, Restore, Backup, bytes] | None:
    """A table that is being restored from a backup, its restore, the backup, and the next address."""
    table = catalog.find_full(reader, name)
    if table is None or table.id != table_id or table.restore is None or not _is_read(table):
        return None
    backup = backup_records.find(reader, table.restore.source.rpartition("/")[0], table.restore.backup or "")
    if backup is None:
        raise BackupLost(
            f"The record of the backup {table.restore.backup}, from which table {name} is restored, is "
            "gone. Delete the table."
        )
    return table, table.restore, backup, restoring.cursor(reader, table)


def _fail(txn: Transaction, name: str, table_id: str, error: str, now: float) -> None:
    """Give up a restore, remove its table, and store what is wrong with the backup."""
    current = _restored(txn, name, table_id)
    if current is None:
        return
    table, restore, backup, _ = current
    catalog.remove(txn, restoring.end(txn, table, restore), now)
    backup_records.save(txn, msgspec.structs.replace(backup, problem=error))
    fields = {"table": name, "backup": backup.id, "reason": error}
    _log.error("a restore was cancelled, because its backup cannot be read", extra={"fields": fields})


def _give_up(txn: Transaction, scope: str, id_: str, error: str, now: float) -> None:
    """Delete a backup that cannot be written."""
    backup = backup_records.find(txn, scope, id_)
    if backup is None or backup.status != "CREATING":
        return
    backup_records.release(txn, backup)
    backup_records.save(txn, msgspec.structs.replace(backup, status="DELETED", files=()))
    fields = {"backup": id_, "table": backup.table_name, "reason": error}
    _log.error("a backup was cancelled and deleted", extra={"fields": fields})


def _advance(
    txn: Transaction, before: Backup, file: DataFile | None, writing: Writing, is_read: bool
) -> Backup:
    """Store the entry of a complete file, and where the next file begins."""
    backup = backup_records.find(txn, before.scope, before.id)
    if backup is None or backup != before:
        return before
    after = msgspec.structs.replace(
        backup,
        files=(*backup.files, file) if file is not None else backup.files,
        place=writing.place.hex(),
        items=backup.items + writing.items,
        bytes=backup.bytes + writing.bytes,
        is_read=is_read,
    )
    backup_records.save(txn, after)
    return after


def _complete(txn: Transaction, scope: str, id_: str) -> None:
    backup = backup_records.find(txn, scope, id_)
    if backup is None or backup.status != "CREATING":
        return
    backup_records.release(txn, backup)
    # The manifest now has the entries of the files.
    backup_records.save(txn, msgspec.structs.replace(backup, status="AVAILABLE", files=()))
    fields = {"backup": id_, "table": backup.table_name, "items": backup.items, "folder": backup.folder}
    _log.info("backup completed", extra={"fields": fields})


def _found(txn: Transaction, backup: Backup) -> None:
    if backup_records.find(txn, backup.scope, backup.id) is None:
        backup_records.save(txn, backup)
        fields = {"backup": backup.id, "table": backup.table_name, "folder": backup.folder}
        _log.info("a backup was found", extra={"fields": fields})


def _manifest(backup: Backup) -> Manifest:
    return Manifest(
        format=files.FORMAT,
        version=files.VERSION,
        id=backup.id,
        name=backup.name,
        created=backup.created,
        region=backup.region,
        account_id=backup.account_id,
        table=backup.table,
        items=backup.items,
        bytes=backup.bytes,
        files=backup.files,
    )


def _backup_of(manifest: Manifest, scope: str, folder: str) -> Backup:
    details = manifest.table["SourceTableDetails"]
    return Backup(
        id=manifest.id,
        name=manifest.name,
        scope=scope,
        region=manifest.region,
        account_id=manifest.account_id,
        created=manifest.created,
        table_name=manifest.table_name,
        table_id=str(details.get("TableId", "")),
        table=manifest.table,
        folder=folder,
        status="AVAILABLE",
        items=manifest.items,
        bytes=manifest.bytes,
        is_read=True,
    )
