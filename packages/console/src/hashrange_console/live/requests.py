"""The requests as they come: which, of whom, how long they took, what they cost, and why they failed.

The page has the latest requests, and its stream adds the next ones. `?operation=`, `?table=`, `?failed=`,
`?slow=` (milliseconds) and `?key=` choose among them; `?show=` shows one with its values, and as code.
"""

from __future__ import annotations

from typing import Any, Final

import orjson
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.faults.effects import STREAMS
from hashrange.operations import REGISTRY
from hashrange_console import looks
from hashrange_console.live.events import Event
from hashrange_console.live.feed import ROWS_MAX, SLOW_SECONDS, Feed, RequestFilter, Viewer
from hashrange_console.live.state import live_of, stream
from hashrange_console.reach import Refused, View, key_of
from hashrange_console.values import typed_json

SHOWN_MAX: Final = 100
"""The most requests on a page."""
PATH: Final = "/console/requests"
_DIGITS_MAX: Final = 20
FILTERS: Final = ("operation", "table", "failed", "slow", "key", "scope")
"""The parameters that choose among the requests; `scope` is only kept."""


async def page(view: View) -> Response:
    """The latest requests."""
    wanted, filters = wanted_of(view), filters_of(view)
    feed = live_of(view).feed
    feed.attention.look()
    newest = feed.newest
    return await looks.page(
        "live/requests.html",
        view=view,
        rows=feed.rows(wanted, SHOWN_MAX),
        filters=filters,
        events=looks.href(f"{PATH}/events", after=str(newest), **filters),
        operations=sorted(REGISTRY),
        slow_milliseconds=round(SLOW_SECONDS * 1e3),
        rows_max=ROWS_MAX,
        since=show_moment(feed.since),
        counted=_counted(feed.seen, feed.skipped),
        number=view.given("show"),
        opened=_opened(view, feed),
    )


async def events(view: View) -> Response:
    """The stream of the page."""
    after = _number(view.given("after"))
    return stream(view, _Rows(live_of(view).feed, wanted_of(view), filters_of(view), after))


class _Rows:
    """The source of the stream: rows of the requests with numbers above `after`, or from now on, and how many
    requests there were."""

    def __init__(self, feed: Feed, wanted: RequestFilter, filters: dict[str, str], after: int | None) -> None:
        self._feed = feed
        self._after = after
        self._viewer = Viewer(wanted)
        self._filters = filters
        self._counted = ""

    def begin(self) -> None:
        self._feed.attention.hold()
        self._feed.open(self._viewer, self._feed.newest if self._after is None else self._after)

    def end(self) -> None:
        self._feed.close(self._viewer)
        self._feed.attention.release()

    async def poll(self) -> list[Event]:
        events = []
        if rows := self._feed.take(self._viewer):
            template = "live/request_rows.html"
            html = await looks.part(template, rows=rows[::-1], filters=self._filters)
            events.append(Event("rows", html))
        if (counted := _counted(self._feed.seen, self._viewer.skipped)) != self._counted:
            self._counted = counted
            events.append(Event("state", counted))
        return events


def filters_of(view: View) -> dict[str, str]:
    """The filters in the address of a page."""
    return {name: view.given(name) for name in FILTERS}


def wanted_of(view: View) -> RequestFilter:
    """The requests that an address asks for. Raises `Refused`."""
    slow = view.given("slow")
    try:
        slow_seconds = float(slow or 0) / 1e3
    except ValueError:
        slow_seconds = -1.0
    if not 0 <= slow_seconds < 1e6:
        raise Refused(f"{slow!r} is not a number of milliseconds, such as 100.")
    key = key_of(view.given("key")) if view.given("key") else {}
    operation, table, failed = (view.given(name) for name in ("operation", "table", "failed"))
    return RequestFilter(operation, table, bool(failed), slow_seconds, tuple(key.items()))


def _counted(seen: int, missed: int) -> str:
    """How many requests there were, and how many of them were not shown."""
    text = f"{seen:,} request{'s' * (seen != 1)}"
    return f"{text}; {missed:,} came too fast to be shown" if missed else text


def _number(text: str) -> int | None:
    """The number of a request in an address."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _DIGITS_MAX else None


def _opened(view: View, feed: Feed) -> dict[str, Any] | None:
    """The request that the address names, with its values and as code; None if it is not kept any more."""
    number = _number(view.given("show"))
    row = feed.row(number) if number is not None else None
    if row is None:
        return None
    text, snippets = row.sent.decode("utf-8", "replace"), []
    if not row.is_cut:
        sent = orjson.loads(row.sent)
        text = typed_json(sent)
        if row.operation not in STREAMS:
            snippets = view.code(row.operation, sent)
    return {"row": row, "text": text, "code": snippets, "moment": show_moment(row.moment)}
