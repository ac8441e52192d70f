"""The database for tests in Python: nothing to start, a fresh database in microseconds, a clock, snapshots.

    blocks      `hashrange.local`: a block, a function or a class whose DynamoDB is in this process
    classes     classes of tests, and their subclasses
    database    what the block gives: `LocalDatabase`
    scopes      which database answers which request
    hook        the handlers of botocore's events that ask the scopes
    moments     moments and durations as tests write them; the clock

Its names are loaded when they are asked for. Refuses to know the server and the command line.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from hashrange.testing.blocks import Block, local
    from hashrange.testing.database import LocalDatabase, Snapshot
    from hashrange.testing.hook import RequestStopped, install
    from hashrange.testing.moments import LocalClock

__all__ = ["Block", "LocalClock", "LocalDatabase", "RequestStopped", "Snapshot", "install", "local"]

_MODULES: Final = {
    "Block": "blocks",
    "LocalClock": "moments",
    "LocalDatabase": "database",
    "RequestStopped": "hook",
    "Snapshot": "database",
    "install": "hook",
    "local": "blocks",
}


def __getattr__(name: str) -> Any:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
