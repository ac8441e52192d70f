"""The past of a table of a Hashrange server, and undo."""

from __future__ import annotations

import hashlib
from typing import Annotated, Any, Final

import orjson
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from hashrange.cli.remote import past
from hashrange.cli.remote.asking import Plane
from hashrange_mcp import answers, plane
from hashrange_mcp.connection import Connection
from hashrange_mcp.tools.tables import Table
from hashrange_mcp.values import Item, wire_item

Json = dict[str, Any]
Moment = Annotated[
    str, Field(description="2026-01-31T12:00:00Z, epoch seconds, or a span ago such as 10m, 2h or 1d.")
]
Limit = Annotated[int, Field(ge=1, le=1_000, description="The most entries to show.")]

_SHOWN_MAX: Final = 1_000
_KEYS_MAX: Final = 100
_TOKEN_CHARACTERS: Final = 16


class Past:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def history(
        self,
        table: Table,
        key: Annotated[
            dict[str, Any] | None, Field(description="The key of an item: shows the versions of this item.")
        ] = None,
        since: Annotated[
            str, Field(description="Without a key: the earlier moment, such as 10m (ago).")
        ] = "",
        until: Annotated[str, Field(description="Without a key: the later moment; empty: now.")] = "",
        limit: Limit = 25,
        start: Annotated[str, Field(description="`next` of the previous answer.")] = "",
    ) -> str:
        """Show the past of a table whose point-in-time recovery is on. With `key`: the versions of one item,
        the newest first, and who made each. With `since`: the items that differ between two moments, with
        their states before and after. Items as of a moment: `as_of` of get_items, query and scan."""
        admin = self._connection.admin()
        if (key is None) == (not since):
            raise ToolError("Give either `key`, for the versions of an item, or `since`, for differences.")
        if key is not None:
            page = plane.versions(admin, table, wire_item(key), limit, start or None)
            member = "Versions"
        else:
            later = plane.fixed(admin, until) if until else None
            page = plane.differences(admin, table, plane.fixed(admin, since), later, limit, start or None)
            member = "Differences"
        about = {"next": page["Next"]} if page["Next"] else {}
        return answers.bounded(
            about,
            member.lower(),
            page[member],
            self._connection.bytes_max,
            lambda last: {"next": start, "note": "Send a smaller limit with the same `start`."},
        )

    def undo(
        self,
        table: Table,
        to: Moment,
        keys: Annotated[
            list[dict[str, Any]] | None,
            Field(max_length=_KEYS_MAX, description="The items to restore; none: all items that differ."),
        ] = None,
        confirm: Annotated[
            str, Field(description="Empty: only show what would change. Then the `confirm` of that answer.")
        ] = "",
    ) -> str:
        """Restore items of a table as they were at a moment. Call it twice: the first answer shows each item
        as it is and as it would become, and has a token `confirm`; the second call with the fixed moment `to`
        of that answer and the token writes. If an item has changed between the calls, nothing is written and
        the answer is a new preview. Show the preview to the user before you confirm."""
        admin = self._connection.admin()
        at = plane.fixed(admin, to)
        wanted = [wire_item(key) for key in keys or ()]
        changes, more = _changes(admin, table, at, wanted)
        token = _token(table, at, wanted, changes)
        if confirm == token and changes:
            if len(changes) <= _KEYS_MAX and not more:
                wanted = [change["key"] for change in changes]  # (in one transaction, and nothing else)
            done = plane.undo(admin, table, at, wanted)
            return answers.bounded(
                {name: done[name] for name in done if name == "Counts"},
                "undone",
                done.get("Undone", ()),
                self._connection.bytes_max,
            )
        about: Json = {"to": at, "changes": len(changes), "more": more}
        if changes:
            about["confirm"] = token
            about["note"] = (
                "Nothing is written yet. Show this to the user; then repeat with `to` and `confirm`."
            )
            if more:
                about["note"] += f" More than {_SHOWN_MAX} items differ, and all of them would be restored."
        else:
            about["note"] = "Nothing differs, so there is nothing to restore."
        if confirm:
            about["refused"] = "The token is not of this preview: the items have changed, or `to` is another."
        return answers.bounded(about, "preview", changes, self._connection.bytes_max)


def _changes(admin: Plane, table: str, at: str, keys: list[Item]) -> tuple[list[Json], bool]:
    """What an undo would change: the first items that differ, and whether there are more."""
    if not keys:
        page = plane.differences(admin, table, at, None, _SHOWN_MAX)
        found = [
            {"key": one["Key"], "now": one["After"], "becomes": one["Before"]} for one in page["Differences"]
        ]
        return found, page["Next"] is not None
    found = []
    for key in keys:
        request = {"TableName": table, "Key": key}
        before = past.read(admin, "GetItem", request, at).get("Item")
        now = past.read(admin, "GetItem", request, "now").get("Item")
        if before != now:
            found.append({"key": key, "now": now, "becomes": before})
    return found, False


def _token(table: str, at: str, keys: list[Item], changes: list[Json]) -> str:
    """What a confirmation repeats: it stands for this table, moment, and states of the items."""
    told = orjson.dumps([table, at, keys, changes], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(told).hexdigest()[:_TOKEN_CHARACTERS]
