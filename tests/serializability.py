"""Judges histories of transactions that read lists and append to them: were they strictly serializable?

This is the way of Elle (Kingsbury and Alvaro, VLDB 2020) for list-append, in the case where the lists are
read once more at the end. Each appended value is unique. So the final list of a key tells the order of the
appends, and each read list which of them came before it. Between two transactions there is an edge

    ww  from the one that appended a value to the one that appended the next value of this list
    wr  from the one that appended the last value that was read to the one that read it
    rw  from the one that read a list to the one that appended the next value to it
    rt  from one that ended to one that began later

and a history is strictly serializable only if these edges make no cycle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

Key = int
Value = int
Status = Literal["committed", "failed", "unknown"]


@dataclass(slots=True)
class Transaction:
    """What one transaction invoked and saw. `reads` are the lists before its own appends; `began` and `ended`
    are moments of one clock."""

    appends: dict[Key, Value]
    began: float
    reads: dict[Key, list[Value]] = field(default_factory=dict)
    status: Status = "unknown"
    ended: float = float("inf")
    error: str = ""


def anomalies(history: Iterable[Transaction], final: Mapping[Key, list[Value]]) -> list[str]:
    """What is wrong with a history, in words; empty if nothing is."""
    transactions = list(history)
    found: list[str] = []
    position = {(key, value): at for key, values in final.items() for at, value in enumerate(values)}
    writer: dict[tuple[Key, Value], int] = {}
    for number, one in enumerate(transactions):
        writer |= dict.fromkeys(one.appends.items(), number)
    for key, values in final.items():
        if len(set(values)) != len(values):
            found.append(f"a value was appended twice to list {key}: {values}")
        found += [
            f"list {key} has {value}, which nobody appended" for value in values if (key, value) not in writer
        ]

    took_place: list[int] = []
    for number, one in enumerate(transactions):
        there = [(key, value) in position for key, value in one.appends.items()]
        if one.status == "committed" and not all(there):
            found.append(f"an acknowledged append was lost: {one}")
        if one.status == "failed" and any(there):
            found.append(f"an append that failed is there: {one}")
        if any(there) and not all(there):
            found.append(f"a transaction is there in part: {one}")
        if one.status == "committed" or (one.status == "unknown" and there and all(there)):
            took_place.append(number)
        for key, values in one.reads.items():
            if one.status == "committed" and final.get(key, [])[: len(values)] != values:
                found.append(f"the list {key} that was read is no beginning of the final one: {one}")
    if found:
        return found

    edges: dict[int, set[int]] = {number: set() for number in took_place}

    def edge(before: int | None, after: int | None) -> None:
        if before is not None and after is not None and before != after:
            edges.setdefault(before, set()).add(after)

    for key, values in final.items():
        for earlier, later in pairwise(values):
            edge(writer[key, earlier], writer[key, later])
    for number in took_place:
        if transactions[number].status != "committed":
            continue  # nobody heard what it read
        for key, values in transactions[number].reads.items():
            if values:
                edge(writer[key, values[-1]], number)
            following = final.get(key, [])[len(values) : len(values) + 1]
            for value in following:
                edge(number, writer[key, value])
    _add_real_time(transactions, took_place, edges)
    cycle = _cycle(edges)
    if cycle:
        found.append(f"a cycle of dependencies: {[transactions[n] for n in cycle if n >= 0]}")
    return found


def _add_real_time(
    transactions: list[Transaction], took_place: list[int], edges: dict[int, set[int]]
) -> None:
    """Edges from each transaction that ended to those that began later, by way of one node for each end."""
    moments = [(transactions[n].ended, 1, n) for n in took_place if transactions[n].ended != float("inf")]
    moments += [(transactions[n].began, 0, n) for n in took_place]
    last: int | None = None
    barriers = 0
    for _, ends, number in sorted(moments):
        if ends:
            barriers += 1
            barrier = -barriers
            edges[barrier] = set()
            edges[number].add(barrier)
            if last is not None:
                edges[last].add(barrier)
            last = barrier
        elif last is not None:
            edges[last].add(number)


def _cycle(edges: Mapping[int, set[int]]) -> list[int]:
    """The nodes of one cycle; empty if there is none."""
    done: set[int] = set()
    for start in edges:
        if start in done:
            continue
        path: list[int] = []
        on_path: set[int] = set()
        stack: list[tuple[int, bool]] = [(start, False)]
        while stack:
            node, leaving = stack.pop()
            if leaving:
                path.pop()
                on_path.discard(node)
                done.add(node)
                continue
            if node in on_path:
                return path[path.index(node) :]
            if node in done:
                continue
            path.append(node)
            on_path.add(node)
            stack.append((node, True))
            stack += [(after, False) for after in edges.get(node, ()) if after not in done]
    return []
