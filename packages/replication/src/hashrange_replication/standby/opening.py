"""The directory of a standby: restored from the newest base if it is new, or the standby's own from before.

    DIRECTORY/copy/next    the store of a standby that can no longer follow, because the chain began again

It is restored there while the standby serves what it has (`restore_beside`), and takes its place when the
standby starts again. Where the disk has no room for both, the old store is removed first. The standby's id,
and the key of access, stay.
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hashrange.storage.embedded.offline.replay import is_unfinished, renounce, succeed
from hashrange_replication.chain import Chain, list_copy
from hashrange_replication.format.sealing import Key
from hashrange_replication.place import Place
from hashrange_replication.restore import Progress, Restored, restore
from hashrange_replication.state import FOLDER, new_owner, read_state, write_state

_log = logging.getLogger("hashrange.replication")

_NEXT: Final = "next"
_ROOM_FACTOR: Final = 2
_ROOM_BYTES: Final = 512 * 1024 * 1024
_PARTS: Final = ("rocks", "STORE", "FORMAT", "backups")


def make_ready(
    place: Place,
    directory: Path,
    key: Key | None,
    random: Callable[[int], bytes],
    progress: Progress = lambda step, done, total: None,
) -> Restored | None:
    """Restore a directory that is new, or was renounced; returns None for one that holds a store. Raises
    CopyError, Damaged, StorageError, BucketError, OSError."""
    is_new = not (directory / "rocks").exists() or is_unfinished(directory)
    if not is_new:
        shutil.rmtree(directory / FOLDER / _NEXT, ignore_errors=True)
    if not is_new or _take_next(directory):
        return None
    state = read_state(directory)
    owner = state.owner if state is not None else new_owner(random)
    return restore(place, directory, key, owner=owner, progress=progress, parts=_PARTS)


def restore_beside(place: Place, directory: Path, key: Key | None, why: str, progress: Progress) -> None:
    """Restore the newest base for a standby that can no longer follow, and renounce its store, which may be
    open: the next `make_ready` gives the other one its place. Raises as `make_ready`, and what `progress`
    raises; then the standby may go on to serve what it has."""
    beside = directory / FOLDER / _NEXT
    shutil.rmtree(beside, ignore_errors=True)
    state = read_state(directory)
    assert state is not None  # a standby has one
    if _has_room(place, directory, key):
        restore(place, beside, key, owner=state.owner, progress=progress)
    else:
        _log.warning("no room for a second store: the standby serves nothing until it is restored")
    renounce(directory, f"the copy at {place.shown}, because {why}")


def _has_room(place: Place, directory: Path, key: Key | None) -> bool:
    """Whether the disk has room for the store of the newest base, and the segments after it."""
    base = Chain(place, key, list_copy(place, files=False)).base()
    return shutil.disk_usage(directory).free > _ROOM_FACTOR * base.bytes + _ROOM_BYTES


def _take_next(directory: Path) -> bool:
    """Whether there is a store that was restored beside; it is in its place then."""
    beside = directory / FOLDER / _NEXT
    state = read_state(beside)
    if state is None:
        return False
    write_state(directory, state)
    shutil.rmtree(beside / FOLDER)
    done = succeed(directory, beside, _PARTS)
    shutil.rmtree(beside, ignore_errors=True)
    return done
