"""Backups whose files are damaged, missing, foreign or cannot be written.

RestoreTableFromBackup refuses them, or fails with the reason, and nothing is left half-done.
"""

from __future__ import annotations

import errno
import gzip
import hashlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from backing import NOW, World
from hashrange.errors import ValidationException
from hashrange.tables.definitions import catalog
from hashrange.tables.inspection.check import check
from hashrange.tables.jobs.backups import backup_records, backup_writer, files
from hashrange.tables.spaces import BACKUP_SPACE, BACKUPS


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    monkeypatch.setattr(backup_writer, "FILE_BYTES", 10_000)
    world = World(tmp_path)
    world.create()
    world.fill(300)
    yield world
    world.database.close()


def manifest_of(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = orjson.loads((folder / "manifest.json").read_bytes())
    return found


def write_manifest(folder: Path, manifest: dict[str, Any]) -> None:
    """Write a manifest whose checksum is right."""
    content = orjson.dumps(manifest)
    (folder / "manifest.json").write_bytes(content)
    (folder / "SHA256SUMS").write_text(f"{hashlib.sha256(content).hexdigest()}  manifest.json\n")


def change(folder: Path, **given: Any) -> None:
    write_manifest(folder, manifest_of(folder) | given)


def first(folder: Path) -> Path:
    return folder / "data" / "00000001.json.gz"


def last(folder: Path) -> Path:
    return max((folder / "data").iterdir())


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def rewrite(folder: Path, path: Path, lines: Callable[[list[bytes]], list[bytes]], **given: Any) -> None:
    """Change the lines of a file, so that its checksum is right."""
    content = gzip.compress(b"".join(lines(gzip.decompress(path.read_bytes()).splitlines(keepends=True))))
    path.write_bytes(content)
    manifest = manifest_of(folder)
    name = f"data/{path.name}"
    for file in manifest["files"]:
        if file["name"] == name:
            file |= {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest(), **given}
    manifest["items"] = sum(file["items"] for file in manifest["files"])
    write_manifest(folder, manifest)


def gone(world: World, table: str) -> None:
    assert world.definition(table) is None
    assert list(check(world.database.engine)) == []
    assert world.database.background.failing == {}


REFUSED: dict[str, tuple[Callable[[Path], object], str]] = {
    "no folder": (shutil.rmtree, "folder of the backup is missing"),
    "no manifest": (lambda folder: (folder / "manifest.json").unlink(), "not a complete backup"),
    "no checksums": (lambda folder: (folder / "SHA256SUMS").unlink(), "not a complete backup"),
    "no file": (lambda folder: last(folder).unlink(), "is missing"),
    "cut off": (lambda folder: last(folder).write_bytes(last(folder).read_bytes()[:-1]), "bytes, and not"),
    "foreign": (lambda folder: write_manifest(folder, {"format": "other"}), "not the manifest of a backup"),
    "no JSON": (lambda folder: (folder / "manifest.json").write_bytes(b"\x00"), "not the manifest"),
    "newer": (lambda folder: change(folder, version=2), "has the version 2; this program reads version 1"),
    "flipped": (lambda folder: flip(folder / "manifest.json"), "SHA-256|not the manifest"),
    "no list": (lambda folder: change(folder, files=7), "cannot be read"),
    "elsewhere": (
        lambda folder: change(folder, files=[manifest_of(folder)["files"][0] | {"name": "../../x"}]),
        "names a table, an id or files that no backup has",
    ),
    "no count": (lambda folder: change(folder, items=1), "names a table, an id or files"),
    "no table": (lambda folder: change(folder, table={}), "cannot be read"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_can_be_seen_at_once_is_refused(world: World, case: str) -> None:
    damage, words = REFUSED[case]
    arn = world.backup()
    damage(world.folder(arn))
    with pytest.raises(ValidationException, match=words):
        world.restore(arn)
    world.database.settle()
    gone(world, "restored")


GIVEN_UP: dict[str, tuple[Callable[[Path], object], str]] = {
    "flipped first": (lambda folder: flip(first(folder)), "00000001.json.gz does not have the SHA-256"),
    "flipped last": (lambda folder: flip(last(folder)), "does not have the SHA-256"),
    "order": (
        lambda folder: rewrite(folder, last(folder), lambda lines: [lines[0], *lines[:0:-1]]),
        "not in order",
    ),
    "twice": (
        lambda folder: rewrite(folder, last(folder), lambda lines: [lines[0], *lines[:-1]]),
        "not in order",
    ),
    "fewer": (lambda folder: rewrite(folder, last(folder), lambda lines: lines[:-1]), "items, and not"),
    "another first": (
        lambda folder: rewrite(folder, last(folder), lambda lines: lines[1:] + lines[:1]),
        "does not begin",
    ),
    "no item": (
        lambda folder: rewrite(folder, last(folder), lambda lines: [*lines[:-1], b'{"Item":7}\n']),
        'no "Item"',
    ),
    "no JSON": (lambda folder: rewrite(folder, last(folder), lambda lines: [*lines[:-1], b"{\n"]), "as JSON"),
    "no key": (
        lambda folder: rewrite(
            folder, last(folder), lambda lines: [*lines[:-1], b'{"Item":{"a":{"S":"x"}}}\n']
        ),
        "Missing the key pk",
    ),
    "bad value": (
        lambda folder: rewrite(
            folder, last(folder), lambda lines: [*lines[:-1], b'{"Item":{"pk":{"S":7}}}\n']
        ),
        "line",
    ),
}


@pytest.mark.parametrize("case", GIVEN_UP)
def test_what_is_found_while_reading_removes_the_table(world: World, case: str) -> None:
    damage, words = GIVEN_UP[case]
    arn = world.backup()
    whole = shutil.copytree(world.folder(arn), world.backups.parent / "whole")
    damage(world.folder(arn))
    world.restore(arn)
    world.database.settle()
    gone(world, "restored")
    [shown] = world.database.jobs.backups.runner.overview()
    assert words in shown["problem"]
    # When somebody has put the files right, the backup can be restored.
    shutil.rmtree(world.folder(arn))
    shutil.copytree(whole, world.folder(arn))
    world.restore(arn)
    world.database.settle()
    assert world.rows("restored") == world.rows()
    assert world.database.jobs.backups.runner.overview()[0]["problem"] is None


def test_a_manifest_with_a_table_that_cannot_be_made(world: World) -> None:
    arn = world.backup()
    folder = world.folder(arn)
    for part, value in (("KeySchema", []), ("KeySchema", 7), ("BillingMode", "FREE"), ("BillingMode", [])):
        manifest = manifest_of(folder)
        before = orjson.dumps(manifest)
        manifest["table"]["SourceTableDetails"][part] = value
        copy = world.backups / "copy"
        shutil.copytree(folder, copy)
        write_manifest(copy, manifest | {"id": "01700000000000-0123abcd"})
        world.database.settle()
        other = arn.rpartition("/")[0] + "/01700000000000-0123abcd"
        with pytest.raises(ValidationException, match="cannot be created"):
            world.restore(other)
        world("DeleteBackup", BackupArn=other)
        world.database.settle()
        assert before == orjson.dumps(manifest_of(folder))
    gone(world, "restored")


def test_folders_that_are_no_backups_are_left_alone(world: World) -> None:
    arn = world.backup()
    for name in ("a", "b"):
        shutil.copytree(world.folder(arn), world.backups / name)
    flip(world.backups / "a" / "manifest.json")
    last(world.backups / "b").unlink()
    (world.backups / "c").mkdir()
    (world.backups / "d").write_bytes(b"")
    world.database.settle()
    assert world.listed() == [arn]
    assert {path.name for path in world.backups.iterdir()} >= {"a", "b", "c", "d"}
    assert world.database.background.failing == {}


class FullDisk:
    """Fails as a full disk does, while `is_full`."""

    is_full = True

    def __init__(self, real: Callable[..., Any]) -> None:
        self._real = real

    def __call__(self, *given: Any) -> Any:
        if self.is_full:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self._real(*given)


@pytest.mark.parametrize("where", ["file", "manifest", "rename"])
def test_a_backup_goes_on_when_the_disk_has_room_again(
    world: World, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    module, name = {
        "file": (backup_writer.Writing, "end"),
        "manifest": (files, "write_manifest"),
        "rename": (files, "publish"),
    }[where]
    disk = FullDisk(getattr(module, name))
    monkeypatch.setattr(module, name, (lambda *given: disk(*given)) if where == "file" else disk)
    steady = [0.0]
    world.database.background.steady = lambda: steady[0]
    before = world.rows()
    arn = world.begin()
    for _ in range(5):
        world.database.sweep()
        steady[0] += 1_000
    assert "No space left" in world.database.background.failing[f"backup {arn.rpartition('/')[2]}"]
    assert world.details(arn)["BackupStatus"] == "CREATING"
    world.put(1, text={"S": "changed"})
    disk.is_full = False
    world.database.settle()
    assert world.details(arn)["BackupStatus"] == "AVAILABLE"
    world.restore(arn)
    world.database.settle()
    assert world.rows("restored") == before
    assert world.database.background.failing == {}


def test_a_backup_without_room_can_be_given_up(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "write_manifest", FullDisk(files.write_manifest))
    arn = world.begin()
    world.database.settle()
    assert world.database.background.failing
    world("DeleteBackup", BackupArn=arn)
    world.database.background.forget()
    world.database.settle()
    assert list(world.backups.iterdir()) == []
    gone(world, "absent")


def test_files_that_cannot_be_read_now_are_tried_again(world: World) -> None:
    """The folder is away when the restore wants to go on, as a disk that is not mounted."""
    steady = [0.0]
    world.database.background.steady = lambda: steady[0]
    arn = world.backup()
    world.restore(arn)
    folder = world.folder(arn)
    away = folder.rename(world.backups.parent / "away")
    world.database.sweep()
    assert "Put it back" in world.database.background.failing["restore of restored"]
    assert world.status("restored") == "CREATING"
    away.rename(folder)
    steady[0] += 1_000
    world.database.settle()
    assert world.rows("restored") == world.rows()


@pytest.mark.parametrize("published", [True, False])
def test_the_process_ends_before_the_last_transaction(
    world: World, monkeypatch: pytest.MonkeyPatch, published: bool
) -> None:
    before = world.rows()
    arn = world.begin()
    monkeypatch.setattr(files, "publish", FullDisk(files.publish))
    world.database.settle()
    assert world.details(arn)["BackupStatus"] == "CREATING"
    monkeypatch.undo()
    name = f"music-{arn.rpartition('/')[2]}"
    if published:
        files.publish(files.partial_of(world.backups, name), world.backups / name)
    world.reopen()
    world.database.background.forget()
    world.database.settle()
    world.restore(arn)
    world.database.settle()
    assert world.rows("restored") == before
    assert [path.name for path in world.backups.iterdir()] == [name]


def test_a_damaged_record_of_a_backup_stops_nothing_else(world: World) -> None:
    spoiled, sound = world.begin(), world.begin()
    sort = f"/{spoiled.rpartition('/')[2]}".encode()
    world.database.engine.write(lambda txn: txn.put(BACKUP_SPACE, BACKUPS, sort, b"{"))
    world.database.settle()
    assert world.details(sound)["BackupStatus"] == "AVAILABLE"
    assert list(world.database.background.failing) == [f"backup {sort.decode()}"]
    assert world.listed() == [sound]


def test_a_backup_whose_table_is_lost_can_be_deleted(world: World) -> None:
    arn = world.begin()
    world.database.engine.write(lambda txn: txn.delete(0, catalog.TABLE, b"/music"))
    world.database.sweep()
    [failing] = world.database.background.failing.values()
    assert "Delete the backup" in failing
    world("DeleteBackup", BackupArn=arn)
    world.database.settle()
    assert world.database.engine.read(lambda reader: list(backup_records.every(reader))) == []


def test_a_restore_whose_backup_is_lost_can_be_deleted(world: World) -> None:
    arn = world.backup()
    world.restore(arn)
    place = f"/{arn.rpartition('/')[2]}".encode()
    world.database.engine.write(lambda txn: txn.delete(BACKUP_SPACE, BACKUPS, place))
    world.database.sweep()
    assert "Delete the table" in world.database.background.failing["restore of restored"]
    world("DeleteTable", TableName="restored")
    world.database.settle()
    gone(world, "restored")
    assert world.listed() == [arn]  # its folder is still there
    assert world.clock.now() == NOW
