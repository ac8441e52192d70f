"""Contributor insights on the admin plane: what CloudWatch shows of them on AWS.

    GET  /insights    the keys that are used most and throttled most, of tables with contributor insights
"""

from __future__ import annotations

from typing import Any, Final

import orjson
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.insights.contributors import Ranking
from hashrange.server.admin.application import Endpoint, json, subject_of

_KEYS: Final = 10
_KEYS_MAX: Final = 100
_TITLES: Final = {
    "PKC": "most accessed partition keys",
    "PKT": "most throttled partition keys",
    "SKC": "most accessed keys",
    "SKT": "most throttled keys",
}


async def _insights(request: Request) -> Response:
    given = request.query_params.get("keys", str(_KEYS))
    if not (given.isascii() and given.isdigit() and len(given) < 10 and 1 <= int(given) <= _KEYS_MAX):
        raise HTTPException(400, f"keys must be a number from 1 to {_KEYS_MAX}")
    rankings = subject_of(request).database.insights.rankings(int(given))
    return json({"insights": [_shown(ranking) for ranking in rankings]})


def _shown(ranking: Ranking) -> dict[str, Any]:
    counted = "units" if ranking.kind.endswith("C") else "throttles"
    return {
        "table": ranking.place.table,
        "index": ranking.place.index_name,
        "ranking": _TITLES[ranking.kind],
        "since": show_moment(ranking.since),
        "contributors": [
            {
                "key": orjson.Fragment(contributor.key),
                counted: contributor.amount,
                "missed_at_most": contributor.missed,
            }
            for contributor in ranking.contributors
        ],
    }


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/insights",
        "The keys that are used most and throttled most, of the tables and indexes with contributor "
        "insights, in this hour and the one before; ?keys=100 shows more of them.",
        _insights,
    ),
)
