"""Registers: a few keys that are put, read, exchanged, and put where they hold an expected value.

If each key is linearizable, all of them together are. Every value is written only once. So a write of unknown
outcome whose value nobody ever saw can be left out: if there is an order with it, there is also an order
without it. If somebody saw the value, the write took effect before that answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import inf
from typing import Any, Final

from consistency.client import Client
from consistency.history import Anomaly, Operation, Refused, by_key
from consistency.linearizability import Interval, Undecided, unexplained
from consistency.tables import names_in_order, number_in, place

NAME: Final = "registers"
KEYS: Final = 3


class Registers:
    """The workload on a table."""

    name = NAME

    def __init__(self, table: str) -> None:
        self._table = table
        self._values = count(1)
        self._seen: dict[tuple[int, str], int | None] = {}

    def prepare(self, client: Client) -> None:
        """Registers begin empty."""

    def step(self, client: Client) -> None:
        key = f"register {client.random.randrange(KEYS)}"
        action = client.random.choice((self._get, self._get, self._put, self._swap, self._compare_and_set))
        action(client, key)

    def _get(self, client: Client, key: str) -> None:
        with client.recorded(NAME, "get", key=key) as operation:
            answer = client.call("GetItem", **place(self._table, key), ConsistentRead=True)
            operation.result = self._seen[client.number, key] = number_in(answer.get("Item"), "value")

    def _put(self, client: Client, key: str) -> None:
        value = next(self._values)
        with client.recorded(NAME, "put", key=key, value=value):
            client.call("PutItem", TableName=self._table, Item=_item(key, value))

    def _swap(self, client: Client, key: str) -> None:
        value = next(self._values)
        with client.recorded(NAME, "swap", key=key, value=value) as operation:
            answer = client.call(
                "PutItem", TableName=self._table, Item=_item(key, value), ReturnValues="ALL_OLD"
            )
            operation.result = number_in(answer.get("Attributes"), "value")

    def _compare_and_set(self, client: Client, key: str) -> None:
        expected, value = self._seen.get((client.number, key)), next(self._values)
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(#v)"}
        if expected is not None:
            condition = {
                "ConditionExpression": "#v = :expected",
                "ExpressionAttributeValues": {":expected": {"N": str(expected)}},
            }
        with client.recorded(NAME, "cas", key=key, expected=expected, value=value) as operation:
            try:
                client.call(
                    "PutItem",
                    TableName=self._table,
                    Item=_item(key, value),
                    ExpressionAttributeNames={"#v": "value"},
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                    **condition,
                )
                operation.result = [True, expected]
                self._seen[client.number, key] = value
            except Refused as refused:
                if refused.code != "ConditionalCheckFailedException":
                    raise
                # The refused put read the register, and wrote nothing.
                there = self._seen[client.number, key] = number_in(refused.answer.get("Item"), "value")
                operation.result = [False, there]

    def finish(self, client: Client) -> None:
        for number in range(KEYS):
            self._get(client, f"register {number}")

    def reads(self, items: dict[str, Any]) -> list[tuple[str, dict[str, Any], Any]]:
        keys = [f"register {number}" for number in range(KEYS)]
        return [("get", {"key": key}, number_in(items.get(key), "value")) for key in keys]

    def judge(self, operations: Sequence[Operation]) -> list[Anomaly]:
        return judge(operations)


def _item(key: str, value: int) -> dict[str, Any]:
    return {"key": {"S": key}, "value": {"N": str(value)}}


@dataclass(frozen=True, slots=True)
class Access:
    """What an operation did: if it looked, it read `found`; then it wrote `written`, if that is not None."""

    operation: Operation
    looked: bool
    found: int | None
    written: int | None


def judge(operations: Sequence[Operation]) -> list[Anomaly]:
    """The anomalies of a history of registers: at most one for each key."""
    anomalies = []
    for key, of_key in by_key(operations).items():
        accesses = [access for operation in of_key if (access := access_of(operation)) is not None]
        wrong = [one.operation for one in accesses if _is_refused_wrongly(one.operation)]
        if wrong:
            details = f"{key} held the expected value:{names_in_order(wrong)}"
            anomalies.append(Anomaly("wrong refusal", details))
        try:
            stuck = unexplained(_complete(accesses), None, apply)
        except Undecided as error:
            anomalies.append(Anomaly("undecided", f"{key}: {error}"))
            continue
        if stuck:
            left = names_in_order([one.what.operation for one in stuck])
            details = f"no order of the operations on {key} explains these:{left}"
            anomalies.append(Anomaly("not linearizable", details))
    return anomalies


def access_of(operation: Operation) -> Access | None:
    """None for an operation that had no effect and returned nothing."""
    arguments, ok = operation.arguments, operation.status == "ok"
    if operation.status == "failed":
        return None
    if operation.action == "get":
        return Access(operation, True, operation.result, None) if ok else None
    if operation.action == "cas":
        if ok and not operation.result[0]:
            return Access(operation, True, operation.result[1], None)
        return Access(operation, True, arguments["expected"], arguments["value"])
    return Access(operation, ok and operation.action == "swap", operation.result, arguments["value"])


def _is_refused_wrongly(operation: Operation) -> bool:
    if operation.action != "cas" or operation.status != "ok":
        return False
    carried_out, there = operation.result
    return not carried_out and there == operation.arguments["expected"]


def _complete(accesses: list[Access]) -> list[Interval[Access]]:
    """The accesses that took effect, each with the moment by which it had."""
    seen_until: dict[int, float] = {}
    certain = [access for access in accesses if access.operation.status == "ok"]
    unknown = {access.written: access for access in accesses if access.operation.status == "unknown"}
    for access in certain:
        if access.looked and access.found is not None:
            seen_until[access.found] = min(seen_until.get(access.found, inf), access.operation.ended)
    intervals = [Interval(access.operation.invoked, access.operation.ended, access) for access in certain]
    while seen := unknown.keys() & seen_until.keys():
        for value in seen:
            assert value is not None
            access, ended = unknown.pop(value), seen_until[value]
            # An answer from before the request is an anomaly: the search finds it.
            intervals.append(Interval(access.operation.invoked, max(ended, access.operation.invoked), access))
            if access.looked and access.found is not None:
                seen_until[access.found] = min(seen_until.get(access.found, inf), ended)
    return intervals


def apply(state: int | None, access: Access) -> tuple[bool, int | None]:
    if access.looked and access.found != state:
        return False, state
    return True, state if access.written is None else access.written
