"""Is there an order of operations that explains what they returned, and keeps the order of those that did not
overlap? The search of Wing and Gong (1993), with Lowe's memory of the states that were seen (2017), as in
Porcupine.

The search walks over the calls and the ends in their order. At a call it lets this operation take effect, if
the state allows that, takes its call and its end away, and begins anew. At an end the operation has not taken
effect in time, so the last choice was wrong, and is undone. Two ways to one state with the same operations
done have one future: the second is not tried.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Final, Generic, TypeVar

S = TypeVar("S")
I = TypeVar("I")  # noqa: E741

STATES_MAX: Final = 2_000_000


class Undecided(Exception):
    """The search took more than `STATES_MAX` states."""


@dataclass(frozen=True, slots=True)
class Interval(Generic[I]):
    """An operation that took effect at one moment between `invoked` and `ended`; where `ended` is infinite,
    at any moment from `invoked` on, or never."""

    invoked: float
    ended: float
    what: I


def unexplained(
    intervals: Sequence[Interval[I]], initial: S, apply: Callable[[S, I], tuple[bool, S]]
) -> list[Interval[I]]:
    """Those that no order explains: empty if the history is linearizable. Otherwise the operations that were
    not yet done, when the best try got stuck, up to the one whose end it could not pass.

    `apply` tells whether an operation is possible in a state, and the state after it; states are hashable.
    """
    count = len(intervals)
    # Calls before ends of the same moment: such operations overlap.
    events = sorted(
        [(one.invoked, 0, number) for number, one in enumerate(intervals)]
        + [(one.ended, 1, number) for number, one in enumerate(intervals)]
    )
    # A doubly linked list of entries: number is a call, count + number is an end, 2 * count is the head.
    head = 2 * count
    after, before = [head] * (head + 1), [head] * (head + 1)
    last = head
    for _, is_end, number in events:
        entry = count + number if is_end else number
        after[last], before[entry] = entry, last
        last = entry
    after[last], before[head] = head, last

    done, state = 0, initial
    seen: set[tuple[int, S]] = set()
    path: list[tuple[int, S]] = []
    best: tuple[int, int, int] = (-1, 0, head)
    entry = after[head]
    while entry != head:
        if entry < count:
            possible, following = apply(state, intervals[entry].what)
            if possible and (done | 1 << entry, following) not in seen:
                path.append((entry, state))
                done, state = done | 1 << entry, following
                seen.add((done, state))
                if len(seen) > STATES_MAX:
                    raise Undecided(f"{count} operations")
                for gone in (entry, count + entry):
                    after[before[gone]], before[after[gone]] = after[gone], before[gone]
                entry = after[head]
            else:
                entry = after[entry]
            continue
        if intervals[entry - count].ended == inf:
            break  # all that are left may never take effect
        best = max(best, (len(path), done, entry - count))
        if not path:
            _, done, stuck = best
            end = intervals[stuck].ended
            return [one for n, one in enumerate(intervals) if not done >> n & 1 and one.invoked <= end]
        undone, state = path.pop()
        done ^= 1 << undone
        for gone in (count + undone, undone):
            after[before[gone]] = before[after[gone]] = gone
        entry = after[undone]
    return []
