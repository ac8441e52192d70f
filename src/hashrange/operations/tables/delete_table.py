"""DeleteTable.

Source: API reference, DeleteTable.
"""

from __future__ import annotations

from typing import Any

import msgspec

from hashrange.errors import STILL_IN_USE, ResourceInUseException, ValidationException
from hashrange.operations.context import Answer, Context, Request, WriteBody, table_name
from hashrange.operations.tables import account_limits, replica_changes, table_description
from hashrange.storage.api import Transaction
from hashrange.tables.background import restoring
from hashrange.tables.definitions import catalog, states
from hashrange.tables.definitions.table import UNTIL_FILLED, Table
from hashrange.tables.jobs.imports import import_records

_PROTECTED = (
    "Resource cannot be deleted as it is currently protected against deletion. "
    "Disable deletion protection first."
)


# [report] recordings of LocalStack and of Alternator's authors
_NOT_SHOWN = (
    "AttributeDefinitions",
    "KeySchema",
    "CreationDateTime",
    "GlobalSecondaryIndexes",
    "LocalSecondaryIndexes",
    "VectorIndexes",
    "WarmThroughput",
)


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a DeleteTable."""
    name = table_name(request["TableName"], context.scope)
    now, delay = context.now, context.settings.delete_seconds

    def body(txn: Transaction) -> Answer:
        table = catalog.open_any(txn, name, context.scope, context.caller.region, restoring=True)
        if table.replicas:
            table = replica_changes.leave(table, context)
            catalog.save(txn, states.settled(table, now, context.settings))
            return _answer(table_description.describe(txn, table, context.caller, now))
        if table.deletion_protection:
            raise ValidationException(_PROTECTED)
        if table.restore is not None and table.gone_at is None:
            # The service refuses this until the table is ACTIVE ([report] ack-api-quirks DDB-TABLE-277).
            # Here it gives the restore up, because otherwise a restore whose disk or source never comes back
            # would never end.
            table = restoring.end(txn, table, table.restore)
        elif table.creating_until != UNTIL_FILLED or not import_records.is_stalled(txn, table):
            # The service deletes no table that an import fills. Here the bucket may never come back, and the
            # import with it; it is CANCELLED when it finds its table gone.
            _check_at_rest(table)
        account_limits.check(txn, context)
        table = msgspec.structs.replace(table, gone_at=now + delay)
        shown = table_description.describe(txn, table, context.caller, now)
        if delay > 0:
            catalog.save(txn, table)
        else:
            catalog.remove(txn, table, now)
        return _answer(shown)

    return body


def _check_at_rest(table: Table) -> None:
    """Refuse to delete a table that is being changed. The messages: [report] ack-api-quirks DDB-TABLE-001,
    006, 063 and 150."""
    problem = {
        "CREATING": f"Table is being created: {table.name}",
        "UPDATING": f"Table: {table.name} is in the process of being updated.",
        "DELETING": f"Table is being deleted: {table.name}",
    }.get(table.status)
    if problem is None and table.is_changing_quietly:
        # [report] DDB-TABLE-065, 120; for warm throughput DDB-TABLE-069 for the code, [assumed] for the words
        problem = f"Table: {table.name} is in the process of being updated."
    if problem is None and table.has_changing_index():
        problem = "Cannot delete table while indexes are being created, updated, or deleted."
    if problem is not None:
        raise ResourceInUseException(f"{STILL_IN_USE}{problem}")


def _answer(shown: dict[str, Any]) -> Answer:
    for member in _NOT_SHOWN:
        shown.pop(member, None)
    return {"TableDescription": shown}
