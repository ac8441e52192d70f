"""The search for an order, compared with a search through all orders."""

from __future__ import annotations

from itertools import permutations
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consistency import linearizability
from consistency.linearizability import Interval, Undecided, unexplained

Access = tuple[str, int]


def apply(state: int, access: Access) -> tuple[bool, int]:
    action, value = access
    return (True, value) if action == "write" else (state == value, state)


def explained_by_brute_force(intervals: list[Interval[Access]]) -> bool:
    """Whether any order of any choice of the intervals that took effect explains them."""
    required = {number for number, interval in enumerate(intervals) if interval.ended < inf}
    for size in range(len(required), len(intervals) + 1):
        for order in permutations(range(len(intervals)), size):
            if not required <= set(order):
                continue
            state, fits = 0, True
            for at, number in enumerate(order):
                later = order[at + 1 :]
                if any(intervals[after].ended < intervals[number].invoked for after in later):
                    fits = False
                    break
                possible, state = apply(state, intervals[number].what)
                if not possible:
                    fits = False
                    break
            if fits:
                return True
    return False


@given(
    st.lists(
        st.builds(
            lambda invoked, length, action, value: Interval(invoked, invoked + length, (action, value)),
            st.integers(0, 6),
            st.sampled_from([0, 1, 2, 4, inf]),
            st.sampled_from(["read", "write"]),
            st.integers(0, 2),
        ),
        max_size=5,
    )
)
def test_it_says_what_all_orders_say(intervals: list[Interval[Access]]) -> None:
    assert (unexplained(intervals, 0, apply) == []) == explained_by_brute_force(intervals)


def test_the_operations_that_nothing_explains_are_returned() -> None:
    early = Interval(0, 1, ("write", 1))
    stale = Interval(2, 3, ("read", 0))
    late = Interval(4, 5, ("read", 1))
    assert unexplained([early, stale, late], 0, apply) == [stale]


def test_it_does_not_search_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linearizability, "STATES_MAX", 100)
    writes = [Interval(0.0, 10.0, ("write", number)) for number in range(1, 12)]
    with pytest.raises(Undecided, match="12 operations"):
        unexplained([*writes, Interval(20.0, 21.0, ("read", 99))], 0, apply)


def test_it_remembers_the_states_that_it_has_seen() -> None:
    """Sixteen writes of one value have too many orders to try them all."""
    writes = [Interval(0.0, 10.0, ("write", 1)) for _ in range(12)]
    assert unexplained([*writes, Interval(20.0, 21.0, ("read", 2))], 0, apply)
