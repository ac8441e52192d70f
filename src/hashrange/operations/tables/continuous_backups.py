"""DescribeContinuousBackups: that a table has the backups which every table has, and no recovery.

Tables cannot be restored here, so that there is no UpdateContinuousBackups. Programs ask for the description
on their way to something else: infrastructure tools at every read of a table, mappers when they bind to one.

Source: API reference, DescribeContinuousBackups.
"""

from __future__ import annotations

from hashrange.errors import ResourceNotFoundException, TableNotFoundException
from hashrange.operations.context import Answer, Context, ReadBody, Request, table_name
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeContinuousBackups."""
    name = table_name(request["TableName"], context.scope)

    def body(reader: Reader) -> Answer:
        try:
            catalog.open_any(reader, name, context.scope, context.caller.region)
        except ResourceNotFoundException:
            raise TableNotFoundException(f"Table not found: {name}") from None
        return {
            "ContinuousBackupsDescription": {
                "ContinuousBackupsStatus": "ENABLED",
                "PointInTimeRecoveryDescription": {"PointInTimeRecoveryStatus": "DISABLED"},
            }
        }

    return body
