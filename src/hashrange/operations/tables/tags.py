"""TagResource, UntagResource and ListTagsOfResource: three operations on a small map.

Source: API reference, TagResource; Developer Guide, "Tagging restrictions in DynamoDB".
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import msgspec

from hashrange.errors import INVALID, AccessDeniedException, ResourceNotFoundException, ValidationException
from hashrange.limits import TAGS_MAX
from hashrange.operations.context import (
    NOTHING,
    Answer,
    Context,
    ReadBody,
    Request,
    WriteBody,
    table_name,
)
from hashrange.storage.api import Reader, Transaction
from hashrange.tables.definitions import catalog
from hashrange.tables.definitions.table import Table

_PAGE = 10

# Letters, digits and spaces of any script, and some punctuation. [report] ack-api-quirks DDB-TABLE-372
_TEXT = re.compile(r"(?:[^\W_]|[\s+=._:/@-])*")
_KEY_CHARS_MAX = 128
_VALUE_CHARS_MAX = 256
_TOO_MANY = "Number of Tags exceed the current limit for the provided ResourceArn"


def parse(tags: Sequence[dict[str, str]]) -> dict[str, str]:
    """A list of tags as a map, checked. The messages: [report] ack-api-quirks DDB-TABLE-107 and 110."""
    parsed: dict[str, str] = {}
    for tag in tags:
        key, value = _check_key(tag.get("Key")), tag.get("Value")
        if value is None or len(value) > _VALUE_CHARS_MAX or not _TEXT.fullmatch(value):
            raise ValidationException(
                f"The Tag Value provided is invalid, Value: {'null' if value is None else value}"
            )
        _check_prefix(key)
        if key in parsed:
            raise ValidationException(f"Duplicate Tag Keys provided as input: Duplicate Tag Key found {key}")
        parsed[key] = value
    _check_count(parsed)
    return parsed


def _check_key(key: str | None) -> str:
    if not key or len(key) > _KEY_CHARS_MAX or not _TEXT.fullmatch(key):
        raise ValidationException(f"The Tag Key provided is invalid, Key: {'null' if key is None else key}")
    return key


def _check_prefix(key: str) -> None:
    """Refuse keys, to add or to remove, with AWS's prefix in any case. [report] ack-api-quirks
    DDB-TABLE-105"""
    if key.lower().startswith("aws:"):
        raise ValidationException(f"Tag Key cannot be prefixed with aws:, Key: {key}")


def _check_count(keys: Collection[str]) -> None:
    if len(keys) > TAGS_MAX:
        raise ValidationException(_TOO_MANY)


def _check_arn(arn: str, context: Context) -> None:
    """Refuse texts that are not ARNs of tables. The error depends on the wrong part.

    [report] extenddb pull 227 for the classes; ack-api-quirks DDB-TABLE-442 and DDB-BACKUP-013 for the
    messages
    """
    caller = context.caller
    if not arn.startswith("arn:"):
        raise ValidationException(f"{INVALID}ARNs must start with 'arn:': {arn}")
    parts = arn.split(":", 5)
    if len(parts) == 6 and (parts[2] != "dynamodb" or parts[4] != caller.account_id):
        raise AccessDeniedException(f"User is not authorized to perform this operation on resource: {arn}")
    kinds = parts[5].split("/")[::2] if len(parts) == 6 else []
    if kinds == ["table", "index"]:
        raise ValidationException(
            f"{INVALID}Invalid resource arn provided, only table or stream is accepted. Provided resource "
            f"arn: {arn}"
        )
    if kinds != ["table"]:
        raise ValidationException(f"{INVALID}Provided Arn is not a DynamoDB resource arn: {arn}")
    if parts[3] != caller.region:
        raise ValidationException(f"Invalid TableArn: Invalid ResourceArn provided as input {arn}")


def _open(reader: Reader, arn: str, context: Context) -> Table:
    """The table that a checked ARN names."""
    table = catalog.find(reader, table_name(arn, context.scope), context.scope)
    if table is None:
        # [report] users of ListTagsOfResource in 2019 and 2022, with the slip; the others are [assumed]
        raise ResourceNotFoundException(f"Requested resource not found: ResourcArn: {arn} not found")
    return table


def prepare_tag(request: Request, context: Context) -> WriteBody:
    """The body of a TagResource."""
    # [report] dynalite's recordings: before the tags
    _check_arn(request["ResourceArn"], context)
    if not request["Tags"]:
        raise ValidationException("Atleast one Tag needs to be provided as Input.")
    added = parse(request["Tags"])

    def body(txn: Transaction) -> Answer:
        table = _open(txn, request["ResourceArn"], context)
        merged = {**table.tags, **added}
        _check_count(merged)
        catalog.save(txn, msgspec.structs.replace(table, tags=merged))
        return NOTHING

    return body


def prepare_untag(request: Request, context: Context) -> WriteBody:
    """The body of an UntagResource."""
    _check_arn(request["ResourceArn"], context)
    if not request["TagKeys"]:
        raise ValidationException("Atleast one Tag Key needs to be provided as Input.")
    for key in request["TagKeys"]:
        _check_prefix(_check_key(key))
    _check_count(request["TagKeys"])

    def body(txn: Transaction) -> Answer:
        table = _open(txn, request["ResourceArn"], context)
        remaining = {key: value for key, value in table.tags.items() if key not in request["TagKeys"]}
        catalog.save(txn, msgspec.structs.replace(table, tags=remaining))
        return NOTHING

    return body


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListTagsOfResource; its token is the last key shown."""
    _check_arn(request["ResourceArn"], context)

    def body(reader: Reader) -> Answer:
        table = _open(reader, request["ResourceArn"], context)
        # An unknown token gives the first page. [report] ack-api-quirks DDB-TABLE-073
        after = request.get("NextToken") or ""
        if after not in table.tags:
            after = ""
        keys = [key for key in sorted(table.tags) if key > after]
        answer: Answer = {"Tags": [{"Key": key, "Value": table.tags[key]} for key in keys[:_PAGE]]}
        if len(keys) > _PAGE:
            answer["NextToken"] = keys[_PAGE - 1]
        return answer

    return body
