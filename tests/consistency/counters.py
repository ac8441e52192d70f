"""Counters: each increment adds one and is told the number after it; others read.

The numbers tell the order, so the judge searches for nothing. A history is linearizable if and only if

- no two increments were told the same number;
- what ended before another operation began was told a smaller number, or not a greater one by a reader;
- each number that no increment was told, up to the greatest that anybody saw, can be given to an increment
  of its own whose outcome is unknown, and which began before anybody had seen that number or a greater one.
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

    def judge(self, operations: Sequence[Operation]) -> list[Anomaly]:
        return judge(operations)


def judge(operations: Sequence[Operation]) -> list[Anomaly]:
    """The anomalies of a history of counters."""
    return [found for of_key in by_key(operations).values() for found in _judge_key(of_key)]


def _judge_key(operations: list[Operation]) -> list[Anomaly]:
    certain = [one for one in operations if one.status == "ok"]
    adds = sorted((one for one in certain if one.action == "add"), key=lambda one: one.result)
    anomalies = [
        Anomaly("lost update", f"two increments were told one number:{names_in_order(two)}")
        for two in pairwise(adds)
        if two[0].result == two[1].result
    ]
    return anomalies + _against_real_time(certain) + _unaccounted(operations, adds, certain)


def _against_real_time(certain: list[Operation]) -> list[Anomaly]:
    """Operations that were told less than an earlier one."""
    anomalies = []
    by_end = sorted(certain, key=lambda one: one.ended)
    ended = 0
    highest: Operation | None = None
    for one in sorted(certain, key=lambda one: one.invoked):
        while by_end[ended].ended < one.invoked:
            if highest is None or by_end[ended].result > highest.result:
                highest = by_end[ended]
            ended += 1
        before = 0 if highest is None else highest.result
        if one.result < before + (one.action == "add"):
            both = names_in_order([one] if highest is None else [highest, one])
            anomalies.append(Anomaly("stale", f"the later operation was told too little:{both}"))
    return anomalies


def _unaccounted(
    operations: list[Operation], adds: list[Operation], certain: list[Operation]
) -> list[Anomaly]:
    """Numbers that are there although no increment can have made them."""
    told = {one.result for one in adds}
    highest = max((one.result for one in certain), default=0)
    missing = [number for number in range(1, highest + 1) if number not in told]
    unknown = sorted(
        (one for one in operations if one.action == "add" and one.status == "unknown"),
        key=lambda one: one.invoked,
    )
    # From the highest number down: who saw it or a greater one, and was told that first.
    first_seen: dict[int, Operation] = {}
    earliest: Operation | None = None
    by_result: dict[Any, list[Operation]] = {}
    for one in certain:
        by_result.setdefault(one.result, []).append(one)
    for number in range(highest, 0, -1):
        for one in by_result.get(number, ()):
            if earliest is None or one.ended < earliest.ended:
                earliest = one
        assert earliest is not None
        first_seen[number] = earliest
    for number, add in zip_longest(missing, unknown[: len(missing)]):
        if add is None or add.invoked > first_seen[number].ended:
            seen = names_in_order([first_seen[number]])
            return [Anomaly("phantom increment", f"no increment can have made the number {number}:{seen}")]
    return []
