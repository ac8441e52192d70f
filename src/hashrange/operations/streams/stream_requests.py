"""The members that requests of DynamoDB Streams share: the ARN of a stream, and Limit."""

from __future__ import annotations

import re
from typing import Final

from hashrange.errors import INVALID, RESOURCE_NOT_FOUND, ResourceNotFoundException, ValidationException
from hashrange.operations.context import Request
from hashrange.storage.api import Reader
from hashrange.tables.streams import logs
from hashrange.tables.streams.logs import Stream

STREAM_ARN: Final = re.compile(
    r"arn:aws[a-z-]*:dynamodb:[^:]*:[^:]*:table/(?P<table>[a-zA-Z0-9_.-]{1,255})"
    r"/stream/(?P<label>[0-9T:.-]+)"
)
TRIMMED: Final = "The data you are trying to access has been trimmed"


def names_in(arn: str) -> tuple[str, str]:
    """The table and the label in a stream's ARN. Raises `ValidationException`."""
    match = STREAM_ARN.fullmatch(arn)
    if match is None:
        raise ValidationException(f"Invalid StreamArn: {arn}")
    return match["table"], match["label"]


def open_stream(reader: Reader, arn: str) -> Stream:
    """The stream that an ARN names. Raises `ResourceNotFoundException` and `ValidationException`."""
    stream = logs.find(reader, *names_in(arn))
    if stream is None:
        raise ResourceNotFoundException(f"{RESOURCE_NOT_FOUND}: Stream: {arn} not found")
    return stream


def limit_of(request: Request, most: int, refusal: str) -> int:
    """The request's Limit, or the maximum if it has none. Raises `ValidationException`."""
    limit = int(request.get("Limit") or most)
    if limit > most:
        raise ValidationException(f"{INVALID}{refusal} {most}")
    return limit
