"""What a request costs, said before it runs.

A page reads at most `limit` items, so its cost follows from their average size, which DescribeTable tells;
Amazon DynamoDB brings that figure up to date about every six hours. What all items of a Query cost is found
by one page of a Query that only counts, if it is asked for."""

from __future__ import annotations

from typing import Any, Final

from mcp.server.mcpserver.exceptions import ToolError

from hashrange.prices import on_demand
from hashrange.tables.items.capacity import read_units
from hashrange_console.items.sources import TableOrIndex, sources_of
from hashrange_mcp.connection import Connection

COUNTED_MAX: Final = 100
UNITS_MAX: Final = 100.0
"""What a tool may spend unless the caller allows more."""

Json = dict[str, Any]


def source_of(described: Json, index: str) -> TableOrIndex:
    """The table, or an index of it. Raises ToolError."""
    found = {source.index: source for source in sources_of(described)}
    if index not in found:
        known = ", ".join(sorted(name for name in found if name)) or "none"
        raise ToolError(f"{described['TableName']} has no index {index!r} that can be read; it has: {known}.")
    return found[index]


def of_page(source: TableOrIndex, items: int, *, consistent: bool) -> float:
    """The read units of a page of so many items, which are read together."""
    return read_units(round(min(items, source.items) * source.average), consistent=consistent)


def of_each(source: TableOrIndex, items: int, *, consistent: bool) -> float:
    """The read units of so many items, each of which is read by its key."""
    return items * read_units(round(source.average), consistent=consistent)


def of_all(source: TableOrIndex, *, consistent: bool) -> float:
    """The read units of reading everything."""
    return read_units(source.size, consistent=consistent)


def told(connection: Connection, units: float, which: str = "") -> Json:
    """The members of an answer that say what a request may cost; `which` ends their names."""
    region = connection.clients.dynamodb.meta.region_name
    return {f"estimated_units{which}": units, f"estimated_cost{which}": str(on_demand(region, reads=units))}


def check(units: float, units_max: float) -> None:
    """Refuse a request that may cost more than the caller allows. Raises ToolError."""
    if units > units_max:
        raise ToolError(
            f"Nothing was read: this may cost {units:g} read units, and max_units is {units_max:g}. Use "
            f"a key "
            "condition or a smaller limit, or allow the cost by max_units after you asked the user."
        )


def consumed(answer: Json) -> float | None:
    """The units that an answer says it has consumed; None if the server does not tell."""
    told = answer.get("ConsumedCapacity")
    if isinstance(told, list):
        return sum([float(one["CapacityUnits"]) for one in told])
    return None if told is None else float(told["CapacityUnits"])
