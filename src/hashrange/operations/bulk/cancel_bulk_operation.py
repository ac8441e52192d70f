"""CancelBulkOperation: end a bulk operation that is in progress. The items that it has written stay.

The operation is CANCELLING until the background work has written its report. For an operation that has ended
the answer is ResourceNotFoundException [assumed], the only error that the API declares.

Source: API reference, CancelBulkOperation.
"""

from __future__ import annotations

import msgspec

from hashrange.errors import ResourceNotFoundException
from hashrange.operations.bulk import bulk_description
from hashrange.operations.context import Answer, Context, Request, WriteBody
from hashrange.storage.api import Transaction
from hashrange.tables.jobs.bulk import bulk_records
from hashrange.tables.jobs.job_records import UNDER_WAY


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a CancelBulkOperation."""
    arn = request["BulkOperationArn"]

    def body(txn: Transaction) -> Answer:
        job = bulk_description.find(txn, arn, context)
        if job.status not in UNDER_WAY:
            raise ResourceNotFoundException(f"Bulk operation is not in progress: {arn}")
        cancelled = msgspec.structs.replace(job, status="CANCELLING")
        bulk_records.save(txn, cancelled)
        shown = bulk_description.summary(cancelled, context.caller)
        return {name: shown[name] for name in ("BulkOperationArn", "BulkOperationStatus")}

    return body
