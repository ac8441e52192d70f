"""What is asked of the admin plane of a Hashrange server. No other module knows its paths.

Raises click.ClickException with the plane's text, as all functions of `cli.remote.asking` do.
"""

from __future__ import annotations

from typing import Any, Final

from hashrange.cli.remote.asking import Plane, ask
from hashrange.clock import parse_moment

Json = dict[str, Any]

_START: Final = "hashrange serve"
_PAST_READ: Final = "/v1/past/read"
_PAST_VERSIONS: Final = "/v1/past/versions"
_PAST_DIFFERENCES: Final = "/v1/past/differences"
_PAST_UNDO: Final = "/v1/past/undo"
_CLOCK: Final = "/v1/clock"
_COSTS: Final = "/v1/costs"
_HEAT: Final = "/v1/heat"


def now(plane: Plane) -> float:
    """The time of the database's clock, in epoch seconds."""
    return float(ask(plane, _CLOCK, "epoch_seconds", _START)["epoch_seconds"])


def fixed(plane: Plane, moment: str) -> str:
    """A moment that stays the same: "now" and "10m" are resolved by the server's clock. Raises ValueError."""
    try:
        parse_moment(moment)
    except ValueError:
        return repr(parse_moment(moment, now(plane)))
    return moment


def read_past(plane: Plane, operation: str, request: Json, at: str) -> Json:
    """The answer that a GetItem, Query or Scan would have had at a moment."""
    sent = {"operation": operation, "request": request, "at": at}
    answer: Json = ask(plane, _PAST_READ, "Answer", _START, sent)["Answer"]
    return answer


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
