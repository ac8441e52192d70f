"""Where the requests go, on the admin plane: for `hashrange top`, and as the page of the heat shows.

    GET  /heat    the busiest keys, tables and indexes, and the latencies of operations

Counting begins with the first call, and ends some seconds after the last one, or when the page is closed.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any, Final

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.server.admin.application import Endpoint, json, subject_of
from hashrange.server.admin.attention import Attention
from hashrange.server.admin.port import Subject
from hashrange.server.metrics import BOUNDS_SECONDS
from hashrange_lab.heat import KEYS_MAX, Heat

_KEYS: Final = 100


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


def shown(looked: Looked, subject: Subject, keys: int) -> dict[str, Any]:
    """What `GET /heat` shows."""
    heat = looked.heat
    return {
        "since": show_moment(heat.since),
        "seconds": perf_counter(),
        "requests": heat.seen,
        "keys": [
            {
                "table": count.key.place.full_name,
                "index": count.key.place.index_name,
                "part": count.key.part + 1,
                "key": orjson.Fragment(count.key.key),
                "reads": count.reads,
                "writes": count.writes,
                "throttles": count.throttles,
                "missed_at_most": count.over,
            }
            for count in heat.keys(keys)
        ],
        "places": [
            {
                "table": place.full_name,
                "index": place.index_name,
                "reads": sum(warmth.reads),
                "writes": sum(warmth.writes),
                "without_key": warmth.others,
                "throttles": warmth.throttles,
            }
            for place, warmth in heat.places()
        ],
        "operations": {
            operation: {
                "requests": sum(tally.buckets),
                "errors": sum(tally.errors.values()),
                "seconds": tally.seconds,
                "buckets": tally.buckets,
            }
            for operation, tally in sorted(subject.plane.metrics.tallies.items())
        },
        "bounds_seconds": BOUNDS_SECONDS,
    }


async def _heat(request: Request) -> Response:
    given = request.query_params.get("keys", str(_KEYS))
    if not (given.isascii() and given.isdigit() and len(given) < 10 and 1 <= int(given) <= KEYS_MAX):
        raise HTTPException(400, f"keys must be a number from 1 to {KEYS_MAX}")
    looked = look_at(request)
    is_new = not looked.attention.is_on
    looked.attention.call()
    await looked.learn(every=is_new)
    return json({"heat": shown(looked, subject_of(request), int(given))})


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/heat",
        "The busiest keys, tables and indexes, counted while somebody asks, and the latencies of "
        "operations; ?keys=500 shows more keys.",
        _heat,
    ),
)
