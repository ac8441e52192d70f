"""The Kinesis data streams that tables send their changes to: state, lag, and forms that enable and disable
them."""

from __future__ import annotations

from typing import Any, Final, Literal

import msgspec
from starlette.responses import Response

from hashrange.server.admin import destinations
from hashrange.server.admin.application import json, read_json, subject_of
from hashrange_console import looks
from hashrange_console.reach import View

PATH: Final = "/console/kinesis"
_EXAMPLE: Final = {
    "TableName": "orders",
    "StreamArn": "arn:aws:kinesis:us-east-1:000000000000:stream/changes",
}


class DestinationChange(msgspec.Struct, forbid_unknown_fields=True):
    """What a form of the page asks for; `scope` is that of the table."""

    action: Literal["enable", "disable"]
    table: str
    arn: str
    precision: Literal["", "MILLISECOND", "MICROSECOND"] = ""
    scope: str = ""


async def page(view: View) -> Response:
    """The destinations of all tables."""
    subject = subject_of(view.request)
    rows = [_row(shown) for shown in await destinations.shown(subject)]
    names = [about["name"] for about in subject.database.overview("", 200)]
    return await looks.page(
        "live/destinations.html",
        view=view,
        rows=rows,
        endpoint=subject.database.settings.kinesis_endpoint,
        tables=[(scope, name) for scope, _, name in [full.rpartition("/") for full in names]],
        code=view.code("EnableKinesisStreamingDestination", dict(_EXAMPLE)),
    )


async def change(view: View) -> Response:
    """Enable or disable a destination."""
    sent = await read_json(view.request, DestinationChange)
    scope, _, name = sent.table.rpartition("/")
    own = View(view.request, sent.scope or scope)
    request: dict[str, Any] = {"TableName": name, "StreamArn": sent.arn.strip()}
    operation = "DisableKinesisStreamingDestination"
    if sent.action == "enable":
        operation = "EnableKinesisStreamingDestination"
        if sent.precision:
            chosen = {"ApproximateCreationDateTimePrecision": sent.precision}
            request["EnableKinesisStreamingConfiguration"] = chosen
    await own.change(operation, request)
    return json({"href": looks.href(PATH, scope=view.scope)})


def _row(shown: destinations.Destination) -> dict[str, Any]:
    scope, _, name = shown.table.rpartition("/")
    state = shown.status
    tone = "removed" if state == "ENABLE_FAILED" else "added" if state == "ACTIVE" else ""
    more = {"scope": scope, "name": name, "tone": tone, "ends": state in ("ACTIVE", "DISABLING")}
    return msgspec.structs.asdict(shown) | more
