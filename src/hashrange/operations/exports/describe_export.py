"""DescribeExport: the state and progress of an export. Its record outlives the table.

Source: API reference, DescribeExport; ack-api-quirks DDB-EXPORT-006, 016, 017, 020.
"""

from __future__ import annotations

from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.operations.exports import export_description
from hashrange.storage.api import Reader


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a DescribeExport."""
    arn = request["ExportArn"]

    def body(reader: Reader) -> Answer:
        job = export_description.find(reader, arn, context)
        return {"ExportDescription": export_description.describe(job, context.caller)}

    return body
