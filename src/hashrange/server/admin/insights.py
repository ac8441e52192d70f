"""Contributor insights on the admin plane: what CloudWatch shows of them on AWS.

GET  /v1/insights    the keys that are used most and throttled most, of tables with contributor insights
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec
from starlette.requests import Request

from hashrange.clock import show_moment
from hashrange.insights.contributors import Ranking
from hashrange.server.admin.application import Endpoint, JsonObject, read_query, subject_of

_KEYS_MAX: Final = 100
_TITLES: Final = {
    "PKC": "most accessed partition keys",
    "PKT": "most throttled partition keys",
    "SKC": "most accessed keys",
    "SKT": "most throttled keys",
}


class InsightsQuery(msgspec.Struct):
    """The query.

    keys: how many keys of each ranking at most.
    """

    keys: Annotated[int, msgspec.Meta(ge=1, le=_KEYS_MAX)] = 10


class ContributorCount(msgspec.Struct):
    """How much a key is used.

    key: the key, in DynamoDB's JSON.
    missed_at_most: by how much the number may be too low.
    units: the consumed capacity, in rankings of accessed keys; absent otherwise.
    throttles: the throttled requests, in rankings of throttled keys; absent otherwise.
    """

    key: JsonObject
    missed_at_most: float
    units: float | msgspec.UnsetType = msgspec.UNSET
    throttles: float | msgspec.UnsetType = msgspec.UNSET


class KeyRanking(msgspec.Struct):
    """The keys of a table or an index that are highest in an hour.

    table: the full name of the table.
    index: the name of the index; "" for the table.
    ranking: what is ranked.
    since: the beginning of the hour, in ISO 8601.
    contributors: the keys, highest first.
    """

    table: str
    index: str
    ranking: str
    since: str
    contributors: list[ContributorCount]


class KeyRankings(msgspec.Struct):
    """The rankings of all tables and indexes with contributor insights.

    insights: the rankings.
    """

    insights: list[KeyRanking]


async def _insights(request: Request) -> KeyRankings:
    keys = read_query(request, InsightsQuery).keys
    rankings = subject_of(request).database.insights.rankings(keys)
    return KeyRankings([_shown(ranking) for ranking in rankings])


def _shown(ranking: Ranking) -> KeyRanking:
    counted = "units" if ranking.kind.endswith("C") else "throttles"
    return KeyRanking(
        table=ranking.place.table,
        index=ranking.place.index_name,
        ranking=_TITLES[ranking.kind],
        since=show_moment(ranking.since),
        contributors=[
            ContributorCount(msgspec.Raw(one.key), one.missed, **{counted: one.amount})
            for one in ranking.contributors
        ],
    )


ENDPOINTS: Final = (
    Endpoint(
        "GET",
        "/v1/insights",
        "The keys that are used most and throttled most, of the tables and indexes with contributor "
        "insights, in this hour and the one before.",
        _insights,
        query=InsightsQuery,
    ),
)
