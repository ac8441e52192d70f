"""DescribeBulkOperation: how far a bulk operation is. Its record outlives the table.

Source: API reference, DescribeBulkOperation.
"""

from __future__ import annotations

from hashrange.operations.bulk import description
from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.storage.api import Reader


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeBulkOperation."""
    arn = request["BulkOperationArn"]

    def body(reader: Reader) -> Answer:
        job = description.find(reader, arn, context)
        return {"BulkOperationDescription": description.describe(reader, job, context.caller)}

    return body
