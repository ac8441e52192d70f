"""What a data directory knows of its copy: DIRECTORY/copy/state.

`owner` is the id of the directory as one that ships. `epoch` is the last epoch that it took (0: none yet), or
from which it was restored: if the lease has a later epoch of another owner, the directory lacks what that
owner has written. `end` says where the chain goes on behind the last batch of the directory; it is there only
after a clean end or a restore, because otherwise batches may be missing in the chain. `lacks_since` is the
moment (epoch milliseconds) since when the bucket may lack batches, for a start without the bucket.
`has_standby`: a standby was registered, and may have taken over.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec

from hashrange.files.durable import make_directory, write_durably
from hashrange_replication.chain import Position

FOLDER: Final = "copy"
_STATE: Final = "state"
_OWNER_BYTES: Final = 8


class State(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a directory's copy, at the place `place`."""

    owner: str
    place: str
    epoch: int
    end: Position | None = None
    lacks_since: int = 0
    has_standby: bool = False


def new_owner(random: Callable[[int], bytes]) -> str:
    """An id for a directory that has none."""
    return random(_OWNER_BYTES).hex()


def read_state(directory: Path) -> State | None:
    """The state of a data directory; None if it has none that can be read: then it makes a new base."""
    try:
        return msgspec.json.decode((directory / FOLDER / _STATE).read_bytes(), type=State)
    except (FileNotFoundError, msgspec.DecodeError):
        return None


def write_state(directory: Path, state: State) -> None:
    """Replace the state durably. Raises OSError."""
    make_directory(directory / FOLDER)
    write_durably(directory / FOLDER / _STATE, msgspec.json.encode(state))
