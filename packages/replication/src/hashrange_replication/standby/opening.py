"""The directory of a standby: restored from the newest base if it is new, or the standby's own from before.

A standby that can no longer follow, because the chain began again, renounces its directory: then this module
restores it once more. The standby's id, and the key of access, stay.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from hashrange.storage.embedded.offline.replay import is_unfinished
from hashrange_replication.format.sealing import Key
from hashrange_replication.place import Place
from hashrange_replication.restore import Progress, Restored, restore
from hashrange_replication.state import new_owner, read_state

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
        return None
    state = read_state(directory)
    owner = state.owner if state is not None else new_owner(random)
    return restore(place, directory, key, owner=owner, progress=progress, parts=_PARTS)
