"""The API's operations: one module each (families of tiny ones share a module), and the registry.

    reads             items: by their keys, and by pages of a table or an index
    writes            changes of items: one item, batches, transactions
    statements        PartiQL
    tables            create, describe, change and delete tables; tags, time to live
    replicas          the members of a global table
    vectors           items by their vectors
    exports           tables, or their changes, to the objects of a bucket
    imports           tables from the objects of a bucket
    bulk              the objects of a bucket into a table that exists
    backups           the past of tables: recovery, backups, restores
    policies          documents that say who may use a table or a stream
    streams           read the changes of a table
    destinations      where the changes of a table are sent
    insights          which keys of a table are used most
    describe_service  the service's endpoints and limits
    execution         one request, from its parameters to its outcome
    context           the context of a call, and the entries of the registry
    targets           the tables, indexes and items that a request names
    throttling        the errors of throttled requests
    jobs              what exports, imports and bulk operations share
    parameters        the parameters that reads and writes share
    travel            reads the past of tables, and restores old states of items

To add an operation: write `prepare(request, context) -> body` in the package of its subject, add it to the
registry here, declare its shape in `shapes`, and list it in docs/compatibility.md. `prepare` does the work
that needs no storage; the engine runs the body.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from hashrange.operations.context import Operation


class _Late:
    """A function of a module of this package, which is imported when it is called for the first time.

    Imports slow test runs down, and a program uses few operations: with all of them, a database would import
    half as much again. `entry`: the operation whose `prepare` this is, until the function replaces it.
    """

    __slots__ = ("_found", "_function", "_module", "entry")

    def __init__(self, module: str, function: str = "prepare") -> None:
        self._module = module
        self._function = function
        self._found: Callable[..., Any] | None = None
        self.entry: Operation | None = None

    def __call__(self, *arguments: Any) -> Any:
        return (self._found or self.load())(*arguments)

    def load(self) -> Callable[..., Any]:
        """Import the function."""
        function: Callable[..., Any] = getattr(import_module(f"{__name__}.{self._module}"), self._function)
        self._found = function
        if self.entry is not None:
            self.entry.prepare = function
        return function


def _operation(
    module: str,
    function: str = "prepare",
    *,
    writes: bool = False,
    consumes: bool = False,
    reads_only: str | None = None,
) -> Operation:
    """The entry of an operation, whose functions are in `module`."""
    prepare = _Late(module, function)
    entry = Operation(prepare, writes, consumes, _Late(module, reads_only) if reads_only else None)
    prepare.entry = entry
    return entry


def load() -> None:
    """Import all operations now, so that a server's requests do not wait for it."""
    for entry in REGISTRY.values():
        for function in (entry.prepare, entry.reads_only):
            if isinstance(function, _Late):
                function.load()
    for late in (export_filter, bulk_put):
        late.load()


export_filter: Final = _Late("exports", "compiled_filter")
"""The filter of an export, for the background work that writes it: `exports.compiled_filter`."""

bulk_put: Final = _Late("bulk", "put")
"""The write of a row of a bulk operation, for the background work: `bulk.put`."""


REGISTRY: Final[dict[str, Operation]] = {
    "BatchExecuteStatement": _operation(
        "statements.batch_execute_statement",
        writes=True,
        consumes=True,
        reads_only="reads_only",
    ),
    "BatchGetItem": _operation("reads.batch_get_item", consumes=True),
    "BatchWriteItem": _operation("writes.batch_write_item", writes=True, consumes=True),
    "CancelBulkOperation": _operation("bulk", "prepare_cancel", writes=True),
    "CreateBackup": _operation("backups.backup_requests", "prepare_create", writes=True),
    "CreateGlobalTable": _operation("replicas.legacy_global_tables", "prepare_create"),
    "CreateTable": _operation("tables.create_table", writes=True),
    "DeleteBackup": _operation("backups.backup_requests", "prepare_delete", writes=True),
    "DeleteItem": _operation("writes.single_write", "prepare_delete", writes=True, consumes=True),
    "DeleteResourcePolicy": _operation("policies.resource_policies", "prepare_delete", writes=True),
    "DeleteTable": _operation("tables.delete_table", writes=True),
    "DescribeBackup": _operation("backups.backup_requests", "prepare_describe"),
    "DescribeBulkOperation": _operation("bulk", "prepare_describe"),
    "DescribeContinuousBackups": _operation("backups.continuous_backups", "prepare_describe"),
    "DescribeContributorInsights": _operation("insights", "prepare_describe"),
    "DescribeEndpoints": _operation("describe_service", "prepare_endpoints"),
    "DescribeExport": _operation("exports", "prepare_describe"),
    "DescribeGlobalTable": _operation("replicas.legacy_global_tables", "prepare_describe"),
    "DescribeGlobalTableSettings": _operation("replicas.legacy_global_tables", "prepare_settings"),
    "DescribeImport": _operation("imports", "prepare_describe"),
    "DescribeKinesisStreamingDestination": _operation(
        "destinations", "prepare_describe"
    ),
    "DescribeLimits": _operation("describe_service", "prepare_limits"),
    "DescribeStream": _operation("streams", "prepare_describe"),
    "DescribeTable": _operation("tables.table_description", "prepare_describe"),
    "DescribeTableReplicaAutoScaling": _operation("replicas.replica_auto_scaling", "prepare_describe"),
    "DescribeTimeToLive": _operation("tables.time_to_live", "prepare_describe"),
    "DisableKinesisStreamingDestination": _operation(
        "destinations", "prepare_disable", writes=True
    ),
    "EnableKinesisStreamingDestination": _operation(
        "destinations", "prepare_enable", writes=True
    ),
    "ExecuteStatement": _operation(
        "statements.execute_statement",
        writes=True,
        consumes=True,
        reads_only="reads_only",
    ),
    "ExecuteTransaction": _operation(
        "statements.execute_transaction",
        writes=True,
        consumes=True,
        reads_only="reads_only",
    ),
    "ExportTableToPointInTime": _operation("exports", writes=True),
    "GetItem": _operation("reads.get_item", consumes=True),
    "GetRecords": _operation("streams", "prepare_records", consumes=True),
    "GetResourcePolicy": _operation("policies.resource_policies", "prepare_get"),
    "GetShardIterator": _operation("streams", "prepare_iterator"),
    "ImportTable": _operation("imports", writes=True),
    "ListContributorInsights": _operation("insights", "prepare_list"),
    "ListExports": _operation("exports", "prepare_list"),
    "ListBackups": _operation("backups.backup_requests", "prepare_list"),
    "ListBulkOperations": _operation("bulk", "prepare_list"),
    "ListGlobalTables": _operation("replicas.legacy_global_tables", "prepare_list"),
    "ListImports": _operation("imports", "prepare_list"),
    "ListStreams": _operation("streams", "prepare_list"),
    "ListTables": _operation("tables.table_description", "prepare_list"),
    "ListTagsOfResource": _operation("tables.tags", "prepare_list"),
    "PutItem": _operation("writes.single_write", "prepare_put", writes=True, consumes=True),
    "PutResourcePolicy": _operation("policies.resource_policies", "prepare_put", writes=True),
    "Query": _operation("reads.query", consumes=True),
    "RestoreTableFromBackup": _operation("backups.restores", "prepare_of_backup", writes=True),
    "RestoreTableToPointInTime": _operation("backups.restores", "prepare_of_table", writes=True),
    "Scan": _operation("reads.scan", consumes=True),
    "SearchVectors": _operation("vectors", consumes=True),
    "StartBulkPutItems": _operation("bulk", writes=True),
    "TagResource": _operation("tables.tags", "prepare_tag", writes=True),
    "TransactGetItems": _operation("reads.transact_get_items", consumes=True),
    "TransactWriteItems": _operation("writes.transact_write_items", writes=True, consumes=True),
    "UntagResource": _operation("tables.tags", "prepare_untag", writes=True),
    "UpdateContinuousBackups": _operation("backups.continuous_backups", "prepare_update", writes=True),
    "UpdateContributorInsights": _operation(
        "insights", "prepare_update", writes=True
    ),
    "UpdateGlobalTable": _operation("replicas.legacy_global_tables", "prepare_update"),
    "UpdateGlobalTableSettings": _operation("replicas.legacy_global_tables", "prepare_settings"),
    "UpdateItem": _operation("writes.single_write", "prepare_update", writes=True, consumes=True),
    "UpdateKinesisStreamingDestination": _operation(
        "destinations", "prepare_update", writes=True
    ),
    "UpdateTable": _operation("tables.update_table", writes=True),
    "UpdateTableReplicaAutoScaling": _operation(
        "replicas.replica_auto_scaling", "prepare_update", writes=True
    ),
    "UpdateTimeToLive": _operation("tables.time_to_live", "prepare_update", writes=True),
}
