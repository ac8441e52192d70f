"""The lab's switches: throttling, reads that are behind, and the recording of requests.

Only administrators start and stop recordings, because its file may have all values.
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec
from starlette.responses import Response

from hashrange.server.admin.application import json, read_json, subject_of
from hashrange_console import looks
from hashrange_console.reach import Refused, View
from hashrange_lab.admin import recording
from hashrange_lab.admin.lab import shown
from hashrange_lab.recordings.recording import recordings_of

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


class Recording(msgspec.Struct, forbid_unknown_fields=True):
    """The name of the file of a recording to begin, and whether values are kept; "" ends the recording."""

    name: str = ""
    values: Literal["kept", "hashed"] = "kept"


async def page(view: View) -> Response:
    """What is on, and forms that change it."""
    subject = subject_of(view.request)
    tables = (await view.read("ListTables", {"Limit": 100}))["TableNames"]
    return await looks.page(
        "lab/switches.html",
        view=view,
        lab=shown(subject),
        tables=tables,
        recording=recording.shown(subject).recording,
        directory=recordings_of(subject.database).directory,
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


async def record(view: View) -> Response:
    """Begin a recording, or end it."""
    sent = await read_json(view.request, Recording)
    if not view.administers:
        raise Refused("Only an administrator may record requests.")
    subject = subject_of(view.request)
    if sent.name:
        recording.begin(subject, recording.Start(sent.name, sent.values))
    else:
        await recording.end(subject)
    return _back(view)


def _back(view: View) -> Response:
    return json({"href": looks.href(PATH, scope=view.scope)})
