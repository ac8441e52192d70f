"""The judge of sets: it says what a search through the orders says."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.drawn import Move, done, moves, names, open_ended, refused
from consistency.history import Operation
from consistency.linearizability import Interval, unexplained
from consistency.sets import NAME, judge


def played(drawn: list[Move]) -> list[Operation]:
    """The history of a serial execution on one set."""
    there: list[int] = []
    history = []
    for at, move in enumerate(drawn):
        invoked, ended = move.interval(at)
        operation = Operation(0, NAME, move.action, {"key": "k"}, invoked, move.status, ended)
        if move.action == "add":
            operation.arguments["element"] = at
            there += [at] * move.happens()
        else:
            operation.result = list(there)
        history.append(operation)
    return history


def apply(state: frozenset[int], operation: Operation) -> tuple[bool, frozenset[int]]:
    if operation.action == "add":
        return True, state | {operation.arguments["element"]}
    return operation.status == "unknown" or operation.result == sorted(state), state


def is_explained(history: Sequence[Operation]) -> bool:
    tried = [
        Interval(operation.invoked, operation.ended, operation)
        for operation in history
        if operation.status != "failed"
    ]
    empty: frozenset[int] = frozenset()
    return not unexplained(tried, empty, apply)


@given(moves("add", "add", "read", moves_max=20))
def test_a_serial_execution_with_overlaps_is_sound(drawn: list[Move]) -> None:
    assert judge(played(drawn)) == []


@given(
    moves("add", "add", "read", "read", moves_max=8),
    st.lists(st.tuples(st.integers(0, 7), st.sets(st.integers(0, 7), max_size=3)), max_size=2),
)
def test_it_says_what_the_search_says(drawn: list[Move], changes: list[tuple[int, set[int]]]) -> None:
    """Elements are taken out of some reads, or put in."""
    history = played(drawn)
    reads = [operation for operation in history if operation.action == "read"]
    for place, elements in changes:
        if reads:
            read = reads[place % len(reads)]
            read.result = sorted(set(read.result) ^ elements)
    assert (judge(history) == []) == is_explained(history)


@pytest.mark.parametrize(
    ("history", "name"),
    [
        ([done(NAME, "read", 0, 1, [7])], "phantom"),
        ([refused(NAME, "add", 0, 1, element=1), done(NAME, "read", 2, 3, [1])], "aborted read"),
        ([done(NAME, "read", 0, 1, [1]), done(NAME, "add", 2, 3, element=1)], "future read"),
        ([open_ended(NAME, "add", 0, element=1), done(NAME, "read", 2, 3, [1, 1])], "duplicate"),
        ([done(NAME, "add", 0, 1, element=1), done(NAME, "read", 2, 3, [])], "lost"),
        (
            [
                open_ended(NAME, "add", 0, element=1),
                done(NAME, "read", 2, 3, [1]),
                done(NAME, "read", 4, 5, []),
            ],
            "stale",
        ),
        (
            [
                open_ended(NAME, "add", 0, element=1),
                open_ended(NAME, "add", 0, element=2),
                done(NAME, "read", 2, 9, [1]),
                done(NAME, "read", 2, 9, [2]),
            ],
            "torn",
        ),
        # The read saw the second add, and not the first one, which had ended before.
        (
            [
                done(NAME, "add", 0, 1, element=1),
                done(NAME, "add", 2, 9, element=2),
                done(NAME, "read", 0, 9, [2]),
            ],
            "lost",
        ),
    ],
)
def test_an_anomaly_is_found(history: list[Operation], name: str) -> None:
    assert names(judge(history)) == {name}


def test_an_unknown_add_may_have_been_made_or_not() -> None:
    for elements in ([], [1]):
        history = [open_ended(NAME, "add", 0, element=1), done(NAME, "read", 2, 3, elements)]
        assert judge(history) == []
