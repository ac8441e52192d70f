"""The table of a pattern's items: it has a partition key and a sort key, both text.

All patterns may share one table, even with the program's own items: the keys of each pattern begin with a
unique word (packages/patterns/docs/README.md lists these words). Items that expire have their time in one
attribute, by which DynamoDB's time to live deletes them.

Refuses to know the patterns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

Item: TypeAlias = dict[str, Any]
"""An item, or a part of one, as the client takes it: ``{"views": {"N": "1"}}``."""
_NAMES: Final = re.compile(r"#(\w+)")


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """The values of an item's partition key and sort key."""

    partition: str
    sort: str


@dataclass(frozen=True, slots=True)
class Index:
    """A global secondary index: its name, and the attributes that are its keys, both text."""

    name: str
    partition_key: str
    sort_key: str | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the key attributes."""
        return (self.partition_key,) if self.sort_key is None else (self.partition_key, self.sort_key)


@dataclass(frozen=True, slots=True)
class Table:
    """A table's name and the names of the attributes that every pattern uses.

    `client.create_table(**table.definition())` and then `client.update_time_to_live(**table.time_to_live())`
    create it, unless it is created by other means.
    """

    name: str
    partition_key: str = "PK"
    sort_key: str = "SK"
    expires_at: str = "expires_at"

    def key(self, address: Address) -> Item:
        """The key attributes of the item at `address`."""
        return {self.partition_key: {"S": address.partition}, self.sort_key: {"S": address.sort}}

    def address(self, item: Mapping[str, Any]) -> Address:
        """The address of `item`."""
        return Address(item[self.partition_key]["S"], item[self.sort_key]["S"])

    def at(
        self,
        address: Address,
        names: Mapping[str, str] | None = None,
        /,
        *,
        update: str = "",
        condition: str = "",
        **values: Item | str | float,
    ) -> dict[str, Any]:
        """The arguments of a write of the item at `address`.

        In the expressions ``#until`` names the attribute ``until``, and ``:now`` the value `now`; ``#pk``,
        ``#sk`` and ``#expires_at`` name the attributes of the table. Other names, with any characters, are in
        `names`.
        """
        expressions = {"UpdateExpression": update, "ConditionExpression": condition}
        return {"TableName": self.name, "Key": self.key(address), **self._named(expressions, values, names)}

    def put(self, item: Item, *, condition: str = "", **values: Item | str | float) -> dict[str, Any]:
        """The arguments of a put of `item`; see `at`."""
        return {
            "TableName": self.name,
            "Item": item,
            **self._named({"ConditionExpression": condition}, values),
        }

    def query(
        self, partition: str, *, sort: str = "", only: str = "", **values: Item | str | float
    ) -> dict[str, Any]:
        """The arguments of a Query of one partition: its items with a condition on the sort key, and `only`
        those that another condition is true of; see `at`."""
        condition = f"#pk = :pk AND {sort}" if sort else "#pk = :pk"
        expressions = {"KeyConditionExpression": condition, "FilterExpression": only}
        return {"TableName": self.name, **self._named(expressions, {"pk": partition, **values})}

    def _named(
        self, expressions: dict[str, str], values: Mapping[str, Any], names: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        """Expressions with the names and values that are in them."""
        own = {"pk": self.partition_key, "sk": self.sort_key, "expires_at": self.expires_at, **(names or {})}
        given: dict[str, Any] = {kind: text for kind, text in expressions.items() if text}
        if used := set(_NAMES.findall(" ".join(given.values()))):
            given["ExpressionAttributeNames"] = {f"#{name}": own.get(name, name) for name in used}
        if values:
            given["ExpressionAttributeValues"] = {f":{name}": _value(one) for name, one in values.items()}
        return given

    def definition(self, *indexes: Index) -> dict[str, Any]:
        """The arguments of a client's `create_table`, for a table on demand. Only entities use indexes."""
        own = (self.partition_key, self.sort_key)
        names = dict.fromkeys((*own, *(name for index in indexes for name in index.keys)))
        definition: dict[str, Any] = {
            "TableName": self.name,
            "KeySchema": _key_schema(own),
            "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in names],
            "BillingMode": "PAY_PER_REQUEST",
        }
        if indexes:
            definition["GlobalSecondaryIndexes"] = [
                {
                    "IndexName": index.name,
                    "KeySchema": _key_schema(index.keys),
                    "Projection": {"ProjectionType": "ALL"},
                }
                for index in indexes
            ]
        return definition

    def time_to_live(self) -> dict[str, Any]:
        """The arguments of a client's `update_time_to_live`."""
        specification = {"Enabled": True, "AttributeName": self.expires_at}
        return {"TableName": self.name, "TimeToLiveSpecification": specification}


def _key_schema(names: tuple[str, ...]) -> list[dict[str, str]]:
    return [
        {"AttributeName": name, "KeyType": kind} for name, kind in zip(names, ("HASH", "RANGE"), strict=False)
    ]


def table_of(table: Table | str) -> Table:
    """A `Table`; from a name, with the default names of attributes."""
    return Table(table) if isinstance(table, str) else table


def number(value: float) -> Item:
    """A whole number as an attribute value; time to live takes whole seconds."""
    return {"N": str(int(value))}


def _value(value: Item | str | float) -> Item:
    if isinstance(value, dict):
        return value
    return {"S": value} if isinstance(value, str) else number(value)


def utc(moment: datetime) -> datetime:
    """`moment` in UTC. Raises ValueError if it has no time zone, because its meaning would be unclear."""
    if moment.tzinfo is None:
        raise ValueError(
            f"{moment.isoformat()} names no time zone: give one, as in datetime(..., tzinfo=UTC)"
        )
    return moment.astimezone(UTC)
