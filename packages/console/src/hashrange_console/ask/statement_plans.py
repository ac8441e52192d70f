"""How a SELECT will read, said before it runs: what the `partiql` package decides when it runs it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hashrange import partiql
from hashrange.database import Database
from hashrange.errors import ServiceError
from hashrange.partiql import access as accesses
from hashrange.partiql.statements import Select
from hashrange.server.admin.aside import aside
from hashrange.tables.definitions import catalog
from hashrange.tables.reads import sources
from hashrange_console.items import estimates
from hashrange_console.items.estimates import Estimate
from hashrange_console.items.sources import sources_of
from hashrange_console.reach import Refused, View, refuse
from hashrange_console.tables.listing import keys_of


@dataclass(frozen=True, slots=True)
class StatementPlan:
    """How a SELECT reads a table or an index: one item (`get`), by queries, or by a scan; from how many
    partitions; which attributes it compares only after reading. `keys` are those of the table."""

    table: str
    index: str
    way: accesses.Way
    partitions: int
    partition_key: str
    narrows: bool
    filtered: tuple[str, ...]
    estimate: Estimate | None = None
    keys: tuple[str, ...] = ()

    @property
    def operation(self) -> str:
        return {"get": "GetItem", "query": "Query", "scan": "Scan"}[self.way]


async def planned(view: View, statement: str) -> StatementPlan | None:
    """The plan of a SELECT; None for other statements, and for what cannot be planned. Raises `Refused`."""
    scope = view.full_scope
    plan = await aside(view.request, lambda database: _plan(database, statement, scope))
    if plan is None:
        return None
    try:
        described = (await view.read("DescribeTable", {"TableName": plan.table}))["Table"]
    except Refused:
        return plan
    plan = replace(plan, keys=tuple(name for name, _, _ in keys_of(described)))
    source = next((candidate for candidate in sources_of(described) if candidate.index == plan.index), None)
    if source is None:
        return plan
    match plan.way:
        case "get":
            estimate = estimates.of_items(source, 1)
        case "query":
            estimate = estimates.of_some(source)
        case "scan":
            estimate = estimates.of_all(source)
    return replace(plan, estimate=estimate)


def _plan(database: Database, text: str, scope: str) -> StatementPlan | None:
    try:
        prepared = partiql.prepare(text)
        statement = prepared.statement
        if not isinstance(statement, Select):
            return None
        table = database.engine.read(lambda reader: catalog.open_active(reader, statement.table, scope))
        source = sources.open_source(table, statement.index, consistent=False)
    except ServiceError as error:
        refuse(error)
    if not source.key.is_simple:
        return None
    access = accesses.plan(prepared, source.key)
    return StatementPlan(
        table=table.name,
        index=statement.index or "",
        way=accesses.way_of(access, on_index=source.index is not None),
        partitions=len(set(access.partition)),
        partition_key=source.key.partition[0].name,
        narrows=access.equal is not None or bool(access.narrow),
        filtered=tuple(sorted(access.filtered)),
    )
