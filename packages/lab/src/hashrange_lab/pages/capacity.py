"""The units that tables and indexes consume, minute by minute, against their limits, and what was throttled.

`?hours=` is how far back the page looks: 1, 6 or 24. `?table=` shows one table and its indexes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.limits import ACCOUNT_UNITS_MAX
from hashrange.server.admin.application import subject_of
from hashrange.server.admin.aside import aside
from hashrange_console import looks
from hashrange_console.reach import Refused, View
from hashrange_lab.admin import costs, lab
from hashrange_lab.admin.lab import LabState, ResourceState
from hashrange_lab.money.counts import Counted, Minute, Series, Stored
from hashrange_lab.pages.charts import Chart, chart

HOURS: Final = {"1": 1, "6": 5, "24": 15}
"""The hours that the page can show, and how many minutes a bar of its charts stands for."""
PLACES_MAX: Final = 40
_WAYS: Final = ("read", "write")


@dataclass(frozen=True, slots=True)
class Side:
    """The reads or the writes of a place: their chart, and their limit in words."""

    way: str
    chart: Chart
    limit: str


@dataclass(frozen=True, slots=True)
class Consumption:
    """A table or a global index, and what the lab knows of it while it throttles: `partitions`, and how often
    which limit refused."""

    table: str
    index: str
    mode: str
    sides: list[Side]
    throttled: int
    partitions: int
    causes: dict[str, int]

    @property
    def href(self) -> str:
        """The table's own page."""
        scope, _, name = self.table.rpartition("/")
        return looks.href(f"/console/t/{name}/about", scope=scope)


async def page(view: View) -> Response:
    """The charts of all tables, those with throttled requests first."""
    subject = subject_of(view.request)
    hours = view.given("hours") or "1"
    if hours not in HOURS:
        raise Refused(f"{hours!r} is not a number of hours that this page shows: {', '.join(HOURS)}.")
    counted = await costs.counted(view.request)
    labs = lab.shown(subject)
    places: list[Consumption] = []
    if counted is not None:
        known = counted
        places = await aside(view.request, lambda _: _places(known, labs, int(hours), HOURS[hours]))
    table = view.given("table")
    shown = [place for place in places if table in ("", place.table)]
    return await looks.page(
        "lab/capacity.html",
        view=view,
        since="" if counted is None else show_moment(counted.since),
        throttles=bool(labs.throttle or any(labs.tables.values())),
        places=shown[:PLACES_MAX],
        left=len(shown) - PLACES_MAX,
        tables=sorted({place.table for place in places}),
        table=table,
        hours=hours,
        choices=list(HOURS),
        step=HOURS[hours],
    )


def _places(counted: Counted, labs: LabState, hours: int, step: int) -> list[Consumption]:
    stored = {part.table: part for part in counted.stored}
    resources = {(part.table, part.index): part for part in labs.resources}
    last = int(counted.until // 60) * 60
    first = last - hours * 3_600 + 60
    places = []
    for series in counted.series:
        if series.minutes and series.minutes[-1].at >= first:
            about = resources.get((series.table, series.index))
            places.append(_place(series, stored.get(series.table), about, first, hours * 60, step))
    return sorted(places, key=lambda place: (-place.throttled, place.table, place.index))


def _place(
    series: Series, stored: Stored | None, about: ResourceState | None, first: int, minutes: int, step: int
) -> Consumption:
    shown = [minute for minute in series.minutes if minute.at >= first]
    labels = [show_moment(first + bucket * step * 60)[11:16] for bucket in range(minutes // step)]
    limits = [_limit(stored, series.index, way) for way in (0, 1)]
    sides = []
    for way, (limit, words) in enumerate(limits):
        values = _buckets(shown, way, first, len(labels), step)
        marks = _marks(shown, first, len(labels), step) if way == 0 else [0] * len(labels)
        sides.append(Side(_WAYS[way], chart(values, marks, labels, limit), words))
    causes: dict[str, int] = {}
    if about is not None:
        for counts in (about.throttled_reads, about.throttled_writes):
            for cause, number in counts.items():
                causes[cause] = causes.get(cause, 0) + number
    mode = "" if stored is None else "provisioned" if stored.capacity == "PROVISIONED" else "on demand"
    throttled = sum(minute.throttled for minute in shown)
    partitions = 0 if about is None else about.partitions
    return Consumption(series.table, series.index, mode, sides, throttled, partitions, causes)


def _limit(stored: Stored | None, index: str, way: int) -> tuple[float | None, str]:
    """The limit of a table or an index in units a second, and in words."""
    if stored is None:
        return None, ""
    units = stored.provisioned.get(index)
    if units is not None:
        return float(units[way]), f"{units[way]:,} provisioned"
    maximum = stored.maximum.get(index, (0, 0))[way]
    if maximum:
        return float(maximum), f"{maximum:,} at most"
    return float(ACCOUNT_UNITS_MAX), f"{ACCOUNT_UNITS_MAX:,} of the account"


def _buckets(shown: Sequence[Minute], way: int, first: int, number: int, step: int) -> list[float]:
    """The units a second of the highest minute in each bar."""
    values = [0.0] * number
    for minute in shown:
        bucket = min((minute.at - first) // 60 // step, number - 1)
        values[bucket] = max(values[bucket], (minute.writes if way else minute.reads) / 60)
    return values


def _marks(shown: Sequence[Minute], first: int, number: int, step: int) -> list[int]:
    marks = [0] * number
    for minute in shown:
        marks[min((minute.at - first) // 60 // step, number - 1)] += minute.throttled
    return marks
