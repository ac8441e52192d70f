"""A worker in a process of its own: counts the events of a queue until SIGTERM, or until it is killed.

Started as `python -m patterns.counting_worker ENDPOINT TABLE BROKER`; BROKER is a URL, or "table". It prints
a line when it begins, and one for each batch.
"""

from __future__ import annotations

import json
import signal
import sys
import threading

import boto3

from endpoints import connection
from hashrange_patterns import Counters, Event, EventQueue, Jobs, TableEvents, Worker
from patterns.brokers import queue_at

LEASE_SECONDS = 2.0
QUEUE = "views"


def queue_of(client: object, table: str, broker: str) -> EventQueue:
    """The queue that the tests and their workers share."""
    if broker == "table":
        return TableEvents(client, table, QUEUE, lease_seconds=LEASE_SECONDS, attempts_max=100)  # type: ignore[arg-type]
    jobs = Jobs(client, table, QUEUE)  # type: ignore[arg-type]
    return queue_at(broker, jobs, lease_seconds=LEASE_SECONDS, attempts_max=100, connect_seconds=2.0)


def main(endpoint: str, table: str, broker: str) -> None:
    """Count until told to stop."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    client = boto3.client("dynamodb", **connection(endpoint))
    counters = Counters(client, table)

    def count(bodies: list[str]) -> None:
        events = [json.loads(body) for body in bodies]
        counters.count([Event(event["id"], {event["page"]: 1}) for event in events])
        print(f"batch of {len(bodies)}", flush=True)

    print("ready", flush=True)
    Worker(queue_of(client, table, broker), count, batch_max=20, wait_seconds=0.2).run(stop)


if __name__ == "__main__":
    main(*sys.argv[1:])
