"""Bulk operations: put the items in the objects of a bucket into an existing table.

The request stores the operation; the background work (`tables.jobs.bulk`) opens the buckets and writes the
items. The table has to be ACTIVE, or UPDATING without building an index, and not a member of a global table.
The record of an operation outlives the table.

Source: API reference; Developer Guide, "Bulk put items considerations, quotas, and permissions", as far as
its pages were available. Other facts are marked [assumed]; docs/bulk.md lists them.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from hashrange import shapes
from hashrange.errors import (
    IdempotentParameterMismatchException,
    RequestViolation,
    ResourceInUseException,
    ResourceNotFoundException,
    SerializationException,
    ValidationException,
)
from hashrange.limits import BULK_TOKEN_SECONDS, LIST_BULK_OPERATIONS_PAGE_MAX
from hashrange.operations import jobs
from hashrange.operations.context import (
    Answer,
    Caller,
    Context,
    ReadBody,
    Request,
    WriteBody,
    table_arn,
    table_name,
)
from hashrange.operations.writes import single_write
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table
from hashrange.tables.jobs.bulk.bulk_records import BULK_PUTS, BulkPut
from hashrange.tables.jobs.job_records import UNDER_WAY
from hashrange.tables.writes.read_modify_write import Write

# [assumed] the words
_NO_OUTPUT: Final = "Invalid Request: S3Bucket must be specified in OutputS3Configuration"
_NO_KEY: Final = "Invalid Request: KMS Key Id is not supported for this encryption type"
_GLOBAL: Final = "Bulk put items is not supported for global tables"
_OTHER_REQUEST: Final = "The ClientToken was used by a request with other parameters"
_TOKEN_BYTES: Final = 24
"""The API declares tokens of a multiple of 8 bytes."""
_ROW: Final[tuple[str, ...]] = (
    "TableName",
    "Item",
    "ConditionExpression",
    "ExpressionAttributeNames",
    "ExpressionAttributeValues",
)


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a StartBulkPutItems."""
    output = request["OutputS3Configuration"]
    if output.get("S3Bucket") is None:
        raise ValidationException(_NO_OUTPUT)
    if output.get("S3SseKmsKeyId") is not None and output.get("S3SseAlgorithm") != "KMS":
        raise ValidationException(_NO_KEY)
    jobs.check_buckets(context, "read from")
    name = table_name(request["TableName"], context.scope)
    begun, caller = jobs.beginning("StartBulkPutItems", request, context), context.caller

    def body(txn: Transaction) -> Answer:
        table = catalog.open_any(txn, name, context.scope, caller.region)
        same = _earlier(txn, begun)
        if same is not None:
            return {"BulkOperationDescription": _described(txn, same, caller)}
        _check(table)
        job = BulkPut(**begun, table_name=table.name, table_id=table.id)
        BULK_PUTS.save(txn, job)
        BULK_PUTS.keep_token(txn, job)
        return {"BulkOperationDescription": _described(txn, job, caller)}

    return body


def _check(table: Table) -> None:
    """Refuse a table that is not ready for a bulk operation."""
    if table.replicas:
        raise ValidationException(_GLOBAL)
    if table.status not in ("ACTIVE", "UPDATING") or table.has_changing_index():
        # [assumed] the words
        raise ResourceInUseException(f"Table is not ready for a bulk operation: {table.name}")


def _earlier(reader: Reader, begun: dict[str, Any]) -> BulkPut | None:
    """The operation that was started with the same token in the last eight hours.

    Raises `IdempotentParameterMismatchException` if its request was different.
    """
    earlier = jobs.with_token(BULK_PUTS, reader, begun)
    if earlier is None or begun["started"] >= earlier.started + BULK_TOKEN_SECONDS:
        return None
    if earlier.request != begun["request"]:
        raise IdempotentParameterMismatchException(_OTHER_REQUEST)
    return earlier


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeBulkOperation."""
    arn = request["BulkOperationArn"]

    def body(reader: Reader) -> Answer:
        job = _find(reader, arn, context)
        return {"BulkOperationDescription": _described(reader, job, context.caller)}

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListBulkOperations."""
    size = request.get("MaxResults") or LIST_BULK_OPERATIONS_PAGE_MAX

    def summary(job: BulkPut) -> dict[str, Any]:
        return _summary(job, context.caller)

    def body(reader: Reader) -> Answer:
        token, member = request.get("NextToken"), "BulkOperationsSummaryList"
        return jobs.page(BULK_PUTS, reader, context, token, size, summary, member, token_bytes=_TOKEN_BYTES)

    return body


def prepare_cancel(request: Request, context: Context) -> WriteBody:
    """The body of a CancelBulkOperation. The items that the operation has written stay.

    The operation is CANCELLING until the background work has written its report. For an operation that has
    ended the answer is ResourceNotFoundException [assumed], the only error that the API declares.
    """
    arn = request["BulkOperationArn"]

    def body(txn: Transaction) -> Answer:
        job = _find(txn, arn, context)
        if job.status not in UNDER_WAY:
            raise ResourceNotFoundException(f"Bulk operation is not in progress: {arn}")
        BULK_PUTS.save(txn, msgspec.structs.replace(job, status="CANCELLING"))
        caller = context.caller
        return {
            "BulkOperationArn": job.arn(caller.region, caller.account_id),
            "BulkOperationStatus": "CANCELLING",
        }

    return body


def _find(reader: Reader, arn: str, context: Context) -> BulkPut:
    missing = ResourceNotFoundException(f"Bulk operation not found: {arn}")
    return jobs.find(BULK_PUTS, reader, arn, context, "bulk-operation", missing)


def _described(reader: Reader, job: BulkPut, caller: Caller) -> dict[str, Any]:
    """The BulkOperationDescription of a bulk operation."""
    request = job.request
    given, wanted = request["InputS3Configuration"], request["OutputS3Configuration"]
    shown: dict[str, Any] = {
        **_summary(job, caller),
        "TableDetails": [{"TableName": table_arn(caller, job.table_name), "TableId": job.table_id}],
        # What a request leaves out is shown, as it is of imports. [report] ack-api-quirks DDB-IMPORT-004
        "InputS3Configuration": {"S3BucketOwner": job.account_id, "InputCompressionType": "NONE", **given},
        "OutputS3Configuration": {"S3BucketOwner": job.account_id, **wanted},
        "ProcessedItemCount": job.processed_items,
        "ProcessedInputBytes": job.processed_bytes,
        "FailedItemCount": job.failed_items,
        "BulkOperationUsage": [_usage(reader, job, caller)],
        "PerformanceTier": request.get("PerformanceTier") or "STANDARD",
        **jobs.outcome(job),
    }
    if job.total_bytes is not None:
        shown["TotalInputBytes"] = job.total_bytes
    if request.get("MaxWriteRequestUnits") is not None:
        shown["MaxWriteRequestUnits"] = request["MaxWriteRequestUnits"]
    return shown


def _summary(job: BulkPut, caller: Caller) -> dict[str, Any]:
    """The BulkOperationSummary of a bulk operation."""
    return {
        "BulkOperationArn": job.arn(caller.region, caller.account_id),
        "BulkOperationStatus": job.status,
        **jobs.times(job),
    }


def _usage(reader: Reader, job: BulkPut, caller: Caller) -> dict[str, Any]:
    """The bytes that were written, by table and index. An index that no longer exists is left out."""
    usage = job.usage
    shown: dict[str, Any] = {
        "TableName": table_arn(caller, job.table_name),
        "BulkPutBytes": sum(usage.values()),
        "Table": {"BulkPutBytes": usage.get("", 0)},
    }
    table = catalog.find_full(reader, job.table_full_name)
    for index in table.indexes if table is not None and table.id == job.table_id else ():
        if index.vector is not None and index.name in usage:
            vectors = shown.setdefault("VectorIndexes", {})
            vectors[index.name] = {"BulkPutVectorBytes": usage[index.name]}
            shown["BulkPutBytes"] -= usage[index.name]
        elif index.name in usage:
            kind = "GlobalSecondaryIndexes" if index.is_global else "LocalSecondaryIndexes"
            shown.setdefault(kind, {})[index.name] = {"BulkPutBytes": usage[index.name]}
    return shown


def put(row: Request) -> Write:
    """The write of a row, which has an Item and may have a condition, in the same members as PutItem
    [assumed]. Raises the `ServiceError` that a PutItem with these members would."""
    request = {name: row[name] for name in _ROW if name in row}
    try:
        shapes.check("PutItem", request)
        return single_write.put(request, "")
    except RequestViolation as error:
        raise shapes.spoken("PutItem", request, error) from None
    except (SerializationException, ValidationException):
        shapes.check_types("PutItem", request)
        raise
