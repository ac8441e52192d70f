"""The clock of the database: what it shows, and where it is virtual, a form that changes it."""

from __future__ import annotations

from typing import Final

from starlette.responses import Response

from hashrange.clock import REAL_CLOCKS
from hashrange.server.admin.application import json, read_json, subject_of
from hashrange.server.admin.clock import ClockChange, change_clock, clock_of
from hashrange_console import looks
from hashrange_console.reach import View

STEPS: Final = {"1m": "a minute", "1h": "an hour", "1d": "a day", "7d": "a week"}
"""The steps that have a button."""


async def page(view: View) -> Response:
    """The clock."""
    clock = clock_of(subject_of(view.request))
    source = REAL_CLOCKS.get(clock.source, "a virtual clock")
    return await looks.page("live/clock.html", view=view, clock=clock, source=source, steps=STEPS)


async def change(view: View) -> Response:
    """Change the clock; answers when all work that is then due is done."""
    sent = await read_json(view.request, ClockChange)
    await change_clock(subject_of(view.request), sent)
    return json({"href": looks.href("/console/clock", scope=view.scope)})
