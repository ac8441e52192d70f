"""The judge of registers: each anomaly is found, and a sound history is not accused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.drawn import Move, done, moves, names, open_ended, refused
from consistency.history import Operation
from consistency.linearizability import Interval, unexplained
from consistency.registers import NAME, access_of, apply, judge

DRAWN = ("get", "get", "put", "swap", "cas")


def played(drawn: list[Move]) -> list[Operation]:
    """The history of a serial execution on one register."""
    values = count(1)
    state: int | None = None
    written: list[int | None] = [None]
    history = []
    for number, move in enumerate(drawn):
        invoked, ended = move.interval(number)
        operation = Operation(0, NAME, move.action, {"key": "k"}, invoked, move.status, ended)
        history.append(operation)
        if move.action == "get":
            operation.result = state
            continue
        value = operation.arguments["value"] = next(values)
        written.append(value)
        if move.action == "swap":
            operation.result = state
        if move.action == "cas":
            expected = operation.arguments["expected"] = written[move.argument % len(written)]
            operation.result = [expected == state, state]
            if expected != state:
                continue
        if move.happens():
            state = value
    return history


def is_explained(history: Sequence[Operation]) -> bool:
    """Whether the search alone explains it: there an unknown write may take effect at any later moment."""
    accesses = [access for operation in history if (access := access_of(operation)) is not None]
    intervals = [
        Interval(access.operation.invoked, access.operation.ended, access) for access in accesses
    ]
    return not unexplained(intervals, None, apply)


@given(moves(*DRAWN, moves_max=20))
def test_a_serial_execution_with_overlaps_is_sound(drawn: list[Move]) -> None:
    assert judge(played(drawn)) == []


@given(moves(*DRAWN), st.integers(0, 6), st.integers(0, 5))
def test_unknown_writes_are_left_out_rightly(drawn: list[Move], place: int, value: int) -> None:
    history = played(drawn)
    reads = [operation for operation in history if operation.action in ("get", "swap")]
    if reads:
        reads[place % len(reads)].result = value or None
    assert (judge(history) == []) == is_explained(history)


@given(moves(*DRAWN, overlap=0, moves_max=12))
def test_swapped_reads_are_found(drawn: list[Move]) -> None:
    history = played(drawn)
    reads = [operation for operation in history if operation.action == "get" and operation.status == "ok"]
    for operation, other in pairwise(reads):
        if operation.result != other.result:
            operation.result, other.result = other.result, operation.result
            assert names(judge(history)) == {"not linearizable"}
            operation.result, other.result = other.result, operation.result


SOUND = [
    # Two that overlap may have any order.
    [done(NAME, "put", 0, 9, value=1), done(NAME, "put", 0, 9, value=2), done(NAME, "get", 10, 11, 1)],
    # The unknown write takes effect late.
    [
        open_ended(NAME, "put", 0, value=1),
        done(NAME, "get", 5, 6, None),
        done(NAME, "put", 7, 8, value=2),
        done(NAME, "get", 9, 10, 2),
        done(NAME, "get", 11, 12, 1),
    ],
    # The unknown write never takes effect.
    [open_ended(NAME, "put", 0, value=1), done(NAME, "get", 5, 6, None)],
    # A refusal says which value was there.
    [done(NAME, "put", 0, 1, value=1), done(NAME, "cas", 2, 3, [False, 1], expected=None, value=2)],
]
WRONG = [
    # A stale read.
    [done(NAME, "put", 0, 1, value=1), done(NAME, "get", 2, 3, None)],
    # A lost write.
    [done(NAME, "put", 0, 1, value=1), done(NAME, "put", 2, 3, value=2), done(NAME, "get", 4, 5, 1)],
    # A value that nobody wrote.
    [done(NAME, "get", 0, 1, 7)],
    # An answer before the request.
    [done(NAME, "get", 0, 1, 1), done(NAME, "put", 2, 3, value=1)],
    [done(NAME, "get", 0, 1, 1), open_ended(NAME, "put", 2, value=1)],
    # A write that failed is there.
    [refused(NAME, "put", 0, 1, value=1), done(NAME, "get", 2, 3, 1)],
    # A value comes back.
    [
        done(NAME, "put", 0, 9, value=1),
        done(NAME, "put", 0, 9, value=2),
        done(NAME, "get", 10, 11, 1),
        done(NAME, "get", 12, 13, 2),
    ],
    # Two exchanges got one value.
    [done(NAME, "swap", 0, 9, None, value=1), done(NAME, "swap", 0, 9, None, value=2)],
    # Two conditional puts expected one value.
    [
        done(NAME, "cas", 0, 9, [True, None], expected=None, value=1),
        done(NAME, "cas", 0, 9, [True, None], expected=None, value=2),
    ],
    # An unknown write took effect twice.
    [
        open_ended(NAME, "put", 0, value=1),
        done(NAME, "get", 1, 2, 1),
        done(NAME, "put", 3, 4, value=2),
        done(NAME, "get", 5, 6, 2),
        done(NAME, "get", 7, 8, 1),
    ],
    # A refusal names a value that was overwritten.
    [
        done(NAME, "put", 0, 1, value=1),
        done(NAME, "put", 2, 3, value=2),
        done(NAME, "cas", 4, 5, [False, 1], expected=None, value=3),
    ],
]


@pytest.mark.parametrize("history", SOUND)
def test_a_sound_history_is_not_accused(history: list[Operation]) -> None:
    assert judge(history) == []


@pytest.mark.parametrize("history", WRONG)
def test_an_anomaly_is_found(history: list[Operation]) -> None:
    assert names(judge(history)) == {"not linearizable"}


def test_keys_are_judged_by_themselves() -> None:
    history = [done(NAME, "put", 0, 1, key="one", value=1), done(NAME, "get", 2, 3, None, key="other")]
    assert judge(history) == []


def test_a_refusal_though_the_condition_held_is_found() -> None:
    history = [done(NAME, "cas", 0, 1, [False, None], expected=None, value=1)]
    assert names(judge(history)) == {"wrong refusal"}


def test_many_unknown_writes_take_no_time() -> None:
    """Without leaving them out, each of them could be anywhere."""
    history: list[Operation] = [open_ended(NAME, "put", 0, value=number) for number in range(1, 60)]
    for number in range(100, 400):
        history.append(done(NAME, "put", 2 * number, 2 * number + 3, value=number))
        before = number - 1 if number > 100 else None
        history.append(done(NAME, "get", 2 * number + 1, 2 * number + 2, before))
    history.append(done(NAME, "get", 1000, 1001, 17))
    assert judge(history) == []
