"""The properties of the tables in CloudFormation and SAM templates, and what becomes of each.

`RESOURCES` has the form (`forms`) of each type of resource and the function that makes a declaration of it.
Some properties belong to CreateTable, others to operations that follow it. An `Idle` property has no effect
here, for the reason that it gives.

Source: CloudFormation Template Reference, "AWS::DynamoDB::Table", "AWS::DynamoDB::GlobalTable"; SAM Developer
Guide, "AWS::Serverless::SimpleTable".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

import orjson

from hashrange.shapes import OPERATIONS
from hashrange.testing.declarations import Declaration, Request, Setting
from hashrange_templates.forms import DocumentPlace, Form, Idle, form_of, of_request
from hashrange_templates.intrinsics import is_of_stack

_CREATE: Final = form_of(OPERATIONS["CreateTable"])
_TTL: Final = form_of(OPERATIONS["UpdateTimeToLive"])["TimeToLiveSpecification"]
_RECOVERY: Final = form_of(OPERATIONS["UpdateContinuousBackups"])["PointInTimeRecoverySpecification"]
_INSIGHTS: Final = {"Enabled": bool, "Mode": str}
_POLICY: Final = {"PolicyDocument": object}
_KINESIS: Final = {"StreamArn": str, "ApproximateCreationDateTimePrecision": str}
_STREAM_TAGS: Final = Idle("no operation of DynamoDB shows the tags of a stream")

_OF_TABLE: Final = (
    *("TableName", "AttributeDefinitions", "KeySchema", "LocalSecondaryIndexes", "BillingMode"),
    *("VectorIndexes", "WarmThroughput"),
)
_COMMON: Final = {name: _CREATE[name] for name in _OF_TABLE} | {"TimeToLiveSpecification": _TTL}
_INDEX: Final = _CREATE["GlobalSecondaryIndexes"][0]
_OF_INDEX: Final = ("IndexName", "KeySchema", "Projection", "WarmThroughput")
_SCALED: Final = {
    "MinCapacity": int,
    "SeedCapacity": int,
    "MaxCapacity": Idle("nothing scales here: the units are SeedCapacity, or MinCapacity", told=True),
    "TargetTrackingScalingPolicyConfiguration": Idle("the note on MaxCapacity says so"),
}

TABLE: Final[Form] = _COMMON | {
    "GlobalSecondaryIndexes": [_INDEX | {"ContributorInsightsSpecification": _INSIGHTS}],
    "ProvisionedThroughput": _CREATE["ProvisionedThroughput"],
    "OnDemandThroughput": _CREATE["OnDemandThroughput"],
    "StreamSpecification": {"StreamViewType": str, "ResourcePolicy": _POLICY, "Tags": _STREAM_TAGS},
    "SSESpecification": {"SSEEnabled": bool, "SSEType": str, "KMSMasterKeyId": str},
    "TableClass": str,
    "DeletionProtectionEnabled": bool,
    "Tags": _CREATE["Tags"],
    "PointInTimeRecoverySpecification": _RECOVERY,
    "ContributorInsightsSpecification": _INSIGHTS,
    "ResourcePolicy": _POLICY,
    "KinesisStreamSpecification": _KINESIS,
    "ImportSourceSpecification": Idle("items are not imported; use load, or ImportTable", told=True),
}

_READS: Final = {
    "ReadOnDemandThroughputSettings": {"MaxReadRequestUnits": int},
    "ReadProvisionedThroughputSettings": {
        "ReadCapacityUnits": int,
        "ReadCapacityAutoScalingSettings": _SCALED,
    },
}
_WRITES: Final = {
    "WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": int},
    "WriteProvisionedThroughputSettings": {"WriteCapacityAutoScalingSettings": _SCALED},
}
_ONE_TABLE: Final = Idle("all replicas are one table here, so their settings and items never differ")

_OF_REPLICA: Final = (
    *("TableClass", "DeletionProtectionEnabled", "Tags", "PointInTimeRecoverySpecification"),
    *("ContributorInsightsSpecification", "ResourcePolicy", "KinesisStreamSpecification"),
)

REPLICA: Final[Form] = (
    _READS
    | {
        "Region": str,
        "GlobalSecondaryIndexes": [
            _READS | {"IndexName": str, "ContributorInsightsSpecification": _INSIGHTS}
        ],
        "SSESpecification": {"KMSMasterKeyId": str},
        "ReplicaStreamSpecification": {"ResourcePolicy": _POLICY, "Tags": _STREAM_TAGS},
        "DisassociationProtectionEnabled": _ONE_TABLE,
        "GlobalTableSettingsReplicationMode": _ONE_TABLE,
    }
    | {name: TABLE[name] for name in _OF_REPLICA}
)

GLOBAL_TABLE: Final[Form] = (
    _COMMON
    | _READS
    | _WRITES
    | {
        "GlobalSecondaryIndexes": [_READS | _WRITES | {name: _INDEX[name] for name in _OF_INDEX}],
        "StreamSpecification": {"StreamViewType": str},
        "SSESpecification": {"SSEEnabled": bool, "SSEType": str},
        "Replicas": [REPLICA],
        "MultiRegionConsistency": str,
        "GlobalTableWitnesses": [{"Region": str}],
        "GlobalTableSourceArn": Idle("a replica of another account's table cannot be made here", told=True),
        "TableType": Idle("it has no documented value"),
    }
)

SIMPLE_TABLE: Final[Form] = {
    "TableName": str,
    "PrimaryKey": {"Name": str, "Type": str},
    "ProvisionedThroughput": _CREATE["ProvisionedThroughput"],
    "Tags": {str: str},
    "SSESpecification": TABLE["SSESpecification"],
    "PointInTimeRecoverySpecification": _RECOVERY,
}
_SAM_TYPES: Final = {"String": "S", "Number": "N", "Binary": "B"}


def table(properties: Request, place: DocumentPlace, region: str = "") -> Declaration:
    """The declaration of a table with properties of AWS::DynamoDB::Table, in any region. Raises
    DeclarationError."""
    stream = properties.get("StreamSpecification")
    create = properties | {
        "ResourcePolicy": _policy(properties, place),
        "SSESpecification": _encryption(properties.get("SSESpecification")),
        "StreamSpecification": stream and {"StreamViewType": stream.get("StreamViewType")},
    }
    living = properties.get("TimeToLiveSpecification") or {}
    return Declaration(
        of_request(create, place),
        living.get("AttributeName") if living.get("Enabled") else None,
        settings=tuple(_settings(properties, place)),
        stream_policy=_policy(stream or {}, place.at("StreamSpecification")),
        notes=place.notes,
    )


def _policy(holder: Request, place: DocumentPlace) -> str | None:
    """The text of a resource policy; None if there is none, or if only a stack knows parts of it."""
    document = (holder.get("ResourcePolicy") or {}).get("PolicyDocument")
    if is_of_stack(document):
        place.at("ResourcePolicy").note("only a stack knows parts of this policy; it is left out")
        return None
    return document if document is None or isinstance(document, str) else orjson.dumps(document).decode()


def _encryption(given: Request | None) -> Request | None:
    if not given:
        return None
    wanted = {name: value for name, value in given.items() if name != "SSEEnabled"}
    if given.get("SSEEnabled") or wanted:
        wanted.setdefault("SSEType", "KMS")
    return wanted | {"Enabled": given.get("SSEEnabled", bool(wanted))}


def _settings(properties: Request, place: DocumentPlace) -> Iterator[Setting]:
    """The operations that follow CreateTable."""
    recovery = properties.get("PointInTimeRecoverySpecification") or {}
    if recovery.get("PointInTimeRecoveryEnabled"):
        yield "UpdateContinuousBackups", {"PointInTimeRecoverySpecification": recovery}
    for holder in (properties, *properties.get("GlobalSecondaryIndexes", ())):
        insights = holder.get("ContributorInsightsSpecification") or {}
        if insights.get("Enabled"):
            request = {"ContributorInsightsAction": "ENABLE", "ContributorInsightsMode": insights.get("Mode")}
            yield "UpdateContributorInsights", request | {"IndexName": holder.get("IndexName")}
    kinesis = dict(properties.get("KinesisStreamSpecification") or {})
    stream = kinesis.pop("StreamArn", None)
    if is_of_stack(stream):
        place.at("KinesisStreamSpecification").note("only a stack knows this stream; nothing is sent to it")
    elif stream is not None:
        request = {"StreamArn": stream, "EnableKinesisStreamingConfiguration": kinesis or None}
        yield "EnableKinesisStreamingDestination", request


def _global_table(properties: Request, place: DocumentPlace, region: str) -> Declaration:
    """A global table, with the settings that its replica in the stack's region has: the first one, if none is
    there."""
    replicas = properties.get("Replicas") or [{}]
    own = next((replica for replica in replicas if replica.get("Region") == region), replicas[0])
    own_indexes = {index.get("IndexName"): index for index in own.get("GlobalSecondaryIndexes", ())}
    scales = "WriteProvisionedThroughputSettings" in properties
    mode = properties.get("BillingMode") or ("PROVISIONED" if scales else "PAY_PER_REQUEST")
    regional: Request = {name: properties[name] for name in _COMMON if name in properties}
    regional |= {name: own[name] for name in _OF_REPLICA if name in own}
    regional |= {"BillingMode": mode} | _units(properties, own, mode, place)
    if indexes := properties.get("GlobalSecondaryIndexes"):
        at = place.at("GlobalSecondaryIndexes")
        regional["GlobalSecondaryIndexes"] = [
            _global_index(index, own_indexes.pop(index.get("IndexName"), {}), mode, at) for index in indexes
        ]
    if own_indexes:
        names = ", ".join(map(str, own_indexes))
        raise place.at("Replicas").error(f"the table has no global secondary index {names}")
    if "StreamSpecification" in properties:
        of_stream = own.get("ReplicaStreamSpecification") or {}
        regional["StreamSpecification"] = properties["StreamSpecification"] | of_stream
    encryption = properties.get("SSESpecification") or {}
    if encryption.get("SSEEnabled"):
        regional["SSESpecification"] = encryption | (own.get("SSESpecification") or {})
    creates = [_replica(replica, encryption, place) for replica in replicas if replica is not own]
    strong = properties.get("MultiRegionConsistency") == "STRONG"
    witnesses = [one.get("Region") for one in properties.get("GlobalTableWitnesses", ())]
    updates = replica_updates(creates, witnesses if strong else None)
    return replace(table(regional, place), replicas=tuple(updates))


def _replica(replica: Request, encryption: Request, place: DocumentPlace) -> Request:
    if others := sorted(replica.keys() - {"Region", "SSESpecification", "TableClass"}):
        at = place.at("Replicas").at(replica.get("Region"))
        at.note(f"of a replica in another region only the key and the class are set, not {', '.join(others)}")
    key = (replica.get("SSESpecification") or {}).get("KMSMasterKeyId")
    return {
        "RegionName": replica.get("Region"),
        "KMSMasterKeyId": key if encryption.get("SSEEnabled") else None,
        "TableClassOverride": replica.get("TableClass"),
    }


def replica_updates(creates: list[Request], witnesses: list[str] | None) -> Iterator[Request]:
    """The members of the UpdateTable requests that create replicas. `witnesses` are the witness's region, if
    any, of a strongly consistent global table; None for another."""
    updates = [{"Create": create} for create in creates]
    if witnesses is None:
        yield from ({"ReplicaUpdates": [update]} for update in updates)
    elif updates:
        yield {
            "ReplicaUpdates": updates,
            "MultiRegionConsistency": "STRONG",
            "GlobalTableWitnessUpdates": [{"Create": {"RegionName": one}} for one in witnesses] or None,
        }


def _global_index(index: Request, own: Request, mode: str, place: DocumentPlace) -> Request:
    kept = {name: index[name] for name in _INDEX if name in index}
    insights = {"ContributorInsightsSpecification": own.get("ContributorInsightsSpecification")}
    return kept | insights | _units(index, own, mode, place)


def _units(shared: Request, own: Request, mode: str, place: DocumentPlace) -> Request:
    """The throughput of a table or an index, of which a part belongs to the replica."""
    given = shared | own
    idle = "OnDemand" if mode == "PROVISIONED" else "Provisioned"
    for name in sorted(given):
        if name.endswith(f"{idle}ThroughputSettings"):
            place.at(name).note(f"it has no effect with the billing mode {mode}")
    if mode != "PROVISIONED":
        reads, writes = (given.get(f"{kind}OnDemandThroughputSettings") or {} for kind in ("Read", "Write"))
        return {"OnDemandThroughput": reads | writes} if reads or writes else {}
    reads, writes = (given.get(f"{kind}ProvisionedThroughputSettings") or {} for kind in ("Read", "Write"))
    units = {
        "ReadCapacityUnits": reads.get("ReadCapacityUnits")
        or _least(reads.get("ReadCapacityAutoScalingSettings") or {}),
        "WriteCapacityUnits": _least(writes.get("WriteCapacityAutoScalingSettings") or {}),
    }
    return {"ProvisionedThroughput": units} if any(units.values()) else {}


def _least(scaled: Request) -> int | None:
    units: int | None = scaled.get("SeedCapacity") or scaled.get("MinCapacity")
    return units


def _simple_table(properties: Request, place: DocumentPlace, region: str) -> Declaration:
    key = properties.get("PrimaryKey") or {}
    name, type_ = key.get("Name", "id"), key.get("Type", "String")
    if type_ not in _SAM_TYPES:
        raise place.at("PrimaryKey").at("Type").error(f"there are String, Number and Binary, not {type_!r}")
    simple = {name_: value for name_, value in properties.items() if name_ != "PrimaryKey"} | {
        "KeySchema": [{"AttributeName": name, "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": name, "AttributeType": _SAM_TYPES[type_]}],
        "Tags": [{"Key": key, "Value": value} for key, value in properties.get("Tags", {}).items()],
    }
    return table(simple, place)


RESOURCES: Final[dict[str, tuple[Form, Callable[[Request, DocumentPlace, str], Declaration]]]] = {
    "AWS::DynamoDB::Table": (TABLE, table),
    "AWS::DynamoDB::GlobalTable": (GLOBAL_TABLE, _global_table),
    "AWS::Serverless::SimpleTable": (SIMPLE_TABLE, _simple_table),
}
"""The forms of the resources that are tables, and what makes a declaration of their properties, of their
place, and of the region of the database."""
