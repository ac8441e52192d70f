"""The past of a running server's tables, through its admin plane.

Raises click.ClickException with the plane's text, as all functions of `asking` do.
"""

from __future__ import annotations

from typing import Any, Final

from hashrange.cli.remote.asking import Plane, ask
from hashrange.clock import parse_moment

_START: Final = "hashrange serve"


def fixed(plane: Plane, moment: str) -> str:
    """A fixed moment for several requests: "now" and "10m" are resolved by the server's clock. Raises
    ValueError."""
    try:
        parse_moment(moment)
    except ValueError:
        now = float(ask(plane, "/v1/clock", "epoch_seconds", _START)["epoch_seconds"])
        return repr(parse_moment(moment, now))
    return moment


def read(plane: Plane, operation: str, request: dict[str, Any], at: str) -> dict[str, Any]:
    """The answer that a GetItem, Query or Scan would have had at a moment."""
    sent = {"operation": operation, "request": request, "at": at}
    return ask(plane, "/v1/past/read", "Answer", _START, sent)["Answer"]  # type: ignore[no-any-return]
