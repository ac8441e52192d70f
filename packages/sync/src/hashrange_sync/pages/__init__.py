"""What sync adds to the console: a page with the pairs whose states are in the server's tables.

It shows how far each pair is, and the newest conflicts with both images, each of which can be brought back.
`?pair=` shows one pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import msgspec
from starlette.responses import Response

from hashrange.clock import show_moment
from hashrange.errors import ServiceError
from hashrange.server.admin.application import json, read_json, subject_of
from hashrange_console import looks
from hashrange_console.differences import Difference, whole
from hashrange_console.pages import Action, Page, Pages, Section, Tab
from hashrange_console.reach import Refused, View, refuse, text_of
from hashrange_console.values import Cell, Item, cell, plain_json
from hashrange_sync.served.reading import Reading, scope_of
from hashrange_sync.stored.conflicts import CONFLICT, Conflict
from hashrange_sync.stored.status import PairStatus

PATH: Final = "/console/sync"
SILENT_SECONDS: Final = 90.0
"""After this time without a report the process seems not to run: one that is stopped tries again each
minute."""
_CONFLICTS_MAX: Final = 20
_DIFFERENCES_MAX: Final = 8
_TEXT_MAX: Final = 20_000
_WAYS: Final = {"both": "Equal with", "down": "Follows", "up": "Followed by"}
_SETTINGS: Final = """\
[cloud]
region = "eu-central-1"

[edge]
endpoint = "{endpoint}"

[[pairs]]
table = "orders"
conflicts = "newest: updated"
"""


class Restoring(msgspec.Struct, forbid_unknown_fields=True):
    """The image of a side that a button brings back."""

    pair: str
    conflict: str
    side: Literal["cloud", "edge"]


@dataclass(frozen=True, slots=True)
class ShownPair:
    """A pair as the page shows it. `tone` is the colour of its state; "" for none."""

    status: PairStatus
    now: float

    @property
    def is_silent(self) -> bool:
        return self.silence > SILENT_SECONDS

    @property
    def state(self) -> str:
        if self.is_silent:
            return "not running"
        sweep = self.status.sweep
        return sweep.reason if self.status.state == "sweeping" and sweep is not None else self.status.state

    @property
    def tone(self) -> str:
        if self.status.state == "stopped":
            return "removed"
        return "added" if self.state == "in step" else "warn"

    @property
    def silence(self) -> float:
        """How long ago the process reported, in seconds."""
        return max(0.0, self.now - self.status.at)

    @property
    def behind(self) -> float | None:
        """How long ago the pair was last in step, in seconds; None for never."""
        return max(0.0, self.now - self.status.in_step_at) if self.status.in_step_at else None

    @property
    def way(self) -> str:
        return _WAYS[self.status.direction]

    @property
    def error_at(self) -> str:
        return show_moment(self.status.error_at)


@dataclass(frozen=True, slots=True)
class Image:
    """The item of a side, as JSON; "" if it was not there. `is_whole`: nothing of the text is left out."""

    side: str
    text: str
    is_whole: bool
    won: bool


@dataclass(frozen=True, slots=True)
class ShownConflict:
    """A conflict as the page shows it."""

    pair: str
    id: str
    at: str
    outcome: str
    key: list[tuple[str, Cell | None]]
    href: str
    differences: list[Difference]
    has_more: bool
    images: list[Image]
    can_restore: bool


async def page(view: View) -> Response:
    """The pairs and their newest conflicts."""
    subject = subject_of(view.request)
    reading = Reading(subject, view.scope)
    wanted = view.given("pair")
    conflicts: list[ShownConflict] = []
    counts: dict[str, str] = {}
    try:
        statuses = [one for one in await reading.statuses() if wanted in ("", one.name)]
        for status in statuses:
            found, count, has_more = await reading.conflicts(status.name, _CONFLICTS_MAX)
            conflicts += [_conflict(view, status, one) for one in found]
            counts[status.name] = f"{count:,}{' or more' if has_more else ''}"
    except ServiceError as error:
        refuse(error)
    now = subject.database.clock.now()
    return await looks.page(
        "sync/sync.html",
        view=view,
        pairs=[ShownPair(status, now) for status in statuses],
        counts=counts,
        conflicts=sorted(conflicts, key=lambda one: one.at, reverse=True)[:_CONFLICTS_MAX],
        settings=_SETTINGS.format(endpoint=view.endpoint),
    )


def _conflict(view: View, status: PairStatus, found: Conflict) -> ShownConflict:
    key, cloud, edge = _item(found.key), _item(found.cloud), _item(found.edge)
    shared = scope_of(status, found).shared
    differences = whole(_item(shared(cloud)), _item(shared(edge)))
    won = f"the {found.winner}’s won" if found.winner in ("cloud", "edge") else f"by {found.winner}"
    return ShownConflict(
        status.name,
        found.id,
        show_moment(found.at),
        won if found.kind == CONFLICT else found.kind,
        [(name, cell(value)) for name, value in key.items()],
        looks.href(f"/console/t/{status.edge_table}/item", key=text_of(key), scope=view.scope),
        differences[:_DIFFERENCES_MAX],
        len(differences) > _DIFFERENCES_MAX,
        [_image("cloud", cloud, found.winner), _image("edge", edge, found.winner)],
        status.direction != "down",
    )


def _item(held: Mapping[str, Mapping[str, Any]] | None) -> Item:
    """An item as the console has it; empty for one that was not there."""
    return {name: dict(value) for name, value in (held or {}).items()}


def _image(side: str, item: Item, winner: str) -> Image:
    text = plain_json(item) if item else ""
    return Image(side, text[:_TEXT_MAX], len(text) <= _TEXT_MAX, winner == side)


async def restore(view: View) -> Response:
    """Bring an image back: write it to the table of this server. The sync carries it to the other side."""
    sent = await read_json(view.request, Restoring)
    reading = Reading(subject_of(view.request), view.scope)
    try:
        status = next((one for one in await reading.statuses() if one.name == sent.pair), None)
        found = None if status is None else await reading.conflict(sent.pair, sent.conflict)
        if status is None or found is None:
            raise Refused(f"The pair {sent.pair} has no conflict {sent.conflict}.")
        if status.direction == "down":
            command = f"hashrange sync conflicts restore FILE {found.id}"
            raise Refused(f"{sent.pair} follows the cloud, whose table only `{command}` can write.")
        await reading.restore(status, found, sent.side)
    except ServiceError as error:
        refuse(error)
    done: dict[str, Any] = {"said": f"The {sent.side}’s item is in {status.edge_table} again."}
    return json({**done, "href": looks.href(PATH, scope=view.scope)})


PAGES: Final = Pages(
    parts=(
        Page(PATH, "The pairs of tables that are kept in step, and their conflicts.", page),
        Action("/console/sync/restore", "Bring an image of a conflict back.", restore, Restoring),
    ),
    sections=(Section("server", "Server", "/console/backups", (Tab("sync", "Sync", PATH),)),),
    folder=Path(__file__).parent,
)
"""The pages, for `rings.Ring.pages`."""
