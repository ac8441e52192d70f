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
    "ResourcePolicy",
    "GlobalTableSourceArn",
    "GlobalTableSettingsReplicationMode",
)
_INDEX_MEMBERS: Final = (
    "IndexName",
    "KeySchema",
    "Projection",
    "ProvisionedThroughput",
    "OnDemandThroughput",
    "WarmThroughput",
)
_VECTOR_MEMBERS: Final = (
    "IndexName",
    "VectorAttribute",
    "SearchSchema",
    "Projection",
    "Dimensions",
    "DistanceFunction",
)


_HINDERING: Final = {
    "WarmThroughput": "warm throughput",
    "DeletionProtectionEnabled": "deletion protection",
    "SSESpecification": "encryption by a key of KMS",
}
_GIVEN_BY_THE_SERVICE: Final = {"ReadUnitsPerSecond": 12_000, "WriteUnitsPerSecond": 4_000}
"""The warm throughput of a table for which nobody has asked for any."""


class IncompleteDescription(ValueError):
    """A description of a table lacks what CreateTable needs; the text says what."""


def create_request(given: Mapping[str, Any]) -> Request:
    """The request of CreateTable in a request or in an answer of DescribeTable.

    In an answer, members that other operations set, or that the service added, are left out; a throughput of
    zero means on demand. Raises IncompleteDescription.
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
    _describe_back(given, create)
    throughput = _throughput(create.pop("ProvisionedThroughput", None))
    if throughput is not None:
        create["ProvisionedThroughput"] = throughput
    # A request with a mode that does not fit its throughput stays as it is: the service refuses it.
    asked = given.get("BillingMode") or given.get("TableThroughputMode")
    described = (given.get("BillingModeSummary") or {}).get("BillingMode")
    is_provisioned = throughput is not None and described != "PAY_PER_REQUEST"
    create["BillingMode"] = asked or ("PROVISIONED" if is_provisioned else "PAY_PER_REQUEST")
    if throughput is not None and create["BillingMode"] == "PROVISIONED":
        for index in create.get("GlobalSecondaryIndexes", ()):
            index.setdefault("ProvisionedThroughput", throughput)
    stream = create.get("StreamSpecification")
    if stream is not None and "StreamEnabled" not in stream:
        create["StreamSpecification"] = {"StreamEnabled": True, **stream}
    return create


def portable(create: Request) -> Request:
    """A request of `create_request` without what would be in the way of another table like it: warm
    throughput, deletion protection, and encryption keys."""
    kept = {member: given for member, given in create.items() if member not in _HINDERING}
    if indexes := kept.get("GlobalSecondaryIndexes"):
        kept["GlobalSecondaryIndexes"] = [
            {member: given for member, given in index.items() if member not in _HINDERING}
            for index in indexes
        ]
    return kept


def hindering(create: Request) -> list[str]:
    """What `portable` leaves out of a request, in words, but what every table has."""
    given = {member: create.get(member) for member in _HINDERING}
    warm = given["WarmThroughput"] or {}
    if all(warm.get(name, 0) <= units for name, units in _GIVEN_BY_THE_SERVICE.items()):
        given["WarmThroughput"] = None
    return [_HINDERING[member] for member, value in given.items() if value]


def elsewhere(described: Mapping[str, Any]) -> list[str]:
    """What a description shows of a table in other regions, in words: CreateTable does not make it."""
    found = []
    for member, noun in (("Replicas", "replicas"), ("GlobalTableWitnesses", "witnesses")):
        if regions := [str(one.get("RegionName")) for one in described.get(member) or ()]:
            found.append(f"{noun} in {', '.join(regions)}")
    return found


def _describe_back(given: Mapping[str, Any], create: Request) -> None:
    """Add the members that DescribeTable shows under other names than CreateTable takes, and leave out one
    that only a table with replicas has."""
    if (class_ := (given.get("TableClassSummary") or {}).get("TableClass")) is not None:
        create["TableClass"] = class_
    if given.get("Replicas"):
        # It may be the mode of global tables, with which no table is created.
        create.pop("GlobalTableSettingsReplicationMode", None)
    encryption = given.get("SSEDescription") or {}
    if encryption.get("Status") in ("ENABLED", "ENABLING"):
        key = {"KMSMasterKeyId": encryption["KMSMasterKeyArn"]} if "KMSMasterKeyArn" in encryption else {}
        create["SSESpecification"] = {"Enabled": True, "SSEType": "KMS", **key}


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
