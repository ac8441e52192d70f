"""TagResource, UntagResource and ListTagsOfResource: three operations on one small map.

Source: API reference, TagResource; Developer Guide, "Tagging restrictions in DynamoDB".
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from hashrange.errors import INVALID, AccessDeniedException, ResourceNotFoundException, ValidationException
from hashrange.limits import TAGS_MAX
from hashrange.operations.context import Answer, Context, ReadBody, Request, WriteBody, table_name
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


def _open(reader: Reader, arn: str, now: float) -> Table:
    if not arn.startswith("arn:") or ":table/" not in arn:
        raise ValidationException(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")
    if len(arn.split(":")) != 6:
        raise AccessDeniedException(f"User is not authorized to perform this operation on resource: {arn}")
    table = catalog.find(reader, table_name(arn), now)
    if table is None:
        raise ResourceNotFoundException(f"Requested resource not found: ResourcArn: {arn} not found")
    return table


def prepare_tag(request: Request, context: Context) -> WriteBody:
    """The body of a TagResource."""
    added = parse(request["Tags"])

    def body(txn: Transaction) -> Answer:
        table = _open(txn, request["ResourceArn"], context.now)
        merged = {**table.tags, **added}
        _check_count(merged)
        catalog.save(txn, msgspec.structs.replace(table, tags=merged))
        return {}

    return body


def prepare_untag(request: Request, context: Context) -> WriteBody:
    """The body of an UntagResource."""

    def body(txn: Transaction) -> Answer:
        table = _open(txn, request["ResourceArn"], context.now)
        kept = {key: value for key, value in table.tags.items() if key not in request["TagKeys"]}
        catalog.save(txn, msgspec.structs.replace(table, tags=kept))
        return {}

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListTagsOfResource; its token is the last key shown."""

    def body(reader: Reader) -> Answer:
        table = _open(reader, request["ResourceArn"], context.now)
        after = request.get("NextToken") or ""
        keys = [key for key in sorted(table.tags) if key > after]
        answer: Answer = {"Tags": [{"Key": key, "Value": table.tags[key]} for key in keys[:_PAGE]]}
        if len(keys) > _PAGE:
            answer["NextToken"] = keys[_PAGE - 1]
        return answer

    return body
