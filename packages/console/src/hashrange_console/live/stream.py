"""The changes of a table as its stream has them, with the old and the new values, and the table's triggers.

The page of a stream begins a quarter of an hour ago and goes on live; `?from=start` reads the stream from its
oldest record, in pages.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from starlette.responses import Response

from hashrange.server.admin.application import subject_of
from hashrange.server.admin.tables import TABLES_PER_PAGE
from hashrange_console import looks
from hashrange_console.live import triggers
from hashrange_console.live.events import TICK_SECONDS, Event
from hashrange_console.live.records import Reading, recent, row_of
from hashrange_console.live.state import stream
from hashrange_console.reach import Refused, View, key_of, text_of

ROWS_MAX: Final = 50
_LIVE_ROWS_MAX: Final = 20
_DISCOVER_SECONDS: Final = 5.0
_TRIGGERS_SECONDS: Final = 2.0
_FAILURES_MAX: Final = 50
"""How often in a row a stream may not be read, before its page says so."""
_NO_STREAM: Final = "The table {} has no stream that is on, so its changes are not kept."


async def tables(view: View) -> Response:
    """The tables with a stream."""
    streaming: list[dict[str, Any]] = []
    after = ""
    while page := subject_of(view.request).database.overview(after, TABLES_PER_PAGE):
        streaming += [about for about in page if about["stream"] is not None]
        after = page[-1]["name"]
        await asyncio.sleep(0)
    rows = []
    for about in streaming:
        scope, _, name = about["name"].rpartition("/")
        own = View(view.request, scope)
        of_table = await triggers.of_table(own, name)
        rows.append({"name": name, "scope": scope, "stream": about["stream"], "triggers": of_table})
    sent = {
        "TableName": "orders",
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    }
    snippets = view.code("UpdateTable", sent)
    return await looks.page("live/streams.html", view=view, rows=rows, code=snippets)


async def page(view: View) -> Response:
    """The changes of a table."""
    table = view.request.path_params["table"]
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    about: dict[str, Any] = {"table": table, "rows": [], "has_more": False, "next": None, "events": ""}
    about |= {"from_start": view.given("from") == "start", "has_stream": False, "view_type": ""}
    specification = described.get("StreamSpecification", {})
    if specification.get("StreamEnabled"):
        about |= {"has_stream": True, "view_type": specification["StreamViewType"]}
        reading = Reading(table, described["LatestStreamArn"])
        about |= await (_oldest(view, reading) if about["from_start"] else _latest(view, reading))
    sent = {
        "TableName": table,
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    }
    about["code"] = [] if about["has_stream"] else view.code("UpdateTable", sent)
    about["triggers"] = await triggers.of_table(view, table)
    return await looks.page("live/stream.html", view=view, **about)


async def _latest(view: View, reading: Reading) -> dict[str, Any]:
    records, has_more = await recent(view, reading, ROWS_MAX)
    path = f"/console/t/{reading.table}/stream/events"
    at = text_of(reading.iterators) if reading.iterators else ""
    return {
        "rows": [row_of(view, reading.table, record) for record in records],
        "has_more": has_more,
        "events": looks.href(path, at=at, scope=view.scope),
    }


async def _oldest(view: View, reading: Reading) -> dict[str, Any]:
    if given := view.given("at"):
        reading.iterators = key_of(given)
        reading.finished = set(view.request.query_params.getlist("done"))
    else:
        await reading.begin(view, "TRIM_HORIZON")
    records: list[dict[str, Any]] = []
    if reading.iterators:
        limit = max(1, ROWS_MAX // len(reading.iterators))
        records = await reading.read(view, limit)
    following = None
    if records:
        following = looks.href(
            f"/console/t/{reading.table}/stream",
            **{"from": "start", "at": text_of(reading.iterators), "done": sorted(reading.finished)},
            scope=view.scope,
        )
    return {"rows": [row_of(view, reading.table, record) for record in records], "next": following}


async def events(view: View) -> Response:
    """The stream of the page."""
    table = view.request.path_params["table"]
    described = (await view.read("DescribeTable", {"TableName": table}))["Table"]
    if not described.get("StreamSpecification", {}).get("StreamEnabled"):
        raise Refused(_NO_STREAM.format(table))
    reading = Reading(table, described["LatestStreamArn"])
    if given := view.given("at"):
        reading.iterators = key_of(given)
    else:
        await reading.begin(view, "LATEST")
    return stream(view, _Changes(view, reading))


class _Changes:
    """The source of the stream: rows of records, and the state of the triggers."""

    def __init__(self, view: View, reading: Reading) -> None:
        self._view = view
        self._reading = reading
        self._ticks = 0
        self._failures = 0
        self._triggers: list[triggers.Trigger] = []

    def begin(self) -> None:
        pass

    def end(self) -> None:
        pass

    async def poll(self) -> list[Event]:
        self._ticks += 1
        events = []
        try:
            records = await self._reading.read(self._view, _LIVE_ROWS_MAX)
            if self._is_due(_DISCOVER_SECONDS):
                await self._reading.follow(self._view)
            if self._is_due(_TRIGGERS_SECONDS):
                events += await self._trigger_events()
            self._failures = 0
        except Refused as error:
            # A fault rule may refuse a request of the console, too; the next one may be answered.
            self._failures += 1
            is_over = error.code == "ResourceNotFoundException" or self._failures == _FAILURES_MAX
            return [Event("end", str(error))] if is_over else []
        if records:
            rows = [row_of(self._view, self._reading.table, record) for record in reversed(records)]
            html = await looks.part("live/stream_rows.html", rows=rows)
            events.append(Event("rows", html))
        return events

    def _is_due(self, seconds: float) -> bool:
        return self._ticks % round(seconds / TICK_SECONDS) == 0

    async def _trigger_events(self) -> list[Event]:
        of_table = await triggers.of_table(self._view, self._reading.table)
        if of_table == self._triggers:
            return []
        self._triggers = of_table
        html = await looks.part("live/triggers.html", triggers=of_table)
        return [Event("part", html)]
