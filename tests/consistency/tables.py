"""The table that the workloads share: items by a string key; and what a workload is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final, Protocol

from consistency.client import Client
from consistency.history import Anomaly, Operation

KEY: Final = "key"


class Workload(Protocol):
    """Operations of one kind on one table. Any number of clients may use it at once."""

    name: str

    def prepare(self, client: Client) -> None:
        """Put the items that are there from the start. Called once, before any `step`."""

    def step(self, client: Client) -> None:
        """Do a random operation, and record it."""

    def finish(self, client: Client) -> None:
        """Read the final state, and record that. Called once, after all `step`s."""

    def judge(self, operations: Sequence[Operation]) -> list[Anomaly]:
        """What is wrong with a history. It uses no state of the workload."""


def create(client: Client, table: str) -> None:
    client.call_until_answered(
        "CreateTable",
        TableName=table,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": KEY, "AttributeType": "S"}],
        KeySchema=[{"AttributeName": KEY, "KeyType": "HASH"}],
    )
    while True:
        described = client.call_until_answered("DescribeTable", TableName=table)
        if described["Table"]["TableStatus"] == "ACTIVE":
            return


def delete(client: Client, table: str) -> None:
    with suppress(AssertionError):  # an answer was lost: the table exists no longer
        client.call_until_answered("DeleteTable", TableName=table)


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
