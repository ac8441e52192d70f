"""Files on systems that this one is not: macOS, whose fsync leaves data in the drive, and Windows."""

from __future__ import annotations

import ast
import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

import hashrange
from hashrange.buckets import INVALID_KEY, BucketError, folders
from hashrange.database import Database
from hashrange.errors import InternalServerError
from hashrange.files import durable
from hashrange.storage.embedded.files import mark
from worlds import table_of

SOURCES = Path(hashrange.__file__).parent
EXEMPT = ("files/durable.py",)
TABLE = table_of("orders", "pk")
PUT = {"TableName": "orders", "Item": {"pk": {"S": "a"}}}


class Drive:
    """A drive of macOS, which notes what is asked of it, and fails with `error`."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[str] = []
        self.error = 0
        monkeypatch.setattr(durable, "F_FULLFSYNC", 51)
        monkeypatch.setattr(durable, "fcntl", self._fcntl, raising=False)
        self._noting(monkeypatch, os, "fsync", "fsync")
        self._noting(monkeypatch, mark, "_overwrite", "mark")

    def _noting(self, monkeypatch: pytest.MonkeyPatch, owner: object, name: str, word: str) -> None:
        inner = getattr(owner, name)

        def noted(*given: object) -> object:
            self.asked.append(word)
            return inner(*given)

        monkeypatch.setattr(owner, name, noted)

    def _fcntl(self, descriptor: int, command: int) -> int:
        assert command == 51
        os.fstat(descriptor)
        self.asked.append("drive")
        if self.error:
            raise OSError(self.error, os.strerror(self.error))
        return 0


def test_a_file_is_durable_when_the_drive_has_stored_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = Drive(monkeypatch)
    durable.write_durably(tmp_path / "a", b"x")
    assert drive.asked == ["drive", "drive"]  # the file, and its directory
    drive.asked.clear()
    drive.error = errno.ENOTSUP
    durable.write_durably(tmp_path / "a", b"y")
    assert drive.asked == ["drive", "fsync"] * 2
    drive.error = errno.EIO
    with pytest.raises(OSError, match=os.strerror(errno.EIO)):
        durable.write_durably(tmp_path / "a", b"z")
    assert (tmp_path / "a").read_bytes() == b"y"


def test_a_write_is_acknowledged_when_the_drive_has_stored_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drive = Drive(monkeypatch)
    with Database.open(tmp_path / "data") as database:
        database.execute("CreateTable", TABLE)
        drive.asked.clear()
        database.execute("PutItem", PUT)
        # STORE must not claim more than the drive has.
        assert drive.asked == ["drive", "mark"]
        drive.error = errno.EIO
        with pytest.raises(InternalServerError):
            database.execute("PutItem", PUT)


def test_where_fsync_suffices_nothing_else_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drive = Drive(monkeypatch)
    monkeypatch.setattr(durable, "F_FULLFSYNC", None)
    with Database.open(tmp_path / "data") as database:
        database.execute("CreateTable", TABLE)
        drive.asked.clear()
        database.execute("PutItem", PUT)
        assert drive.asked == ["mark"]


def calls(name: str) -> Iterator[tuple[str, ast.Call]]:
    """The calls of a function of `os`, with their files."""
    for path in sorted(SOURCES.rglob("*.py")):
        file = path.relative_to(SOURCES).as_posix()
        text = path.read_text("utf-8")
        if file in EXEMPT or f"os.{name}(" not in text:
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == f"os.{name}":
                yield file, node


def test_every_module_syncs_by_the_function_that_knows_the_system() -> None:
    assert [file for file, _ in calls("fsync")] == []


def test_every_file_that_is_written_is_opened_without_translation() -> None:
    written = {
        file: ast.unparse(call.args[1])
        for file, call in calls("open")
        if "O_WRONLY" in ast.unparse(call) or "O_RDWR" in ast.unparse(call)
    }
    assert written
    assert [file for file, flags in written.items() if "BINARY" not in flags] == []


@pytest.mark.parametrize(
    "key",
    ["a:b", "x/a:b/y", "..\\..\\secret", "a?", "a*", "CON", "nul.txt", "x/COM1", "a.", "a ", "a\tb", "<a>"],
)
def test_keys_that_would_be_other_files_on_windows_are_refused_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    (tmp_path / "bucket").mkdir()
    bucket = folders.Folders(tmp_path)
    with bucket.create("bucket", key) as file:
        file.write(b"x")
    monkeypatch.setattr(folders, "_ON_WINDOWS", True)
    with pytest.raises(BucketError) as error, bucket.create("bucket", key):
        pass
    assert error.value.code == INVALID_KEY
    with bucket.create("bucket", "x/console.txt") as file:
        file.write(b"x")
