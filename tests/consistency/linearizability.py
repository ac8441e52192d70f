"""Is there an order of operations that explains what they returned, and keeps the order of those that did not
overlap? The search of Wing and Gong (1993), with Lowe's memory of visited states (2017), as in Porcupine.

The search walks over the calls and the ends in order. At a call it lets the operation take effect if the
state allows that, removes its call and its end, and starts over. If it reaches an end, that operation has not
taken effect in time: the last choice was wrong and is undone. The same state with the same operations done
has the same future, so it is tried only once.
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
    """The operations that no order explains; empty if the history is linearizable. Otherwise those not yet
    done when the best attempt got stuck, up to the operation whose end it could not pass.

    `apply` returns whether an operation is possible in a state, and the state after it; states are hashable.
    """
    count = len(intervals)
    # Calls before ends of the same moment: such operations overlap.
    events = sorted(
        [(interval.invoked, 0, number) for number, interval in enumerate(intervals)]
        + [(interval.ended, 1, number) for number, interval in enumerate(intervals)]
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
    visited: set[tuple[int, S]] = set()
    path: list[tuple[int, S]] = []
    best: tuple[int, int, int] = (-1, 0, head)
    entry = after[head]
    while entry != head:
        if entry < count:
            possible, following = apply(state, intervals[entry].what)
            if possible and (done | 1 << entry, following) not in visited:
                path.append((entry, state))
                done, state = done | 1 << entry, following
                visited.add((done, state))
                if len(visited) > STATES_MAX:
                    raise Undecided(f"{count} operations")
                for removed in (entry, count + entry):
                    after[before[removed]], before[after[removed]] = after[removed], before[removed]
                entry = after[head]
            else:
                entry = after[entry]
            continue
        if intervals[entry - count].ended == inf:
            break  # the operations that are left need not take effect
        best = max(best, (len(path), done, entry - count))
        if not path:
            _, done, stuck = best
            end = intervals[stuck].ended
            return [
                interval
                for n, interval in enumerate(intervals)
                if not done >> n & 1 and interval.invoked <= end
            ]
        undone, state = path.pop()
        done ^= 1 << undone
        for removed in (count + undone, undone):
            after[before[removed]] = before[after[removed]] = removed
        entry = after[undone]
    return []
