"""ListExports: the exports of the last 90 days, newest first, in pages of up to 25.

With a TableArn, only the exports of the table that has this name now, not of a deleted table ([report]
ack-api-quirks DDB-EXPORT-020).

Source: API reference, ListExports.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from hashrange.errors import ValidationException
from hashrange.limits import LIST_EXPORTS_PAGE_MAX
from hashrange.operations.context import Answer, Context, ReadBody, Request, table_name
from hashrange.operations.exports import export_description
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog
from hashrange.tables.exports import export_records

_TOKEN: Final = re.compile("(?:[0-9a-f]{2})+").fullmatch
_IS_ID: Final = re.compile("[0-9]{14,}-[0-9a-f]{8}").fullmatch


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a ListExports."""
    only = table_name(request["TableArn"], context.scope) if request.get("TableArn") else None
    size = request.get("MaxResults") or LIST_EXPORTS_PAGE_MAX
    token = request.get("NextToken")
    before = _id_in(token) if token is not None else None

    def body(reader: Reader) -> Answer:
        table = catalog.find(reader, only, context.scope) if only is not None else None
        table_id = table.id if table is not None else None
        exports = export_records.newest_first(reader, context.scope, before)
        wanted = (job for job in exports if only is None or job.table_id == table_id)
        page = list(islice(wanted, size + 1))
        shown = [export_description.summary(job, context.caller) for job in page[:size]]
        answer: Answer = {"ExportSummaries": shown}
        if len(page) > size:
            answer["NextToken"] = page[size - 1].id.encode().hex()
        return answer

    return body


def _id_in(token: str) -> str:
    id_ = bytes.fromhex(token).decode("ascii", "replace") if _TOKEN(token) else ""
    if not _IS_ID(id_):
        # [report] ack-api-quirks DDB-EXPORT-006
        raise ValidationException(f"Invalid Request: Provided nextToken is invalid: {token}")
    return id_
