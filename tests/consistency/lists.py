"""Lists: transactions that read several lists, append to several, or do both.

A transaction that reads and then writes sends two requests: TransactGetItems, and TransactWriteItems on the
condition that the version numbers of all the lists it read have not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any, Final

from consistency import serializability
from consistency.client import Client
from consistency.history import Anomaly, Operation
from consistency.serializability import Append, Read, Transaction
from consistency.tables import number_in, place

NAME: Final = "lists"
ACTIVE: Final = 4
"""How many lists are in use at a time."""
VALUES_PER_LIST: Final = 30
"""After this many appends a new list replaces the oldest one, because long lists take long to read."""
KEYS_PER_READ: Final = 25

Versions = dict[str, int | None]


class Lists:
    """The workload on a table."""

    name = NAME

    def __init__(self, table: str) -> None:
        self._table = table
        self._values = count()
        self._last = 0

    def prepare(self, client: Client) -> None:
        """Lists begin absent, which is empty."""

    def step(self, client: Client) -> None:
        first = self._last // VALUES_PER_LIST
        active = [f"list {number}" for number in range(first, first + ACTIVE)]
        keys = client.random.sample(active, client.random.randint(1, 3))
        action = client.random.choice((self._read, self._append, self._read_and_append, self._update))
        action(client, keys)

    def _read(self, client: Client, keys: Sequence[str]) -> tuple[Operation, Versions]:
        """Read lists at one moment; also the version of each."""
        versions: Versions = {}
        with client.recorded(NAME, "read", keys=list(keys)) as operation:
            members = [{"Get": place(self._table, key)} for key in keys]
            answer = client.call("TransactGetItems", TransactItems=members)
            items = [response.get("Item") for response in answer["Responses"]]
            versions |= {key: number_in(item, "version") for key, item in zip(keys, items, strict=True)}
            operation.result = {key: _values(item) for key, item in zip(keys, items, strict=True)}
        return operation, versions

    def _append(self, client: Client, keys: Sequence[str]) -> None:
        """Append to lists without having read them."""
        appends = self._new_values(client, keys)
        with client.recorded(NAME, "append", appends=appends):
            members = [{"Update": self._appending(key, new)} for key, new in appends.items()]
            client.call("TransactWriteItems", TransactItems=members)

    def _update(self, client: Client, keys: Sequence[str]) -> None:
        """Append to one list, and get its new state."""
        key = keys[0]
        appends = self._new_values(client, [key])
        with client.recorded(NAME, "append", appends=appends) as operation:
            request = self._appending(key, appends[key])
            answer = client.call("UpdateItem", **request, ReturnValues="ALL_NEW")
            operation.result = {key: _values(answer["Attributes"])}

    def _read_and_append(self, client: Client, keys: Sequence[str]) -> None:
        """Append to lists if they, and other lists that were read, have not changed."""
        looked, versions = self._read(client, keys)
        if looked.status != "ok":
            return
        appends = self._new_values(client, keys[: client.random.randint(1, len(keys))])
        with client.recorded(NAME, "read and append", reads=looked.result, appends=appends) as operation:
            operation.invoked = looked.invoked
            members = []
            for key in keys:
                condition = _unchanged(versions[key])
                if key not in appends:
                    members.append({"ConditionCheck": _merged(place(self._table, key), condition)})
                else:
                    members.append({"Update": _merged(self._appending(key, appends[key]), condition)})
            client.call("TransactWriteItems", TransactItems=members)

    def _new_values(self, client: Client, keys: Sequence[str]) -> dict[str, list[int]]:
        """One or two new values for each list."""
        new = {key: [next(self._values) for _ in range(client.random.randint(1, 2))] for key in keys}
        self._last = max(self._last, *(values[-1] for values in new.values()))
        return new

    def _appending(self, key: str, values: Sequence[int]) -> dict[str, Any]:
        return {
            **place(self._table, key),
            "UpdateExpression": "SET #l = list_append(if_not_exists(#l, :none), :new) ADD version :one",
            "ExpressionAttributeNames": {"#l": "list"},
            "ExpressionAttributeValues": {
                ":none": {"L": []},
                ":new": {"L": [{"N": str(value)} for value in values]},
                ":one": {"N": "1"},
            },
        }

    def finish(self, client: Client) -> None:
        keys = self._keys()
        for start in range(0, len(keys), KEYS_PER_READ):
            self._read(client, keys[start : start + KEYS_PER_READ])

    def _keys(self) -> list[str]:
        return [f"list {number}" for number in range(self._last // VALUES_PER_LIST + ACTIVE)]

    def reads(self, items: dict[str, Any]) -> list[tuple[str, dict[str, Any], Any]]:
        keys = self._keys()
        return [("read", {"keys": keys}, {key: _values(items.get(key)) for key in keys})]

    def judge(self, operations: Sequence[Operation]) -> list[Anomaly]:
        return judge(operations)


def _values(item: dict[str, Any] | None) -> list[int]:
    return [int(value["N"]) for value in (item or {}).get("list", {"L": []})["L"]]


def _unchanged(version: int | None) -> dict[str, Any]:
    if version is None:
        return {"ConditionExpression": "attribute_not_exists(version)"}
    return {
        "ConditionExpression": "version = :seen",
        "ExpressionAttributeValues": {":seen": {"N": str(version)}},
    }


def _merged(request: dict[str, Any], condition: dict[str, Any]) -> dict[str, Any]:
    """A member with a condition, and the values of both."""
    values = request.get("ExpressionAttributeValues", {}) | condition.get("ExpressionAttributeValues", {})
    return request | condition | ({"ExpressionAttributeValues": values} if values else {})


def judge(operations: Sequence[Operation]) -> list[Anomaly]:
    """The anomalies of a history of lists."""
    return serializability.judge([_transaction(operation) for operation in operations])


def _transaction(operation: Operation) -> Transaction:
    steps: list[Append | Read] = []
    steps += [Read(key, values) for key, values in operation.arguments.get("reads", {}).items()]
    for key, values in operation.arguments.get("appends", {}).items():
        steps += [Append(key, value) for value in values]
    steps += [Read(key, values) for key, values in (operation.result or {}).items()]
    return Transaction(steps, operation.invoked, operation.ended, operation.status, operation.error)
