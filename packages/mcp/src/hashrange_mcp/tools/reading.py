"""Items by their keys, by Query, Scan and PartiQL. Each says what it may cost before it reads."""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field

from hashrange import partiql
from hashrange.cli.remote import past
from hashrange.errors import ServiceError
from hashrange.partiql import access as accesses
from hashrange.partiql.statements import Select
from hashrange.tables.definitions.table import KeyAttribute, KeySchema
from hashrange_console.items.sources import TableOrIndex
from hashrange_mcp import answers, estimates, plane
from hashrange_mcp.connection import Connection
from hashrange_mcp.tools.tables import Table
from hashrange_mcp.values import Item, given_item, given_values, shown_item, wire_item

Json = dict[str, Any]
Index = Annotated[str, Field(description="The index to read; empty: the table.")]
Names = Annotated[dict[str, str] | None, Field(description='Placeholders of names: {"#s": "status"}.')]
Values = Annotated[
    dict[str, Any] | None,
    Field(description='Placeholders of values in DynamoDB\'s JSON: {":n": {"N": "0.1"}, ":s": {"S": "x"}}.'),
]
Projection = Annotated[str, Field(description="ProjectionExpression: the attributes to return; empty: all.")]
Filter = Annotated[
    str, Field(description="FilterExpression. It makes the answer shorter, not the request cheaper.")
]
Limit = Annotated[int, Field(ge=1, le=1_000, description="The most items to read, before the filter.")]
Start = Annotated[dict[str, Any] | None, Field(description="`next` of the previous answer.")]
Consistent = Annotated[bool, Field(description="Read the newest state, for twice the units.")]
Units = Annotated[float, Field(ge=0, description="The most read units to spend; more is refused unread.")]
AsOf = Annotated[
    str,
    Field(
        description="Hashrange only: the moment to read as of, 2026-01-31T12:00:00Z or a span ago such "
        "as 10m. "
        "The table's point-in-time recovery has to be on."
    ),
]
CostOnly = Annotated[bool, Field(description="Only say what it costs, and read nothing but a count.")]

_GET_KEYS_MAX: Final = 100
_PLACEHOLDER: Final = re.compile(r"#\w+")
_SELECT: Final = re.compile(r"\s*select\b", re.IGNORECASE)


class Reading:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get_items(
        self,
        table: Table,
        keys: Annotated[
            list[dict[str, Any]],
            Field(min_length=1, max_length=_GET_KEYS_MAX, description='Keys: [{"pk": {"S": "a"}}, …].'),
        ],
        projection: Projection = "",
        names: Names = None,
        consistent: Consistent = False,
        max_units: Units = estimates.UNITS_MAX,
        as_of: AsOf = "",
    ) -> str:
        """Get items by their whole keys, at most 100. The cheapest way to read. Values are in DynamoDB's
        JSON, in which numbers are texts with all of their digits, up to 38."""
        described = self._connection.table(table)
        wanted = [given_item(key) for key in keys]
        source = estimates.source_of(described, "")
        units = estimates.of_each(source, len(keys), consistent=consistent)
        estimates.check(units, max_units)
        shared = _given(ProjectionExpression=projection, ExpressionAttributeNames=names)
        about = estimates.told(self._connection, units)
        if as_of:
            items = self._past_items(table, keys, shared, as_of)
        else:
            asked = {table: {"Keys": wanted, "ConsistentRead": consistent, **shared}}
            answer = self._connection.clients.dynamodb.batch_get_item(
                RequestItems=asked, ReturnConsumedCapacity="TOTAL"
            )
            items = [shown_item(item) for item in answer["Responses"].get(table, ())]
            about["consumed_units"] = estimates.consumed(answer)
            if left := answer["UnprocessedKeys"].get(table, {}).get("Keys"):
                about["not_read"] = [shown_item(key) for key in left]
                about["note"] = "Get the keys in not_read again."
        about["missing"] = len(keys) - len(items) - len(about.get("not_read", ()))
        return answers.bounded(about, "items", items, self._connection.bytes_max)

    def _past_items(self, table: str, keys: list[Item], shared: Json, as_of: str) -> list[Item]:
        admin = self._connection.admin()
        at = plane.fixed(admin, as_of)
        found = []
        for key in keys:
            request = {"TableName": table, "Key": wire_item(key), **shared}
            answer = past.read(admin, "GetItem", request, at)
            found += [answer["Item"]] if "Item" in answer else []
        return found

    def query(
        self,
        table: Table,
        key_condition: Annotated[
            str, Field(description="KeyConditionExpression: pk = :p AND begins_with(sk, :s).")
        ],
        values: Values = None,
        names: Names = None,
        index: Index = "",
        filter: Filter = "",  # noqa: A002 (the name that models expect)
        projection: Projection = "",
        limit: Limit = 25,
        newest_first: Annotated[bool, Field(description="In descending order of the sort key.")] = False,
        consistent: Consistent = False,
        start: Start = None,
        max_units: Units = estimates.UNITS_MAX,
        as_of: AsOf = "",
        cost_only: CostOnly = False,
    ) -> str:
        """Query one partition of a table or an index. The answer has the estimated read units and dollars,
        and the consumed units; with cost_only it says what the whole query reads, by counting at most 100
        items. Values are in DynamoDB's JSON, in which numbers are texts with all their digits, up to 38."""
        source = estimates.source_of(self._connection.table(table), index)
        request = _given(
            TableName=table,
            IndexName=index,
            KeyConditionExpression=key_condition,
            FilterExpression=filter,
            ProjectionExpression=projection,
            ExpressionAttributeNames=names,
            ConsistentRead=consistent,
        )
        request["ScanIndexForward"] = not newest_first
        if cost_only:
            return self._cost_of_query(source, request, values, max_units)
        return self._page("Query", source, request, values, start, limit, max_units, as_of)

    def scan(
        self,
        table: Table,
        values: Values = None,
        names: Names = None,
        index: Index = "",
        filter: Filter = "",  # noqa: A002
        projection: Projection = "",
        limit: Limit = 25,
        consistent: Consistent = False,
        start: Start = None,
        max_units: Units = estimates.UNITS_MAX,
        as_of: AsOf = "",
        cost_only: CostOnly = False,
    ) -> str:
        """Read a table or an index in no useful order, a page at a time. Prefer query: a scan pays for each
        item that it reads, whatever the filter returns. With cost_only it says what reading everything costs.
        Values are in DynamoDB's JSON, in which numbers are texts with all of their digits, up to 38."""
        source = estimates.source_of(self._connection.table(table), index)
        if cost_only:
            units = estimates.of_all(source, consistent=consistent)
            page = estimates.of_page(source, limit, consistent=consistent)
            of_all = estimates.told(self._connection, units, "_for_all")
            of_page = estimates.told(self._connection, page)
            return answers.text_of({"items": source.items, "bytes": source.size, **of_all, **of_page})
        request = _given(
            TableName=table,
            IndexName=index,
            FilterExpression=filter,
            ProjectionExpression=projection,
            ExpressionAttributeNames=names,
            ConsistentRead=consistent,
        )
        return self._page("Scan", source, request, values, start, limit, max_units, as_of)

    def _cost_of_query(
        self, source: TableOrIndex, request: Json, values: Json | None, max_units: float
    ) -> str:
        consistent = bool(request.get("ConsistentRead"))
        counted = estimates.COUNTED_MAX
        estimates.check(estimates.of_page(source, counted, consistent=consistent), max_units)
        sent = {name: value for name, value in request.items() if name != "ProjectionExpression"}
        # A request must use all names and values that it has.
        used = set(
            _PLACEHOLDER.findall(f"{sent['KeyConditionExpression']} {sent.get('FilterExpression', '')}")
        )
        names = {
            name: path for name, path in sent.pop("ExpressionAttributeNames", {}).items() if name in used
        }
        sent |= _given(ExpressionAttributeNames=names, ExpressionAttributeValues=given_item(values or {}))
        answer = self._connection.clients.dynamodb.query(
            **sent, Select="COUNT", Limit=counted, ReturnConsumedCapacity="TOTAL"
        )
        more = "LastEvaluatedKey" in answer
        read = answer["ScannedCount"]
        told: Json = {"items": f"more than {read}" if more else read}
        told["counting_consumed_units"] = estimates.consumed(answer)
        if not more:
            units = estimates.of_page(source, read, consistent=consistent)
            told |= estimates.told(self._connection, units, "_for_all")
        return answers.text_of(told)

    def _page(
        self,
        operation: str,
        source: TableOrIndex,
        request: Json,
        values: Json | None,
        start: Item | None,
        limit: int,
        max_units: float,
        as_of: str,
    ) -> str:
        """A page of a Query or a Scan."""
        units = estimates.of_page(source, limit, consistent=bool(request.get("ConsistentRead")))
        estimates.check(units, max_units)
        request["Limit"] = limit
        if as_of:
            admin = self._connection.admin()
            at = plane.fixed(admin, as_of)
            request |= _given(
                ExpressionAttributeValues=wire_item(values or {}), ExclusiveStartKey=wire_item(start or {})
            )
            answer = past.read(admin, operation, request, at)
            items, following = answer["Items"], answer.get("LastEvaluatedKey")
        else:
            request |= _given(
                ExpressionAttributeValues=given_item(values or {}), ExclusiveStartKey=given_item(start or {})
            )
            request["ReturnConsumedCapacity"] = "TOTAL"
            call = getattr(self._connection.clients.dynamodb, operation.lower())
            answer = call(**request)
            items = [shown_item(item) for item in answer["Items"]]
            following = answer.get("LastEvaluatedKey")
            following = following and shown_item(following)
        about: Json = {
            **estimates.told(self._connection, units),
            "consumed_units": estimates.consumed(answer),
            "read": answer["ScannedCount"],
        }
        if following:
            about["next"] = following
        own = estimates.source_of(self._connection.table(source.table), "") if source.index else source
        names = dict.fromkeys(name for name, _ in (*own.keys, *source.keys))

        def proceed(last: Item) -> Json:
            if all(name in last for name in names):
                return {"next": {name: last[name] for name in names}}
            return {
                "note": "Ask again with a smaller limit: the projection lacks the key, so no `next` fits."
            }

        return answers.bounded(about, "items", items, self._connection.bytes_max, proceed)

    def partiql(
        self,
        statement: Annotated[str, Field(description='SELECT … FROM "table"."index" WHERE pk = ?')],
        parameters: Annotated[
            list[Any] | None, Field(description="The values of ?, in DynamoDB's JSON.")
        ] = None,
        limit: Limit = 25,
        consistent: Consistent = False,
        start: Annotated[str, Field(description="`next` of the previous answer.")] = "",
        max_units: Units = estimates.UNITS_MAX,
    ) -> str:
        """Run a PartiQL statement: a SELECT, or with --write also INSERT, UPDATE and DELETE. The plan says
        how it reads: get, query, or scan, which pays for every item. Values are in DynamoDB's JSON."""
        selects = _SELECT.match(statement) is not None
        if not selects and not self._connection.writes:
            raise ToolError(
                "Only SELECT is allowed, because the tools were started without --write. Tell the user."
            )
        given = given_values(parameters or [])
        about = self._plan(statement, limit, consistent, max_units)
        request: Json = {"Statement": statement, "ReturnConsumedCapacity": "TOTAL"}
        request |= _given(Parameters=given, NextToken=start)
        if selects:
            request |= {"ConsistentRead": consistent, "Limit": limit}
        answer = self._connection.clients.dynamodb.execute_statement(**request)
        about["consumed_units"] = estimates.consumed(answer)
        if "NextToken" in answer:
            about["next"] = answer["NextToken"]
        items = [shown_item(item) for item in answer.get("Items", ())]
        return answers.bounded(
            about,
            "items",
            items,
            self._connection.bytes_max,
            lambda last: {"next": start, "note": "Ask again with a smaller limit."},
        )

    def _plan(self, statement: str, limit: int, consistent: bool, max_units: float) -> Json:
        """How a statement reads, and what it may cost; empty for one that cannot be planned."""
        try:
            prepared = partiql.prepare(statement)
        except ServiceError:
            return {}  # (the endpoint says what is wrong, or knows more)
        parsed = prepared.statement
        if not isinstance(parsed, Select):
            return {}
        source = estimates.source_of(self._connection.table(parsed.table), parsed.index or "")
        key = KeySchema(
            tuple(KeyAttribute(name, kind) for name, kind in source.partition),  # type: ignore[arg-type]
            tuple(KeyAttribute(name, kind) for name, kind in source.sort),  # type: ignore[arg-type]
        )
        way = accesses.way_of(accesses.plan(prepared, key), on_index=bool(parsed.index))
        units = estimates.of_page(source, 1 if way == "get" else limit, consistent=consistent)
        estimates.check(units, max_units)
        return {"plan": way, **estimates.told(self._connection, units)}


def _given(**members: Any) -> Json:
    """The members of a request that have a value."""
    return {name: value for name, value in members.items() if value}
