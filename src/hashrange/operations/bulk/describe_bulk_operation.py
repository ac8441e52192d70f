"""DescribeBulkOperation: the state and progress of a bulk operation. Its record outlives the table.

Source: API reference, DescribeBulkOperation.
"""

from __future__ import annotations

from hashrange.operations.bulk import bulk_description
from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.storage.api import Reader


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeBulkOperation."""
    arn = request["BulkOperationArn"]

    def body(reader: Reader) -> Answer:
        job = bulk_description.find(reader, arn, context)
        return {"BulkOperationDescription": bulk_description.describe(reader, job, context.caller)}

    return body
