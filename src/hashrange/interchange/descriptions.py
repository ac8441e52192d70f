"""The request of CreateTable that makes a table like one that DescribeTable describes.

Refuses to know what answers the request: it may be a server, AWS, or a database of this process.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

Request = dict[str, Any]

_CREATE_MEMBERS: Final = (
    "TableName",
    "AttributeDefinitions",
    "KeySchema",
    "LocalSecondaryIndexes",
    "GlobalSecondaryIndexes",
    "VectorIndexes",
    "BillingMode",
    "ProvisionedThroughput",
    "OnDemandThroughput",
    "StreamSpecification",
    "SSESpecification",
    "TableClass",
    "DeletionProtectionEnabled",
    "WarmThroughput",
    "Tags",
)
_INDEX_MEMBERS: Final = (
    "IndexName",
    "KeySchema",
    "Projection",
    "ProvisionedThroughput",
    "OnDemandThroughput",
)
_VECTOR_MEMBERS: Final = (
    "IndexName",
    "VectorAttribute",
    "SearchSchema",
    "Projection",
    "Dimensions",
    "DistanceFunction",
)


class IncompleteDescription(ValueError):
    """A description of a table lacks what CreateTable needs; the text says what."""


def create_request(given: Mapping[str, Any]) -> Request:
    """The request of CreateTable in a request or in an answer of DescribeTable.

    Members that other operations set, or that the service added, are left out; a throughput of zero means on
    demand. Raises IncompleteDescription.
    """
    create = {member: given[member] for member in _CREATE_MEMBERS if given.get(member) is not None}
    needed = ("TableName", "KeySchema", "AttributeDefinitions")
    missing = [member for member in needed if member not in create]
    if missing:
        raise IncompleteDescription(f"A declaration of a table has no {' and no '.join(missing)}.")
    for member in ("LocalSecondaryIndexes", "GlobalSecondaryIndexes"):
        if member in create:
            create[member] = [_index(index) for index in create[member]]
    if "VectorIndexes" in create:
        create["VectorIndexes"] = [
            {member: index[member] for member in _VECTOR_MEMBERS if index.get(member) is not None}
            for index in create["VectorIndexes"]
        ]
    _limit(create)
    mode = given.get("BillingMode") or (given.get("BillingModeSummary") or {}).get("BillingMode")
    throughput = _throughput(create.pop("ProvisionedThroughput", None))
    if mode == "PAY_PER_REQUEST" or throughput is None:
        create["BillingMode"] = "PAY_PER_REQUEST"
        for index in create.get("GlobalSecondaryIndexes", ()):
            index.pop("ProvisionedThroughput", None)
    else:
        create["BillingMode"] = "PROVISIONED"
        create["ProvisionedThroughput"] = throughput
        for index in create.get("GlobalSecondaryIndexes", ()):
            index.setdefault("ProvisionedThroughput", throughput)
    stream = create.get("StreamSpecification")
    if stream is not None and "StreamEnabled" not in stream:
        create["StreamSpecification"] = {"StreamEnabled": True, **stream}
    return create


def _index(given: Mapping[str, Any]) -> Request:
    index = {member: given[member] for member in _INDEX_MEMBERS if given.get(member) is not None}
    throughput = _throughput(index.pop("ProvisionedThroughput", None))
    if throughput is not None:
        index["ProvisionedThroughput"] = throughput
    _limit(index)
    return index


def _limit(create: Request) -> None:
    """Leave out the limits of requests on demand that are -1: so the service describes that there is none."""
    limits = create.pop("OnDemandThroughput", None) or {}
    if kept := {name: units for name, units in limits.items() if units != -1}:
        create["OnDemandThroughput"] = kept


def _throughput(given: Mapping[str, Any] | None) -> dict[str, int] | None:
    """The units of a throughput; None if they are zero, as the service describes tables on demand."""
    if given is None:
        return None
    units = {name: int(given.get(name) or 0) for name in ("ReadCapacityUnits", "WriteCapacityUnits")}
    return units if all(units.values()) else None
