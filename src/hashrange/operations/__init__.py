"""The API's operations: one module each (families of tiny ones share a module), and the registry.

To add one: write `prepare(request, context) -> body`, name it here, declare its shape in `shapes`, and list
it in docs/compatibility.md. `prepare` does all that needs no storage; the engine runs the body.
"""

from __future__ import annotations

from typing import Final

from hashrange.operations import (
    batch_execute_statement,
    batch_get_item,
    batch_write_item,
    create_table,
    delete_item,
    delete_table,
    describe_service,
    describe_table,
    execute_statement,
    execute_transaction,
    get_item,
    list_tables,
    put_item,
    query,
    scan,
    stream_reads,
    tags,
    time_to_live,
    transact_get_items,
    transact_write_items,
    update_item,
    update_table,
)
from hashrange.operations.context import Operation

REGISTRY: Final[dict[str, Operation]] = {
    "BatchExecuteStatement": Operation(
        batch_execute_statement.prepare, writes=True, reads_only=batch_execute_statement.reads_only
    ),
    "BatchGetItem": Operation(batch_get_item.prepare, writes=False),
    "BatchWriteItem": Operation(batch_write_item.prepare, writes=True),
    "CreateTable": Operation(create_table.prepare, writes=True),
    "DeleteItem": Operation(delete_item.prepare, writes=True),
    "DeleteTable": Operation(delete_table.prepare, writes=True),
    "DescribeEndpoints": Operation(describe_service.prepare_endpoints, writes=False),
    "DescribeLimits": Operation(describe_service.prepare_limits, writes=False),
    "DescribeStream": Operation(stream_reads.prepare_describe, writes=False),
    "DescribeTable": Operation(describe_table.prepare, writes=False),
    "DescribeTimeToLive": Operation(time_to_live.prepare_describe, writes=False),
    "ExecuteStatement": Operation(
        execute_statement.prepare, writes=True, reads_only=execute_statement.reads_only
    ),
    "ExecuteTransaction": Operation(
        execute_transaction.prepare, writes=True, reads_only=execute_transaction.reads_only
    ),
    "GetItem": Operation(get_item.prepare, writes=False),
    "GetRecords": Operation(stream_reads.prepare_records, writes=False),
    "GetShardIterator": Operation(stream_reads.prepare_iterator, writes=False),
    "ListStreams": Operation(stream_reads.prepare_list, writes=False),
    "ListTables": Operation(list_tables.prepare, writes=False),
    "ListTagsOfResource": Operation(tags.prepare_list, writes=False),
    "PutItem": Operation(put_item.prepare, writes=True),
    "Query": Operation(query.prepare, writes=False),
    "Scan": Operation(scan.prepare, writes=False),
    "TagResource": Operation(tags.prepare_tag, writes=True),
    "TransactGetItems": Operation(transact_get_items.prepare, writes=False),
    "TransactWriteItems": Operation(transact_write_items.prepare, writes=True),
    "UntagResource": Operation(tags.prepare_untag, writes=True),
    "UpdateItem": Operation(update_item.prepare, writes=True),
    "UpdateTable": Operation(update_table.prepare, writes=True),
    "UpdateTimeToLive": Operation(time_to_live.prepare_update, writes=True),
}
