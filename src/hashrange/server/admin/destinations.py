"""The Kinesis destinations of the tables, on the admin plane: their states, and how far they are behind.

GET   /v1/destinations   of all tables that have, or had, a destination
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

import msgspec
from starlette.requests import Request

from hashrange.clock import show_moment
from hashrange.server.admin.application import Endpoint, subject_of
from hashrange.server.admin.port import Subject
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.jobs.deliveries import outboxes

WAITING_MAX: Final = 1_000
"""How many waiting changes are counted at most, because counting reads them."""
_TABLES_PER_PAGE: Final = 100


class Destination(msgspec.Struct):
    """A stream of Kinesis that gets, or got, the changes of a table.

    table: the full name of the table.
    stream_arn: the stream.
    status: as of DescribeKinesisStreamingDestination.
    precision: MILLISECOND or MICROSECOND.
    reason: why it could not be enabled; null if it could.
    changed: when its status changed last, in ISO 8601.
    waiting: how many changes wait to be sent, up to 1,000.
    waiting_is_more: whether more than these may wait.
    oldest_waiting: since when the oldest of them waits, in ISO 8601; null if none waits.
    lag_seconds: for how long it has waited.
    """

    table: str
    stream_arn: str
    status: str
    precision: str
    reason: str | None
    changed: str
    waiting: int = 0
    waiting_is_more: bool = False
    oldest_waiting: str | None = None
    lag_seconds: float = 0.0


class Destinations(msgspec.Struct):
    """The destinations of all tables that have, or had, one.

    destinations: by the names of their tables, the newest of each table first.
    """

    destinations: list[Destination]


async def shown(subject: Subject) -> list[Destination]:
    """The destinations, by the names of their tables, the newest of each table first."""
    database = subject.database
    destinations: list[Destination] = []
    after: str | None = ""
    while after is not None:
        part, after = database.engine.read(partial(_page, now=database.clock.now(), after=after))
        destinations += part
        await asyncio.sleep(0)
    return destinations


def _page(reader: Reader, now: float, after: str) -> tuple[list[Destination], str | None]:
    """The destinations of some tables after a name, and the name after which to go on, None at the end."""
    destinations: list[Destination] = []
    for number, table in enumerate(catalog.definitions(reader, after), 1):
        destinations += _of_table(reader, table, now)
        if number == _TABLES_PER_PAGE:
            return destinations, table.full_name
    return destinations, None


def _of_table(reader: Reader, table: Table, now: float) -> list[Destination]:
    live = outboxes.live(table)
    return [
        Destination(
            table.full_name,
            destination.arn,
            destination.status,
            destination.precision or "MILLISECOND",
            destination.reason if destination.status == "ENABLE_FAILED" else None,
            show_moment(destination.changed),
            **_behind(reader, table, now, is_live=destination is live),
        )
        for destination in table.destinations
    ]


def _behind(reader: Reader, table: Table, now: float, *, is_live: bool) -> dict[str, Any]:
    """How many changes wait, up to `WAITING_MAX`, and since when the oldest does."""
    if not is_live or table.outbox is None:
        return {}
    after = outboxes.progress(reader, table.full_name).delivered
    waiting = list(outboxes.waiting(reader, table.outbox, after, WAITING_MAX))
    behind: dict[str, Any] = {"waiting": len(waiting), "waiting_is_more": len(waiting) == WAITING_MAX}
    oldest = next((change.change.time for change in waiting if change.change is not None), None)
    if oldest is not None:
        behind["oldest_waiting"] = show_moment(oldest)
        behind["lag_seconds"] = round(max(now - oldest, 0.0), 3)
    return behind


async def _destinations(request: Request) -> Destinations:
    return Destinations(await shown(subject_of(request)))


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/v1/destinations",
        "The Kinesis destinations of the tables: states, and the changes that wait.",
        _destinations,
    ),
)
