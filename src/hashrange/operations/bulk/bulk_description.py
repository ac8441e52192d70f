"""DescribeBulkOperation and ListBulkOperations: a bulk operation as answers show it, and its ARN. Its record
outlives the table.

Source: API reference, DescribeBulkOperation, ListBulkOperations.
"""

from __future__ import annotations

import re
from typing import Any, Final

from hashrange.errors import ResourceNotFoundException, ValidationException
from hashrange.limits import LIST_BULK_OPERATIONS_PAGE_MAX
from hashrange.operations import job_pages
from hashrange.operations.context import (
    Answer,
    Caller,
    Context,
    ReadBody,
    Request,
    check_scope,
    table_arn,
)
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.jobs.bulk import bulk_records
from hashrange.tables.jobs.bulk.bulk_records import BulkPut

_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:([a-z0-9-]*):([0-9]*):table/[a-zA-Z0-9_.-]{3,255}/bulk-operation/([0-9a-f]+-[0-9a-f]+)"
).fullmatch


_TOKEN_BYTES: Final = 24
"""The API declares tokens of a multiple of 8 bytes."""


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeBulkOperation."""
    arn = request["BulkOperationArn"]

    def body(reader: Reader) -> Answer:
        return {"BulkOperationDescription": describe(reader, find(reader, arn, context), context.caller)}

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListBulkOperations."""
    size = request.get("MaxResults") or LIST_BULK_OPERATIONS_PAGE_MAX
    before = job_pages.id_in(request.get("NextToken"))

    def body(reader: Reader) -> Answer:
        jobs = bulk_records.newest_first(reader, context.scope, before)
        return job_pages.page(
            "BulkOperationsSummaryList", jobs, size, lambda job: summary(job, context.caller), _TOKEN_BYTES
        )

    return body


def find(reader: Reader, arn: str, context: Context) -> BulkPut:
    """The bulk operation with this ARN.

    Raises `ValidationException` for a malformed ARN, `AccessDeniedException` for an ARN of another account,
    and `ResourceNotFoundException`; as for imports [assumed].
    """
    parsed = _ARN(arn)
    if parsed is None:
        raise ValidationException("Invalid Bulk Operation ARN")
    region, account_id, id_ = parsed.groups()
    missing = ResourceNotFoundException(f"Bulk operation not found: {arn}")
    check_scope(context.scope, account_id, region, missing)
    job = bulk_records.find(reader, context.scope, id_)
    if job is None or f"/{job.table_name}/" not in arn:
        raise missing
    return job


def describe(reader: Reader, job: BulkPut, caller: Caller) -> dict[str, Any]:
    """The BulkOperationDescription of a bulk operation."""
    request = job.request
    given, wanted = request["InputS3Configuration"], request["OutputS3Configuration"]
    shown: dict[str, Any] = {
        **summary(job, caller),
        "TableDetails": [{"TableName": table_arn(caller, job.table_name), "TableId": job.table_id}],
        # What a request leaves out is shown, as it is of imports. [report] ack-api-quirks DDB-IMPORT-004
        "InputS3Configuration": {"S3BucketOwner": job.account_id, "InputCompressionType": "NONE", **given},
        "OutputS3Configuration": {"S3BucketOwner": job.account_id, **wanted},
        "ProcessedItemCount": job.processed_items,
        "ProcessedInputBytes": job.processed_bytes,
        "FailedItemCount": job.failed_items,
        "BulkOperationUsage": [_usage(reader, job, caller)],
        "PerformanceTier": request.get("PerformanceTier") or "STANDARD",
    }
    if job.token is not None:
        shown["ClientToken"] = job.token
    if job.total_bytes is not None:
        shown["TotalInputBytes"] = job.total_bytes
    if request.get("MaxWriteRequestUnits") is not None:
        shown["MaxWriteRequestUnits"] = request["MaxWriteRequestUnits"]
    if job.failure_code is not None:
        shown["FailureCode"] = job.failure_code
        shown["FailureMessage"] = job.failure_message
    return shown


def summary(job: BulkPut, caller: Caller) -> dict[str, Any]:
    """The BulkOperationSummary of a bulk operation."""
    shown: dict[str, Any] = {
        "BulkOperationArn": job.arn(caller.region, caller.account_id),
        "BulkOperationStatus": job.status,
        "StartTime": round(job.started, 3),
    }
    if job.ended is not None:
        shown["EndTime"] = round(job.ended, 3)
    return shown


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
