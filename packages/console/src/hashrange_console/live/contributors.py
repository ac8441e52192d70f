"""Contributor insights: the keys that are used most and throttled most, of the tables that have them enabled.

They count while the page is closed as well, unlike the heat. `?table=` shows one table and its indexes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
import orjson
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.insights.contributors import Contributor, Ranking
from hashrange.server.admin.application import json, read_json, subject_of
from hashrange_console import looks
from hashrange_console.reach import View
from hashrange_console.values import Cell, cell

PATH: Final = "/console/contributors"
KEYS: Final = 10
TITLES: Final = {
    "PKC": "Most used partition keys",
    "SKC": "Most used keys",
    "PKT": "Most throttled partition keys",
    "SKT": "Most throttled keys",
}
"""The rankings, in the order of the page."""
_EXAMPLE: Final = {"TableName": "orders", "ContributorInsightsAction": "ENABLE"}
_TABLES_MAX: Final = 200


class InsightsChange(msgspec.Struct, forbid_unknown_fields=True):
    """What a form of the page asks for; `table` is a full name."""

    action: Literal["ENABLE", "DISABLE"]
    table: str
    index: str = ""


@dataclass(frozen=True, slots=True)
class Key:
    """A key of a ranking: its attributes, what was counted, its share of the highest count in percent, and
    where its items are."""

    values: list[tuple[str, Cell | None]]
    amount: float
    missed: float
    share: float
    href: str


@dataclass(frozen=True, slots=True)
class ShownRanking:
    """A ranking of one hour."""

    title: str
    counted: str
    since: str
    keys: list[Key]


@dataclass(frozen=True, slots=True)
class RankedTable:
    """A table or an index with insights, and its rankings."""

    table: str
    index: str
    rankings: list[ShownRanking]


async def page(view: View) -> Response:
    """The rankings of all tables and indexes."""
    database = subject_of(view.request).database
    places: dict[tuple[str, str], list[Ranking]] = {}
    for ranking in database.insights.rankings(KEYS):
        places.setdefault((ranking.place.table, ranking.place.index_name), []).append(ranking)
    table = view.given("table")
    return await looks.page(
        "live/contributors.html",
        view=view,
        places=[
            RankedTable(name, index, _shown(rankings))
            for (name, index), rankings in places.items()
            if table in ("", name)
        ],
        enabled=[*await _enabled(view)],
        table=table,
        tables=[about["name"] for about in database.overview("", _TABLES_MAX)],
        code=view.code("UpdateContributorInsights", dict(_EXAMPLE)),
    )


async def change(view: View) -> Response:
    """Enable or disable the insights of a table or an index."""
    sent = await read_json(view.request, InsightsChange)
    scope, _, name = sent.table.rpartition("/")
    request: dict[str, Any] = {"TableName": name, "ContributorInsightsAction": sent.action}
    if sent.index.strip():
        request["IndexName"] = sent.index.strip()
    await View(view.request, scope or view.scope).change("UpdateContributorInsights", request)
    return json({"href": looks.href(PATH, scope=view.scope)})


async def _enabled(view: View) -> list[dict[str, str]]:
    """The tables and indexes whose insights are on or being changed, in the page's scope and those of all
    tables."""
    subject = subject_of(view.request)
    scopes = {about["name"].rpartition("/")[0] for about in subject.database.overview("", _TABLES_MAX)}
    enabled = []
    for scope in sorted(scopes):
        answer = await View(view.request, scope).read("ListContributorInsights", {})
        for summary in answer.get("ContributorInsightsSummaries", ()):
            if summary.get("ContributorInsightsStatus") != "DISABLED":
                full = f"{scope}/{summary['TableName']}" if scope else summary["TableName"]
                status = summary["ContributorInsightsStatus"]
                enabled.append({"table": full, "index": summary.get("IndexName", ""), "status": status})
    return enabled


def _shown(rankings: list[Ranking]) -> list[ShownRanking]:
    order = list(TITLES)
    ordered = sorted(rankings, key=lambda ranking: (-ranking.since, order.index(ranking.kind)))
    return [
        ShownRanking(
            TITLES[ranking.kind],
            "units" if ranking.kind.endswith("C") else "throttled",
            show_moment(ranking.since),
            _keys(ranking),
        )
        for ranking in ordered
        if ranking.contributors
    ]


def _keys(ranking: Ranking) -> list[Key]:
    highest = max([contributor.amount for contributor in ranking.contributors], default=0.0)
    return [_key(ranking, contributor, highest) for contributor in ranking.contributors]


def _key(ranking: Ranking, contributor: Contributor, highest: float) -> Key:
    attributes: dict[str, Any] = orjson.loads(contributor.key)
    scope, _, name = ranking.place.table.rpartition("/")
    first = next(iter(attributes.values()))
    [text] = first.values()
    return Key(
        [(attribute, cell(value)) for attribute, value in attributes.items()],
        contributor.amount,
        contributor.missed,
        round(100 * contributor.amount / highest, 2) if highest else 0.0,
        looks.href(f"/console/t/{name}", index=ranking.place.index_name, pk=text, scope=scope),
    )
