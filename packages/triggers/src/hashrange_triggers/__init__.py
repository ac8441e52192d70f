"""Triggers: call a function with the changes of a table, as AWS Lambda does, from your own program.

    filters      selects the records that the function gets
    events       makes the event that the function gets
    delivery     calls the function, retries and gives up
    shard        the work on one shard
    worker       the work on a table
    source       reads streams
    checkpoints  stores how far each shard has been processed
    failures     stores the records that were given up
    functions    finds a function by ``module:function``
    tail         follows a table's changes as they happen
    differences  shows a stream record to people
    running      calls a function with the changes of a table, in this program
    commands     `stream` and `trigger`
    testing      triggers of tests in process
    ring         what triggers add to Hashrange

    import hashrange_triggers as triggers

    def count(event, context):
        for record in event["Records"]:
            ...

    triggers.run("views", count, endpoint_url="http://127.0.0.1:8000")

Every record is delivered at least once, and the records of each item in order: a function must work even if
it gets a record twice. Triggers use only the public API, so they work with tables on AWS too. They need
boto3.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = [
    "DEFAULT_TABLE",
    "SERVICE_ERRORS",
    "Batching",
    "Clients",
    "Context",
    "Event",
    "InvalidPattern",
    "Options",
    "Policy",
    "Totals",
    "TriggerError",
    "Worker",
    "connect",
    "load",
    "run",
]

_MODULES = {
    "DEFAULT_TABLE": "hashrange_triggers.checkpoints",
    "SERVICE_ERRORS": "hashrange.cli.remote.clients",
    "Batching": "hashrange_triggers.shard",
    "Clients": "hashrange.cli.remote.clients",
    "Context": "hashrange_triggers.events",
    "Event": "hashrange_triggers.events",
    "InvalidPattern": "hashrange_triggers.filters",
    "Options": "hashrange_triggers.worker",
    "Policy": "hashrange_triggers.delivery",
    "Totals": "hashrange_triggers.worker",
    "TriggerError": "hashrange_triggers.source",
    "Worker": "hashrange_triggers.worker",
    "connect": "hashrange.cli.remote.clients",
    "load": "hashrange_triggers.functions",
    "run": "hashrange_triggers.running",
}

if TYPE_CHECKING:
    from hashrange.cli.remote.clients import SERVICE_ERRORS, Clients, connect
    from hashrange_triggers.checkpoints import DEFAULT_TABLE
    from hashrange_triggers.delivery import Policy
    from hashrange_triggers.events import Context, Event
    from hashrange_triggers.filters import InvalidPattern
    from hashrange_triggers.functions import load
    from hashrange_triggers.running import run
    from hashrange_triggers.shard import Batching
    from hashrange_triggers.source import TriggerError
    from hashrange_triggers.worker import Options, Totals, Worker
else:

    def __getattr__(name):
        # (the ring is found before anybody wants boto3, which loads slowly)
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
