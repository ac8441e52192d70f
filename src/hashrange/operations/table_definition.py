"""The rules of a table's and an index's definition, for CreateTable and UpdateTable.

`key_schema`, `local_index` and `global_index` turn the request's structures into the stored ones and refuse
what DynamoDB refuses. Spaces are handed in, because only a transaction can give them.

Source: API reference, CreateTable; Developer Guide, "Constraints in Amazon DynamoDB".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from hashrange.errors import INVALID, LimitExceededException, ValidationException
from hashrange.limits import (
    DECREASE_INTERVAL_SECONDS,
    DECREASES_FREELY_MAX,
    GSI_MAX,
    INDEX_NON_KEY_ATTRIBUTES_MAX,
    LSI_MAX,
)
from hashrange.operations.context import Caller, Request
from hashrange.tables.table import Index, KeyAttribute, KeySchema, KeyType, Throughput

_SERVICE_KEY = "alias/aws/dynamodb"
_NO_CHANGE = (
    "The provisioned throughput for {of} will not change. The requested value equals the current value. "
    "Current ReadCapacityUnits provisioned for {of}: {read}. Requested ReadCapacityUnits: {read}. "
    "Current WriteCapacityUnits provisioned for {of}: {write}. Requested WriteCapacityUnits: {write}. "
    "Refer to the Amazon DynamoDB Developer Guide for current limits and how to request higher limits."
)


def attribute_types(definitions: Sequence[Mapping[str, Any]]) -> dict[str, KeyType]:
    """AttributeDefinitions as name to type."""
    types: dict[str, KeyType] = {}
    for definition in definitions:
        name = definition["AttributeName"]
        if name in types:
            raise ValidationException(f"Attribute Name is duplicated: {name}")
        types[name] = definition["AttributeType"]
    return types


def key_schema(elements: Sequence[Mapping[str, str]], types: Mapping[str, KeyType]) -> KeySchema:
    """A base table's KeySchema: one HASH, then at most one RANGE."""
    if elements[0]["KeyType"] != "HASH":
        raise ValidationException("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if len(elements) > 1:
        if elements[1]["KeyType"] != "RANGE":
            raise ValidationException(
                "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"
            )
        if elements[0]["AttributeName"] == elements[1]["AttributeName"]:
            raise ValidationException(
                "Both the Hash Key and the Range Key element in the KeySchema have the same name"
            )
    if any(element["AttributeName"] not in types for element in elements):
        raise ValidationException("Invalid KeySchema: Some index key attribute have no definition")
    return _schema(elements, types)


def _schema(elements: Sequence[Mapping[str, str]], types: Mapping[str, KeyType]) -> KeySchema:
    attributes = [
        (element["KeyType"], KeyAttribute(element["AttributeName"], types[element["AttributeName"]]))
        for element in elements
    ]
    return KeySchema(
        tuple(attribute for key_type, attribute in attributes if key_type == "HASH"),
        tuple(attribute for key_type, attribute in attributes if key_type == "RANGE"),
    )


def index_key_schema(
    name: str, elements: Sequence[Mapping[str, str]], types: Mapping[str, KeyType], *, keys_max: int
) -> KeySchema:
    """An index's KeySchema: up to `keys_max` HASH, then up to `keys_max` RANGE."""
    kinds = [element["KeyType"] for element in elements]
    if kinds[0] != "HASH":
        raise ValidationException("Invalid KeySchema: The first KeySchemaElement is not a HASH key type")
    if kinds != sorted(kinds) or kinds.count("HASH") > keys_max or kinds.count("RANGE") > keys_max:
        raise ValidationException("Invalid KeySchema: The second KeySchemaElement is not a RANGE key type")
    names = [element["AttributeName"] for element in elements]
    if len(set(names)) != len(names):
        raise ValidationException(
            "Both the Hash Key and the Range Key element in the KeySchema have the same name"
        )
    if any(one not in types for one in names):
        raise ValidationException(
            f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
            f"Keys: [{', '.join(names)}], AttributeDefinitions: [{', '.join(types)}]"
        )
    return _schema(elements, types)


def projection(request: Request) -> tuple[Any, tuple[str, ...]]:
    """The projection type and the non-key attributes of an index."""
    given = request.get("Projection") or {}
    kind, included = given.get("ProjectionType"), given.get("NonKeyAttributes")
    if kind is None:
        raise ValidationException(f"{INVALID}Unknown ProjectionType: null")
    if kind != "INCLUDE" and included is not None:
        raise ValidationException(
            f"{INVALID}ProjectionType is {kind}, but NonKeyAttributes is specified"
        )
    if kind == "INCLUDE" and included is None:
        raise ValidationException(
            f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified"
        )
    if included and len(set(included)) < len(included):
        # As seen of DynamoDB Local.
        raise ValidationException("Cannot have two attributes with the same name")
    return kind, tuple(included or ())


def local_index(request: Request, types: Mapping[str, KeyType], table_key: KeySchema, space: int) -> Index:
    """A LocalSecondaryIndex."""
    name = request["IndexName"]
    key = index_key_schema(name, request["KeySchema"], types, keys_max=1)
    if key.partition != table_key.partition:
        raise ValidationException(
            f"{INVALID}Index KeySchema does not have the same leading hash key as table KeySchema for "
            f"index: {name}. index hash key: {key.partition[0].name}, "
            f"table hash key: {table_key.partition[0].name}"
        )
    if not key.sort:
        raise ValidationException(f"{INVALID}Index KeySchema does not have a range key for index: {name}")
    kind, included = projection(request)
    return Index(name, False, space, key, kind, included)


def global_index(
    request: Request, types: Mapping[str, KeyType], billing_mode: str, space: int, *, keys_max: int
) -> Index:
    """A GlobalSecondaryIndex."""
    name = request["IndexName"]
    key = index_key_schema(name, request["KeySchema"], types, keys_max=keys_max)
    kind, included = projection(request)
    given = request.get("ProvisionedThroughput")
    if billing_mode == "PAY_PER_REQUEST" and given is not None:
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified for index: "
            f"{name} when BillingMode is PAY_PER_REQUEST"
        )
    if billing_mode == "PROVISIONED" and given is None:
        raise ValidationException(
            f"{INVALID}ProvisionedThroughput is not specified for index: {name}"
        )
    return Index(
        name,
        True,
        space,
        key,
        kind,
        included,
        throughput(given),
        on_demand=on_demand(request.get("OnDemandThroughput")),
        warm=warm(request.get("WarmThroughput")),
    )


def throughput(given: Mapping[str, Any] | None) -> Throughput:
    """ProvisionedThroughput, zero where none is given."""
    if given is None:
        return Throughput()
    return Throughput(given["ReadCapacityUnits"], given["WriteCapacityUnits"])


def on_demand(given: Mapping[str, Any] | None) -> dict[str, int] | None:
    """OnDemandThroughput, without members that the API does not know."""
    return _known(given, ("MaxReadRequestUnits", "MaxWriteRequestUnits"))


def check_on_demand(
    given: Mapping[str, Any] | None, billing_mode: str, refusal: str, *, removable: bool = False
) -> None:
    """Refuse ceilings of a PROVISIONED table, in the words of `refusal`, and such as are below 1.

    `removable` allows -1, which takes a ceiling away. [report] dynoxide issue 159; the wording of the range
    is [assumed].
    """
    ceilings = on_demand(given) or {}
    for name in ceilings:
        if billing_mode == "PROVISIONED":
            raise ValidationException(f"{INVALID}{name} for OnDemandThroughput {refusal}")
    for name, units in ceilings.items():
        if units < 1 and not (removable and units == -1):
            raise ValidationException(f"{INVALID}{name} for OnDemandThroughput must be at least 1")


def changed_on_demand(current: Mapping[str, int] | None, given: Mapping[str, Any]) -> dict[str, int] | None:
    """The ceilings after an update, which changes those that it names and takes away those that it sets
    to -1. [report] dynoxide issue 159."""
    merged = {**(current or {}), **(on_demand(given) or {})}
    return {name: units for name, units in merged.items() if units != -1} or None


def warm(given: Mapping[str, Any] | None) -> dict[str, int] | None:
    """WarmThroughput, without members that the API does not know."""
    return _known(given, ("ReadUnitsPerSecond", "WriteUnitsPerSecond"))


def _known(given: Mapping[str, Any] | None, names: Sequence[str]) -> dict[str, int] | None:
    if given is None:
        return None
    return {name: given[name] for name in names if given.get(name) is not None}


def changed_throughput(
    current: Throughput, given: Mapping[str, Any], now: float, *, of: str
) -> Throughput:
    """New throughput `of` a table or index; refused where nothing would change."""
    read, write = given["ReadCapacityUnits"], given["WriteCapacityUnits"]
    if (read, write) == (current.read_units, current.write_units):
        raise ValidationException(_NO_CHANGE.format(of=of, read=read, write=write))
    lower = read < current.read_units or write < current.write_units
    higher = read > current.read_units or write > current.write_units
    if lower:
        _check_decrease(current, now)
    return Throughput(
        read,
        write,
        current.decreases_today(now) + lower,
        now if higher else current.last_increase,
        now if lower else current.last_decrease,
    )


def _check_decrease(current: Throughput, now: float) -> None:
    """After the first four of a day, one decrease an hour. Source: Developer Guide, "Quotas"."""
    last, today = current.last_decrease, current.decreases_today(now)
    if last is None or today < DECREASES_FREELY_MAX or now - last >= DECREASE_INTERVAL_SECONDS:
        return
    raise LimitExceededException(
        "Subscriber limit exceeded: Provisioned throughput decreases are limited within a given UTC day. "
        f"After the first {DECREASES_FREELY_MAX} decreases, each subsequent decrease in the same UTC day can "
        f"be performed at most once every {DECREASE_INTERVAL_SECONDS} seconds. Number of decreases today: "
        f"{today}. Last decrease at {_moment(last)}. Next decrease can be made at "
        f"{_moment(last + DECREASE_INTERVAL_SECONDS)}"
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%A, %B %d, %Y at %I:%M:%S %p UTC")


def check_indexes(indexes: Sequence[Index]) -> None:
    """The rules over all indexes of a table together."""
    names = [index.name for index in indexes]
    for name in names:
        if names.count(name) > 1:
            raise ValidationException(f"{INVALID}Duplicate index name: {name}")
    if sum(not index.is_global for index in indexes) > LSI_MAX:
        raise ValidationException(
            f"{INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of {LSI_MAX}"
        )
    if sum(index.is_global for index in indexes) > GSI_MAX:
        raise ValidationException(
            f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of {GSI_MAX}"
        )
    if sum(len(index.included) for index in indexes) > INDEX_NON_KEY_ATTRIBUTES_MAX:
        raise ValidationException(
            f"{INVALID}The total number of non-key attributes across all secondary indexes exceeds the "
            f"limit of {INDEX_NON_KEY_ATTRIBUTES_MAX}"
        )


def check_all_used(types: Mapping[str, KeyType], key: KeySchema, indexes: Iterable[Index]) -> None:
    """Every AttributeDefinition must be used by a key."""
    indexes = list(indexes)
    used: list[str] = []
    for schema in (key, *(index.key for index in indexes)):
        used += [attribute.name for attribute in schema.attributes() if attribute.name not in used]
    if len(used) == len(types):
        return
    if not indexes:
        raise ValidationException(
            f"{INVALID}Number of attributes in KeySchema does not exactly match number of attributes "
            "defined in AttributeDefinitions"
        )
    raise ValidationException(
        f"{INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: "
        f"[{', '.join(types)}], keys used: [{', '.join(used)}]"
    )


def check_billing(billing_mode: str, given: Mapping[str, Any] | None) -> None:
    """Throughput is given exactly where the billing mode is PROVISIONED."""
    if billing_mode == "PROVISIONED" and given is None:
        raise ValidationException(
            f"{INVALID}ReadCapacityUnits and WriteCapacityUnits must both be specified when BillingMode "
            "is PROVISIONED"
        )
    if billing_mode == "PAY_PER_REQUEST" and given is not None:
        raise ValidationException(
            f"{INVALID}Neither ReadCapacityUnits nor WriteCapacityUnits can be specified when BillingMode "
            "is PAY_PER_REQUEST"
        )


def encryption(given: Mapping[str, Any] | None, caller: Caller) -> dict[str, str] | None:
    """SSESpecification as the SSEDescription that it leads to; None where the owner is AWS."""
    if given is None or not given.get("Enabled"):
        return None
    key = key_arn(given.get("KMSMasterKeyId") or _SERVICE_KEY, caller.region, caller.account_id)
    return {"Status": "ENABLED", "SSEType": given.get("SSEType") or "KMS", "KMSMasterKeyArn": key}


def key_arn(key: str, region: str, account_id: str) -> str:
    """The ARN of a KMS key that is given by its ARN, its alias or its identifier."""
    if key.startswith("arn:"):
        return key
    return f"arn:aws:kms:{region}:{account_id}:{'' if key.startswith('alias/') else 'key/'}{key}"


def is_service_key(arn: str) -> bool:
    """Whether the key is the one that AWS manages for DynamoDB."""
    return arn.endswith(f":{_SERVICE_KEY}")
