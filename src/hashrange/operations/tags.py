"""TagResource, UntagResource and ListTagsOfResource: three operations on one small map.

Source: API reference, TagResource; Developer Guide, "Tagging restrictions in DynamoDB".
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hashrange.errors import INVALID, AccessDeniedException, ResourceNotFoundException, ValidationException
from hashrange.limits import TAGS_MAX
from hashrange.operations.context import Answer, Caller, Context, ReadBody, Request, WriteBody, table_name
from hashrange.storage.api import Reader, Transaction
from hashrange.tables import catalog
from hashrange.tables.table import Table

_PAGE = 10


def parse(tags: Sequence[dict[str, str]]) -> dict[str, str]:
    """A list of tags as a map, checked."""
    parsed: dict[str, str] = {}
    for tag in tags:
        if tag["Key"] in parsed:
            raise ValidationException(f"{INVALID}Duplicate tag key: {tag['Key']}")
        if tag["Key"].lower().startswith("aws:"):
            raise ValidationException(f"{INVALID}Tag keys starting with 'aws:' are reserved for system use")
        parsed[tag["Key"]] = tag["Value"]
    _check_count(parsed)
    return parsed


def _check_count(tags: dict[str, str]) -> None:
    if len(tags) > TAGS_MAX:
        raise ValidationException(f"{INVALID}Too many tags: {len(tags)}; at most {TAGS_MAX} are allowed")


def _open(reader: Reader, arn: str, caller: Caller, now: float) -> Table:
    parts = arn.split(":", 5)
    if parts[0] != "arn" or len(parts) != 6:
        raise ValidationException(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    # Which part is wrong decides the error: [report] extenddb pull 227.
    if parts[2] != "dynamodb" or parts[4] != caller.account_id:
        raise AccessDeniedException(f"User is not authorized to perform this operation on resource: {arn}")
    if parts[3] != caller.region or not parts[5].startswith("table/"):
        raise ValidationException(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    table = catalog.find(reader, table_name(arn), now)
    if table is None:
        raise ResourceNotFoundException(f"Requested resource not found: ResourceArn: {arn} not found")
    return table


def prepare_tag(request: Request, context: Context) -> WriteBody:
    """The body of a TagResource."""
    if not request["Tags"]:
        raise ValidationException("Atleast one Tag needs to be provided as Input.")
    added = parse(request["Tags"])

    def body(txn: Transaction) -> Answer:
        table = _open(txn, request["ResourceArn"], context.caller, context.now)
        merged = {**table.tags, **added}
        _check_count(merged)
        catalog.save(txn, msgspec.structs.replace(table, tags=merged))
        return {}

    return body


def prepare_untag(request: Request, context: Context) -> WriteBody:
    """The body of an UntagResource."""
    if not request["TagKeys"]:
        raise ValidationException("Atleast one Tag Key needs to be provided as Input.")

    def body(txn: Transaction) -> Answer:
        table = _open(txn, request["ResourceArn"], context.caller, context.now)
        kept = {key: value for key, value in table.tags.items() if key not in request["TagKeys"]}
        catalog.save(txn, msgspec.structs.replace(table, tags=kept))
        return {}

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListTagsOfResource; its token is the last key shown."""

    def body(reader: Reader) -> Answer:
        table = _open(reader, request["ResourceArn"], context.caller, context.now)
        after = request.get("NextToken") or ""
        keys = [key for key in sorted(table.tags) if key > after]
        answer: Answer = {"Tags": [{"Key": key, "Value": table.tags[key]} for key in keys[:_PAGE]]}
        if len(keys) > _PAGE:
            answer["NextToken"] = keys[_PAGE - 1]
        return answer

    return body
