"""Sets: each add is of an element of its own; others read all elements.

A set only grows, so in a linearizable history the sets that were read are a chain, each a part of the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count, groupby, pairwise
from typing import Any, Final

from consistency.client import Client
from consistency.history import Anomaly, Operation, by_key
from consistency.tables import names_in_order, place

NAME: Final = "sets"
ELEMENTS_PER_KEY: Final = 100
"""After this many elements the next set begins, because reads of large sets take long."""


class Sets:
    """The workload on a table."""

    name = NAME

    def __init__(self, table: str) -> None:
        self._table = table
        self._elements = count()
        self._last = 0

    def prepare(self, client: Client) -> None:
        """Sets begin absent, which is empty."""

    def step(self, client: Client) -> None:
        if client.random.random() < 0.4:
            current = self._last // ELEMENTS_PER_KEY
            self._read(client, f"set {client.random.randint(max(0, current - 1), current)}")
            return
        element = self._last = next(self._elements)
        key = f"set {element // ELEMENTS_PER_KEY}"
        with client.recorded(NAME, "add", key=key, element=element):
            client.call(
                "UpdateItem",
                **place(self._table, key),
                UpdateExpression="ADD elements :new",
                ExpressionAttributeValues={":new": {"SS": [str(element)]}},
            )

    def _read(self, client: Client, key: str) -> None:
        with client.recorded(NAME, "read", key=key) as operation:
            answer = client.call("GetItem", **place(self._table, key), ConsistentRead=True)
            operation.result = _elements(answer.get("Item"))

    def finish(self, client: Client) -> None:
        for number in range(self._last // ELEMENTS_PER_KEY + 1):
            self._read(client, f"set {number}")

    def reads(self, items: dict[str, Any]) -> list[tuple[str, dict[str, Any], Any]]:
        keys = [f"set {number}" for number in range(self._last // ELEMENTS_PER_KEY + 1)]
        return [("read", {"key": key}, _elements(items.get(key))) for key in keys]

    def judge(self, operations: Sequence[Operation]) -> list[Anomaly]:
        return judge(operations)


def _elements(item: dict[str, Any] | None) -> list[int]:
    return sorted(int(element) for element in (item or {}).get("elements", {"SS": []})["SS"])


def judge(operations: Sequence[Operation]) -> list[Anomaly]:
    """The anomalies of a history of sets."""
    return [anomaly for of_key in by_key(operations).values() for anomaly in _judge_key(of_key)]


def _judge_key(operations: list[Operation]) -> list[Anomaly]:
    adds = {
        operation.arguments["element"]: operation for operation in operations if operation.action == "add"
    }
    reads = [operation for operation in operations if operation.action == "read" and operation.status == "ok"]
    anomalies = []
    for read in reads:
        for element in read.result:
            add = adds.get(element)
            if add is None:
                anomalies.append(Anomaly("phantom", f"nobody added {element}:{names_in_order([read])}"))
            elif add.status == "failed":
                anomalies.append(Anomaly("aborted read", f"the add failed:{names_in_order([add, read])}"))
            elif add.invoked > read.ended:
                anomalies.append(Anomaly("future read", f"the add began later:{names_in_order([add, read])}"))
        if len(set(read.result)) < len(read.result):
            anomalies.append(Anomaly("duplicate", f"an element is there twice:{names_in_order([read])}"))
    return anomalies or _torn(reads) or _out_of_time(list(adds.values()), reads)


def _torn(reads: list[Operation]) -> list[Anomaly]:
    """Two sets of which each lacks an element of the other."""
    ordered = sorted(reads, key=lambda operation: len(operation.result))
    return [
        Anomaly("torn", f"neither set is a part of the other:{names_in_order([smaller, larger])}")
        for smaller, larger in pairwise(ordered)
        if not set(smaller.result) <= set(larger.result)
    ]


def _out_of_time(adds: list[Operation], reads: list[Operation]) -> list[Anomaly]:
    """Reads that no moment suits: they saw an add that began after they must have taken place.

    A read takes place after its own call, after the calls of the adds whose elements it saw, and after the
    reads of smaller sets; it takes place before its own end, and before the ends of the adds that it missed.
    If each read has such a moment, the adds fit between them.
    """
    anomalies = []
    adds_by_element = {operation.arguments["element"]: operation for operation in adds}
    by_end = sorted(
        (operation for operation in adds if operation.status == "ok"), key=lambda operation: operation.ended
    )
    of_smaller: list[Operation] = []
    for _, group in groupby(
        sorted(reads, key=lambda operation: len(operation.result)),
        key=lambda operation: len(operation.result),
    ):
        same = list(group)
        elements = set(same[0].result)
        seen_adds = [adds_by_element[element] for element in elements]
        missed = next((add for add in by_end if add.arguments["element"] not in elements), None)
        for read in same:
            begun = max([read, *seen_adds, *of_smaller], key=lambda operation: operation.invoked)
            ended = min([read] if missed is None else [read, missed], key=lambda operation: operation.ended)
            if begun.invoked > ended.ended:
                details = names_in_order([ended, *([] if read in (begun, ended) else [read]), begun])
                name = "lost" if ended is missed else "stale"
                anomalies.append(Anomaly(name, f"the first ended before the last began:{details}"))
        of_smaller = [max([*same, *seen_adds, *of_smaller], key=lambda operation: operation.invoked)]
    return anomalies
