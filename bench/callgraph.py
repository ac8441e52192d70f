"""Reads the files that valgrind's callgrind writes: instructions by function, alone and with callees.

The format: https://valgrind.org/docs/manual/cl-format.html. Names are given once, with a number, and later
only by the number. The line after `calls=` holds the cost of these calls. A function that is called by itself
is counted with its callees only where another function calls it; so figures with callees are exact for
functions that never call themselves, not even indirectly.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

_NAMED = re.compile(r"(fn|cfn)=\((\d+)\)(?: (.*))?$")
_COST = re.compile(r"[+\-*\d]\S* (\d+)$")


@dataclass(frozen=True, slots=True)
class Callgraph:
    """The instructions of a run: of all functions, and by name with those that a function calls."""

    total: int
    with_callees: dict[str, int]

    def of(self, *names: str) -> int:
        """The instructions of these functions with their callees; 0 for one that did not run."""
        return sum(self.with_callees.get(name, 0) for name in names)


def parse(lines: Iterable[str]) -> Callgraph:
    """The call graph in a file of callgrind."""
    names: dict[str, str] = {}
    with_callees: defaultdict[str, int] = defaultdict(int)
    total = 0
    caller = callee = ""
    is_call = False
    for line in lines:
        named = _NAMED.match(line)
        if named is not None:
            role, number, name = named.groups()
            if name is not None:
                names[number] = name
            if role == "fn":
                caller = names[number]
            else:
                callee = names[number]
        elif line.startswith("calls="):
            is_call = True
        elif cost := _COST.match(line):
            instructions = int(cost[1])
            if not is_call:
                total += instructions
            if not is_call or caller != callee:
                with_callees[caller] += instructions
            is_call = False
    return Callgraph(total, dict(with_callees))
