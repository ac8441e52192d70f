"""ListStreams: the streams of all tables, or of one table, in pages of up to 100.

Source: API reference, ListStreams; for error messages DynamoDB Local, as decision 5 says.
"""

from __future__ import annotations

from itertools import islice
from typing import Final

from hashrange.operations.context import Answer, Context, ReadBody, Request, stream_arn, table_name
from hashrange.operations.streams.stream_requests import limit_of, names_in
from hashrange.storage.api import Reader
from hashrange.tables import streams

_STREAMS_MAX: Final = 100


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a ListStreams."""
    limit = limit_of(request, _STREAMS_MAX, "Limit cannot be greater than the maximum allowed size:")
    only = table_name(request["TableName"], context.scope) if request.get("TableName") else None
    start = request.get("ExclusiveStartStreamArn")

    after = names_in(start) if start is not None else None

    def body(reader: Reader) -> Answer:
        found = streams.all_streams(reader, after, context.scope)
        wanted = (s for s in found if only is None or s.table == only)
        page = list(islice(wanted, limit + 1))
        shown = [
            {
                "StreamArn": stream_arn(context.caller, stream.table, stream.label),
                "TableName": stream.table,
                "StreamLabel": stream.label,
            }
            for stream in page[:limit]
        ]
        answer: Answer = {"Streams": shown}
        if len(page) > limit:
            answer["LastEvaluatedStreamArn"] = shown[-1]["StreamArn"]
        return answer

    return body
