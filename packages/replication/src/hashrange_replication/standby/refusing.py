"""Refuses what only the primary may answer: writes, strongly consistent reads, control operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from hashrange.errors import InternalServerError
from hashrange.observing.observer import ObservedRequest, Observer
from hashrange.operations import REGISTRY
from hashrange_replication.guard import ALWAYS, is_consistent

_NONE: Final[frozenset[int]] = frozenset()


class Refusing(Observer):
    """Refuses requests as long as a standby serves; `why` is the text. SDKs try again after the error, so a
    client whose address moves to the standby goes on once the standby is promoted."""

    name = "standby"
    rank = 40
    fails_closed = True

    def __init__(self, why: Callable[[], str]) -> None:
        self._why = why

    def decides(self, seen: ObservedRequest) -> frozenset[int]:
        entry = REGISTRY[seen.operation]
        if seen.operation in ALWAYS or entry.is_write(seen.request) or is_consistent(seen.request):
            seen.refusal = InternalServerError(self._why())
        return _NONE
