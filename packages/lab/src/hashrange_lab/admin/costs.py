"""What requests cost, on the admin plane: the units that were counted, which readers price as they like.

GET   /v1/costs   the counts, or null while nothing is counted
POST  /v1/costs   begin or end to count, or count from zero
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from hashrange.database import Database
from hashrange.prices import Book, published
from hashrange.server.admin.application import Endpoint, answered, read_json, subject_of
from hashrange.server.admin.aside import aside
from hashrange.server.admin.port import Subject
from hashrange_lab.money import meter
from hashrange_lab.money.counts import Counted


class CostsChange(msgspec.Struct, forbid_unknown_fields=True):
    """Whether requests are counted.

    record: whether they are.
    reset: what was counted until now is forgotten.
    """

    record: bool
    reset: bool = False


class Costs(msgspec.Struct):
    """What requests consumed.

    costs: the counts; null while nothing is counted.
    """

    costs: Counted | None


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


async def _show(request: Request) -> Annotated[Response, Costs]:
    region = region_of(subject_of(request))
    # (they may be many)
    return await aside(request, lambda database: answered(Costs(_counted(database, region))))


async def _change(request: Request) -> Annotated[Response, Costs]:
    change(subject_of(request), await read_json(request, CostsChange))
    return await _show(request)


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/costs", "What requests consumed.", _show),
    Endpoint("POST", "/v1/costs", "Begin or end to count what requests consume.", _change, takes=CostsChange),
)
