"""Holds the declared shapes against botocore's model: nothing forgotten, invented or out of reach."""

from typing import Any

import botocore.session
import pytest

from hashrange.operations import REGISTRY
from hashrange.shapes import OPERATIONS
from hashrange.shapes.vocabulary import (
    AttributeValue,
    Blob,
    Boolean,
    List,
    Map,
    Number,
    Shape,
    String,
    Structure,
    Timestamp,
)

# Where the declarations differ from the model on purpose: path and rule, then (ours, the model's) and why.
DIFFERENCES: dict[tuple[str, str], tuple[Any, Any, str]] = {
    ("DisableKinesisStreamingDestination.StreamArn", "minimum"): (
        None,
        37,
        "[report] ack-api-quirks DDB-TABLE-302: a text that is not an ARN is only unknown",
    ),
    ("CreateTable.AttributeDefinitions", "required"): (
        True,
        False,
        "absent only for a replica in another account, which cannot exist here",
    ),
    ("CreateTable.KeySchema", "required"): (True, False, "the same"),
    ("CreateTable.KeySchema", "maximum"): (
        2,
        None,
        "[report] dynoxide issue 11: a table has two keys at most",
    ),
    **{
        (f"{place}[].KeySchema", "maximum"): (2, None, "[assumed] the same for a local index")
        for place in (
            "CreateTable.LocalSecondaryIndexes",
            "RestoreTableFromBackup.LocalSecondaryIndexOverride",
            "RestoreTableToPointInTime.LocalSecondaryIndexOverride",
        )
    },
    **{
        (f"{tag}.{member}", rule): (
            ours,
            theirs,
            "[report] ack-api-quirks DDB-TABLE-107: tags are judged later, one at a time",
        )
        for tag in ("CreateTable.Tags[]", "TagResource.Tags[]")
        for member, rule, ours, theirs in (
            ("Key", "minimum", None, 1),
            ("Key", "maximum", None, 128),
            ("Key", "required", False, True),
            ("Value", "minimum", None, 0),
            ("Value", "maximum", None, 256),
            ("Value", "required", False, True),
        )
    },
    **{
        (f"{operation}.TableClass", "words"): (
            [],
            ["STANDARD", "STANDARD_INFREQUENT_ACCESS"],
            "[report] ack-api-quirks DDB-TABLE-442: refused later, in other words",
        )
        for operation in ("CreateTable", "UpdateTable")
    },
    **{
        (f"{place}.ExpressionAttributeNames{{}}", "maximum"): (
            None,
            65_535,
            "[report] extenddb issue 365: refused later, in other words",
        )
        for place in (
            "BatchGetItem.RequestItems{}",
            "DeleteItem",
            "ExportTableToPointInTime.FilterSpecification",
            "GetItem",
            "PutItem",
            "Query",
            "Scan",
            "SearchVectors",
            "TransactGetItems.TransactItems[].Get",
            "TransactWriteItems.TransactItems[].ConditionCheck",
            "TransactWriteItems.TransactItems[].Delete",
            "TransactWriteItems.TransactItems[].Put",
            "TransactWriteItems.TransactItems[].Update",
            "UpdateItem",
        )
    },
    **{
        (place, "maximum"): (None, 65_535, "[report] extenddb issue 365, Alternator's authors: the same")
        for place in (
            "BatchGetItem.RequestItems{}.AttributesToGet[]",
            "BatchGetItem.RequestItems{}.Keys[]{key}",
            "BatchWriteItem.RequestItems{}[].DeleteRequest.Key{key}",
            "BatchWriteItem.RequestItems{}[].PutRequest.Item{key}",
            "DeleteItem.Expected{key}",
            "DeleteItem.Key{key}",
            "GetItem.AttributesToGet[]",
            "GetItem.Key{key}",
            "PutItem.Expected{key}",
            "PutItem.Item{key}",
            "Query.AttributesToGet[]",
            "Query.ExclusiveStartKey{key}",
            "Query.KeyConditions{key}",
            "Query.QueryFilter{key}",
            "Scan.AttributesToGet[]",
            "Scan.ExclusiveStartKey{key}",
            "Scan.ScanFilter{key}",
            "TransactGetItems.TransactItems[].Get.Key{key}",
            "TransactWriteItems.TransactItems[].ConditionCheck.Key{key}",
            "TransactWriteItems.TransactItems[].Delete.Key{key}",
            "TransactWriteItems.TransactItems[].Put.Item{key}",
            "TransactWriteItems.TransactItems[].Update.Key{key}",
            "UpdateItem.AttributeUpdates{key}",
            "UpdateItem.Expected{key}",
            "UpdateItem.Key{key}",
        )
    },
    **{
        (f"{place}.SearchSchema", "minimum"): (None, 1, "[report] extenddb: an empty list is accepted")
        for place in (
            "CreateTable.VectorIndexes[]",
            "UpdateTable.VectorIndexUpdates[].Create",
            "ImportTable.TableCreationParameters.VectorIndexes[]",
            "RestoreTableFromBackup.VectorIndexOverride[]",
            "RestoreTableToPointInTime.VectorIndexOverride[]",
        )
    },
    ("UntagResource.TagKeys[]", "minimum"): (None, 1, "the same"),
    ("UntagResource.TagKeys[]", "maximum"): (None, 128, "the same"),
    ("UpdateTimeToLive.TimeToLiveSpecification", "members"): (
        ["AttributeName", "Enabled"],
        ["Enabled", "AttributeName"],
        "[report] ack-api-quirks DDB-TABLE-457",
    ),
    **{
        (f"{place}.AttributeDefinitions[]", "members"): (
            ["AttributeType", "AttributeName"],
            ["AttributeName", "AttributeType"],
            "[report] ack-api-quirks DDB-TABLE-457",
        )
        for place in ("CreateTable", "UpdateTable", "ImportTable.TableCreationParameters")
    },
    ("ImportTable.TableCreationParameters.KeySchema", "maximum"): (2, None, "[assumed] as for CreateTable"),
    **{
        (place, "members"): (
            ["WriteCapacityUnits", "ReadCapacityUnits"],
            ["ReadCapacityUnits", "WriteCapacityUnits"],
            "[report] ack-api-quirks DDB-TABLE-038, amplify-category-api pull 3518: writes are named first",
        )
        for place in (
            "CreateTable.ProvisionedThroughput",
            "CreateTable.GlobalSecondaryIndexes[].ProvisionedThroughput",
            "RestoreTableFromBackup.ProvisionedThroughputOverride",
            "RestoreTableFromBackup.GlobalSecondaryIndexOverride[].ProvisionedThroughput",
            "RestoreTableToPointInTime.ProvisionedThroughputOverride",
            "RestoreTableToPointInTime.GlobalSecondaryIndexOverride[].ProvisionedThroughput",
            "UpdateTable.ProvisionedThroughput",
            "UpdateTable.GlobalSecondaryIndexUpdates[].Create.ProvisionedThroughput",
            "UpdateTable.GlobalSecondaryIndexUpdates[].Update.ProvisionedThroughput",
            "ImportTable.TableCreationParameters.ProvisionedThroughput",
            "ImportTable.TableCreationParameters.GlobalSecondaryIndexes[].ProvisionedThroughput",
        )
    },
}

# Members that the service takes and the model does not have. [report] extenddb pull 320
BEYOND_THE_MODEL = {"CreateTable.TableThroughputMode", "UpdateTable.TableThroughputMode"}

_session = botocore.session.get_session()
_services = [_session.get_service_model(name) for name in ("dynamodb", "dynamodbstreams")]
MODELS = {name: service.operation_model(name) for service in _services for name in service.operation_names}


def test_every_operation_has_a_shape_and_every_shape_an_operation() -> None:
    assert set(OPERATIONS) == set(REGISTRY) <= set(MODELS)


@pytest.mark.parametrize("operation", sorted(OPERATIONS))
def test_every_member_and_rule_of_the_model_is_declared(operation: str) -> None:
    found = dict(_differences(OPERATIONS[operation], MODELS[operation].input_shape, operation))
    known = {
        place: (ours, theirs)
        for place, (ours, theirs, _) in DIFFERENCES.items()
        if place[0].split(".")[0] == operation
    }
    assert found == known


def _differences(shape: Shape, model: Any, path: str) -> Any:
    yield from _unequal(path, "kind", _kind(shape), model.type_name)
    match shape:
        case Structure():
            yield from _unequal(path, "name", shape.name, model.name)
            modelled = [name for name in shape.members if f"{path}.{name}" not in BEYOND_THE_MODEL]
            yield from _unequal(path, "members", modelled, list(model.members))
            for name in modelled:
                inner, member = f"{path}.{name}", shape.members[name]
                yield from _unequal(inner, "required", name in shape.needed, name in model.required_members)
                yield from _differences(member, model.members[name], inner)
        case List():
            yield from _bounds(shape, model, path)
            yield from _differences(shape.member, model.member, path + "[]")
        case Map():
            yield from _bounds(shape, model, path)
            yield from _differences(shape.key, model.key, path + "{key}")
            yield from _differences(shape.value, model.value, path + "{}")
        case String():
            yield from _bounds(shape, model, path)
            yield from _unequal(path, "pattern", shape.pattern, model.metadata.get("pattern"))
            yield from _unequal(path, "words", sorted(shape.words), sorted(getattr(model, "enum", ())))
        case Number():
            yield from _bounds(shape, model, path)


def _bounds(shape: String | Number | List | Map, model: Any, path: str) -> Any:
    yield from _unequal(path, "minimum", shape.minimum, model.metadata.get("min"))
    yield from _unequal(path, "maximum", shape.maximum, model.metadata.get("max"))


def _unequal(path: str, rule: str, ours: Any, theirs: Any) -> Any:
    if ours != theirs:
        yield (path, rule), (ours, theirs)


def _kind(shape: Shape) -> str:
    match shape:
        case Number():
            return shape.kind.lower()
        case AttributeValue() | Structure():
            return "structure"
        case String() | Boolean() | Blob() | Timestamp() | List() | Map():
            return type(shape).__name__.lower()
