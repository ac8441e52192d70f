"""The table that the workloads share: items by a string key; and what a workload is."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from consistency.client import AWAY_SECONDS, Client
from consistency.history import Anomaly, Operation

KEY: Final = "key"
INDEXES: Final = {"by-amount": "amount", "by-value": "value"}
"""The global secondary indexes, and the attribute of each: numbers of transfers and of registers."""


class Workload(Protocol):
    """Operations of one kind on one table. Any number of clients may use it at once."""

    name: str

    def prepare(self, client: Client) -> None:
        """Put the items that are there from the start. Called once, before any `step`."""

    def step(self, client: Client) -> None:
        """Do a random operation, and record it."""

    def finish(self, client: Client) -> None:
        """Read the final state, and record that. Called once, after all `step`s."""

    def reads(self, items: dict[str, Any]) -> list[tuple[str, dict[str, Any], Any]]:
        """Reads of all keys in a state of the table: the action, arguments and result of each."""

    def judge(self, operations: Sequence[Operation]) -> list[Anomaly]:
        """What is wrong with a history. It uses no state of the workload."""


def create(client: Client, table: str, *, derived: bool) -> None:
    """`derived`: with a stream, recovery and indexes, which each write changes as well."""
    attributes = {KEY: "S"}
    more: dict[str, Any] = {}
    if derived:
        attributes |= dict.fromkeys(INDEXES.values(), "N")
        more["StreamSpecification"] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
        more["GlobalSecondaryIndexes"] = [
            {
                "IndexName": name,
                "KeySchema": [{"AttributeName": attribute, "KeyType": "HASH"}],
                "Projection": {"ProjectionType": "ALL"},
            }
            for name, attribute in INDEXES.items()
        ]
    client.call_until_answered(
        "CreateTable",
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": kind} for name, kind in attributes.items()
        ],
        KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
        **more,
    )
    await_active(client, table)
    if derived:
        recovery = {"PointInTimeRecoveryEnabled": True}
        client.call_until_answered(
            "UpdateContinuousBackups", TableName=table, PointInTimeRecoverySpecification=recovery
        )


def await_active(client: Client, table: str) -> None:
    while True:
        described = client.call_until_answered("DescribeTable", TableName=table)
        if described["Table"]["TableStatus"] == "ACTIVE":
            return
        time.sleep(AWAY_SECONDS)


def delete(client: Client, table: str) -> None:
    with suppress(AssertionError):  # an answer was lost: the table exists no longer
        client.call_until_answered("DeleteTable", TableName=table)


def content(client: Client, table: str) -> dict[str, Any]:
    """The items of a table, and those of each of its indexes, by key."""
    indexes = {name: _scanned(client, TableName=table, IndexName=name) for name in INDEXES}
    return {"items": _scanned(client, TableName=table, ConsistentRead=True), "indexes": indexes}


def _scanned(client: Client, **request: Any) -> dict[str, Any]:
    items: dict[str, Any] = {}
    start: dict[str, Any] = {}
    while True:
        page = client.call_until_answered("Scan", **request, **start)
        items |= {item[KEY]["S"]: item for item in page["Items"]}
        if "LastEvaluatedKey" not in page:
            return items
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}


def disagreements(content: dict[str, Any]) -> list[str]:
    """Where indexes do not have exactly the items that belong there."""
    found = []
    for name, attribute in INDEXES.items():
        belong = {key: item for key, item in content["items"].items() if attribute in item}
        if different := difference(belong, content["indexes"][name]):
            found.append(f"items, and what {name} has: {different}")
    return found


def difference(one: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    """The keys whose items differ, with both items; None for an item that is absent."""
    keys = sorted(one.keys() | other.keys())
    return {key: (one.get(key), other.get(key)) for key in keys if one.get(key) != other.get(key)}


def place(table: str, key: str) -> dict[str, Any]:
    """Table and key, as most requests name them."""
    return {"TableName": table, "Key": {KEY: {"S": key}}}


def number_in(item: dict[str, Any] | None, attribute: str) -> int | None:
    """A number of an item; None if the item is absent or lacks it."""
    value = (item or {}).get(attribute)
    return None if value is None else int(value["N"])


def names_in_order(operations: Sequence[Operation]) -> str:
    """Operations as lines, in the order of their invocation."""
    return "".join(
        f"\n    {operation}" for operation in sorted(operations, key=lambda operation: operation.invoked)
    )
