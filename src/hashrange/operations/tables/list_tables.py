"""ListTables: the names of all tables in order, in pages of up to 100.

Source: API reference, ListTables.
"""

from __future__ import annotations

from itertools import islice

from hashrange.limits import LIST_TABLES_MAX
from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.storage.api import Reader
from hashrange.tables.definitions import catalog


def prepare(request: Request, context: Context) -> ReadBody:
    """The body of a ListTables."""
    limit = request.get("Limit") or LIST_TABLES_MAX
    after, region = request.get("ExclusiveStartTableName"), context.caller.region

    def body(reader: Reader) -> Answer:
        names = list(islice(catalog.names(reader, context.scope, after, region), limit + 1))
        answer: Answer = {"TableNames": names[:limit]}
        if len(names) > limit:
            answer["LastEvaluatedTableName"] = names[limit - 1]
        return answer

    return body
