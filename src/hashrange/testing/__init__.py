"""The database for tests in Python: no server to start, a fresh database in microseconds, a clock, snapshots.

    blocks    `hashrange.local`: a block, a function or a class whose DynamoDB is in this process
    classes   classes of tests, and their subclasses
    database  the result of a block: `LocalDatabase`
    scopes    which database answers which request
    hook      the handlers of botocore's events that ask the scopes
    costs     `pytest --dynamodb-costs`: the most expensive tests of a run
    moments   moments and durations as tests write them; the clock
    waiting   lets the clock pass while a program sleeps
    declarations  tables from a short form, and how a declared table is made
    items     items from Python values, JSON and CSV
    servers   a server in a thread
    plugin    the pytest plugin
    mocking   `mock_aws`, in place of moto's

Its names are loaded when they are first used. Only `servers` knows the server. None of
the names is that of a module, which would hide it.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

__all__ = [
    "Block",
    "DeclarationError",
    "DeclarationWarning",
    "LocalClock",
    "LocalDatabase",
    "NoStream",
    "NotSettling",
    "RequestStopped",
    "Server",
    "Snapshot",
    "current",
    "install",
    "local",
    "mock_aws",
    "serving",
]

_MODULES: Final = {
    "Block": "blocks",
    "DeclarationError": "declarations",
    "DeclarationWarning": "declarations",
    "LocalClock": "moments",
    "LocalDatabase": "database",
    "NoStream": "database",
    "NotSettling": "database",
    "RequestStopped": "hook",
    "Server": "servers",
    "Snapshot": "database",
    "current": "blocks",
    "install": "hook",
    "local": "blocks",
    "mock_aws": "mocking",
    "serving": "servers",
}


if TYPE_CHECKING:
    from hashrange.testing.blocks import Block, current, local
    from hashrange.testing.database import LocalDatabase, NoStream, NotSettling, Snapshot
    from hashrange.testing.declarations import DeclarationError, DeclarationWarning
    from hashrange.testing.hook import RequestStopped, install
    from hashrange.testing.mocking import mock_aws
    from hashrange.testing.moments import LocalClock
    from hashrange.testing.servers import Server, serving
else:

    def __getattr__(name):
        module = _MODULES.get(name)
        if module is None:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(f"{__name__}.{module}"), name)

    def __dir__():
        return sorted({*globals(), *__all__})
