"""DescribeImport and ListImports: an import as answers show it, and its ARN. Its record outlives the table.

Source: API reference, DescribeImport, ListImports; ack-api-quirks DDB-IMPORT-003, 008, 010, 016.
"""

from __future__ import annotations

import re
from typing import Any, Final

from hashrange.errors import ImportNotFoundException, ValidationException
from hashrange.limits import LIST_IMPORTS_PAGE_MAX
from hashrange.operations import job_pages
from hashrange.operations.context import (
    Answer,
    Caller,
    Context,
    ReadBody,
    Request,
    check_scope,
    table_arn,
    table_name,
)
from hashrange.storage.api import Reader
from hashrange.tables.jobs.imports import import_records
from hashrange.tables.jobs.imports.import_records import Import

_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:([a-z0-9-]*):([0-9]*):table/[a-zA-Z0-9_.-]{3,255}/import/([0-9a-f]+-[0-9a-f]+)"
).fullmatch


_TOKEN_BYTES: Final = 56
"""The service's tokens have at least as many."""


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeImport."""
    arn = request["ImportArn"]

    def body(reader: Reader) -> Answer:
        return {"ImportTableDescription": describe(find(reader, arn, context), context.caller)}

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListImports."""
    only = table_name(request["TableArn"], context.scope) if request.get("TableArn") else None
    size = request.get("PageSize") or LIST_IMPORTS_PAGE_MAX
    before = job_pages.id_in(request.get("NextToken"))

    def body(reader: Reader) -> Answer:
        imports = import_records.newest_first(reader, context.scope, before)
        wanted = (job for job in imports if only is None or job.table_name == only)
        return job_pages.page(
            "ImportSummaryList", wanted, size, lambda job: summary(job, context.caller), _TOKEN_BYTES
        )

    return body


def find(reader: Reader, arn: str, context: Context) -> Import:
    """The import with this ARN.

    Raises `ValidationException` for an ARN that is not an import's, `AccessDeniedException` for an ARN of
    another account, and `ImportNotFoundException` ([report] ack-api-quirks DDB-IMPORT-010).
    """
    parsed = _ARN(arn)
    if parsed is None:
        raise ValidationException("Invalid Import ARN")
    region, account_id, id_ = parsed.groups()
    check_scope(context.scope, account_id, region, not_found(arn))  # [report] DDB-EXPORT-006, for exports
    job = import_records.find(reader, context.scope, id_)
    if job is None or f"/{job.table_name}/" not in arn:
        raise not_found(arn)
    return job


def not_found(arn: str) -> ImportNotFoundException:
    """The error for an import that does not exist, worded as for exports ([report] DDB-EXPORT-006)."""
    return ImportNotFoundException(f"Import not found: Import not found: {arn}")


def describe(job: Import, caller: Caller) -> dict[str, Any]:
    """The ImportTableDescription of an import."""
    request = job.request
    shown: dict[str, Any] = {
        **summary(job, caller),
        "TableId": job.table_id,
        "InputCompressionType": job.compression,
        "TableCreationParameters": request["TableCreationParameters"],
        "ProcessedSizeBytes": job.processed_bytes,
        "ProcessedItemCount": job.processed_items,
        "ImportedItemCount": job.imported_items,
        "ErrorCount": job.errors,
    }
    if job.token is not None:
        shown["ClientToken"] = job.token
    if request.get("InputFormatOptions") is not None:
        shown["InputFormatOptions"] = request["InputFormatOptions"]
    if job.failure_code is not None:
        shown["FailureCode"] = job.failure_code
        shown["FailureMessage"] = job.failure_message
    return shown


def summary(job: Import, caller: Caller) -> dict[str, Any]:
    """The ImportSummary of an import."""
    source = job.request["S3BucketSource"]
    shown: dict[str, Any] = {
        "ImportArn": job.arn(caller.region, caller.account_id),
        "ImportStatus": job.status,
        "TableArn": table_arn(caller, job.table_name),
        "S3BucketSource": {"S3BucketOwner": job.account_id, **source},
        "CloudWatchLogGroupArn": (
            f"arn:aws:logs:{caller.region}:{caller.account_id}:log-group:/aws-dynamodb/imports:*"
        ),
        "InputFormat": job.format,
        "StartTime": round(job.started, 3),
    }
    if job.ended is not None:
        shown["EndTime"] = round(job.ended, 3)
    return shown
