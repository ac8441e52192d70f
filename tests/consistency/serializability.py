"""Judges histories of transactions that read lists and append to them: were they strictly serializable?

This is Elle's method for list-append (Kingsbury and Alvaro, VLDB 2020). Each appended value is unique, so the
longest list that was read of a key gives the order of its versions, and every read shows which version it
saw. Appends that succeeded but are not in this list come after it. The edges between transactions are

    ww  from the writer of a version to the writer of the next one
    wr  from the writer of a version to a reader of it
    rw  from a reader of a version to the writer of the next one
    rt  from a transaction that ended to one that began later

A history is strictly serializable only if these edges form no cycle. If all lists are read once more at the
end, the converse holds too.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import inf

from consistency.cycles import Cycle, Graph, components, worst_cycle
from consistency.history import Anomaly, Status

Key = Hashable
Value = int


@dataclass(frozen=True, slots=True)
class Append:
    """A transaction appends a value to a list."""

    key: Key
    value: Value


@dataclass(frozen=True, slots=True)
class Read:
    """A transaction reads a list, including its own earlier appends."""

    key: Key
    values: list[Value]


@dataclass(slots=True)
class Transaction:
    """The steps of one transaction, in order. Reads count only if it succeeded. If its outcome is unknown, it
    has no end."""

    steps: list[Append | Read]
    began: float
    ended: float = inf
    status: Status = "unknown"
    error: str = ""

    def __str__(self) -> str:
        steps = ", ".join(
            f"append {one.value} to {one.key}"
            if isinstance(one, Append)
            else f"read {one.key} as {one.values}"
            for one in self.steps
        )
        outcome = f"{self.status} ({self.error})" if self.error else self.status
        return f"[{self.began:.6f}, {self.ended:.6f}] {outcome}: {steps}"

    def appends_to(self, key: Key) -> list[Value]:
        return [one.value for one in self.steps if isinstance(one, Append) and one.key == key]


@dataclass(frozen=True, slots=True)
class Seen:
    """A read by a transaction that succeeded. `before`: the list without the transaction's own appends."""

    reader: int
    key: Key
    values: list[Value]
    before: list[Value]


@dataclass(slots=True)
class _Inference:
    """What the transactions reveal about each other."""

    transactions: Sequence[Transaction]
    writer: dict[tuple[Key, Value], int] = field(default_factory=dict)
    seen: list[Seen] = field(default_factory=list)
    versions: dict[Key, list[Value]] = field(default_factory=dict)
    """By key, the longest list that anybody read."""
    anomalies: list[Anomaly] = field(default_factory=list)

    def find(self, name: str, details: str, *numbers: int) -> None:
        lines = "".join(f"\n    {self.transactions[number]}" for number in dict.fromkeys(numbers))
        self.anomalies.append(Anomaly(name, details + lines))

    def index(self) -> None:
        """Find the writer of each value, and what each transaction read from others."""
        for number, one in enumerate(self.transactions):
            for step in one.steps:
                if isinstance(step, Append):
                    assert (step.key, step.value) not in self.writer, f"{step} is there twice in the history"
                    self.writer[step.key, step.value] = number
        for number, one in enumerate(self.transactions):
            if one.status == "ok":
                self._look(number, one)

    def _look(self, number: int, one: Transaction) -> None:
        own: dict[Key, list[Value]] = {}
        for step in one.steps:
            mine = own.setdefault(step.key, [])
            if isinstance(step, Append):
                mine.append(step.value)
                continue
            start = max(len(step.values) - len(mine), 0)
            before = step.values[:start]
            if step.values[start:] != mine or any(self.writer.get((step.key, v)) == number for v in before):
                details = f"it did not read its own appends to {step.key} so far, and them at the end:"
                self.find("internal", details, number)
                continue
            self.seen.append(Seen(number, step.key, step.values, before))
            if len(step.values) > len(self.versions.setdefault(step.key, [])):
                self.versions[step.key] = step.values

    def check_values(self) -> None:
        """Look at each list by itself: were its values written, and is each list of a key a prefix of the
        longest?"""
        for seen in self.seen:
            if len(set(seen.values)) < len(seen.values):
                self.find("duplicate append", f"{seen.key} has a value twice:", seen.reader)
            for value in seen.values:
                writer = self.writer.get((seen.key, value))
                if writer is None:
                    self.find("phantom append", f"nobody appended {value} to {seen.key}:", seen.reader)
                elif self.transactions[writer].status == "failed":
                    details = f"the transaction that appended {value} to {seen.key} failed:"
                    self.find("G1a aborted read", details, writer, seen.reader)
            longest = self.versions[seen.key]
            if longest[: len(seen.values)] != seen.values:
                details = f"{seen.key} is no beginning of {longest}, which somebody read:"
                self.find("incompatible order", details, seen.reader)
            writer = self.writer.get((seen.key, seen.before[-1])) if seen.before else None
            if writer is not None and self.transactions[writer].appends_to(seen.key)[-1] != seen.before[-1]:
                details = f"the read of {seen.key} ends amid the appends of another transaction:"
                self.find("G1b intermediate read", details, writer, seen.reader)

    def graph(self) -> tuple[Graph, set[int]]:
        """The edges between the transactions that took place, and these transactions."""
        graph = Graph()
        observed = {(key, value) for key, values in self.versions.items() for value in values}
        took_place = {number for number, one in enumerate(self.transactions) if one.status == "ok"}
        took_place |= {self.writer[pair] for pair in observed}
        # Values that nobody saw, by transactions that succeeded, or that others saw to have taken place.
        unseen: dict[Key, list[int]] = {}
        for (key, value), number in self.writer.items():
            if number in took_place and (key, value) not in observed:
                unseen.setdefault(key, []).append(number)
        for key, values in self.versions.items():
            writers = [self.writer[key, value] for value in values]
            for earlier, later in pairwise(writers):
                graph.add(earlier, later, "ww")
            for later in unseen.get(key, ()):
                if writers:
                    graph.add(writers[-1], later, "ww")
        for seen in self.seen:
            if seen.before:
                graph.add(self.writer[seen.key, seen.before[-1]], seen.reader, "wr")
            for number in self._next_writers(seen, unseen.get(seen.key, [])):
                graph.add(seen.reader, number, "rw")
        graph.add_real_time(
            [(number, one.began, one.ended) for number in took_place if (one := self.transactions[number])]
        )
        return graph, took_place

    def _next_writers(self, seen: Seen, unseen: list[int]) -> list[int]:
        following = self.versions[seen.key][len(seen.before) :]
        return [self.writer[seen.key, following[0]]] if following else unseen

    def lost_updates(self, took_place: set[int]) -> None:
        """Transactions that read one version of a list before each of them appended to it."""
        read_by: dict[tuple[Key, int], list[int]] = {}
        for seen in self.seen:
            appends = self.transactions[seen.reader].appends_to(seen.key)
            if seen.reader in took_place and appends and seen.before == seen.values:
                read_by.setdefault((seen.key, len(seen.before)), []).append(seen.reader)
        for (key, _), readers in read_by.items():
            if len(set(readers)) > 1:
                details = f"all of them read one version of {key}, and then appended to it:"
                self.find("lost update", details, *readers)

    def explain(self, name: str, cycle: Cycle) -> None:
        """Report a cycle with all its edges, but without the moments that join `rt` edges."""
        details = "each of them has to come before the next one, and the last one before the first one:"
        edges = ""
        for one, kind, _ in cycle:
            if one >= 0:
                edges += f"\n  {kind} from\n    {self.transactions[one]}"
        self.anomalies.append(Anomaly(name, details + edges))


def judge(transactions: Sequence[Transaction]) -> list[Anomaly]:
    """What is wrong with a history; empty if nothing is. It looks for cycles only if the lists themselves are
    right, because they give the order."""
    inference = _Inference(transactions)
    inference.index()
    inference.check_values()
    if not inference.anomalies:
        graph, took_place = inference.graph()
        inference.lost_updates(took_place)
        for component in components(graph):
            inference.explain(*worst_cycle(graph, component))
    return inference.anomalies
