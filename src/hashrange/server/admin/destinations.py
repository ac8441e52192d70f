"""The Kinesis destinations of the tables, on the admin plane: their states, and how far they are behind.

GET   /destinations   of all tables that have, or had, a destination
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.server.admin.application import Endpoint, json, subject_of
from hashrange.server.admin.port import Subject
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.jobs.deliveries import outboxes

WAITING_MAX: Final = 1_000
"""How many waiting changes are counted at most, because counting reads them."""
_TABLES_PER_PAGE: Final = 100


async def shown(subject: Subject) -> list[dict[str, Any]]:
    """The destinations, by the names of their tables, the newest of each table first."""
    database = subject.database
    destinations: list[dict[str, Any]] = []
    after: str | None = ""
    while after is not None:
        part, after = database.engine.read(partial(_page, after=after))
        destinations += part
        await asyncio.sleep(0)
    now = database.clock.now()
    for destination in destinations:
        oldest = destination["oldest_waiting"]
        if oldest is not None:
            destination["oldest_waiting"] = show_moment(oldest)
            destination["lag_seconds"] = round(max(now - oldest, 0.0), 3)
    return destinations


def _page(reader: Reader, after: str) -> tuple[list[dict[str, Any]], str | None]:
    """The destinations of some tables after a name, and the name after which to go on, None at the end."""
    destinations: list[dict[str, Any]] = []
    for number, table in enumerate(catalog.definitions(reader, after), 1):
        destinations += _of_table(reader, table)
        if number == _TABLES_PER_PAGE:
            return destinations, table.full_name
    return destinations, None


def _of_table(reader: Reader, table: Table) -> list[dict[str, Any]]:
    live = outboxes.live(table)
    return [
        {
            "table": table.full_name,
            "stream_arn": destination.arn,
            "status": destination.status,
            "precision": destination.precision or "MILLISECOND",
            "reason": destination.reason if destination.status == "ENABLE_FAILED" else None,
            "changed": show_moment(destination.changed),
            **_behind(reader, table, is_live=destination is live),
        }
        for destination in table.destinations
    ]


def _behind(reader: Reader, table: Table, *, is_live: bool) -> dict[str, Any]:
    """How many changes wait, up to `WAITING_MAX`, and since when the oldest does."""
    behind: dict[str, Any] = {"waiting": 0, "waiting_is_more": False, "oldest_waiting": None}
    behind["lag_seconds"] = 0.0
    if is_live and table.outbox is not None:
        after = outboxes.progress(reader, table.full_name).delivered
        waiting = list(outboxes.waiting(reader, table.outbox, after, WAITING_MAX))
        behind["waiting"] = len(waiting)
        behind["waiting_is_more"] = len(waiting) == WAITING_MAX
        first = next((change.change for change in waiting if change.change is not None), None)
        behind["oldest_waiting"] = None if first is None else first.time
    return behind


async def _destinations(request: Request) -> Response:
    return json({"destinations": await shown(subject_of(request))})


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/destinations",
        "The Kinesis destinations of the tables: states, and the changes that wait.",
        _destinations,
    ),
)
