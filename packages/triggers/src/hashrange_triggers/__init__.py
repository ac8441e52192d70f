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

    import hashrange_triggers as triggers

    def count(event, context):
        for record in event["Records"]:
            ...

    triggers.run("views", count, endpoint_url="http://127.0.0.1:8000")

Every record is delivered at least once, and the records of each item in order: a function must work even if
it gets a record twice. Triggers use only the public API, so they work with tables on AWS too. They need
boto3.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from hashrange.clock import Clock, SystemClock
from hashrange_triggers.checkpoints import DEFAULT_TABLE
from hashrange_triggers.delivery import Policy
from hashrange_triggers.events import Context, Event
from hashrange_triggers.filters import InvalidPattern
from hashrange_triggers.functions import adapt, load
from hashrange_triggers.shard import Batching
from hashrange_triggers.source import SERVICE_ERRORS, Clients, TriggerError, connect
from hashrange_triggers.worker import Options, Totals, Worker

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


def run(
    table: str,
    function: Callable[..., Any],
    *,
    options: Options | None = None,
    clients: Clients | None = None,
    endpoint_url: str | None = None,
    region: str | None = None,
    stop: threading.Event | None = None,
    clock: Clock = SystemClock(),  # noqa: B008 (stateless)
) -> Totals:
    """Call `function` with the changes of `table` until `stop` is set. Returns the totals of the work.

    `function` takes an event, or an event and a context; if it raises, the batch has failed. The trigger's
    default name consists of the names of function and table. Without `clients` it uses clients of the server
    at `endpoint_url`, or of AWS. Raises `TriggerError` if the table has no stream.
    """
    if options is None:
        name = f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}@{table}"
        options = Options(name)
    worker = Worker(clients or connect(endpoint_url, region), table, adapt(function), options, clock=clock)
    return worker.run(stop or threading.Event())
