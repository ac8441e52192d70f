"""What a statement reads: found in the plan that DuckDB makes of it over empty tables.

DuckDB itself carries conditions and columns down to the tables, through joins, views and subqueries. Of the
conditions on a table those on keys become Queries, the others stay to DuckDB, which tests all of them again
after the load: what is read here may be more than what the statement needs, and never less. Parts of a plan
that are not known here count as no condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal
from itertools import product
from typing import Any, Final

from hashrange.tables.items.capacity import read_units
from hashrange_console.items.sources import TableOrIndex
from hashrange_sql.shapes import literal

Json = dict[str, Any]
Value = tuple[str, str]
"""A value of a key: its type, S or N, and its content."""

QUERIES_MAX: Final = 100
"""The most Queries for a table; with more partitions it is scanned."""
PROJECTED_MAX: Final = 100
"""The most attributes that are named to the server; with more, items come whole."""
UNUSED_OPTIMIZERS: Final = (
    "statistics_propagation", "compressed_materialization", "empty_result_pullup", "join_filter_pushdown",
    "late_materialization",
)  # fmt: skip
"""Those that would notice that the tables are empty, or that make plans larger."""
_EXACT: Final = Context(prec=40)
_COMPARISONS: Final = {
    "COMPARE_EQUAL": "=",
    "COMPARE_GREATERTHAN": ">",
    "COMPARE_GREATERTHANOREQUALTO": ">=",
    "COMPARE_LESSTHAN": "<",
    "COMPARE_LESSTHANOREQUALTO": "<=",
}


@dataclass(frozen=True, slots=True)
class Condition:
    """A condition on an attribute: `=`, `>`, `>=`, `<` or `<=` with a value, or `IN` some."""

    name: str
    operator: str
    values: tuple[Value, ...]


@dataclass(frozen=True, slots=True)
class Use:
    """A table's place in a statement: the columns that are needed of it, what all rows that are needed
    fulfil, and how many rows are enough (None: all)."""

    table: str
    columns: frozenset[str]
    conditions: tuple[Condition, ...]
    rows: int | None


@dataclass(frozen=True, slots=True)
class Read:
    """What is read of a table: a Scan, or a Query for each of `partitions`, which are the values of the
    partition key. `attributes` are those that come, None for all. `done`: the sample was all."""

    source: TableOrIndex
    partitions: tuple[tuple[Value, ...], ...] = ()
    sort: tuple[Condition, ...] = ()
    attributes: tuple[str, ...] | None = None
    items: int | None = None
    done: bool = False

    @property
    def units(self) -> float:
        """The read units, at most."""
        if self.done:
            return 0.0
        size = self.source.size
        if self.items is not None:
            size = min(size, round(self.items * self.source.average))
        return read_units(size, consistent=False)

    def requests(self) -> list[Json]:
        """The requests of this read, without segments; several for several partitions."""
        names: dict[str, str] = {}
        request: Json = {"TableName": self.source.table}
        if self.source.index:
            request["IndexName"] = self.source.index
        if self.attributes is not None:
            request["ProjectionExpression"] = ", ".join(_named(names, name) for name in self.attributes)
        made = []
        for partition in self.partitions or [None]:
            one = dict(request)
            if partition is not None:
                values: Json = {}
                pairs = zip(self.source.partition, partition, strict=True)
                parts = [f"{_named(names, name)} = {_valued(values, value)}" for (name, _), value in pairs]
                parts += [
                    f"{_named(names, condition.name)} {condition.operator} "
                    + " AND ".join(_valued(values, value) for value in condition.values)
                    for condition in self.sort
                ]
                one["KeyConditionExpression"] = " AND ".join(parts)
                one["ExpressionAttributeValues"] = values
            if names:
                one["ExpressionAttributeNames"] = names
            made.append(one)
        return made

    def __str__(self) -> str:
        source = self.source
        if self.done:
            return f"{source.table}: nothing more, the sample was all of it"
        place = f" of the index {source.index}" if source.index else ""
        if self.partitions:
            shown = [_shown(source, partition, self.sort) for partition in self.partitions[:3]]
            more = len(self.partitions) - len(shown)
            what = f"Query{place}, {'; '.join(shown)}" + (f"; and {more} more" if more else "")
            cost = f"half a unit for each 4 KB found, at most {self.units:g} read units"
        else:
            what = f"Scan{place}" + ("" if self.items is None else f" of {self.items} items")
            cost = f"about {self.units:g} read units"
        which = (
            "all attributes" if self.attributes is None else f"the attributes {', '.join(self.attributes)}"
        )
        return f"{source.table}: {what}; {which}; {cost}"


def tables_named(statement: Json) -> list[tuple[str, str]]:
    """The tables of a statement as `json_serialize_sql` shows it: schema ("" for none) and name, without the
    names that it defines itself."""
    found: dict[tuple[str, str], None] = {}
    defined: set[str] = set()

    def walk(node: Any) -> None:
        if isinstance(node, list):
            for one in node:
                walk(one)
        elif isinstance(node, dict):
            if node.get("type") == "BASE_TABLE":
                found[node.get("schema_name", ""), node["table_name"]] = None
            for entry in node.get("cte_map", {}).get("map", ()):
                defined.add(entry["key"].lower())
            for one in node.values():
                walk(one)

    walk(statement)
    return [(schema, name) for schema, name in found if schema or name.lower() not in defined]


def uses_of(plan: Json) -> list[Use]:
    """The tables' places in a plan, as `json_serialize_plan` shows it."""
    return [use for root in plan["plans"] for use in _uses(root, None)]


def _uses(node: Json, rows: int | None) -> Iterator[Use]:
    kind = node["type"]
    if kind == "LOGICAL_GET":
        if "table" in node.get("function_data", {}):
            yield _use(node, rows)
        return
    if kind == "LOGICAL_LIMIT":
        limit, offset = _constant(node.get("limit_val", {})), _constant(node.get("offset_val", {}))
        rows = None if limit is None else limit + (offset or 0)
    elif kind != "LOGICAL_PROJECTION":
        rows = None
    for child in node.get("children", ()):
        yield from _uses(child, rows)


def _constant(limit: Json) -> int | None:
    # (what is 0 is left out of a plan)
    return limit.get("constant_integer", 0) if limit.get("type") == "CONSTANT_VALUE" else None


def _use(node: Json, rows: int | None) -> Use:
    names = node["names"]
    # (a column beyond the last one is the number of a row)
    places = [column.get("index", 0) for column in node.get("column_indexes", ())]
    filters = node.get("table_filters", {})
    conditions: list[Condition] = []
    if node.get("table_filters_by_projection"):
        for entry in filters.get("filters", ()):  # (others are of several columns)
            place = places[entry["key"]]
            if place < len(names):
                conditions += _conditions(names[place], entry["value"])
    columns = frozenset(names[place] for place in places if place < len(names))
    return Use(node["function_data"]["table"], columns, tuple(conditions), None if filters else rows)


def _conditions(name: str, filter_: Json) -> Iterator[Condition]:
    match filter_.get("filter_type", "").removeprefix("LEGACY_"):
        case "CONSTANT_COMPARISON":
            value = _value(filter_["constant"])
            operator = _COMPARISONS.get(filter_["comparison_type"])
            if value is not None and operator is not None:
                yield Condition(name, operator, (value,))
        case "IN_FILTER":
            values = [_value(one) for one in filter_["values"]]
            kept = [value for value in values if value is not None]
            if len(kept) == len(values):
                yield Condition(name, "IN", tuple(kept))
        case "CONJUNCTION_AND":
            for one in filter_.get("child_filters", ()):
                yield from _conditions(name, one)
        case "OPTIONAL_FILTER":
            yield from _conditions(name, filter_["child_filter"])


def _value(constant: Json) -> Value | None:
    """A constant of a plan as a key's value; None for one that no key has."""
    if constant.get("is_null"):
        return None
    kind, value = constant["type"]["id"], constant["value"]
    if kind == "VARCHAR":
        return ("S", value) if value else None
    if kind != "DECIMAL":
        return None
    if isinstance(value, dict):
        value = (value["upper"] << 64) | value["lower"]
    scale = constant["type"]["type_info"].get("scale", 0)
    return "N", f"{Decimal(value).scaleb(-scale, _EXACT):f}"


def read_of(sources: Sequence[TableOrIndex], uses: Sequence[Use], columns: Sequence[str]) -> Read:
    """What to read of a table, which comes first among the `sources`, for all its places in a statement.
    `columns` are those that it is known to have."""
    table = sources[0]
    needed = frozenset().union(*(use.columns for use in uses))
    attributes: tuple[str, ...] | None = tuple(name for name in columns if name in needed)
    if len(needed) == len(columns) or len(attributes or ()) > PROJECTED_MAX:
        attributes = None
    elif not attributes:
        attributes = (table.partition[0][0],)
    found = [_best(sources, use, needed if attributes is not None else None) for use in uses]
    first = found[0]
    if first is not None and all(one is not None and one.source is first.source for one in found):
        reads = [one for one in found if one is not None]
        partitions = dict.fromkeys(partition for one in reads for partition in one.partitions)
        if len(partitions) <= QUERIES_MAX:
            is_same = all(one.sort == first.sort for one in reads)
            return Read(first.source, tuple(partitions), first.sort if is_same else (), attributes)
    items = uses[0].rows if len(uses) == 1 else None
    return Read(table, attributes=attributes, items=items)


def _best(sources: Sequence[TableOrIndex], use: Use, needed: frozenset[str] | None) -> Read | None:
    """The Queries for a place in a statement: of the source with the most conditions on its key."""
    own = {name for name, _ in sources[0].keys}
    found: list[Read] = []
    for source in sources:
        if source.projected is not None and (needed is None or not needed <= source.projected):
            continue
        choices = [_equal(use, name) for name, _ in source.partition]
        if not all(choices):
            continue
        sort = _range(use, source)
        # An index lacks the items that do not have its sort key.
        if source.index and not sort and any(name not in own for name, _ in source.sort):
            continue
        found.append(Read(source, tuple(product(*choices)), sort))
    return max(found, key=lambda read: len(read.sort), default=None)


def _equal(use: Use, name: str) -> tuple[Value, ...]:
    """The values that an attribute may have; () for any."""
    given = [{*one.values} for one in use.conditions if one.name == name and one.operator in ("=", "IN")]
    return tuple(sorted(set.intersection(*given))) if given else ()


def _range(use: Use, source: TableOrIndex) -> tuple[Condition, ...]:
    """The condition on the sort key, which may be wider than those of the statement."""
    if not source.sort:
        return ()
    name = source.sort[0][0]
    given = {one.operator: one for one in use.conditions if one.name == name}
    if "=" in given:
        return (given["="],)
    low, high = given.get(">=", given.get(">")), given.get("<=", given.get("<"))
    if low is not None and high is not None and _ordered(low.values[0], high.values[0]):
        return (Condition(name, "BETWEEN", (low.values[0], high.values[0])),)
    one = low or high
    return () if one is None else (one,)


def _ordered(low: Value, high: Value) -> bool:
    """Whether BETWEEN may have these values."""
    if low[0] == "N":
        return Decimal(low[1]) <= Decimal(high[1])
    return low[1].encode() <= high[1].encode()


def _named(names: dict[str, str], name: str) -> str:
    for placeholder, known in names.items():
        if known == name:
            return placeholder
    names[f"#{len(names)}"] = name
    return f"#{len(names) - 1}"


def _valued(values: Json, value: Value) -> str:
    values[f":{len(values)}"] = dict([value])
    return f":{len(values) - 1}"


def _shown(source: TableOrIndex, partition: tuple[Value, ...], sort: tuple[Condition, ...]) -> str:
    parts = [f"{name} = {_text(value)}" for (name, _), value in zip(source.partition, partition, strict=True)]
    parts += [f"{one.name} {one.operator} {' AND '.join(map(_text, one.values))}" for one in sort]
    return " AND ".join(parts)


def _text(value: Value) -> str:
    kind, content = value
    return content if kind == "N" else literal(content)
