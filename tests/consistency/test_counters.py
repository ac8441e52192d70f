"""The judge of counters: it says what a search through the orders says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.counters import NAME, judge
from consistency.drawn import Move, done, moves, names, open_ended, refused
from consistency.history import Operation
from consistency.linearizability import Interval, unexplained


def played(drawn: list[Move]) -> list[Operation]:
    """The history of a serial execution on one counter."""
    number = 0
    history = []
    for at, move in enumerate(drawn):
        number += move.action == "add" and move.happens()
        invoked, ended = move.interval(at)
        history.append(Operation(0, NAME, move.action, {"key": "k"}, invoked, move.status, ended, number))
    return history


def apply(state: int, operation: Operation) -> tuple[bool, int]:
    state += operation.action == "add"
    return operation.status == "unknown" or operation.result == state, state


def is_explained(history: Sequence[Operation]) -> bool:
    tried = [
        Interval(operation.invoked, operation.ended, operation)
        for operation in history
        if operation.status != "failed"
    ]
    return not unexplained(tried, 0, apply)


@given(moves("add", "add", "read", moves_max=20))
def test_a_serial_execution_with_overlaps_is_sound(drawn: list[Move]) -> None:
    assert judge(played(drawn)) == []


@given(moves("add", "add", "read"), st.lists(st.tuples(st.integers(0, 6), st.integers(-2, 2)), max_size=2))
def test_it_says_what_the_search_says(drawn: list[Move], changes: list[tuple[int, int]]) -> None:
    history = played(drawn)
    for place, change in changes:
        if history:
            operation = history[place % len(history)]
            operation.result = max(operation.action == "add", operation.result + change)
    assert (judge(history) == []) == is_explained(history)


@given(moves("add", "read", overlap=0, moves_max=12), st.integers(0, 11))
def test_a_lost_increment_is_found(drawn: list[Move], place: int) -> None:
    """Where no outcome is unknown: otherwise another increment may have been made in its place."""
    history = played([replace(move, status="ok") for move in drawn])
    adds = [at for at, operation in enumerate(history) if operation.action == "add"]
    if adds:
        lost = adds[place % len(adds)]
        for operation in history[lost + 1 :]:
            operation.result -= 1
        history.append(done(NAME, "read", 100, 101, history[-1].result if lost + 1 < len(history) else 0))
        assert judge(history) != []


@pytest.mark.parametrize(
    ("history", "name"),
    [
        ([done(NAME, "add", 0, 9, 1), done(NAME, "add", 0, 9, 1)], "lost update"),
        ([done(NAME, "add", 0, 1, 1), done(NAME, "read", 2, 3, 0)], "stale"),
        ([done(NAME, "add", 0, 1, 2), done(NAME, "add", 2, 3, 1)], "stale"),
        # Applied twice: nobody got 1, or 2.
        ([done(NAME, "add", 0, 1, 2)], "phantom increment"),
        ([done(NAME, "add", 0, 1, 1), done(NAME, "read", 2, 3, 2)], "phantom increment"),
        # An increment that failed.
        ([refused(NAME, "add", 0, 1), done(NAME, "read", 2, 3, 1)], "phantom increment"),
        # Seen before it began.
        ([done(NAME, "read", 0, 1, 1), open_ended(NAME, "add", 2)], "phantom increment"),
        # An increment of unknown outcome was applied twice.
        ([open_ended(NAME, "add", 0), done(NAME, "read", 2, 3, 2)], "phantom increment"),
    ],
)
def test_an_anomaly_is_found(history: list[Operation], name: str) -> None:
    assert name in names(judge(history))


def test_an_unknown_increment_may_have_been_made_or_not() -> None:
    for number in (0, 1):
        assert judge([open_ended(NAME, "add", 0), done(NAME, "read", 2, 3, number)]) == []
