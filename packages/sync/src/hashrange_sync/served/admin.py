"""The pairs that are kept in step on the admin plane:

GET /v1/sync                    their statuses
GET /v1/sync/{pair}/conflicts   the newest conflicts of a pair, with both images
"""

from __future__ import annotations

from typing import Annotated, Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request

from hashrange.errors import ServiceError
from hashrange.server.admin.application import Endpoint, read_query, subject_of
from hashrange_sync.served.reading import Reading
from hashrange_sync.stored.status import PairStatus


class Pairs(msgspec.Struct):
    """The pairs of tables that `hashrange sync` keeps in step, with their states in tables of this server.

    pairs: the pairs, by their names.
    """

    pairs: list[PairStatus]


class PairsQuery(msgspec.Struct):
    """The query.

    scope: the part before the name in the full name of a table, ACCOUNT/REGION, where accounts or regions are
        separate.
    """

    scope: str = ""


class LoggedConflict(msgspec.Struct):
    """A conflict: both sides had changed an item since they last agreed. Items are in DynamoDB's JSON.

    id: its id, for `hashrange sync conflicts restore`.
    at: when it was logged, in epoch seconds.
    kind: conflict; or overwritten, or unseen, if a side changed the item while it was written over.
    winner: the side, or the policy, that won.
    key: the key of the item.
    cloud: the cloud's item; null if it was not there.
    edge: the edge's item; null if it was not there.
    """

    id: str
    at: float
    kind: str
    winner: str
    key: dict[str, Any]
    cloud: dict[str, Any] | None
    edge: dict[str, Any] | None


class LoggedConflicts(msgspec.Struct):
    """The newest conflicts of a pair.

    conflicts: the conflicts, newest first.
    count: how many were found.
    has_more: whether there are more than were counted.
    """

    conflicts: list[LoggedConflict]
    count: int
    has_more: bool


class ConflictsQuery(PairsQuery):
    """The query.

    scope: the part before the name in the full name of a table, ACCOUNT/REGION, where accounts or regions are
        separate.
    limit: how many conflicts are answered at most.
    """

    limit: Annotated[int, msgspec.Meta(ge=1, le=50)] = 20


async def _pairs(request: Request) -> Pairs:
    try:
        return Pairs(await Reading(subject_of(request), read_query(request, PairsQuery).scope).statuses())
    except ServiceError as error:
        raise _refusal(error) from None


async def _conflicts(request: Request) -> LoggedConflicts:
    query = read_query(request, ConflictsQuery)
    reading = Reading(subject_of(request), query.scope)
    try:
        found, count, has_more = await reading.conflicts(request.path_params["pair"], query.limit)
    except ServiceError as error:
        raise _refusal(error) from None
    shown = [msgspec.convert(one, LoggedConflict, from_attributes=True) for one in found]
    return LoggedConflicts(shown, count, has_more)


def _refusal(error: ServiceError) -> HTTPException:
    return HTTPException(400, f"{error.code}: {error.message}")


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/v1/sync",
        "The pairs of tables that are kept in step: states, lags, rates, errors.",
        _pairs,
        query=PairsQuery,
    ),
    Endpoint(
        "GET",
        "/v1/sync/{pair}/conflicts",
        "The newest conflicts of a pair, with both images.",
        _conflicts,
        query=ConflictsQuery,
    ),
)
