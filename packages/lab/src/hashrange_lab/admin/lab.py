"""The lab of a server, on the admin plane: whether requests are throttled and reads eventual.

    GET   /lab              what is on, and the tables and indexes that were used since then
    GET   /lab/partitions   the partitions of a throttled table or index, and what each has consumed
    POST  /lab/throttling   turn throttling on or off, for all tables or for one
    POST  /lab/eventual     say how far behind reads are

Tables are named by their full names, as everywhere on the admin plane.
"""

from __future__ import annotations

from itertools import islice
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hashrange.server.admin.application import Endpoint, json, read_json, subject_of
from hashrange.server.admin.port import Subject
from hashrange_lab.behaviour.resources import READS, WRITES, Resource

SHOWN_MAX: Final = 1_000
"""The most tables and indexes that an answer shows."""


class ThrottlingChange(msgspec.Struct, forbid_unknown_fields=True):
    """Whether requests are throttled: those of one table, or of all tables without their own setting. For a
    table null removes its setting; for all tables it is the same as false."""

    throttle: bool | None
    table: str | None = None


class EventualChange(msgspec.Struct, forbid_unknown_fields=True):
    """How far behind reads are: `seconds`, or up to that with a `seed`; `monotonic`: no caller goes back."""

    seconds: float
    seed: str = ""
    monotonic: bool = False


def shown(subject: Subject) -> dict[str, Any]:
    """What `GET /lab` shows."""
    throttling = subject.database.lab.throttling
    eventual = subject.database.lab.eventual
    return {
        "eventual": {
            "seconds": eventual.seconds,
            "seed": eventual.seed,
            "monotonic": eventual.monotonic,
        },
        "throttle": throttling.everywhere,
        "tables": throttling.tables,
        "resources": [_resource(resource) for resource in islice(throttling.resources(), SHOWN_MAX)],
    }


def _resource(resource: Resource) -> dict[str, Any]:
    reads, writes = resource.sides[READS], resource.sides[WRITES]
    return {
        "table": resource.table,
        "index": resource.index,
        "partitions": len(resource.parts),
        "consumed_read_units": reads.consumed,
        "consumed_write_units": writes.consumed,
        "throttled_reads": reads.throttled,
        "throttled_writes": writes.throttled,
    }


async def _show(request: Request) -> Response:
    return json(shown(subject_of(request)))


def partitions(resource: Resource) -> list[dict[str, Any]]:
    """The first partitions of a resource, in the order of their keys. `from` is the hash, and the sort key's
    bytes if it begins within an item collection."""
    return [
        {
            "from": part.low[0].hex() + (f"/{part.low[1].hex()}" if part.low[1] else ""),
            "consumed_read_units": part.consumed[READS],
            "consumed_write_units": part.consumed[WRITES],
            "throttled": part.throttled,
        }
        for part in (resource.parts[number] for number in range(min(len(resource.parts), SHOWN_MAX)))
    ]


async def _partitions(request: Request) -> Response:
    table, index = request.query_params.get("table", ""), request.query_params.get("index", "")
    for resource in subject_of(request).database.lab.throttling.resources():
        if (resource.table, resource.index) == (table, index):
            return json({"table": table, "index": index, "partitions": partitions(resource)})
    named = f"the index {index!r} of the table {table!r}" if index else f"the table {table!r}"
    raise HTTPException(
        404, f"No request to {named} was throttled or charged; GET /lab lists those with partitions."
    )


async def _throttle(request: Request) -> Response:
    change = await read_json(request, ThrottlingChange)
    subject_of(request).database.lab.throttling.set(change.throttle, change.table)
    return await _show(request)


async def _lag(request: Request) -> Response:
    change = await read_json(request, EventualChange)
    eventual = subject_of(request).database.lab.eventual
    try:
        eventual.set(change.seconds, seed=change.seed, monotonic=change.monotonic)
    except ValueError as error:
        raise HTTPException(400, str(error)) from None
    return await _show(request)


ENDPOINTS: Final = (
    Endpoint("GET", "/lab", "Whether requests are throttled and reads eventual; what was consumed.", _show),
    Endpoint(
        "GET",
        "/lab/partitions",
        "The partitions of a throttled table or index (?table=orders&index=by-date), and what each has "
        "consumed since its last split.",
        _partitions,
    ),
    Endpoint(
        "POST",
        "/lab/throttling",
        "Turn throttling on or off, for all tables or for one.",
        _throttle,
        takes=ThrottlingChange,
    ),
    Endpoint("POST", "/lab/eventual", "Say how far behind reads are.", _lag, takes=EventualChange),
)
