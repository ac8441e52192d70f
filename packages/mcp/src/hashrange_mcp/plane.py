"""What tools ask of the admin plane of a Hashrange server, beside `cli.remote.past`, with its paths.

Raises click.ClickException with the plane's text, as all functions of `cli.remote.asking` do.
"""

from __future__ import annotations

from typing import Any, Final

from mcp.server.mcpserver.exceptions import ToolError

from hashrange.cli.remote import past
from hashrange.cli.remote.asking import Plane, ask

Json = dict[str, Any]

_START: Final = "hashrange serve"
_PAST_VERSIONS: Final = "/v1/past/versions"
_PAST_DIFFERENCES: Final = "/v1/past/differences"
_PAST_UNDO: Final = "/v1/past/undo"
_COSTS: Final = "/v1/costs"
_HEAT: Final = "/v1/heat"


def fixed(plane: Plane, moment: str) -> str:
    """As `past.fixed`. Raises ToolError for what is no moment."""
    try:
        return past.fixed(plane, moment)
    except ValueError as error:
        raise ToolError(str(error)) from error


def versions(plane: Plane, table: str, key: Json, limit: int, position: str | None) -> Json:
    """A page of the versions of an item, newest first: `Versions`, and `Next` or None."""
    sent = {"table": table, "key": key, "limit": limit, "next": position}
    return ask(plane, _PAST_VERSIONS, "Versions", _START, sent)


def differences(
    plane: Plane, table: str, since: str, until: str | None, limit: int, position: str | None = None
) -> Json:
    """A page of the items that differ between two moments: `Differences`, and `Next` or None."""
    sent = {"table": table, "since": since, "until": until, "limit": limit, "next": position}
    return ask(plane, _PAST_DIFFERENCES, "Differences", _START, sent)


def undo(plane: Plane, table: str, to: str, keys: list[Json]) -> Json:
    """Restore items, or all of the table without `keys`: `Undone`, or `Counts` for all."""
    sent = {"table": table, "to": to, "keys": keys, "all": not keys}
    return ask(plane, _PAST_UNDO, "Undone" if keys else "Counts", _START, sent)


def counted(plane: Plane) -> Json | None:
    """What requests consumed (`hashrange_lab.money.counts.Counted`); None while nothing is counted."""
    shown: Json | None = ask(plane, _COSTS, "costs", _START)["costs"]
    return shown


def heat(plane: Plane, keys: int) -> Json:
    """The busiest keys. Counting begins with the first call, and ends some seconds after the last."""
    shown: Json = ask(plane, f"{_HEAT}?keys={keys}", "heat", _START)["heat"]
    return shown
