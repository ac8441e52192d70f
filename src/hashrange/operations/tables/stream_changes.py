"""StreamSpecification of CreateTable and UpdateTable: enables and disables a table's stream.

Source: Developer Guide, "Enabling a stream"; API reference, StreamSpecification.
"""

from __future__ import annotations

import msgspec

from hashrange.errors import INVALID, ValidationException
from hashrange.operations.context import Context, Request
from hashrange.storage.api import Transaction
from hashrange.tables import streams
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table


def view_type(specification: Request | None) -> str | None:
    """The view type in a CreateTable; None if it asks for no stream."""
    if specification is None:
        return None
    return _view_type(
        specification,
        "Table is being created with a stream enabled, UpdateViewType is required",
        "Table is being created with a stream disabled, UpdateViewType should not be specified",
    )


def updated_view_type(specification: Request | None) -> str | None:
    """The view type in an UpdateTable; None if it asks for no stream."""
    if specification is None:
        return None
    return _view_type(
        specification,
        "If stream is being enabled then UpdateViewType is required",
        "If stream is being disabled, then UpdateViewType must not be specified",
    )


def _view_type(specification: Request, missing: str, misplaced: str) -> str | None:
    """The view type in a StreamSpecification. The messages: [report] ack-api-quirks DDB-TABLE-442."""
    view = specification.get("StreamViewType")
    if not specification["StreamEnabled"]:
        if view is not None:
            raise ValidationException(f"{INVALID}{misplaced}")
        return None
    if view is None:
        raise ValidationException(f"{INVALID}{missing}")
    return str(view)


def enable(txn: Transaction, table: Table, view: str, context: Context) -> Table:
    """The table with a new stream."""
    space, count = catalog.new_space(txn), context.settings.stream_shards
    key = (
        *((attribute.name, "HASH") for attribute in table.key.partition),
        *((attribute.name, "RANGE") for attribute in table.key.sort),
    )
    stream = streams.enable(
        txn, table.name, key, view, space, count, table.stream_label, context.now, table.scope
    )
    return msgspec.structs.replace(table, stream=stream, stream_label=stream.label)


def apply(txn: Transaction, table: Table, specification: Request, context: Context) -> Table:
    """The table after an UpdateTable's specification."""
    view = updated_view_type(specification)
    if view is not None:
        if table.stream is not None:
            raise ValidationException(f"Table already has an enabled stream: TableName: {table.name}")
        return enable(txn, table, view, context)
    if table.stream is None:
        raise ValidationException(f"Table has no stream to disable: TableName: {table.name}")
    streams.disable(txn, table.stream, context.now)
    return msgspec.structs.replace(table, stream=None)
