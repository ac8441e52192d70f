"""Folders put into the directory of backups by others: which become backups, and which are read again."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from backing import World
from hashrange.errors import ValidationException
from hashrange.tables.jobs.backups import files


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """A world that has one backup, whose folder is not among the backups but beside them."""
    world = World(tmp_path)
    world.create()
    world.fill(10)
    arn = world.backup()
    shutil.copytree(world.folder(arn), tmp_path / "whole")
    world("DeleteBackup", BackupArn=arn)
    world.database.settle()
    yield world
    world.database.close()


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the folders whose manifests were read."""
    names: list[str] = []
    real = files.read_manifest

    def noting(folder: Path) -> files.Manifest:
        names.append(folder.name)
        return real(folder)

    monkeypatch.setattr(files, "read_manifest", noting)
    return names


def copied(world: World, name: str = "copy") -> Path:
    return Path(shutil.copytree(world.backups.parent / "whole", world.backups / name))


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a file is cut off": lambda folder: cut(folder / "data" / "00000001.json.gz"),
    "a file is missing": lambda folder: (folder / "data" / "00000001.json.gz").unlink(),
    "all files are missing": lambda folder: shutil.rmtree(folder / "data"),
    "no checksums": lambda folder: (folder / "SHA256SUMS").unlink(),
    "the manifest is cut off": lambda folder: cut(folder / "manifest.json"),
    "the checksums are cut off": lambda folder: cut(folder / "SHA256SUMS"),
}


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:20])


@pytest.mark.parametrize("case", DAMAGES)
def test_a_folder_that_was_refused_is_read_again_only_when_it_has_changed(
    world: World, read: list[str], case: str, caplog: pytest.LogCaptureFixture
) -> None:
    folder = copied(world)
    DAMAGES[case](folder)
    for _ in range(5):
        world.database.settle()
    assert read == ["copy"]
    assert caplog.messages.count("a folder holds no whole backup") == 1
    # As somebody does whose copy was not whole yet.
    shutil.copytree(world.backups.parent / "whole", folder, dirs_exist_ok=True)
    for _ in range(5):
        world.database.settle()
    assert read == ["copy", "copy"]
    [arn] = world.listed()
    world.restore(arn)
    world.database.settle()
    assert world.rows("restored") == world.rows()


@pytest.mark.parametrize("name", ["manifest.json", "SHA256SUMS"])
def test_a_manifest_that_is_larger_than_any_is_not_read_into_memory(
    world: World, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    with (copied(world) / name).open("r+b") as file:
        file.truncate(2**40)
    world.database.settle()
    assert caplog.messages.count("a folder holds no whole backup") == 1
    assert world.listed() == []


def test_a_folder_that_was_removed_is_forgotten(world: World, read: list[str]) -> None:
    folder = copied(world)
    cut(folder / "manifest.json")
    world.database.settle()
    away = folder.rename(world.backups.parent / "away")
    world.database.settle()
    away.rename(folder)
    world.database.settle()
    assert read == ["copy", "copy"]


def test_a_folder_that_cannot_be_read_holds_up_no_other(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied(world, "a")
    copied(world, "b")
    real = files.read_manifest

    def failing(folder: Path) -> files.Manifest:
        if folder.name == "a":
            raise PermissionError(13, "Permission denied", str(folder))
        return real(folder)

    monkeypatch.setattr(files, "read_manifest", failing)
    world.database.settle()
    assert [Path(one["folder"]).name for one in world.database.jobs.backups.runner.overview()] == ["b"]
    assert "Permission denied" in world.database.background.failing["directory of backups"]


@pytest.mark.skipif(os.name == "nt", reason="Windows has no named pipes")
@pytest.mark.parametrize("name", ["SHA256SUMS", "manifest.json", "data/00000001.json.gz"])
def test_a_named_pipe_in_the_folder_of_a_backup_is_not_opened(world: World, name: str) -> None:
    folder = copied(world)
    world.database.settle()
    [arn] = world.listed()
    (folder / name).unlink()
    os.mkfifo(folder / name)
    with pytest.raises(ValidationException, match=r"not a regular file|bytes, and not"):
        world.restore(arn)
    folder.rename(world.backups / "another name")
    world.database.settle()
    assert world.database.background.failing == {}


@pytest.mark.parametrize("length", [3, 200, 201, 255])
def test_a_table_with_a_name_of_any_length_is_backed_up(tmp_path: Path, length: int) -> None:
    world = World(tmp_path)
    world.create("t" * length)
    world.fill(10, "t" * length)
    arn = world.backup("t" * length)
    world.restore(arn)
    world.database.settle()
    assert world.rows("restored") == world.rows("t" * length)
    world.database.close()
