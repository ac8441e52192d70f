"""The heat: the busiest tables, their parts and their busiest keys, since the page was opened.

`?table=` and `?part=` show the keys of one table, or of one of its parts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import orjson
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.insights.sketch import Count
from hashrange.server.admin.application import subject_of
from hashrange_console import looks
from hashrange_console.live.events import Event
from hashrange_console.live.state import stream
from hashrange_console.reach import View
from hashrange_console.values import Cell, cell
from hashrange_lab.admin.heat import Looked, look_at
from hashrange_lab.heat import KEYS_MAX, PARTS, TableOrIndex, Warmth

_TABLES_SHOWN: Final = 12
_KEYS_SHOWN: Final = 25
_TICKS: Final = 10
"""How many ticks of a stream pass before the page gets new numbers: a second."""
PATH: Final = "/console/heat"


@dataclass(frozen=True, slots=True)
class Bar:
    """A row of the page: its reads and writes, and the longest bar beside which it is drawn. `over`: by how
    much the count may be too high."""

    reads: int
    writes: int
    longest: int
    over: int = 0

    @property
    def total(self) -> int:
        return self.reads + self.writes


@dataclass(frozen=True, slots=True)
class HotTable:
    """A table, and its parts. `href` is "" where requests name a table that does not exist."""

    table: str
    scope: str
    bar: Bar
    others: int
    parts: list[Bar]
    href: str
    requests: str


@dataclass(frozen=True, slots=True)
class HotKey:
    """A partition key's value, with links to its items, "" where there is no table, and to its requests."""

    table: str
    part: int
    name: str
    value: Cell | None
    bar: Bar
    href: str
    requests: str


async def page(view: View) -> Response:
    """The heat of all tables."""
    looked = look_at(view.request)
    looked.attention.look()
    await looked.learn(every=True)
    heat = looked.heat
    return await looks.page(
        "lab/heat.html",
        view=view,
        since=show_moment(heat.since),
        parts=PARTS,
        keys_max=KEYS_MAX,
        events=looks.href(f"{PATH}/events", table=view.given("table"), part=view.given("part")),
        names=sorted({place.table for place in heat.names}),
        **numbers(view, looked),
    )


async def events(view: View) -> Response:
    """The stream of the page."""
    return stream(view, _Numbers(view, look_at(view.request)))


class _Numbers:
    """The source of the stream: the page's numbers, when they have changed."""

    def __init__(self, view: View, looked: Looked) -> None:
        self._view = view
        self._looked = looked
        self._tick = 0
        self._seen = -1

    def begin(self) -> None:
        self._looked.attention.hold()

    def end(self) -> None:
        self._looked.attention.release()

    async def poll(self) -> list[Event]:
        self._tick += 1
        heat = self._looked.heat
        if heat.unknown:
            await self._looked.learn()
        if self._tick % _TICKS or heat.seen == self._seen:
            return []
        self._seen = heat.seen
        shown = numbers(self._view, self._looked)
        html = await looks.part("lab/heat_numbers.html", **shown)
        return [Event("part", html)]


def numbers(view: View, looked: Looked) -> dict[str, Any]:
    """What the page shows of the counts: those of tables, because `hashrange top` has those of indexes."""
    heat = looked.heat
    tables = [(place, warmth) for place, warmth in heat.places() if not place.index_name][:_TABLES_SHOWN]
    table, part = view.given("table"), view.given("part")
    keys = [
        count
        for count in heat.keys(KEYS_MAX)
        if not count.key.place.index_name
        and table in ("", count.key.place.table)
        and part in ("", str(count.key.part + 1))
    ][:_KEYS_SHOWN]
    database = subject_of(view.request).database
    named = {place.full_name for place, _ in tables} | {count.key.place.full_name for count in keys}
    existing = {name for name in named if database.overview_of(name) is not None}
    longest = max([warmth.total for _, warmth in tables], default=0)
    most = max([count.least for count in keys], default=0)
    return {
        "tables": [_table(place, warmth, longest, existing) for place, warmth in tables],
        "keys": [_key(count, most, existing) for count in keys],
        "table": table,
        "part": part,
    }


def _table(place: TableOrIndex, warmth: Warmth, longest: int, existing: set[str]) -> HotTable:
    table, scope = place.table, place.scope
    most = max([read + write for read, write in zip(warmth.reads, warmth.writes, strict=True)])
    return HotTable(
        table,
        scope,
        Bar(sum(warmth.reads), sum(warmth.writes), longest),
        warmth.others,
        [Bar(read, write, most) for read, write in zip(warmth.reads, warmth.writes, strict=True)],
        looks.href(f"/console/t/{table}", scope=scope) if place.full_name in existing else "",
        looks.href("/console/requests", table=table, scope=scope),
    )


def _key(count: Count[Any], most: int, existing: set[str]) -> HotKey:
    hot = count.key
    place = hot.place
    [(name, value)] = orjson.loads(hot.key).items()
    [text] = value.values()
    return HotKey(
        place.table,
        hot.part + 1,
        name,
        cell(value),
        Bar(count.reads, count.writes, most, count.over),
        looks.href(f"/console/t/{place.table}", pk=text, scope=place.scope)
        if place.full_name in existing
        else "",
        looks.href("/console/requests", table=place.table, key=hot.key, scope=place.scope),
    )
