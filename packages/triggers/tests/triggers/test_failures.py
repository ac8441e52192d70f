"""The file of failures: what it keeps is on the disk when the checkpoint moves on."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import orjson
import pytest

from hashrange_triggers.failures import FailureFile


@pytest.mark.skipif(sys.platform == "win32", reason="Windows does not sync directories")
def test_a_failure_is_synced_before_it_is_stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "failures.jsonl"
    synced: list[tuple[str, int]] = []
    sync = os.fsync

    def note(descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        name = next(place.name for place in (path, tmp_path) if place.stat().st_ino == inode)
        synced.append((name, path.read_bytes().count(b"\n")))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    file = FailureFile(path)
    file.store({"n": 1})
    # The line, and the name of the file that it is in.
    assert synced == [(path.name, 1), (tmp_path.name, 1)]
    file.store({"n": 2})
    assert synced[2:] == [(path.name, 2), (tmp_path.name, 2)]
    assert [orjson.loads(line) for line in path.read_bytes().splitlines()] == [{"n": 1}, {"n": 2}]
    assert path.stat().st_mode & 0o077 == 0  # the umask of tests would let others read it
