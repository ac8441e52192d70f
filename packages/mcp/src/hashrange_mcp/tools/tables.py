"""Which tables there are, and what is in one of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated, Any, Final

from pydantic import Field

from hashrange.cli.remote.clients import SERVICE_ERRORS
from hashrange_console.entities.sampling import Entity, Use, beginning, entities_of
from hashrange_console.items.sources import sources_of
from hashrange_mcp import answers, estimates
from hashrange_mcp.connection import Connection
from hashrange_mcp.values import Item, shown_item

Json = dict[str, Any]
Table = Annotated[str, Field(description="The table's name, as list_tables shows it.")]

_PAGE: Final = 50
_SEGMENTS: Final = 4
_ITEMS_MAX: Final = 2_000
_ATTRIBUTES_MAX: Final = 40


class Tables:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def list_tables(
        self, start: Annotated[str, Field(description="`next` of the previous answer.")] = ""
    ) -> str:
        """List the tables with their keys, indexes, sizes and capacity modes. Costs nothing. Begin with this
        tool. It says which endpoint this is, and whether it may be written to."""
        dynamodb = self._connection.clients.dynamodb
        more = {"ExclusiveStartTableName": start} if start else {}
        listed = dynamodb.list_tables(Limit=_PAGE, **more)
        about: Json = {
            "endpoint": self._connection.server,
            "is_hashrange": self._connection.plane is not None,
            "writes": self._connection.writes,
        }
        if "LastEvaluatedTableName" in listed:
            about["next"] = listed["LastEvaluatedTableName"]
        described = [_brief(self._connection.table(name)) for name in listed["TableNames"]]
        return answers.bounded(
            about, "tables", described, self._connection.bytes_max, lambda last: {"next": last["name"]}
        )

    def describe_table(
        self,
        table: Table,
        sample_items: Annotated[
            int,
            Field(ge=0, le=_ITEMS_MAX, description="How many items to read for `entities`; 0 reads none."),
        ] = 200,
        max_units: Annotated[float, Field(ge=0, description="The most read units to spend.")] = (
            estimates.UNITS_MAX
        ),
    ) -> str:
        """Describe a table: keys, indexes, stream, time to live, and what is in it. Entities are found in a
        sample of the items by the patterns of their keys: ORDER#* stands for ORDER#17. Each has its share of
        the sample, its attributes with types and the percentage of its items that have them, and the requests
        that find it. Read this before you write a query."""
        described = self._connection.table(table)
        about = _described(described, self._connection)
        sources = [*sources_of(described)]
        wanted = min(sample_items, described["ItemCount"] or sample_items)
        # (each segment costs half a unit at least)
        units = estimates.of_page(sources[0], wanted, consistent=False) + _SEGMENTS / 2 if wanted else 0.0
        estimates.check(units, max_units)
        items, consumed = self._sample(table, sample_items)
        cost = estimates.told(self._connection, units)
        about["sample"] = {"items": len(items), **cost, "consumed_units": consumed}
        sample = entities_of(sources, items, (), consumed)
        entities = [_entity(entity, len(items)) for entity in sample.entities]
        return answers.bounded(about, "entities", entities, self._connection.bytes_max)

    def _sample(self, table: str, items_max: int) -> tuple[list[Item], float]:
        """Some items of a table, from several places of it, and what they cost."""
        items: list[Item] = []
        units = 0.0
        for segment in range(_SEGMENTS if items_max else 0):
            limit = -(-(items_max - len(items)) // (_SEGMENTS - segment))
            if limit < 1:
                break
            answer = self._connection.clients.dynamodb.scan(
                TableName=table,
                Limit=limit,
                Segment=segment,
                TotalSegments=_SEGMENTS,
                ReturnConsumedCapacity="TOTAL",
            )
            items += map(shown_item, answer["Items"])
            units += estimates.consumed(answer) or 0.0
        return items, units


def _brief(described: Json) -> Json:
    types = {one["AttributeName"]: one["AttributeType"] for one in described["AttributeDefinitions"]}
    indexes = _indexes(described)
    brief: Json = {
        "name": described["TableName"],
        "status": described["TableStatus"],
        "key": _key(described["KeySchema"], types),
        "items": described["ItemCount"],
        "bytes": described["TableSizeBytes"],
        "capacity": _capacity(described),
    }
    if indexes:
        brief["indexes"] = {index["IndexName"]: _key(index["KeySchema"], types) for index in indexes}
    if described.get("StreamSpecification", {}).get("StreamEnabled"):
        brief["stream"] = described["StreamSpecification"]["StreamViewType"]
    return brief


def _described(described: Json, connection: Connection) -> Json:
    """What a table is, with what other requests than DescribeTable tell."""
    about = _brief(described)
    types = {one["AttributeName"]: one["AttributeType"] for one in described["AttributeDefinitions"]}
    about["indexes"] = [
        {
            "name": index["IndexName"],
            "key": _key(index["KeySchema"], types),
            "has": index["Projection"].get("NonKeyAttributes") or index["Projection"]["ProjectionType"],
            "items": index["ItemCount"],
            "bytes": index["IndexSizeBytes"],
            "status": index.get("IndexStatus", "ACTIVE"),
        }
        for index in _indexes(described)
    ]
    dynamodb, name = connection.clients.dynamodb, described["TableName"]
    # Some servers of the API know only a part of it.
    with suppress(*SERVICE_ERRORS):
        ttl = dynamodb.describe_time_to_live(TableName=name)["TimeToLiveDescription"]
        about["time_to_live"] = ttl.get("AttributeName")
    with suppress(*SERVICE_ERRORS):
        recovery = dynamodb.describe_continuous_backups(TableName=name)["ContinuousBackupsDescription"]
        recovery = recovery.get("PointInTimeRecoveryDescription", {})
        about["point_in_time_recovery"] = recovery.get("PointInTimeRecoveryStatus", "DISABLED")
    about["arn"] = described["TableArn"]
    return about


def _indexes(described: Json) -> list[Json]:
    return [*described.get("GlobalSecondaryIndexes", ()), *described.get("LocalSecondaryIndexes", ())]


def _key(schema: list[Json], types: dict[str, str]) -> str:
    """A key in short: "pk:S (partition), sk:N (sort)"."""
    roles = {"HASH": "partition", "RANGE": "sort"}
    parts = [(one["AttributeName"], types[one["AttributeName"]], roles[one["KeyType"]]) for one in schema]
    return ", ".join(f"{name}:{kind} ({role})" for name, kind, role in parts)


def _capacity(described: Json) -> str:
    if described.get("BillingModeSummary", {}).get("BillingMode") == "PAY_PER_REQUEST":
        return "on demand"
    units = described["ProvisionedThroughput"]
    return f"{units['ReadCapacityUnits']} read, {units['WriteCapacityUnits']} write units a second"


def _entity(entity: Entity, items: int) -> Json:
    attributes = {name: f"{types}, {share}%" for name, types, share in entity.attributes[:_ATTRIBUTES_MAX]}
    return {
        "name": entity.rule.name,
        "partition": entity.rule.partition,
        "sort": entity.rule.sort,
        "share_percent": round(100 * len(entity.items) / items) if items else 0,
        "attributes": attributes,
        "attributes_left_out": max(0, len(entity.attributes) - _ATTRIBUTES_MAX),
        "access": [line for use in entity.uses for line in _accesses(use)],
    }


def _accesses(use: Use) -> Iterator[str]:
    """The requests that find an entity where it is."""
    source = use.source
    partition = " and ".join(f"{name} = {use.partition}" for name, _ in source.partition)
    place = f" on the index {source.index}" if source.index else ""
    sort = source.sort[0][0] if source.sort else ""
    if not source.index:
        yield f"GetItem: {partition}" + (f" and {sort} = {use.sort}" if sort else "")
    if sort or source.index:
        prefix = beginning(use.sort)
        narrow = f" and begins_with({sort}, {prefix})" if sort and prefix else ""
        yield f"Query{place}: {partition}{narrow}"
