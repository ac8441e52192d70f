"""Requests to the tables of another account: `acting`.

If accounts have tables of their own, a request may name a table of another account by its ARN. It is then
executed among that account's tables, whose policies are the tables' own; whether it is allowed is decided as
for any other request (`judge`), by the caller's policies and by the table's.

Source: Developer Guide, "DynamoDB API operations supported by resource-based policies", "Cross-account access
with resource-based policies".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from hashrange.operations.context import Caller
from hashrange.settings import Settings

CROSS_ACCOUNT: Final = frozenset({
    "BatchGetItem", "BatchWriteItem", "DeleteItem", "DeleteTable", "DescribeStream", "DescribeTable",
    "GetItem", "GetRecords", "GetShardIterator", "ListTagsOfResource", "PutItem", "Query", "Scan",
    "TagResource", "TransactGetItems", "TransactWriteItems", "UntagResource", "UpdateItem", "UpdateTable",
})  # fmt: skip
"""The operations that reach tables and streams of other accounts. All others, and statements, do not."""

_ARN: Final = re.compile(r"arn:[^:]*:dynamodb:[^:]*:([0-9]{12}):table/")


def acting(operation: str, request: Any, caller: Caller, settings: Settings) -> Caller:
    """The caller of a request, in the account whose tables the request names.

    It stays in its own account if the request names tables of several accounts: those of others are then
    refused. The request may be wrong in any way.
    """
    if not settings.separate_accounts or not caller.identified.refuses or operation not in CROSS_ACCOUNT:
        return caller
    accounts = {_account(name) for name in _names(request)}
    if len(accounts) != 1 or None in accounts:
        return caller
    (account,) = accounts
    return caller if account is None or account == caller.account_id else caller._replace(account_id=account)


def _account(name: Any) -> str | None:
    match = _ARN.match(name) if isinstance(name, str) else None
    return None if match is None else match[1]


def _names(request: Any) -> Iterator[Any]:
    """The names and ARNs by which a request names tables and streams."""
    if not isinstance(request, dict):
        return
    for member in ("TableName", "ResourceArn", "StreamArn", "ShardIterator"):
        if member in request:
            yield request[member]
    batch, transaction = request.get("RequestItems"), request.get("TransactItems")
    if isinstance(batch, dict):
        yield from batch
    for content in transaction if isinstance(transaction, list) else ():
        for part in content.values() if isinstance(content, dict) else ():
            if part is not None:
                yield part.get("TableName") if isinstance(part, dict) else None
