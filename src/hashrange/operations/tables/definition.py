"""The rules of a table's and an index's definition, for CreateTable and UpdateTable.

The functions here turn the request's structures into stored ones, and refuse what DynamoDB refuses. Spaces
stay 0, because only a transaction can assign them.

Source: API reference, CreateTable; Developer Guide, "Constraints in Amazon DynamoDB"; for the messages of
2026 ack-api-quirks, DDB-TABLE-036 to 044 and 123 to 129.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from hashrange.errors import INVALID, ValidationException
from hashrange.limits import GSI_KEY_ATTRIBUTES_MAX, GSI_MAX, INDEX_NON_KEY_ATTRIBUTES_MAX, LSI_MAX
from hashrange.operations.context import Caller, Request
from hashrange.operations.tables import throughput
from hashrange.tables.definitions.table import Index, KeyAttribute, KeySchema, KeyType
from hashrange.values import java_order

_TABLE_CLASSES = ("STANDARD", "STANDARD_INFREQUENT_ACCESS")
_SERVICE_KEY = "alias/aws/dynamodb"
_NOT_HASH_FIRST = "Invalid KeySchema: The first KeySchemaElement is not a HASH key type"
_NOT_RANGE_SECOND = "Invalid KeySchema: The second KeySchemaElement is not a RANGE key type"
_SAME_NAME = "Both the Hash Key and the Range Key element in the KeySchema have the same name"


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
    """The KeySchema of a base table: one HASH, then at most one RANGE."""
    if len(types) < len(elements):
        # Not if there are enough definitions, but of other attributes. [report] ack-api-quirks DDB-TABLE-042,
        # cfn-lint 1037. An attribute in both places lacks a definition too: paritysuite.
        raise ValidationException("Invalid KeySchema: Some index key attribute have no definition")
    _check_defined(elements, types)
    _check_pair(elements)
    return _schema(elements, types)


def _check_pair(elements: Sequence[Mapping[str, str]]) -> None:
    """Check for one HASH, then at most one RANGE. Its name, which must differ, is checked before its type
    ([report] dynalite's recordings)."""
    if elements[0]["KeyType"] != "HASH":
        raise ValidationException(_NOT_HASH_FIRST)
    if len(elements) > 1 and elements[0]["AttributeName"] == elements[1]["AttributeName"]:
        raise ValidationException(_SAME_NAME)
    if len(elements) > 1 and elements[1]["KeyType"] != "RANGE":
        raise ValidationException(_NOT_RANGE_SECOND)


def _check_defined(elements: Sequence[Mapping[str, str]], types: Mapping[str, KeyType]) -> None:
    """Refuse attributes without a definition, whatever their places ([report] dynalite's recordings)."""
    names = [element["AttributeName"] for element in elements]
    if any(name not in types for name in names):
        raise ValidationException(
            f"{INVALID}Some index key attributes are not defined in AttributeDefinitions. "
            f"Keys: [{', '.join(names)}], AttributeDefinitions: [{_shown_types(types)}]"
        )


def _schema(elements: Sequence[Mapping[str, str]], types: Mapping[str, KeyType]) -> KeySchema:
    attributes = [
        (element["KeyType"], KeyAttribute(element["AttributeName"], types[element["AttributeName"]]))
        for element in elements
    ]
    return KeySchema(
        tuple(attribute for key_type, attribute in attributes if key_type == "HASH"),
        tuple(attribute for key_type, attribute in attributes if key_type == "RANGE"),
    )


def _shown_types(types: Mapping[str, KeyType]) -> str:
    """The names of AttributeDefinitions, in the order of the hash map that DynamoDB prints."""
    buckets = 1
    while buckets < len(types):
        buckets *= 2
    return _in_hash_order(types, buckets)


def _in_hash_order(names: Iterable[str], buckets: int) -> str:
    """Names in the order of a java.util.HashMap that was made for `buckets` entries.

    [report] the three lists of ack-api-quirks DDB-TABLE-127, and the list in
    aws-samples/aws-batch-processing-job-repo pull request 4.
    """
    names = list(names)
    while len(names) > 0.75 * buckets:
        buckets *= 2
    return ", ".join(java_order.in_hash_order(names, buckets))


def index_key_schema(
    elements: Sequence[Mapping[str, str]], types: Mapping[str, KeyType], *, is_global: bool
) -> KeySchema:
    """The KeySchema of an index; a global index may have several HASH and then several RANGE."""
    _check_defined(elements, types)
    if is_global:
        _check_parts(elements)
    else:
        _check_pair(elements)
    return _schema(elements, types)


def _check_parts(elements: Sequence[Mapping[str, str]]) -> None:
    kinds = [element["KeyType"] for element in elements]
    if kinds[0] != "HASH":
        raise ValidationException(_NOT_HASH_FIRST)
    if kinds != sorted(kinds):
        raise ValidationException(
            f"{INVALID}All HASH key attributes must precede RANGE key attributes in the KeySchema"
        )
    for kind in ("HASH", "RANGE"):
        if kinds.count(kind) > GSI_KEY_ATTRIBUTES_MAX:
            raise ValidationException(
                f"{INVALID}The KeySchema exceeds the maximum allowed number of {kind} key attributes"
            )
    if len({element["AttributeName"] for element in elements}) < len(elements):
        raise ValidationException("The KeySchema contains multiple key attributes with the same name")


def check_local_key(name: str, key: KeySchema, table_key: KeySchema) -> None:
    """Check that a local index has a sort key ([report] dynalite's recordings: this first), and its table's
    partition key."""
    if not key.sort:
        raise ValidationException(f"{INVALID}Index KeySchema does not have a range key for index: {name}")
    if key.partition != table_key.partition:
        raise ValidationException(
            f"{INVALID}Index KeySchema does not have the same leading hash key as table KeySchema for "
            f"index: {name}. index hash key: {key.partition[0].name}, "
            f"table hash key: {table_key.partition[0].name}"
        )


def projection(request: Mapping[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """The projection type and the non-key attributes of an index."""
    given = request.get("Projection") or {}
    kind, included = given.get("ProjectionType"), given.get("NonKeyAttributes")
    names: list[str] = included or []
    if kind is None:
        raise ValidationException(f"{INVALID}Unknown ProjectionType: null")
    if kind != "INCLUDE" and included is not None:
        raise ValidationException(f"{INVALID}ProjectionType is {kind}, but NonKeyAttributes is specified")
    if kind == "INCLUDE" and included is None:
        raise ValidationException(
            f"{INVALID}ProjectionType is INCLUDE, but NonKeyAttributes is not specified"
        )
    for position, name in enumerate(names):
        if name in names[:position]:
            raise ValidationException(f"{INVALID}Duplicate element in NonKeyAttributes: {name}")
    return kind, tuple(names)


def local_index(request: Request, key: KeySchema) -> Index:
    """A LocalSecondaryIndex."""
    kind, included = projection(request)
    return Index(request["IndexName"], False, 0, key, kind, included)


def global_index(request: Request, key: KeySchema, billing_mode: str, *, updating: bool = False) -> Index:
    """A GlobalSecondaryIndex; `updating`: UpdateTable makes it."""
    name, of = request["IndexName"], throughput.Of(request["IndexName"])
    kind, included = projection(request)
    given, ceilings = request.get("ProvisionedThroughput"), request.get("OnDemandThroughput")
    throughput.check_index_billing(billing_mode, given, name, updating=updating)
    throughput.check_ceilings(ceilings, billing_mode, of)
    units, warm = throughput.provisioned(given), request.get("WarmThroughput")
    throughput.check_new_warm(warm, units, billing_mode, of)
    return Index(
        name,
        True,
        0,
        key,
        kind,
        included,
        units,
        on_demand=throughput.ceilings(ceilings),
        warm=throughput.warm(warm),
    )


def described_projection(index: Index) -> dict[str, Any]:
    """The projection of an index, as descriptions show it."""
    shown: dict[str, Any] = {"ProjectionType": index.projection}
    if index.included:
        shown["NonKeyAttributes"] = sorted(index.included)
    return shown


def check_indexes(indexes: Sequence[Index]) -> None:
    """Check the rules about all indexes of a table together."""
    names = [index.name for index in indexes]
    for name in names:
        if names.count(name) > 1:
            raise ValidationException(f"{INVALID}Duplicate index name: {name}")
    if sum(not index.is_global for index in indexes) > LSI_MAX:
        raise ValidationException(
            f"{INVALID}Number of LocalSecondaryIndexes exceeds per-table limit of {LSI_MAX}"
        )
    if sum(index.kind == "global" for index in indexes) > GSI_MAX:
        raise ValidationException(
            f"{INVALID}GlobalSecondaryIndex count exceeds the per-table limit of {GSI_MAX}"
        )
    if sum(len(index.included) for index in indexes if index.vector is None) > INDEX_NON_KEY_ATTRIBUTES_MAX:
        raise ValidationException(
            f"{INVALID}The total number of non-key attributes across all secondary indexes exceeds the "
            f"limit of {INDEX_NON_KEY_ATTRIBUTES_MAX}"
        )


def check_all_used(types: Mapping[str, KeyType], keys: Sequence[KeySchema]) -> None:
    """Refuse an AttributeDefinition that no key uses. `keys` are the table's key, and then those of its
    indexes; the search schema of a vector index counts as a key."""
    used = {attribute.name: None for key in keys for attribute in key.attributes()}
    if len(used) == len(types):
        return
    if len(keys) == 1:
        raise ValidationException(
            f"{INVALID}Number of attributes in KeySchema does not exactly match number of attributes "
            "defined in AttributeDefinitions"
        )
    raise ValidationException(
        f"{INVALID}Some AttributeDefinitions are not used. AttributeDefinitions: "
        f"[{_shown_types(types)}], keys used: [{_in_hash_order(used, 16)}]"
    )


def check_class(given: str | None) -> None:
    """Refuse an unknown table class. The message: [report] ack-api-quirks DDB-TABLE-442"""
    if given not in (None, *_TABLE_CLASSES):
        raise ValidationException(
            "Invalid table-class parameter provided. Please try again with a valid table-class value: "
            f"[{', '.join(_TABLE_CLASSES)}]."
        )


def check_settings_replication(mode: str | None) -> None:
    """Refuse the mode of same-account global tables for a table that is none yet. The message: [report]
    ack-api-quirks DDB-TABLE-048, of UpdateTable; CreateTable is [assumed] to say the same."""
    if mode == "ENABLED_WITH_OVERRIDES":
        raise ValidationException(
            "Value 'ENABLED_WITH_OVERRIDES' at 'GlobalTableSettingsReplicationMode' failed to satisfy "
            "constraint: Only ENABLED and DISABLED settings replication are supported for a Regional Table."
        )


def check_encryption(given: Mapping[str, Any] | None) -> None:
    """Check the rules of an SSESpecification that need no table."""
    if given is None:
        return
    kind, key = given.get("SSEType"), given.get("KMSMasterKeyId")
    if kind == "AES256":
        raise ValidationException(f"{INVALID}SSEType AES256 is not supported")
    if given.get("Enabled") is False and kind is not None:
        raise ValidationException(f"{INVALID}SSEType can not be specified if Enabled is false")
    if given.get("Enabled") is False and key is not None:
        raise ValidationException(f"{INVALID}KMSMasterKeyId can not be specified if Enabled is false")
    if key is not None and kind is None:
        raise ValidationException(f"{INVALID}SSEType KMS is required if KMSMasterKeyId is specified")


def encryption(given: Mapping[str, Any] | None, caller: Caller) -> dict[str, str] | None:
    """The SSEDescription for an SSESpecification; None if AWS owns the key.

    An SSEType without Enabled means Enabled. [report] ack-api-quirks DDB-TABLE-437
    """
    if given is None or not (given.get("Enabled") or given.get("SSEType")):
        return None
    key = key_arn(given.get("KMSMasterKeyId") or _SERVICE_KEY, caller.region, caller.account_id)
    return {"Status": "ENABLED", "SSEType": "KMS", "KMSMasterKeyArn": key}


def changed_encryption(
    current: Mapping[str, str] | None, given: Mapping[str, Any], caller: Caller
) -> dict[str, str] | None:
    """Like `encryption`, for an update; refuses an update that changes nothing."""
    wanted = encryption(given, caller)
    if wanted is None and current is None:
        raise ValidationException(f"{INVALID}Table is already encrypted by default")
    if current is not None and given.get("KMSMasterKeyId") == current["KMSMasterKeyArn"]:
        raise ValidationException(
            f"{INVALID}Table is already encrypted with given KMSMasterKeyId. Use KMSMasterKeyId parameter if "
            "you want to change Master Key"
        )
    return wanted


def key_arn(key: str, region: str, account_id: str) -> str:
    """The ARN of a KMS key, from its ARN, its alias or its identifier."""
    if key.startswith("arn:"):
        return key
    return f"arn:aws:kms:{region}:{account_id}:{'' if key.startswith('alias/') else 'key/'}{key}"


def is_service_key(arn: str) -> bool:
    """Whether it is the key that AWS manages for DynamoDB."""
    return arn.endswith(f":{_SERVICE_KEY}")
