"""Whether the files of an open store are still where they are named.

A process goes on with files that somebody deleted or moved, because it has them open. Nothing of that is
there after its end. So whoever watches the server is told while it can still be copied.

Refuses to know: the contents of the files (`damage`), which say more, but only of a store at rest.
"""

from __future__ import annotations

import os
from pathlib import Path

from rocksdict import Rdict

from hashrange.storage.embedded.mark import NAME

Identity = tuple[int, int]


def identity(path: Path) -> Identity:
    """What tells a file or folder from another one of the same name. Raises OSError."""
    status = path.stat()
    return status.st_dev, status.st_ino


def missing(directory: Path, opened: Identity, db: Rdict) -> str | None:
    """Which file of the store is missing; None: all are there. `opened`: the folder rocks as it was opened.

    It reads one folder and one small file.
    """
    rocks = directory / "rocks"
    try:
        if identity(rocks) != opened:
            return f"the folder {rocks} was replaced by another one"
        named = (rocks / "CURRENT").read_text().strip()
        # A file that RocksDB deletes because it needs it no more leaves the list first.
        gone = _live(db) - set(os.listdir(rocks))
        gone &= _live(db)
        names = set(os.listdir(rocks))
        if named not in names and named == (rocks / "CURRENT").read_text().strip():
            gone.add(named)
        if not any(name.endswith(".log") for name in names):
            return f"the log in {rocks} was removed"
        if not (directory / NAME).exists():
            return f"the file {directory / NAME} was removed"
    except OSError as error:
        return f"the files of the store are not where they were: {error}"
    if not gone:
        return None
    more = f" and {len(gone) - 1} more were" if len(gone) > 1 else " was"
    return f"{rocks / min(gone)}{more} removed"


def _live(db: Rdict) -> set[str]:
    return {os.path.basename(file["name"]) for file in db.live_files()}
