"""`run`: call a function with the changes of a table, in this program."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from hashrange.cli.remote.clients import Clients, connect
from hashrange.clock import Clock, SystemClock
from hashrange_triggers.functions import adapt
from hashrange_triggers.worker import Options, Totals, Worker


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
