"""The targets of a request: the tables, indexes and items that it names, member by member.

`faults` matches its rules with the targets of a request that has been checked: it has its shape, and its
values are in normal form (`targets`). Code that looks at requests that have not been checked, or have been
refused, takes `targets_of_any`. Refuses to know who asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from hashrange import partiql
from hashrange.errors import ServiceError, ValidationException
from hashrange.operations.context import Request
from hashrange.operations.reads.read_parameters import query_reading
from hashrange.partiql.statements import Exists, Select

Attributes = Mapping[str, Any]

_TABLE_PART: Final = ":table/"
_ARNS: Final = (
    *("ResourceArn", "StreamArn", "ShardIterator", "TableArn"),
    *("ImportArn", "ExportArn", "BackupArn", "BulkOperationArn"),
)
_STATEMENTS: Final = ("Statements", "TransactStatements")


@dataclass(frozen=True, slots=True)
class Target:
    """A table that a request names, or one of its items.

    `attributes` are the item's attributes in the request: its key, or the whole item of a put; for a Query,
    the attributes that its key condition compares by `=`. None: the request names no item. `member` is the
    target's position in a batch or a transaction.
    """

    table: str
    index: str | None = None
    attributes: Attributes | None = None
    member: int = 0


def targets(operation: str, request: Request) -> tuple[Target, ...]:
    """The targets of a request, in its order; one without a table if it names none."""
    named = tuple(_targets(operation, request))
    return named or (Target(""),)


def targets_of_any(operation: str, request: Request) -> tuple[Target, ...]:
    """The targets of a request of any form, as far as the request has its shape; none where it does not."""
    try:
        named = targets(operation, request)
    except Exception:  # the request will be refused, or has been, for what is wrong with it
        return ()
    return tuple([target for target in named if _is_sound(target)])


def _is_sound(target: Target) -> bool:
    """Whether the members have the types that they are declared with."""
    return (
        isinstance(target.table, str)
        and (target.index is None or isinstance(target.index, str))
        and (target.attributes is None or isinstance(target.attributes, Mapping))
    )


def _targets(operation: str, request: Request) -> Iterator[Target]:
    if operation == "BatchWriteItem":
        yield from _batch_writes(request["RequestItems"])
    elif operation == "BatchGetItem":
        member = 0
        for given, wanted in request["RequestItems"].items():
            for key in wanted["Keys"]:
                yield Target(name_in(given), None, key, member)
                member += 1
    elif "TransactItems" in request:
        for member, content in enumerate(request["TransactItems"]):
            action = next(action for action in content.values() if action is not None)
            yield Target(name_in(action["TableName"]), None, action.get("Item", action.get("Key")), member)
    elif "Statement" in request:
        yield from _statement(request, 0)
    elif any(name in request for name in _STATEMENTS):
        statements = request.get("Statements") or request.get("TransactStatements") or ()
        for member, content in enumerate(statements):
            # If a statement of a batch is wrong, the others are still executed.
            with suppress(ValidationException):
                yield from _statement(content, member)
    elif "TableName" in request:
        yield Target(name_in(request["TableName"]), request.get("IndexName"), _attributes(operation, request))
    elif "TargetTableName" in request:
        yield Target(name_in(request["TargetTableName"]))
        for name in ("SourceTableName", "SourceTableArn"):
            if name in request:
                yield Target(name_in(request[name]))
    elif "TableCreationParameters" in request:
        yield Target(request["TableCreationParameters"]["TableName"])
    else:
        for name in _ARNS:
            if _TABLE_PART in request.get(name, ""):
                yield Target(name_in(request[name]))


def _batch_writes(wanted: Mapping[str, list[Request]]) -> Iterator[Target]:
    member = 0
    for given, requests in wanted.items():
        for request in requests:
            put = request.get("PutRequest")
            attributes = put["Item"] if put is not None else request["DeleteRequest"]["Key"]
            yield Target(name_in(given), None, attributes, member)
            member += 1


def _statement(request: Request, member: int) -> Iterator[Target]:
    statement = partiql.prepare(request["Statement"]).statement
    select = statement.select if isinstance(statement, Exists) else statement
    yield Target(statement.table, select.index if isinstance(select, Select) else None, None, member)


def _attributes(operation: str, request: Request) -> Attributes | None:
    if operation != "Query":
        given: Attributes | None = request.get("Item", request.get("Key"))
        return given
    try:
        comparisons = query_reading(request, "", billed=False).comparisons
    except ServiceError:  # the request is refused when its table is known
        return None
    return {
        comparison.attribute: comparison.operands[0]
        for comparison in comparisons
        if comparison.operator in ("=", "EQ")
    }


def name_in(given: str) -> str:
    """The table's name in a name, in an ARN, or in a shard iterator."""
    return given.partition(_TABLE_PART)[2].partition("/")[0] if given.startswith("arn:") else given
