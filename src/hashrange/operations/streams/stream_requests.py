"""The members that requests of DynamoDB Streams share: the ARN of a stream, and Limit."""

from __future__ import annotations

import re
from typing import Final

from hashrange.errors import INVALID, RESOURCE_NOT_FOUND, ResourceNotFoundException, ValidationException
from hashrange.operations.context import Request, is_in_scope
from hashrange.storage.api import Reader
from hashrange.tables import streams
from hashrange.tables.streams import Stream

STREAM_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:(?P<region>[^:]*):(?P<account>[^:]*):table/(?P<table>[a-zA-Z0-9_.-]{1,255})"
    r"/stream/(?P<label>[0-9T:.-]+)"
)
TRIMMED: Final = "The data you are trying to access has been trimmed"


def names_in(arn: str) -> tuple[str, str]:
    """The table and the label in a stream's ARN. Raises `ValidationException`."""
    match = STREAM_ARN.fullmatch(arn)
    if match is None:
        raise ValidationException(f"Invalid StreamArn: {arn}")
    return match["table"], match["label"]


def open_stream(reader: Reader, arn: str, scope: str) -> Stream:
    """The stream that an ARN names, if it belongs to `scope`.

    Raises `ResourceNotFoundException` and `ValidationException`.
    """
    table, label = names_in(arn)
    match = STREAM_ARN.fullmatch(arn)
    stream = None
    if match is not None and is_in_scope(scope, match["account"], match["region"]):
        stream = streams.find(reader, table, label, scope)
    if stream is None:
        raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Stream: {arn} not found")
    return stream


def limit_of(request: Request, most: int, refusal: str) -> int:
    """The request's Limit, or the maximum if it has none. Raises `ValidationException`."""
    limit = int(request.get("Limit") or most)
    if limit > most:
        raise ValidationException(f"{INVALID}{refusal} {most}")
    return limit
