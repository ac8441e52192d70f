"""The lab of a server, on the admin plane: whether requests are throttled and reads eventual.

    GET   /v1/lab              what is on, and the tables and indexes that were used since then
    GET   /v1/lab/partitions   the partitions of a throttled table or index, and what each has consumed
    POST  /v1/lab/throttling   turn throttling on or off, for all tables or for one
    POST  /v1/lab/eventual     say how far behind reads are

Tables are named by their full names, as everywhere on the admin plane.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hashrange.server.admin.application import Endpoint, read_json, read_query, subject_of
from hashrange.server.admin.port import Subject
from hashrange_lab.behaviour.partitions import Partition
from hashrange_lab.behaviour.resources import READS, WRITES, Resource

SHOWN_MAX: Final = 1_000
"""The most tables and indexes that an answer shows."""


class ThrottlingChange(msgspec.Struct, forbid_unknown_fields=True):
    """Whether requests are throttled.

    throttle: whether they are. For a table null removes its setting; for all tables it is the same as false.
    table: the full name of the table; without it all tables without a setting of their own.
    """

    throttle: bool | None
    table: str | None = None


class EventualChange(msgspec.Struct, forbid_unknown_fields=True):
    """How far behind reads are.

    seconds: how far behind, or with a seed at most; 0 ends it.
    seed: a text from which the distances are drawn; "": all reads are as far behind.
    monotonic: no caller goes back in time.
    """

    seconds: float
    seed: str = ""
    monotonic: bool = False


class EventualState(msgspec.Struct):
    """How far behind reads are.

    seconds: how far behind, or with a seed at most; 0 if they are not.
    seed: a text from which the distances are drawn; "": all reads are as far behind.
    monotonic: whether no caller goes back in time.
    """

    seconds: float
    seed: str
    monotonic: bool


class ResourceState(msgspec.Struct):
    """A table or an index that was used while requests are throttled.

    table: the full name of the table.
    index: the name of the index; "" for the table.
    partitions: how many partitions it has.
    consumed_read_units: what reads consumed.
    consumed_write_units: what writes consumed.
    throttled_reads: how many reads were throttled, by the limit that they met.
    throttled_writes: how many writes were throttled, by the limit that they met.
    """

    table: str
    index: str
    partitions: int
    consumed_read_units: float
    consumed_write_units: float
    throttled_reads: dict[str, int]
    throttled_writes: dict[str, int]


class LabState(msgspec.Struct):
    """The lab.

    eventual: how far behind reads are.
    throttle: whether requests to tables without a setting of their own are throttled.
    tables: the settings of tables, by their full names.
    resources: the tables and indexes that were used while requests are throttled, at most 1,000.
    """

    eventual: EventualState
    throttle: bool
    tables: dict[str, bool]
    resources: list[ResourceState]


class PartitionState(msgspec.Struct):
    """A partition.

    from: the hash at which it begins, and the sort key's bytes if it begins within an item collection.
    consumed_read_units: what reads consumed since its last split.
    consumed_write_units: what writes consumed since its last split.
    throttled: how many requests were throttled.
    """

    begin: str = msgspec.field(name="from")
    consumed_read_units: float
    consumed_write_units: float
    throttled: int


class PartitionStates(msgspec.Struct):
    """The partitions of a table or an index.

    table: the full name of the table.
    index: the name of the index; "" for the table.
    partitions: at most 1,000 partitions, in the order of their keys.
    """

    table: str
    index: str
    partitions: list[PartitionState]


class PartitionsQuery(msgspec.Struct):
    """The query.

    table: the full name of the table.
    index: the name of the index; without it the table.
    """

    table: str
    index: str = ""


def shown(subject: Subject) -> LabState:
    """The lab of a server."""
    throttling = subject.database.lab.throttling
    eventual = subject.database.lab.eventual
    return LabState(
        EventualState(eventual.seconds, eventual.seed, eventual.monotonic),
        throttling.everywhere,
        throttling.tables,
        [_resource(resource) for resource in islice(throttling.resources(), SHOWN_MAX)],
    )


def _resource(resource: Resource) -> ResourceState:
    reads, writes = resource.sides[READS], resource.sides[WRITES]
    return ResourceState(
        table=resource.table,
        index=resource.index,
        partitions=len(resource.parts),
        consumed_read_units=reads.consumed,
        consumed_write_units=writes.consumed,
        throttled_reads=reads.throttled,
        throttled_writes=writes.throttled,
    )


async def _show(request: Request) -> LabState:
    return shown(subject_of(request))


def _partition(part: Partition) -> PartitionState:
    begin = part.low[0].hex() + (f"/{part.low[1].hex()}" if part.low[1] else "")
    return PartitionState(begin, part.consumed[READS], part.consumed[WRITES], part.throttled)


async def _partitions(request: Request) -> PartitionStates:
    query = read_query(request, PartitionsQuery)
    table, index = query.table, query.index
    for resource in subject_of(request).database.lab.throttling.resources():
        if (resource.table, resource.index) == (table, index):
            parts = [resource.parts[number] for number in range(min(len(resource.parts), SHOWN_MAX))]
            return PartitionStates(table, index, [_partition(part) for part in parts])
    named = f"the index {index!r} of the table {table!r}" if index else f"the table {table!r}"
    raise HTTPException(
        404, f"No request to {named} was throttled or charged; GET /v1/lab lists those with partitions."
    )


async def _throttle(request: Request) -> LabState:
    change = await read_json(request, ThrottlingChange)
    subject_of(request).database.lab.throttling.set(change.throttle, change.table)
    return await _show(request)


async def _lag(request: Request) -> LabState:
    change = await read_json(request, EventualChange)
    eventual = subject_of(request).database.lab.eventual
    try:
        eventual.set(change.seconds, seed=change.seed, monotonic=change.monotonic)
    except ValueError as error:
        raise HTTPException(400, str(error)) from None
    return await _show(request)


ENDPOINTS: Final = (
    Endpoint("GET", "/v1/lab", "Whether requests are throttled and reads eventual.", _show),
    Endpoint(
        "GET",
        "/v1/lab/partitions",
        "The partitions of a throttled table or index, and what each has consumed since its last split.",
        _partitions,
        query=PartitionsQuery,
    ),
    Endpoint(
        "POST",
        "/v1/lab/throttling",
        "Turn throttling on or off, for all tables or for one.",
        _throttle,
        takes=ThrottlingChange,
    ),
    Endpoint("POST", "/v1/lab/eventual", "Say how far behind reads are.", _lag, takes=EventualChange),
)
