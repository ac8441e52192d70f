"""The lab's switches: throttling, reads that are behind, and the recording of requests.

The page shows a recording and does not begin one: its file has all values, so only an administrator may, by
`hashrange record`.
"""

from __future__ import annotations

from typing import Final

import msgspec
from starlette.responses import Response

from hashrange.server.admin.application import json, read_json, subject_of
from hashrange_console import looks
from hashrange_console.reach import Refused, View
from hashrange_lab.admin.lab import shown
from hashrange_lab.admin.recording import shown as recording

PATH: Final = "/console/lab"
_STATES: Final = {"on": True, "off": False, "": None}


class Throttling(msgspec.Struct, forbid_unknown_fields=True):
    """`on` or `off`; for a table also "", which removes its own setting. Without a table: for all others."""

    state: str
    table: str = ""


class Eventual(msgspec.Struct, forbid_unknown_fields=True):
    """How many seconds reads are behind, "" for none, or up to that with a seed."""

    seconds: str = ""
    seed: str = ""
    monotonic: str = ""


async def page(view: View) -> Response:
    """What is on, and forms that change it."""
    subject = subject_of(view.request)
    tables = (await view.read("ListTables", {"Limit": 100}))["TableNames"]
    return await looks.page(
        "lab/switches.html",
        view=view,
        lab=shown(subject),
        tables=tables,
        recording=recording(subject).recording,
    )


async def throttle(view: View) -> Response:
    """Turn throttling on or off."""
    sent = await read_json(view.request, Throttling)
    if sent.state not in _STATES:
        raise Refused(f"Throttling is on or off, and not {sent.state!r}.")
    table = view.full_name(sent.table) if sent.table else None
    subject_of(view.request).database.lab.throttling.set(_STATES[sent.state], table)
    return _back(view)


async def lag(view: View) -> Response:
    """Set how far reads lag behind."""
    sent = await read_json(view.request, Eventual)
    eventual = subject_of(view.request).database.lab.eventual
    try:
        eventual.set(float(sent.seconds or 0), seed=sent.seed, monotonic=bool(sent.monotonic))
    except ValueError as error:
        raise Refused(str(error)) from None
    return _back(view)


def _back(view: View) -> Response:
    return json({"href": looks.href(PATH, scope=view.scope)})
