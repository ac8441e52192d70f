"""Refuses strongly consistent reads while the lease of the copy has run out.

Writes are refused by the engine. A read that may be old is answered: what it shows was true. The guard
observes requests only since a standby is registered, so that others pay nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from hashrange.errors import InternalServerError
from hashrange.observing.observer import ObservedRequest, Observer

_NONE: Final[frozenset[int]] = frozenset()
ALWAYS: Final = frozenset({"TransactGetItems", "ExecuteTransaction"})


class Guard(Observer):
    """Refuses reads as long as `refusing` says why."""

    name = "replication"
    fails_closed = True

    def __init__(self, refusing: Callable[[], str | None]) -> None:
        self._refusing = refusing

    def decides(self, seen: ObservedRequest) -> frozenset[int]:
        cause = self._refusing()
        if cause is not None and (seen.operation in ALWAYS or is_consistent(seen.request)):
            seen.refusal = InternalServerError(f"Strongly consistent reads are refused: {cause}")
        return _NONE


def is_consistent(request: dict[str, Any]) -> bool:
    """Whether a read asks for the newest state, itself or in a member of a batch."""
    members: list[Any] = [request]
    tables, statements = request.get("RequestItems"), request.get("Statements")
    if isinstance(tables, dict):
        members += tables.values()
    if isinstance(statements, list):
        members += statements
    return _any_consistent(members)


def _any_consistent(members: Iterable[Any]) -> bool:
    return any(isinstance(member, dict) and member.get("ConsistentRead") is True for member in members)
