"""Histories for the judges' tests: serial executions, with overlaps, unknown outcomes and failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from hypothesis import strategies as st

from consistency.history import Operation, Status


@dataclass(frozen=True, slots=True)
class Move:
    """One operation of a serial execution: number n takes effect at moment n. `argument` and `other` are its
    arguments; `takes_effect` counts only where its outcome is unknown."""

    action: str
    argument: int
    other: int
    before: int
    after: int
    status: Status
    takes_effect: bool

    def interval(self, number: int) -> tuple[float, float]:
        """An interval around its moment; an operation of unknown outcome never ends."""
        ended = inf if self.status == "unknown" else number + self.after + 0.2
        return number - self.before - 0.2, ended

    def happens(self) -> bool:
        return self.status == "ok" or (self.status == "unknown" and self.takes_effect)


def moves(*actions: str, overlap: int = 3, moves_max: int = 7) -> st.SearchStrategy[list[Move]]:
    """Moves, each of which overlaps with up to `overlap` moves before and after it."""
    statuses: list[Status] = ["ok", "ok", "ok", "ok", "unknown", "failed"]
    move = st.builds(
        Move,
        action=st.sampled_from(actions),
        argument=st.integers(0, 2),
        other=st.integers(0, 2),
        before=st.integers(0, overlap),
        after=st.integers(0, overlap),
        status=st.sampled_from(statuses),
        takes_effect=st.booleans(),
    )
    return st.lists(move, max_size=moves_max)


def done(
    workload: str, action: str, invoked: float, ended: float, result: Any = None, **arguments: Any
) -> Operation:
    """A successful operation, for a history written by hand."""
    return Operation(0, workload, action, {"key": "k", **arguments}, invoked, "ok", ended, result)


def open_ended(workload: str, action: str, invoked: float, **arguments: Any) -> Operation:
    """An operation of unknown outcome."""
    return Operation(0, workload, action, {"key": "k", **arguments}, invoked)


def refused(workload: str, action: str, invoked: float, ended: float, **arguments: Any) -> Operation:
    """An operation that failed."""
    return Operation(0, workload, action, {"key": "k", **arguments}, invoked, "failed", ended)


def names(anomalies: Sequence[Any]) -> set[str]:
    return {anomaly.name for anomaly in anomalies}
