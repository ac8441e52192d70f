"""What requests cost, on the admin plane: the units that were counted, which readers price as they like.

GET   /costs   the counts, or null while nothing is counted
POST  /costs   begin or end to count, or begin anew
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hashrange.database import Database
from hashrange.prices import Book, published
from hashrange.server.admin.application import Endpoint, read_json, subject_of
from hashrange.server.admin.aside import aside
from hashrange.server.admin.port import Subject
from hashrange_lab.money import meter
from hashrange_lab.money.counts import Counted


class CostsChange(msgspec.Struct, forbid_unknown_fields=True):
    """Whether requests are counted. `reset`: what was counted until now is forgotten."""

    record: bool
    reset: bool = False


async def counted(request: Request) -> Counted | None:
    """The counts of a server; None while nothing is counted. They may be many, so a thread copies them."""
    region = region_of(subject_of(request))
    return await aside(request, lambda database: _counted(database, region))


def _counted(database: Database, region: str) -> Counted | None:
    running = meter.running(database)
    return None if running is None else running.counted(region)


def region_of(subject: Subject) -> str:
    """The region of the server's callers without one."""
    return str(subject.plane.wire.anyone.region)


def book_of(subject: Subject) -> Book:
    """The prices that a server shows."""
    running = meter.running(subject.database)
    return published() if running is None else running.book


def change(subject: Subject, sent: CostsChange) -> None:
    """Begin or end to count."""
    if not sent.record:
        meter.end(subject.database)
        return
    running = meter.running(subject.database)
    if running is None:
        meter.begin(subject.database, published())
    elif sent.reset:
        running.reset()


async def _show(request: Request) -> Response:
    region = region_of(subject_of(request))
    body = await aside(request, lambda database: msgspec.json.encode({"costs": _counted(database, region)}))
    return Response(body, media_type="application/json")


async def _change(request: Request) -> Response:
    change(subject_of(request), await read_json(request, CostsChange))
    return await _show(request)


ENDPOINTS: Final = (
    Endpoint("GET", "/costs", "What requests consumed: by table, operation, caller, pattern, minute.", _show),
    Endpoint("POST", "/costs", "Begin or end to count what requests consume.", _change, takes=CostsChange),
)
