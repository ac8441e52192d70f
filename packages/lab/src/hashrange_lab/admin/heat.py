"""Where the requests go, on the admin plane: for `hashrange top`, and as the page of the heat shows.

    GET  /v1/heat    the busiest keys, tables and indexes, and the latencies of operations

Counting begins with the first call, and ends some seconds after the last one, or when the page is closed.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Annotated, Final

import msgspec
from starlette.requests import Request

from hashrange.clock import show_moment
from hashrange.server.admin.application import Endpoint, JsonObject, read_query, subject_of
from hashrange.server.admin.attention import Attention
from hashrange.server.admin.port import Subject
from hashrange.server.metrics import BOUNDS_SECONDS
from hashrange_lab.heat import KEYS_MAX, Heat


class Looked:
    """The heat of one server, while somebody looks at it."""

    def __init__(self, subject: Subject) -> None:
        self.heat = Heat(subject.database, lambda: subject.plane.draining)
        self.attention = Attention(self.heat.begin, self.heat.end)

    async def learn(self, *, every: bool = False) -> None:
        """Look up the keys of tables."""
        await asyncio.to_thread(self.heat.learn, every=every)


def look_at(request: Request) -> Looked:
    """The heat of the server that a request is about."""
    state = request.app.state
    if not hasattr(state, "heat"):
        state.heat = Looked(subject_of(request))
    looked: Looked = state.heat
    return looked


class HeatQuery(msgspec.Struct):
    """The query.

    keys: how many keys at most.
    """

    keys: Annotated[int, msgspec.Meta(ge=1, le=KEYS_MAX)] = 100


class HotKey(msgspec.Struct):
    """A partition key of which many items are used.

    table: the full name of the table.
    index: the name of the index; "" for the table.
    part: the sixteenth of the table, by hashes, in which the key is: 1 to 16.
    key: the key, in DynamoDB's JSON.
    reads: how many reads named it.
    writes: how many writes named it.
    throttles: how many of these were throttled.
    missed_at_most: by how much these numbers may be too low.
    """

    table: str
    index: str
    part: int
    key: JsonObject
    reads: int
    writes: int
    throttles: int
    missed_at_most: int


class HotPlace(msgspec.Struct):
    """A table or an index that is used.

    table: the full name of the table.
    index: the name of the index; "" for the table.
    reads: how many reads named a key.
    writes: how many writes named a key.
    without_key: how many requests named no key, such as scans.
    throttles: how many requests were throttled.
    """

    table: str
    index: str
    reads: int
    writes: int
    without_key: int
    throttles: int


class Latencies(msgspec.Struct):
    """How long the requests of an operation took, since the server's start.

    requests: how many there were.
    errors: how many of them failed.
    seconds: the time of all together.
    buckets: how many took at most as long as each of `bounds_seconds`, but longer than the one before; the
        last number is of those that took longer than all bounds.
    """

    requests: int
    errors: int
    seconds: float
    buckets: list[int]


class HeatShown(msgspec.Struct):
    """Where the requests go. Differences between two answers are what happened between them.

    since: when counting began, in ISO 8601.
    seconds: a clock of the server that is not set, for the time between two answers.
    requests: how many requests were counted.
    keys: the busiest keys.
    places: the busiest tables and indexes.
    operations: the latencies, by operation.
    bounds_seconds: the bounds of the buckets of latencies.
    """

    since: str
    seconds: float
    requests: int
    keys: list[HotKey]
    places: list[HotPlace]
    operations: dict[str, Latencies]
    bounds_seconds: tuple[float, ...]


class HeatAnswer(msgspec.Struct):
    """Where the requests go.

    heat: the counts.
    """

    heat: HeatShown


def shown(looked: Looked, subject: Subject, keys: int) -> HeatShown:
    """What is counted, with at most this many keys."""
    heat = looked.heat
    return HeatShown(
        since=show_moment(heat.since),
        seconds=perf_counter(),
        requests=heat.seen,
        keys=[
            HotKey(
                table=count.key.place.full_name,
                index=count.key.place.index_name,
                part=count.key.part + 1,
                key=msgspec.Raw(count.key.key),
                reads=count.reads,
                writes=count.writes,
                throttles=count.throttles,
                missed_at_most=count.over,
            )
            for count in heat.keys(keys)
        ],
        places=[
            HotPlace(
                table=place.full_name,
                index=place.index_name,
                reads=sum(warmth.reads),
                writes=sum(warmth.writes),
                without_key=warmth.others,
                throttles=warmth.throttles,
            )
            for place, warmth in heat.places()
        ],
        operations={
            operation: Latencies(
                sum(tally.buckets), sum(tally.errors.values()), tally.seconds, list(tally.buckets)
            )
            for operation, tally in sorted(subject.plane.metrics.tallies.items())
        },
        bounds_seconds=BOUNDS_SECONDS,
    )


async def _heat(request: Request) -> HeatAnswer:
    keys = read_query(request, HeatQuery).keys
    looked = look_at(request)
    is_new = not looked.attention.is_on
    looked.attention.call()
    await looked.learn(every=is_new)
    return HeatAnswer(shown(looked, subject_of(request), keys))


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/v1/heat",
        "The busiest keys, tables and indexes, counted while somebody asks, and the latencies of "
        "operations.",
        _heat,
        query=HeatQuery,
    ),
)
