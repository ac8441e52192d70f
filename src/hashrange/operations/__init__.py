"""The API's operations: one module each (families of tiny ones share a module), and the registry.

    reads              items: by their keys, and by pages of a table or an index
    writes             changes of items: one item, batches, transactions
    statements         PartiQL
    tables             create, describe, change and delete tables; tags, time to live
    replicas           the members of a global table
    exports            tables, or their changes, to the objects of a bucket
    imports            tables from the objects of a bucket
    bulk               the objects of a bucket into a table that exists
    backups            the past of tables: recovery, backups, restores
    streams            read the changes of a table
    describe_service   the service's endpoints and limits
    context            the surroundings of a call, and an entry of the registry
    targets            the tables, indexes and items that a request names
    parameters         the parameters that reads and writes share

To add an operation: write `prepare(request, context) -> body` in the package of its subject, add it to the
registry here, declare its shape in `shapes`, and list it in docs/compatibility.md. `prepare` does the work
that needs no storage; the engine runs the body.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from hashrange.operations.context import Operation
from hashrange.operations.reads import batch_get_item, get_item, query, scan, transact_get_items
from hashrange.operations.tables import create_table, delete_table, describe_table, list_tables
from hashrange.operations.writes import (
    batch_write_item,
    delete_item,
    put_item,
    transact_write_items,
    update_item,
)

_late: Final[list[Callable[[], Callable[..., Any]]]] = []


def _late_import(module: str, function: str = "prepare") -> Callable[..., Any]:
    """A function of a module of this package, which is imported when it is called for the first time.

    A test run pays for each import, and most programs have no use for these modules: PartiQL alone is a sixth
    of what the database would import.
    """

    @cache
    def find() -> Callable[..., Any]:
        found: Callable[..., Any] = getattr(import_module(f"{__name__}.{module}"), function)
        return found

    _late.append(find)
    return lambda *given: find()(*given)


def load() -> None:
    """Import what is imported late otherwise: for a server, whose requests are not to wait for it."""
    for find in _late:
        find()


export_filter: Final = _late_import("exports.filters", "compiled")
"""The filter of an export, for the background work that writes it: `exports.filters.compiled`."""

bulk_put: Final = _late_import("bulk.rows", "put")
"""The write of a row of a bulk operation, for the background work: `bulk.rows.put`."""


REGISTRY: Final[dict[str, Operation]] = {
    "BatchExecuteStatement": Operation(
        _late_import("statements.batch_execute_statement"),
        writes=True,
        consumes=True,
        reads_only=_late_import("statements.batch_execute_statement", "reads_only"),
    ),
    "BatchGetItem": Operation(batch_get_item.prepare, writes=False, consumes=True),
    "BatchWriteItem": Operation(batch_write_item.prepare, writes=True, consumes=True),
    "CancelBulkOperation": Operation(_late_import("bulk.cancel_bulk_operation"), writes=True),
    "CreateBackup": Operation(_late_import("backups.create_backup"), writes=True),
    "CreateTable": Operation(create_table.prepare, writes=True),
    "DeleteBackup": Operation(_late_import("backups.delete_backup"), writes=True),
    "DeleteItem": Operation(delete_item.prepare, writes=True, consumes=True),
    "DeleteTable": Operation(delete_table.prepare, writes=True),
    "DescribeBackup": Operation(_late_import("backups.describe_backup"), writes=False),
    "DescribeBulkOperation": Operation(_late_import("bulk.describe_bulk_operation"), writes=False),
    "DescribeContinuousBackups": Operation(
        _late_import("backups.continuous_backups", "prepare_describe"), writes=False
    ),
    "DescribeEndpoints": Operation(_late_import("describe_service", "prepare_endpoints"), writes=False),
    "DescribeExport": Operation(_late_import("exports.describe_export"), writes=False),
    "DescribeImport": Operation(_late_import("imports.describe_import"), writes=False),
    "DescribeLimits": Operation(_late_import("describe_service", "prepare_limits"), writes=False),
    "DescribeStream": Operation(_late_import("streams.describe_stream"), writes=False),
    "DescribeTable": Operation(describe_table.prepare, writes=False),
    "DescribeTimeToLive": Operation(_late_import("tables.time_to_live", "prepare_describe"), writes=False),
    "ExecuteStatement": Operation(
        _late_import("statements.execute_statement"),
        writes=True,
        consumes=True,
        reads_only=_late_import("statements.execute_statement", "reads_only"),
    ),
    "ExecuteTransaction": Operation(
        _late_import("statements.execute_transaction"),
        writes=True,
        consumes=True,
        reads_only=_late_import("statements.execute_transaction", "reads_only"),
    ),
    "ExportTableToPointInTime": Operation(_late_import("exports.export_table"), writes=True),
    "GetItem": Operation(get_item.prepare, writes=False, consumes=True),
    "GetRecords": Operation(_late_import("streams.get_records"), writes=False, consumes=True),
    "GetShardIterator": Operation(_late_import("streams.get_shard_iterator"), writes=False),
    "ImportTable": Operation(_late_import("imports.import_table"), writes=True),
    "ListExports": Operation(_late_import("exports.list_exports"), writes=False),
    "ListBackups": Operation(_late_import("backups.list_backups"), writes=False),
    "ListBulkOperations": Operation(_late_import("bulk.list_bulk_operations"), writes=False),
    "ListImports": Operation(_late_import("imports.list_imports"), writes=False),
    "ListStreams": Operation(_late_import("streams.list_streams"), writes=False),
    "ListTables": Operation(list_tables.prepare, writes=False),
    "ListTagsOfResource": Operation(_late_import("tables.tags", "prepare_list"), writes=False),
    "PutItem": Operation(put_item.prepare, writes=True, consumes=True),
    "Query": Operation(query.prepare, writes=False, consumes=True),
    "RestoreTableFromBackup": Operation(_late_import("backups.restore_from_backup"), writes=True),
    "RestoreTableToPointInTime": Operation(
        _late_import("backups.restore_to_point_in_time"), writes=True
    ),
    "Scan": Operation(scan.prepare, writes=False, consumes=True),
    "StartBulkPutItems": Operation(_late_import("bulk.start_bulk_put_items"), writes=True),
    "TagResource": Operation(_late_import("tables.tags", "prepare_tag"), writes=True),
    "TransactGetItems": Operation(transact_get_items.prepare, writes=False, consumes=True),
    "TransactWriteItems": Operation(transact_write_items.prepare, writes=True, consumes=True),
    "UntagResource": Operation(_late_import("tables.tags", "prepare_untag"), writes=True),
    "UpdateContinuousBackups": Operation(
        _late_import("backups.continuous_backups", "prepare_update"), writes=True
    ),
    "UpdateItem": Operation(update_item.prepare, writes=True, consumes=True),
    "UpdateTable": Operation(_late_import("tables.update_table"), writes=True),
    "UpdateTimeToLive": Operation(_late_import("tables.time_to_live", "prepare_update"), writes=True),
}
