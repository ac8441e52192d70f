"""The levels at which the crash test can run."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from crash import api_level, history_level, storage_level, transfers_level, vectors_level


class Level(NamedTuple):
    """The work of a child in a directory, and the check of that directory by its parent."""

    run: Callable[[str, Callable[[str], None]], None]
    check: Callable[[str, list[str]], int]


LEVELS = {
    "storage": Level(storage_level.run, storage_level.check),
    "api": Level(api_level.run, api_level.check),
    "history": Level(history_level.run, history_level.check),
    "transfers": Level(transfers_level.run, transfers_level.check),
    "vectors": Level(vectors_level.run, vectors_level.check),
}
