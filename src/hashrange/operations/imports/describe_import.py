"""DescribeImport: the state and progress of an import. Its record outlives the table.

Source: API reference, DescribeImport; ack-api-quirks DDB-IMPORT-003, 008, 010.
"""

from __future__ import annotations

from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.operations.imports import import_description
from hashrange.storage.api import Reader


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeImport."""
    arn = request["ImportArn"]

    def body(reader: Reader) -> Answer:
        job = import_description.find(reader, arn, context)
        return {"ImportTableDescription": import_description.describe(job, context.caller)}

    return body
