"""The steps of a migration that are no changes of items: definitions of indexes, and switches.

Each may be performed again at any time: it looks at what is there, and does what is left.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from hashrange_patterns.flows import (
    AsyncClient,
    Awaiting,
    Blocking,
    C,
    Client,
    Flow,
    Pause,
    Performing,
    performed,
)
from hashrange_patterns.migrations.edits import Change, Shape
from hashrange_patterns.requests import Runtime, error_code, get, is_passing, request
from hashrange_patterns.tables import Address, Index, Table, table_of

POLL_SECONDS_MAX: Final = 10.0
_BUSY: Final = {"ResourceInUseException", "LimitExceededException"}
Keep: TypeAlias = Callable[[], Flow[None]]
"""Keeps the lock of the migrations while a step waits."""


@dataclass(frozen=True, slots=True)
class AddIndex:
    """Add a global secondary index, whose keys are texts, and wait until it has every item.

    Back, it deletes the index. On a table with provisioned capacity the index has the table's.
    """

    index: Index
    projection: str = "ALL"

    def perform(self, runtime: Runtime, table: Table, keep: Keep, *, up: bool) -> Flow[None]:
        """Perform the step, or take it back."""
        return _with_index(runtime, table.name, self, keep, there=up)


@dataclass(frozen=True, slots=True)
class DropIndex:
    """Delete a global secondary index, and wait until it is gone. Back, it adds the index."""

    index: Index
    projection: str = "ALL"

    def perform(self, runtime: Runtime, table: Table, keep: Keep, *, up: bool) -> Flow[None]:
        """Perform the step, or take it back."""
        return _with_index(runtime, table.name, AddIndex(self.index, self.projection), keep, there=not up)


@dataclass(frozen=True, slots=True)
class Switch:
    """Turn a switch on, by which programs tell what is done: see `Switches`. Back, it turns it off."""

    name: str

    def perform(self, runtime: Runtime, table: Table, keep: Keep, *, up: bool) -> Flow[None]:
        """Perform the step, or take it back."""
        address = Address(f"SWITCH#{self.name}", "SWITCH")
        write = ("put_item", table.put(table.key(address))) if up else ("delete_item", table.at(address))
        yield from request(runtime, *write, repeatable=True)


Step: TypeAlias = Change | Shape | AddIndex | DropIndex | Switch


@dataclass(frozen=True, slots=True)
class SwitchFlows:
    """The logic of `Switches`."""

    table: Table
    runtime: Runtime

    def is_on(self, name: str) -> Flow[bool]:
        """Whether the switch is on. Costs half a read unit."""
        item = yield from get(self.runtime, self.table, Address(f"SWITCH#{name}", "SWITCH"), consistent=False)
        return item is not None


class _Switches(Performing[SwitchFlows, C]):
    def __init__(self, client: C, table: Table | str, *, runtime: Runtime = Runtime()) -> None:  # noqa: B008
        super().__init__(client, SwitchFlows(table_of(table), runtime))

    is_on = performed(SwitchFlows.is_on)


class Switches(_Switches[Client], Blocking[SwitchFlows]):
    """What migrations have switched on, with a boto3 client."""


class AsyncSwitches(_Switches[AsyncClient], Awaiting[SwitchFlows]):
    """`Switches` with an aiobotocore client."""


def described(runtime: Runtime, name: str) -> Flow[dict[str, Any]]:
    """The description of a table."""
    answer = yield from request(runtime, "describe_table", {"TableName": name}, repeatable=True)
    description: dict[str, Any] = answer["Table"]
    return description


def _with_index(runtime: Runtime, name: str, wanted: AddIndex, keep: Keep, *, there: bool) -> Flow[None]:
    """Wait until the index is there and complete, or gone; ask for it when the table takes the request."""
    schema = [
        {"AttributeName": key, "KeyType": kind}
        for key, kind in zip(wanted.index.keys, ("HASH", "RANGE"), strict=False)
    ]
    for attempt in itertools.count():
        yield from keep()
        table = yield from described(runtime, name)
        indexes = {index["IndexName"]: index for index in table.get("GlobalSecondaryIndexes", [])}
        found = indexes.get(wanted.index.name)
        if found and there and found["KeySchema"] != schema:
            raise ValueError(
                f"the index {wanted.index.name!r} of {name} has other keys, {found['KeySchema']}: "
                "give the new index another name"
            )
        if (found is not None) == there and (found is None or found["IndexStatus"] == "ACTIVE"):
            return
        states = {table["TableStatus"], *(index["IndexStatus"] for index in indexes.values())}
        if (found is not None) != there and states == {"ACTIVE"}:
            try:
                asked = _asked(table, wanted, schema, there=there)
                yield from request(runtime, "update_table", asked, repeatable=False)
            except Exception as error:
                if not is_passing(error) and error_code(error) not in _BUSY:
                    raise
        yield Pause(min(POLL_SECONDS_MAX, 0.1 * 2.0 ** min(attempt, 10)))


def _asked(
    table: dict[str, Any], wanted: AddIndex, schema: list[dict[str, str]], *, there: bool
) -> dict[str, Any]:
    """The parameters of an UpdateTable that adds the index, or deletes it."""
    name = wanted.index.name
    if not there:
        return {
            "TableName": table["TableName"],
            "GlobalSecondaryIndexUpdates": [{"Delete": {"IndexName": name}}],
        }
    index: dict[str, Any] = {
        "IndexName": name,
        "KeySchema": schema,
        "Projection": {"ProjectionType": wanted.projection},
    }
    capacity = table.get("ProvisionedThroughput", {})
    if capacity.get("WriteCapacityUnits"):
        kinds = ("ReadCapacityUnits", "WriteCapacityUnits")
        index["ProvisionedThroughput"] = {kind: capacity[kind] for kind in kinds}
    defined = {one["AttributeName"]: one for one in table["AttributeDefinitions"]}
    own = {key: {"AttributeName": key, "AttributeType": "S"} for key in wanted.index.keys}
    return {
        "TableName": table["TableName"],
        "AttributeDefinitions": [*(own | defined).values()],
        "GlobalSecondaryIndexUpdates": [{"Create": index}],
    }
