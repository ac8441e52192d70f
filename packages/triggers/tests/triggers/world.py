"""What a trigger needs: a database in this process, on a clock that the test moves, with a table.

Triggers work in the test's thread, so a test says when what is done.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import hashrange_triggers as triggers
from hashrange.clock import ManualClock
from hashrange.database import Database
from worlds import table_of

TABLE = "orders"
Call = Callable[..., Any]


@dataclass
class World:
    """A database with a table that has a stream, and what it takes to follow it."""

    clock: ManualClock
    database: Database
    clients: triggers.Clients
    seen: list[dict[str, Any]] = field(default_factory=list)

    def create_table(self, name: str = TABLE, view: str = "NEW_AND_OLD_IMAGES") -> None:
        self.clients.dynamodb.create_table(**table_of(name, "id", stream=view))

    def put(self, *keys: str, table: str = TABLE, **attributes: Any) -> None:
        for key in keys:
            self.clients.dynamodb.put_item(TableName=table, Item={"id": {"S": key}, **attributes})

    def sweep(self) -> None:
        """Do the background work that is due."""
        while self.database.sweep() == 0.0:
            pass

    def worker(self, function: Call | None = None, **options: Any) -> triggers.Worker:
        """A worker whose function, unless one is given, keeps what it sees in `seen`."""
        options = {"name": "test", "batching": triggers.Batching(poll_interval=1.0), **options}
        return triggers.Worker(
            self.clients,
            TABLE,
            function or self.keep,
            triggers.Options(**options),
            clock=self.clock,
            threads=False,
        )

    def keep(self, event: triggers.Event, context: triggers.Context) -> None:
        self.seen += event["Records"]

    def work(self, worker: triggers.Worker, cycles_max: int = 300) -> None:
        """Let a worker do what is due now, and what becomes due by that at once."""
        for _ in range(cycles_max):
            if worker.cycle() > 0.0:
                return
        raise AssertionError("the worker does not come to rest")

    def pass_time(self, worker: triggers.Worker, seconds: float) -> None:
        """Let a worker work while time passes, in steps of at most a second."""
        while seconds > 0:
            step = min(seconds, 1.0)
            self.clock.advance(step)
            seconds -= step
            self.work(worker)

    @property
    def keys(self) -> list[str]:
        """The keys of the records seen, in order."""
        return keys_of({"Records": self.seen})


def keys_of(event: triggers.Event) -> list[str]:
    """The keys of an event's records, in order."""
    return [record["dynamodb"]["Keys"]["id"]["S"] for record in event["Records"]]
