"""The operations for global tables of version 2017.11.29, as the service answers them today.

Since 2026 it makes no such table in any region, so there is none to be described, listed or changed. Global
tables of version 2019.11.21 (`replica_changes`) are invisible here.

Source: [report] ack-api-quirks DDB-GLOBALTABLE-001 to 004 and DDB-GLOBALTABLESETTINGS-001
"""

from __future__ import annotations

from typing import Final, NoReturn

from hashrange.errors import INVALID, GlobalTableNotFoundException, InternalServerError, ValidationException
from hashrange.operations.context import Answer, Context, ReadBody, Request
from hashrange.operations.tables.replica_requests import REGIONS
from hashrange.storage.api import Reader

_REGIONS: Final = (
    "eu-west-2", "eu-west-1", "ap-southeast-1", "ap-southeast-2", "ap-northeast-2", "eu-central-1",
    "ap-northeast-1", "us-east-1", "us-east-2", "us-west-1", "us-west-2",
)  # fmt: skip
_VERSION: Final = f"{INVALID}DynamoDB global tables version 2017.11.29 is not supported"
_INSTEAD: Final = (
    "We recommend using DynamoDB global tables version 2019.11.21, instead of version 2017.11.29 (Legacy)."
)


def prepare_create(request: Request, context: Context) -> NoReturn:
    """Refuse a CreateGlobalTable."""
    raise _unsupported(context)


def prepare_update(request: Request, context: Context) -> NoReturn:
    """Refuse an UpdateGlobalTable."""
    updates = request["ReplicaUpdates"]
    if not updates:
        raise ValidationException(INVALID.removesuffix(": "))
    if any("Create" in update for update in updates):
        raise _unsupported(context)
    raise GlobalTableNotFoundException(_missing(request))


def prepare_describe(request: Request, context: Context) -> NoReturn:
    """Refuse a DescribeGlobalTable."""
    raise GlobalTableNotFoundException(f"Global table not found: {_missing(request)}")


def prepare_settings(request: Request, context: Context) -> NoReturn:
    """Refuse a DescribeGlobalTableSettings or an UpdateGlobalTableSettings."""
    raise GlobalTableNotFoundException(_missing(request))


def prepare_list(request: Request, context: Context) -> ReadBody:
    """The body of a ListGlobalTables. For a region that does not exist the service has an internal error."""
    region = request.get("RegionName")
    if region is not None and region not in REGIONS:
        raise InternalServerError("Internal server error")

    def body(reader: Reader) -> Answer:
        return {"GlobalTables": []}

    return body


def _missing(request: Request) -> str:
    return f"Global table with name: '{request['GlobalTableName']}' does not exist."


def _unsupported(context: Context) -> ValidationException:
    """The error for making a table or a replica. How the two sentences are joined for another region is
    [assumed]."""
    region = context.caller.region
    if region in _REGIONS:
        return ValidationException(f"{_VERSION}. {_INSTEAD}")
    listed = ", ".join(_REGIONS)
    return ValidationException(
        f"{_VERSION} in this region '{region}', supported regions are : [{listed}]. {_INSTEAD}"
    )
