"""DescribeTable.

Source: API reference, DescribeTable.
"""

from __future__ import annotations

from hashrange.operations.context import Answer, Context, ReadBody, Request, table_name
from hashrange.operations.tables import table_description
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeTable."""
    name = table_name(request["TableName"], context.scope)

    def body(reader: Reader) -> Answer:
        table = catalog.open_any(reader, name, context.scope, context.caller.region, restoring=True)
        return {"Table": table_description.describe(reader, table, context.caller, context.now)}

    return body
