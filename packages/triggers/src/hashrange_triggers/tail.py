"""Follows a table's changes as they happen: all shards of its stream, in the order of the changes.

    tail = Tail(clients, "orders", start="LATEST")
    while True:
        for record in tail.poll():
            ...

It keeps no checkpoints: to see earlier changes, pass a `start` in the past. Work that must not miss a change
needs `worker`.
"""

from __future__ import annotations

from typing import Final

from hashrange.cli.remote.clients import Clients
from hashrange.clock import Clock, SystemClock, has_come
from hashrange_triggers.events import Record, sequence_of
from hashrange_triggers.source import PAGE_RECORDS_MAX, Cursor, Start, TriggerError, shards_of, table_streams

_DISCOVER_SECONDS: Final = 5.0


class Tail:
    """A position in the stream of a table. `start` may be a time in seconds since the epoch."""

    def __init__(
        self,
        clients: Clients,
        table: str,
        start: Start | float = "LATEST",
        *,
        clock: Clock = SystemClock(),  # noqa: B008 (stateless)
    ) -> None:
        """Raises `TriggerError` if the table has no stream."""
        self._clients, self._clock, self._start = clients, clock, start
        streams, current = table_streams(clients, table)
        if current is None and (start == "LATEST" or not streams):
            raise TriggerError(f"The table {table} has no stream that is on; enable one with UpdateTable.")
        self._arn = current or streams[-1].arn
        self._cursors: dict[str, Cursor] = {}
        self._discover_at = 0.0
        self._discover()
        for cursor in self._cursors.values():
            if start == "LATEST":
                cursor.open(since=clock.now())

    def poll(self) -> list[Record]:
        """The changes since the last call, perhaps none."""
        exhausted = any(cursor.exhausted for cursor in self._cursors.values())
        if exhausted or has_come(self._discover_at, self._clock.now(), _DISCOVER_SECONDS):
            self._discover()
        changes: list[Record] = []
        for cursor in self._cursors.values():
            while not cursor.exhausted:
                read = cursor.read()
                changes += read
                if len(read) < PAGE_RECORDS_MAX:
                    break
        return sorted(changes, key=lambda record: int(sequence_of(record)))

    def _discover(self) -> None:
        """Begin to read the shards whose parents have been read to their end."""
        self._discover_at = self._clock.now() + _DISCOVER_SECONDS
        first = not self._cursors
        shards, _ = shards_of(self._clients, self._arn)
        read = {name for name, cursor in self._cursors.items() if cursor.exhausted}
        if first and self._start == "LATEST":
            for shard in shards:
                if shard.closed:
                    self._cursors[shard.id] = Cursor(self._clients, self._arn, shard.id, exhausted=True)
                    read.add(shard.id)
        left = {shard.id for shard in shards} - read
        for shard in shards:
            if shard.id not in self._cursors and shard.parent not in left:
                start = self._start if first or self._start != "LATEST" else "TRIM_HORIZON"
                self._cursors[shard.id] = Cursor(self._clients, self._arn, shard.id, start)
