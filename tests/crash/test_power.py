"""The simulated disk drops writes that were not synced when the power failed, and keeps the others."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from crash import machine
from crash.power import Disk, read_journal

SCRIPT = """
import os, sys
root = sys.argv[1]
os.mkdir(root + "/folder")
descriptor = os.open(root + "/folder/new", os.O_WRONLY | os.O_CREAT)
os.write(descriptor, b"0123456789")
os.fsync(descriptor)
os.rename(root + "/folder/new", root + "/folder/name")
os.write(1, b"written")
for path in (root + "/folder", root):
    folder = os.open(path, os.O_RDONLY)
    os.fsync(folder)
os.write(descriptor, b"more")
os.write(1, b"named")
os.fdatasync(descriptor)
os.write(1, b"all")
"""


def test_a_change_that_was_not_synced_may_be_lost(tmp_path: Path) -> None:
    library = machine.build(tmp_path)
    if library is None:
        pytest.skip("crashes of the machine need Linux and a C compiler, cc")
    root, journal = tmp_path / "root", tmp_path / "journal"
    root.mkdir()
    disk = Disk(root)
    places = {"LD_PRELOAD": str(library), "JOURNAL": str(journal), "JOURNAL_ROOT": str(root)}
    environment = {**os.environ, **places}
    command = [sys.executable, "-c", SCRIPT, str(root)]
    subprocess.run(command, stdout=subprocess.DEVNULL, env=environment, check=True)
    left: dict[str, set[str]] = {}
    chance = random.Random(1)
    for event in read_journal(journal):
        disk.follow(event)
        if event.kind != "A":
            continue
        found = left[event.data.decode()] = set()
        for number in range(200):
            place = tmp_path / f"{event.data.decode()}-{number}"
            disk.cut(place, chance)
            files = [path for path in place.rglob("*") if path.is_file()]
            found.add(" ".join(f"{path.relative_to(place)}:{path.read_text()}" for path in files))
    complete = "folder/name:0123456789"
    # The content was synced, but neither its name nor that of the folder was.
    assert left["written"] == {"", "folder/new:0123456789", complete}
    assert left["named"] == {complete + "more"[:length] for length in range(5)}
    assert left["all"] == {complete + "more"}
