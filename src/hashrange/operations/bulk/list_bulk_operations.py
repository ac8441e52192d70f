"""ListBulkOperations: the bulk operations of the last 90 days, newest first, in pages of up to 25.

Source: API reference, ListBulkOperations.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from hashrange.errors import ValidationException
from hashrange.limits import LIST_BULK_OPERATIONS_PAGE_MAX
from hashrange.operations.bulk import bulk_description
from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.storage.api import Reader
from hashrange.tables.bulk import bulk_records

_IS_ID: Final = re.compile("[0-9]{14,}-[0-9a-f]{8}").fullmatch

# A token is hex of a multiple of 8 bytes.
_TOKEN_BYTES: Final = 24


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a ListBulkOperations."""
    size = request.get("MaxResults") or LIST_BULK_OPERATIONS_PAGE_MAX
    token = request.get("NextToken")
    before = _id_in(token) if token is not None else None

    def body(reader: Reader) -> Answer:
        page = list(islice(bulk_records.newest_first(reader, context.scope, before), size + 1))
        shown = [bulk_description.summary(job, context.caller) for job in page[:size]]
        answer: Answer = {"BulkOperationsSummaryList": shown}
        if len(page) > size:
            answer["NextToken"] = page[size - 1].id.encode().ljust(_TOKEN_BYTES, b"\0").hex()
        return answer

    return body


def _id_in(token: str) -> str:
    id_ = bytes.fromhex(token).rstrip(b"\0").decode("ascii", "replace")
    if not _IS_ID(id_):
        # [report] ack-api-quirks DDB-EXPORT-006, for exports
        raise ValidationException(f"Invalid Request: Provided nextToken is invalid: {token}")
    return id_
