"""Counters: each increment adds 1 and its answer holds the new number; other operations read it.

The numbers give the order, so the judge needs no search. A history is linearizable if and only if

- no two increments returned the same number;
- an operation that ended before another began returned a smaller number; if the other is a read, the number
  may be equal;
- each number up to the greatest that anybody saw, if no increment returned it, can be assigned to a different
  increment of unknown outcome that began before anybody had seen that number or a greater one.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, zip_longest
from typing import Any, Final

from consistency.client import Client
from consistency.history import Anomaly, Operation, by_key
from consistency.tables import names_in_order, number_in, place

NAME: Final = "counters"
KEYS: Final = 2


class Counters:
    """The workload on a table."""

    name = NAME

    def __init__(self, table: str) -> None:
        self._table = table

    def prepare(self, client: Client) -> None:
        """Counters begin absent, which is 0."""

    def step(self, client: Client) -> None:
        key = f"counter {client.random.randrange(KEYS)}"
        if client.random.random() < 0.3:
            self._read(client, key)
            return
        with client.recorded(NAME, "add", key=key) as operation:
            answer = client.call(
                "UpdateItem",
                **place(self._table, key),
                UpdateExpression="ADD #n :one",
                ExpressionAttributeNames={"#n": "number"},
                ExpressionAttributeValues={":one": {"N": "1"}},
                ReturnValues="UPDATED_NEW",
            )
            operation.result = number_in(answer["Attributes"], "number")

    def _read(self, client: Client, key: str) -> None:
        with client.recorded(NAME, "read", key=key) as operation:
            answer = client.call("GetItem", **place(self._table, key), ConsistentRead=True)
            operation.result = number_in(answer.get("Item"), "number") or 0

    def finish(self, client: Client) -> None:
        for number in range(KEYS):
            self._read(client, f"counter {number}")

    def reads(self, items: dict[str, Any]) -> list[tuple[str, dict[str, Any], Any]]:
        keys = [f"counter {number}" for number in range(KEYS)]
        return [("read", {"key": key}, number_in(items.get(key), "number") or 0) for key in keys]

    def judge(self, operations: Sequence[Operation]) -> list[Anomaly]:
        return judge(operations)


def judge(operations: Sequence[Operation]) -> list[Anomaly]:
    """The anomalies of a history of counters."""
    return [anomaly for of_key in by_key(operations).values() for anomaly in _judge_key(of_key)]


def _judge_key(operations: list[Operation]) -> list[Anomaly]:
    certain = [operation for operation in operations if operation.status == "ok"]
    adds = sorted(
        (operation for operation in certain if operation.action == "add"),
        key=lambda operation: operation.result,
    )
    anomalies = [
        Anomaly("lost update", f"two increments returned the same number:{names_in_order(two)}")
        for two in pairwise(adds)
        if two[0].result == two[1].result
    ]
    return anomalies + _against_real_time(certain) + _unaccounted(operations, adds, certain)


def _against_real_time(certain: list[Operation]) -> list[Anomaly]:
    """Operations that returned less than an earlier operation."""
    anomalies = []
    by_end = sorted(certain, key=lambda operation: operation.ended)
    ended = 0
    highest: Operation | None = None
    for operation in sorted(certain, key=lambda operation: operation.invoked):
        while by_end[ended].ended < operation.invoked:
            if highest is None or by_end[ended].result > highest.result:
                highest = by_end[ended]
            ended += 1
        before = 0 if highest is None else highest.result
        if operation.result < before + (operation.action == "add"):
            both = names_in_order([operation] if highest is None else [highest, operation])
            anomalies.append(Anomaly("stale", f"the later operation returned too small a number:{both}"))
    return anomalies


def _unaccounted(
    operations: list[Operation], adds: list[Operation], certain: list[Operation]
) -> list[Anomaly]:
    """Numbers that were seen although no increment can have made them."""
    returned = {operation.result for operation in adds}
    highest = max((operation.result for operation in certain), default=0)
    missing = [number for number in range(1, highest + 1) if number not in returned]
    unknown = sorted(
        (
            operation
            for operation in operations
            if operation.action == "add" and operation.status == "unknown"
        ),
        key=lambda operation: operation.invoked,
    )
    # From the highest number down: the operation whose answer was the first with this number or a greater
    # one.
    first_seen: dict[int, Operation] = {}
    earliest: Operation | None = None
    by_result: dict[Any, list[Operation]] = {}
    for operation in certain:
        by_result.setdefault(operation.result, []).append(operation)
    for number in range(highest, 0, -1):
        for operation in by_result.get(number, ()):
            if earliest is None or operation.ended < earliest.ended:
                earliest = operation
        assert earliest is not None
        first_seen[number] = earliest
    for number, add in zip_longest(missing, unknown[: len(missing)]):
        if add is None or add.invoked > first_seen[number].ended:
            culprit = names_in_order([first_seen[number]])
            return [Anomaly("phantom increment", f"no increment can have made the number {number}:{culprit}")]
    return []
