"""DescribeExport and ListExports: an export as answers show it, and its ARN. Its record outlives the table.

Source: API reference, DescribeExport, ListExports; ack-api-quirks DDB-EXPORT-006, 016, 017, 020.
"""

from __future__ import annotations

import re
from typing import Any, Final

from hashrange.errors import ExportNotFoundException, ValidationException
from hashrange.interchange.exports import Layout
from hashrange.limits import LIST_EXPORTS_PAGE_MAX
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
from hashrange.tables.definitions import catalog
from hashrange.tables.jobs.exports import export_records
from hashrange.tables.jobs.exports.export_records import Export
from hashrange.tables.jobs.exports.export_runner import billed

_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:([a-z0-9-]*):([0-9]*):table/[a-zA-Z0-9_.-]{3,255}/export/([0-9a-f]+-[0-9a-f]+)"
).fullmatch


def prepare_describe(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeExport."""
    arn = request["ExportArn"]

    def body(reader: Reader) -> Answer:
        return {"ExportDescription": describe(find(reader, arn, context), context.caller)}

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListExports.

    With a TableArn, only the exports of the table that has this name now, not of a deleted table ([report]
    ack-api-quirks DDB-EXPORT-020).
    """
    only = table_name(request["TableArn"], context.scope) if request.get("TableArn") else None
    size = request.get("MaxResults") or LIST_EXPORTS_PAGE_MAX
    before = job_pages.id_in(request.get("NextToken"))

    def body(reader: Reader) -> Answer:
        table = catalog.find(reader, only, context.scope) if only is not None else None
        table_id = table.id if table is not None else None
        exports = export_records.newest_first(reader, context.scope, before)
        wanted = (job for job in exports if only is None or job.table_id == table_id)
        return job_pages.page("ExportSummaries", wanted, size, lambda job: summary(job, context.caller))

    return body


def find(reader: Reader, arn: str, context: Context) -> Export:
    """The export with this ARN.

    Raises `ValidationException` for an ARN that is not an export's, `AccessDeniedException` for an ARN of
    another account, and `ExportNotFoundException` ([report] ack-api-quirks DDB-EXPORT-006).
    """
    parsed = _ARN(arn)
    if parsed is None:
        raise ValidationException("Invalid Export ARN")
    region, account_id, id_ = parsed.groups()
    elsewhere = ExportNotFoundException("Export not found: Invalid export arn")
    check_scope(context.scope, account_id, region, elsewhere)
    job = export_records.find(reader, context.scope, id_)
    if job is None or f"/{job.table_name}/" not in arn:
        raise ExportNotFoundException(f"Export not found: Export not found: {arn}")
    return job


def summary(job: Export, caller: Caller) -> dict[str, Any]:
    """The ExportSummary of an export."""
    return {
        "ExportArn": job.arn(caller.region, caller.account_id),
        "ExportStatus": job.status,
        "ExportType": "FULL_EXPORT" if job.low is None else "INCREMENTAL_EXPORT",
    }


_ECHOED: Final = (
    "S3Bucket",
    "S3BucketOwner",
    "S3Prefix",
    "S3SseKmsKeyId",
    "ExportType",
    "FilterSpecification",
)


def describe(job: Export, caller: Caller) -> dict[str, Any]:
    """The ExportDescription of an export.

    ExportType is shown only if the request gave it, and DestinationType always ([report] ack-api-quirks
    DDB-EXPORT-008, 016, 017).
    """
    request = job.request
    shown: dict[str, Any] = {
        "ExportArn": job.arn(caller.region, caller.account_id),
        "ExportStatus": job.status,
        "StartTime": round(job.started, 3),
        "TableArn": table_arn(caller, job.table_name),
        "TableId": job.table_id,
        "S3SseAlgorithm": request.get("S3SseAlgorithm") or "AES256",
        "ExportFormat": job.format,
        "DestinationType": "S3",
        **{name: request[name] for name in _ECHOED if request.get(name) is not None},
    }
    if job.low is None:
        shown["ExportTime"] = round(job.time, 3)
    else:
        shown["IncrementalExportSpecification"] = {
            "ExportFromTime": round(job.from_time, 3),
            "ExportToTime": round(job.to_time, 3),
            "ExportViewType": job.view,
        }
    if job.token is not None:
        shown["ClientToken"] = job.token
    if job.ended is not None:
        shown["EndTime"] = round(job.ended, 3)
    if job.status == "COMPLETED":
        layout = Layout(job.prefix, job.id, incremental=job.low is not None)
        shown["ExportManifest"] = layout.manifest("summary")
        shown["ItemCount"] = job.items
        shown["BilledSizeBytes"] = billed(job)
    if job.failure_code is not None:
        shown["FailureCode"] = job.failure_code
        shown["FailureMessage"] = job.failure_message
    return shown
