"""The judge of transactions on lists: it says what a search through the orders says, and names anomalies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency.drawn import Move, moves, names
from consistency.linearizability import Interval, unexplained
from consistency.serializability import Append, Read, Transaction, judge

KEYS = ("x", "y", "z")
Lists = tuple[tuple[int, ...], ...]


def played(drawn: list[Move]) -> list[Transaction]:
    """The history of a serial execution on three lists, with all of them read at the end."""
    values = count()
    lists: dict[str, list[int]] = {key: [] for key in KEYS}
    history = []
    for number, move in enumerate(drawn):
        one, other = KEYS[move.argument], KEYS[move.other]
        began, ended = move.interval(number)
        transaction = Transaction([], began, ended, move.status)
        state = {key: list(list_) for key, list_ in lists.items()}
        for step in move.action.split():
            key = one if step[-1] == "1" else other
            if step.startswith("read"):
                transaction.steps.append(Read(key, list(state[key])))
            else:
                append = Append(key, next(values))
                transaction.steps.append(append)
                state[key].append(append.value)
        if move.happens():
            lists = state
        history.append(transaction)
    final = [Read(key, list(list_)) for key, list_ in lists.items()]
    history.append(Transaction([*final], 1000, 1001, "ok"))
    return history


DRAWN = (
    "read1 read2",
    "append1 append2",
    "append1 append1",
    "read1 append2",
    "read1 append1",
    "read1 read2 append1",
    "append1 read1",
)


def apply(state: Lists, transaction: Transaction) -> tuple[bool, Lists]:
    lists = dict(zip(KEYS, state, strict=True))
    for step in transaction.steps:
        if isinstance(step, Append):
            lists[str(step.key)] += (step.value,)
        elif transaction.status == "ok" and lists[str(step.key)] != tuple(step.values):
            return False, state
    return True, tuple(lists.values())


def is_explained(history: Sequence[Transaction]) -> bool:
    tried = [Interval(one.began, one.ended, one) for one in history if one.status != "failed"]
    empty: Lists = ((), (), ())
    return not unexplained(tried, empty, apply)


@given(moves(*DRAWN, moves_max=20))
def test_a_serial_execution_with_overlaps_is_sound(drawn: list[Move]) -> None:
    assert judge(played(drawn)) == []


Change = tuple[int, int, str]


@given(
    moves(*DRAWN, moves_max=6),
    st.lists(
        st.tuples(st.integers(0, 5), st.integers(0, 6), st.sampled_from(["cut", "swap", "add"])), max_size=2
    ),
)
def test_it_says_what_the_search_says(drawn: list[Move], changes: list[Change]) -> None:
    """Some of the reads, except the last ones, are changed."""
    history = played(drawn)
    reads = [step for one in history[:-1] for step in one.steps if isinstance(step, Read)]
    for place, value, change in changes:
        values = reads[place % len(reads)].values if reads else []
        if change == "add":
            values.append(value)
        elif values and change == "cut":
            values.pop()
        else:
            values.reverse()
    assert (judge(history) == []) == is_explained(history)


@given(moves(*DRAWN, moves_max=8), st.integers(0, 99))
def test_a_lost_append_is_found(drawn: list[Move], place: int) -> None:
    """An acknowledged append that is missing in all reads of others."""
    history = played(drawn)
    appended = [
        (number, step)
        for number, one in enumerate(history)
        for step in one.steps
        if isinstance(step, Append) and one.status == "ok"
    ]
    if appended:
        number, lost = appended[place % len(appended)]
        for one in (*history[:number], *history[number + 1 :]):
            for step in one.steps:
                if isinstance(step, Read) and step.key == lost.key and lost.value in step.values:
                    step.values.remove(lost.value)
        assert judge(history) != []


@given(moves("read1", "append1", overlap=0, moves_max=8), st.integers(0, 99))
def test_a_stale_read_is_found(drawn: list[Move], place: int) -> None:
    """Where no outcome is unknown: otherwise the last append may have been made later."""
    history = played([replace(move, status="ok") for move in drawn])
    reads = [one.steps[0] for one in history if len(one.steps) == 1]
    stale = [read for read in reads if isinstance(read, Read) and read.values]
    if stale:
        stale[place % len(stale)].values.pop()
        assert judge(history) != []


def ok(*steps: Any, began: float = 0, ended: float = 9) -> Transaction:
    return Transaction([_step(step) for step in steps], began, ended, "ok")


def _step(step: tuple[str, Any]) -> Append | Read:
    key, what = step
    return Read(key, what) if isinstance(what, list) else Append(key, what)


def final(**lists: list[int]) -> Transaction:
    return ok(*lists.items(), began=100, ended=101)


NAMED = [
    ("G0", [ok(("x", 1), ("y", 2)), ok(("x", 3), ("y", 4)), final(x=[1, 3], y=[4, 2])]),
    ("G1a aborted read", [Transaction([Append("x", 1)], 0, 1, "failed"), ok(("x", [1]))]),
    ("G1b intermediate read", [ok(("x", 1), ("x", 2)), ok(("x", [1])), final(x=[1, 2])]),
    ("G1c", [ok(("x", 1), ("y", [2])), ok(("y", 2), ("x", [1]))]),
    # A torn read: it saw one of two appends of a transaction.
    ("G-single", [ok(("x", 1), ("y", 2)), ok(("x", [1]), ("y", [])), final(x=[1], y=[2])]),
    # Write skew: each of two read what the other one was about to append to.
    ("G2", [ok(("x", []), ("y", []), ("x", 1)), ok(("x", []), ("y", []), ("y", 2)), final(x=[1], y=[2])]),
    ("lost update", [ok(("x", []), ("x", 1)), ok(("x", []), ("x", 2)), final(x=[1, 2])]),
    # Two reads saw two appends in different orders, and no read saw both.
    (
        "G2",
        [
            ok(("x", 1)),
            ok(("y", 2)),
            ok(("x", [1]), ("y", [])),
            ok(("x", []), ("y", [2])),
            final(x=[1], y=[2]),
        ],
    ),
    ("duplicate append", [ok(("x", 1)), final(x=[1, 1])]),
    ("phantom append", [final(x=[1])]),
    ("incompatible order", [ok(("x", 1)), ok(("x", 2)), ok(("x", [1, 2])), ok(("x", [2]))]),
    ("internal", [ok(("x", 1), ("x", [])), final(x=[1])]),
    ("internal", [ok(("x", [1]), ("x", 1)), final(x=[1])]),
    ("internal", [ok(("x", 1), ("x", [1, 2])), ok(("x", 2)), final(x=[1, 2])]),
    # Serializable, but not in the order of time.
    ("G0-realtime", [ok(("x", 2), began=0, ended=1), ok(("x", 1), began=2, ended=3), final(x=[1, 2])]),
    ("G1c-realtime", [ok(("x", [1]), began=0, ended=1), ok(("x", 1), began=2, ended=3)]),
    ("G-single-realtime", [ok(("x", 1), began=0, ended=1), ok(("x", []), began=2, ended=3), final(x=[1])]),
    # A lost append: nobody sees it, although it was acknowledged.
    ("G-single-realtime", [ok(("x", 1), began=0, ended=1), final(x=[])]),
    # An append that was seen is gone.
    ("G-single-realtime", [ok(("x", 1)), ok(("x", [1]), began=10, ended=11), final(x=[])]),
    # A transaction of unknown outcome took place only in part.
    (
        "G-single",
        [Transaction([Append("x", 1), Append("y", 2)], 0), ok(("x", [1])), final(x=[1], y=[])],
    ),
]


@pytest.mark.parametrize(("name", "history"), NAMED)
def test_an_anomaly_is_found_and_named(name: str, history: list[Transaction]) -> None:
    found = judge(history)
    assert name in names(found)
    assert all(str(anomaly) for anomaly in found)


def test_a_sound_history_is_not_accused() -> None:
    history = [
        ok(("x", []), ("x", 10), began=0, ended=1),
        ok(("x", [10]), ("y", []), ("y", 20), began=2, ended=3),
        Transaction([Append("x", 11)], 4),  # unknown, and there
        Transaction([Append("x", 12), Append("y", 21)], 4),  # unknown, and not there
        Transaction([Append("x", 13)], 4, 5, "failed"),
        ok(("x", [10]), began=5, ended=6),
        ok(("y", 22), ("y", [20, 22]), began=6, ended=7),
        ok(("x", [10, 11]), ("y", [20, 22]), began=8, ended=9),
    ]
    assert judge(history) == []


def test_a_cycle_names_its_transactions() -> None:
    history = [ok(("x", 1), ("y", 2)), ok(("x", [1]), ("y", [])), final(x=[1], y=[2])]
    [anomaly] = judge(history)
    assert "append 1 to x, append 2 to y" in anomaly.details
    assert "read x as [1], read y as []" in anomaly.details
