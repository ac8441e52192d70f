"""After the last fault all goes on as before, while the clients keep coming: each server says that it is
well, and each client gets answers. At any time a server answers, or cuts the connection."""

from __future__ import annotations

import time
import urllib.error
import urllib.request
from collections.abc import Sequence
from threading import Event
from typing import Final

import orjson

from consistency.client import AWAY_SECONDS, TIMEOUT_SECONDS, Client
from consistency.history import Anomaly, History, Operation
from consistency.tables import names_in_order

NAME: Final = "liveness"
STEPS: Final = 2
"""A client's first step may have begun during the fault."""
DEADLINE_SECONDS: Final = 2 * TIMEOUT_SECONDS


def watch(history: History, admin_urls: Sequence[str], clients: Sequence[Client], stop: Event) -> None:
    """Record how the servers recover, and how many steps each client makes meanwhile, until all have made
    `STEPS`. `stop` is set if one of them fails."""
    until = time.monotonic() + DEADLINE_SECONDS
    before = [client.steps for client in clients]
    for url in admin_urls:
        with history.recorded(-1, NAME, "health", url=url) as operation:
            while (status := _health(url)) != "ok" and time.monotonic() < until:
                time.sleep(AWAY_SECONDS)
            operation.result = status
    with history.recorded(-1, NAME, "steps") as operation:
        while True:
            made = [client.steps - steps for client, steps in zip(clients, before, strict=True)]
            operation.result = made
            if min(made) >= STEPS or stop.is_set() or time.monotonic() > until:
                break
            time.sleep(AWAY_SECONDS)


def _health(url: str) -> str:
    """`ok`, or what is wrong."""
    try:
        with urllib.request.urlopen(f"{url}/health", timeout=TIMEOUT_SECONDS) as response:
            text = response.read()
    except urllib.error.HTTPError as error:
        text = error.read()
    except OSError as error:
        return f"{type(error).__name__}: {error}"
    return "ok" if orjson.loads(text)["status"] == "ok" else text.decode()


def judge(operations: Sequence[Operation]) -> list[Anomaly]:
    """The anomalies of a whole history."""
    anomalies = [
        Anomaly("no answer", names_in_order([operation]))
        for operation in operations
        if operation.error.startswith("NoAnswer")
    ]
    for operation in operations:
        if operation.workload != NAME:
            continue
        if operation.action == "health" and operation.result != "ok":
            anomalies.append(Anomaly("not well", f"long after the last fault:{names_in_order([operation])}"))
        if operation.action == "steps" and min(operation.result) < STEPS:
            anomalies.append(Anomaly("stuck", f"clients did not go on: {operation.result}"))
    return anomalies
