"""Triggers: call a function with the changes of a table, as AWS Lambda does, from a program of your own.

    filters      which records the function sees
    events       the event that it gets
    delivery     what happens when it fails
    shard        the work on one shard
    worker       the work on a table
    source       reading streams
    checkpoints  how far it has come
    failures     where records go that were given up
    functions    ``module:function``

    from hashrange import triggers

    def count(event, context):
        for record in event["Records"]:
            ...

    triggers.run("views", count, endpoint_url="http://127.0.0.1:8000")

At least once, and in order for each item: a function has to bear that it sees a record twice. Uses the
public API only, so it follows a table on AWS as well. Needs boto3.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from hashrange.clock import Clock, SystemClock
from hashrange.triggers.checkpoints import DEFAULT_TABLE
from hashrange.triggers.delivery import Policy
from hashrange.triggers.events import Context, Event
from hashrange.triggers.filters import InvalidPattern
from hashrange.triggers.functions import adapt, load
from hashrange.triggers.shard import Batching
from hashrange.triggers.source import SERVICE_ERRORS, Clients, TriggerError, connect
from hashrange.triggers.worker import Options, Totals, Worker

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
    """Call `function` with the changes of `table` until `stop` is set; what was done until then.

    `function` takes an event, or an event and a context; an exception of it means that the batch failed.
    The trigger's name is by default the function's and the table's. `clients` are used if given, else those
    of the server at `endpoint_url`, or of AWS. Raises `TriggerError` where there is nothing to follow.
    """
    if options is None:
        name = f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}@{table}"
        options = Options(name)
    worker = Worker(clients or connect(endpoint_url, region), table, adapt(function), options, clock=clock)
    return worker.run(stop or threading.Event())
