"""Checks that the files of an open store still exist under their names.

A process can still use files that somebody deleted or moved, because it has them open; when the process ends,
the data are lost. So the server reports missing files while the store can still be copied.

Refuses to know: the contents of the files (`damage` checks them, but only while the store is closed).
"""

from __future__ import annotations

import os
from pathlib import Path

from rocksdict import Rdict

from hashrange.storage.embedded.files.mark import NAME

Identity = tuple[int, int]


def identity(path: Path) -> Identity:
    """Numbers that distinguish a file or folder from another of the same name. Raises OSError."""
    status = path.stat()
    return status.st_dev, status.st_ino


def missing(directory: Path, opened: Identity, db: Rdict) -> str | None:
    """The removed files of the store; None if none is removed. `opened`: the folder rocks when it was opened.

    It reads one folder and one small file.
    """
    rocks = directory / "rocks"
    try:
        if identity(rocks) != opened:
            return f"the folder {rocks} was replaced by another one"
        named = (rocks / "CURRENT").read_text().strip()
        # RocksDB removes a file that it no longer needs from the list before it deletes the file.
        removed = _live(db) - set(os.listdir(rocks))
        removed &= _live(db)
        names = set(os.listdir(rocks))
        if named not in names and named == (rocks / "CURRENT").read_text().strip():
            removed.add(named)
        if not any(name.endswith(".log") for name in names):
            return f"the log in {rocks} was removed"
        if not (directory / NAME).exists():
            return f"the file {directory / NAME} was removed"
    except OSError as error:
        return f"the files of the store are not where they were: {error}"
    if not removed:
        return None
    more = f" and {len(removed) - 1} more were" if len(removed) > 1 else " was"
    return f"{rocks / min(removed)}{more} removed"


def _live(db: Rdict) -> set[str]:
    return {os.path.basename(file["name"]) for file in db.live_files()}
