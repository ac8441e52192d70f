"""The report of a bulk operation: which rows were not written, and why.

    <prefix>/AWSDynamoDB/<id>/data/<name>.json.gz      a line for each row
    <prefix>/AWSDynamoDB/<id>/manifest-files.json      a line for each of these objects
    <prefix>/AWSDynamoDB/<id>/manifest-summary.json    the operation as a whole; written last

and the MD5 of each manifest beside it. The service's layout is unknown: these are the names of exports, and
the lines have the members of the service's errors of imports [assumed].
"""

from __future__ import annotations

from typing import Any

from hashrange.interchange.exports import shown_time
from hashrange.tables.jobs.bulk.bulk_records import BulkPut
from hashrange.tables.jobs.objects import Fault, Put
from hashrange.values import Item

_MESSAGE_CHARS_MAX = 1_000


def error(job: BulkPut, fault: Fault) -> dict[str, Any]:
    """The line of a row that is not an item of the table."""
    message = fault.message[:_MESSAGE_CHARS_MAX]
    return {"OutputType": "ERROR", **_pointer(job, fault.key, fault.row), "ErrorMessages": [message]}


def condition_failed(job: BulkPut, put: Put, existing: Item | None) -> dict[str, Any]:
    """The line of an item whose condition was not met, with the existing item."""
    line = {"OutputType": "CONDITION_CHECK_FAILURE", **_pointer(job, put.key, put.row), "Item": put.write.key}
    return line if existing is None else {**line, "ExistingItem": existing}


def _pointer(job: BulkPut, key: str, row: int) -> dict[str, Any]:
    return {"ItemS3Pointer": {"Bucket": job.bucket, "Key": key, "ItemIndex": row}}


def summary(job: BulkPut, status: str, now: float, files: str) -> dict[str, Any]:
    """The summary of an operation that ends `now`. `files` is the key of the files manifest."""
    output = job.request["OutputS3Configuration"]
    arn = job.arn(job.region, job.account_id)
    return {
        "bulkOperationArn": arn,
        "bulkOperationStatus": status,
        "tableArn": arn.rpartition("/bulk-operation/")[0],
        "tableId": job.table_id,
        "startTime": shown_time(job.started),
        "endTime": shown_time(now),
        "processedItemCount": job.processed_items,
        "failedItemCount": job.failed_items,
        "conditionCheckFailureCount": job.conditions_failed,
        "outputType": output["OutputType"],
        "s3Bucket": job.report_bucket,
        "s3Prefix": output.get("S3KeyPrefix"),
        "manifestFilesS3Key": files,
    }
