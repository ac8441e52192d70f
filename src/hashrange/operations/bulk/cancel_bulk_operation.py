"""CancelBulkOperation: end a bulk operation that is in progress. What it has written stays.

The operation is CANCELLING until the background has written its report. One that has ended is not found
[assumed]: that is the only error that the API declares.

Source: API reference, CancelBulkOperation.
"""

from __future__ import annotations

import msgspec

from hashrange.errors import ResourceNotFoundException
from hashrange.operations.bulk import description
from hashrange.operations.context import Answer, Context, Request, WriteBody
from hashrange.storage.api import Transaction
from hashrange.tables.background.jobs import UNDER_WAY
from hashrange.tables.bulk import jobs


def prepare(request: Request, context: Context) -> WriteBody:
    """The body of a CancelBulkOperation."""
    arn = request["BulkOperationArn"]

    def body(txn: Transaction) -> Answer:
        job = description.find(txn, arn, context)
        if job.status not in UNDER_WAY:
            raise ResourceNotFoundException(f"Bulk operation is not in progress: {arn}")
        cancelled = msgspec.structs.replace(job, status="CANCELLING")
        jobs.save(txn, cancelled)
        shown = description.summary(cancelled, context.caller)
        return {name: shown[name] for name in ("BulkOperationArn", "BulkOperationStatus")}

    return body
