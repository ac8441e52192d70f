"""ListImports: the imports of the last 90 days, newest first, in pages of up to 25.

Source: API reference, ListImports; ack-api-quirks DDB-IMPORT-008, 016.
"""

from __future__ import annotations

import re
from itertools import islice
from typing import Final

from hashrange.errors import ValidationException
from hashrange.limits import LIST_IMPORTS_PAGE_MAX
from hashrange.operations.context import Answer, Context, ReadBody, Request, table_name
from hashrange.operations.imports import import_description
from hashrange.storage.api import Reader
from hashrange.tables.imports import import_records

_IS_ID: Final = re.compile("[0-9]{14,}-[0-9a-f]{8}").fullmatch

# A token is hex of a multiple of 8 bytes, at least 56.
_TOKEN_BYTES: Final = 56


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a ListImports."""
    only = table_name(request["TableArn"], context.scope) if request.get("TableArn") else None
    size = request.get("PageSize") or LIST_IMPORTS_PAGE_MAX
    token = request.get("NextToken")
    before = _id_in(token) if token is not None else None

    def body(reader: Reader) -> Answer:
        imports = import_records.newest_first(reader, context.scope, before)
        wanted = (job for job in imports if only is None or job.table_name == only)
        page = list(islice(wanted, size + 1))
        answer: Answer = {
            "ImportSummaryList": [import_description.summary(job, context.caller) for job in page[:size]]
        }
        if len(page) > size:
            answer["NextToken"] = page[size - 1].id.encode().ljust(_TOKEN_BYTES, b"\0").hex()
        return answer

    return body


def _id_in(token: str) -> str:
    id_ = bytes.fromhex(token).rstrip(b"\0").decode("ascii", "replace")
    if not _IS_ID(id_):
        # [report] ack-api-quirks DDB-EXPORT-006
        raise ValidationException(f"Invalid Request: Provided nextToken is invalid: {token}")
    return id_
