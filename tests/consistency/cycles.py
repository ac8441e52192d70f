"""Graphs of which transaction came before which, and the names of their cycles.

An edge from A to B has kinds: `ww` A wrote a version, and B the next one; `wr` A wrote what B read; `rw` A
read a version, and B wrote the next one; `rt` A ended before B began.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal

Kind = Literal["ww", "wr", "rw", "rt"]

# Adya's names, worst first: each allows one more kind of edge. A G-single has at most one `rw`.
_LEVELS: Final[tuple[tuple[str, frozenset[Kind]], ...]] = (
    ("G0", frozenset({"ww"})),
    ("G1c", frozenset({"ww", "wr"})),
    ("G-single", frozenset({"ww", "wr", "rw"})),
    ("G2", frozenset({"ww", "wr", "rw"})),
    ("G0-realtime", frozenset({"ww", "rt"})),
    ("G1c-realtime", frozenset({"ww", "wr", "rt"})),
    ("G-single-realtime", frozenset({"ww", "wr", "rw", "rt"})),
    ("G2-realtime", frozenset({"ww", "wr", "rw", "rt"})),
)


@dataclass(slots=True)
class Graph:
    """Nodes are integers. Negative ones are moments, not transactions: only `rt` edges touch them."""

    after: dict[int, dict[int, set[Kind]]] = field(default_factory=dict)

    def add(self, earlier: int, later: int, kind: Kind) -> None:
        """Add an edge, unless it leads from a node to itself."""
        if earlier != later:
            self.after.setdefault(earlier, {}).setdefault(later, set()).add(kind)
            self.after.setdefault(later, {})

    def add_real_time(self, intervals: list[tuple[int, float, float]]) -> None:
        """Add edges from each node to those that began after its end; `intervals`: (node, began, ended).

        They pass through one node for each moment at which something ended, which keeps their number small.
        """
        begins = [(began, 0, node) for node, began, _ in intervals]
        ends = [(ended, 1, node) for node, _, ended in intervals]
        moment = 0
        for _, is_end, node in sorted(begins + ends):
            if is_end:
                moment -= 1
                self.add(node, moment, "rt")
                if moment < -1:
                    self.add(moment + 1, moment, "rt")
            elif moment:
                self.add(moment, node, "rt")


def components(graph: Graph) -> Iterator[list[int]]:
    """The strongly connected components of more than one node (Tarjan, without recursion)."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    path: list[int] = []
    on_path: set[int] = set()
    for root in graph.after:
        if root in index:
            continue
        work = [(root, iter(graph.after[root]))]
        while work:
            node, successors = work[-1]
            if node not in index:
                index[node] = low[node] = len(index)
                path.append(node)
                on_path.add(node)
            for successor in successors:
                if successor not in index:
                    work.append((successor, iter(graph.after[successor])))
                    break
                if successor in on_path:
                    low[node] = min(low[node], index[successor])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    component = [path.pop()]
                    while component[-1] != node:
                        component.append(path.pop())
                    on_path.difference_update(component)
                    if len(component) > 1:
                        yield component


Cycle = list[tuple[int, Kind, int]]
"""The edges of a cycle: each begins where the previous edge ends."""


def worst_cycle(graph: Graph, component: list[int]) -> tuple[str, Cycle]:
    """The name of the worst kind of cycle in a strongly connected component, and its shortest cycle."""
    inside = set(component)
    for name, kinds in _LEVELS:
        once = name.startswith("G-single")
        over = kinds - {"rw"} if once else kinds
        best: Cycle = []
        for node in component:
            for successor, edge in graph.after[node].items():
                if successor not in inside or not edge & (frozenset({"rw"}) if once else kinds):
                    continue
                kind: Kind = "rw" if once else max(edge & kinds)
                edges_max = len(best) - 2 if best else len(component)
                back = _path(graph, inside, over, successor, node, edges_max)
                if back is not None:
                    best = [(node, kind, successor), *back]
        if best:
            return name, best
    raise AssertionError("a strongly connected component has a cycle")


def _path(
    graph: Graph, inside: set[int], kinds: frozenset[Kind], start: int, goal: int, edges_max: int
) -> Cycle | None:
    """The shortest path over edges of these kinds; None if it has more than `edges_max` edges."""
    came_from: dict[int, tuple[int, Kind] | None] = {start: None}
    depth = {start: 0}
    queue = deque([start])
    while queue:
        node = queue.popleft()
        if node == goal:
            path: Cycle = []
            while (step := came_from[node]) is not None:
                path.append((step[0], step[1], node))
                node = step[0]
            return path[::-1]
        if depth[node] >= edges_max:
            continue
        for successor, edge in graph.after[node].items():
            if successor in inside and successor not in came_from and edge & kinds:
                came_from[successor] = (node, max(edge & kinds))
                depth[successor] = depth[node] + 1
                queue.append(successor)
    return None
