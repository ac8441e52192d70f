"""Any tree in any place of a document that declares tables is read, or refused with a text that says where.

No other error may come out of a file that somebody wrote by hand.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from hashrange.testing import DeclarationError
from hashrange_templates.reading import read

KEYS: Final[dict[str, Any]] = {
    "TableName": "tab",
    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
}
INDEX: Final[dict[str, Any]] = {
    "IndexName": "index",
    "KeySchema": KEYS["KeySchema"],
    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["y"]},
}
TEMPLATE: Final[dict[str, Any]] = {
    "Parameters": {"P": {"Type": "CommaDelimitedList", "Default": "a,b"}},
    "Mappings": {"M": {"a": {"b": "c"}}},
    "Conditions": {"C": {"Fn::Not": [{"Fn::Equals": [{"Ref": "AWS::Region"}, "x"]}]}},
    "Globals": {"SimpleTable": {"SSESpecification": {"SSEEnabled": True}}},
    "Resources": {
        "T": {
            "Type": "AWS::DynamoDB::Table",
            "Condition": "C",
            "Properties": KEYS
            | {
                "TableName": {"Fn::If": ["C", {"Fn::Join": ["-", {"Ref": "P"}]}, {"Fn::Sub": "x${P}"}]},
                "GlobalSecondaryIndexes": [INDEX | {"ContributorInsightsSpecification": {"Enabled": True}}],
                "Tags": [{"Key": "a", "Value": {"Fn::FindInMap": ["M", "a", "b"]}}],
                "StreamSpecification": {
                    "StreamViewType": "NEW_IMAGE",
                    "ResourcePolicy": {"PolicyDocument": {"a": {"Fn::GetAtt": ["T", "Arn"]}}},
                },
                "SSESpecification": {"SSEEnabled": True},
                "KinesisStreamSpecification": {"StreamArn": "arn"},
                "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": True},
            },
        },
        "S": {
            "Type": "AWS::Serverless::SimpleTable",
            "Properties": {"PrimaryKey": {"Name": "a", "Type": "String"}, "Tags": {"a": "b"}},
        },
        "G": {
            "Type": "AWS::DynamoDB::GlobalTable",
            "Properties": KEYS
            | {
                "BillingMode": "PROVISIONED",
                "GlobalSecondaryIndexes": [INDEX],
                "WriteProvisionedThroughputSettings": {
                    "WriteCapacityAutoScalingSettings": {"MinCapacity": 1}
                },
                "MultiRegionConsistency": "STRONG",
                "GlobalTableWitnesses": [{"Region": "us-west-2"}],
                "Replicas": [
                    {
                        "Region": "us-east-1",
                        "SSESpecification": {"KMSMasterKeyId": "key"},
                        "GlobalSecondaryIndexes": [{"IndexName": "index"}],
                    },
                    {"Region": "us-east-2"},
                ],
            },
        },
    },
}
PLAN: Final[dict[str, Any]] = {
    "format_version": "1.2",
    "values": {
        "root_module": {
            "resources": [
                {
                    "type": "aws_dynamodb_table",
                    "address": "aws_dynamodb_table.t",
                    "values": {
                        "name": "tab",
                        "hash_key": "pk",
                        "attribute": [{"name": "pk", "type": "S"}],
                        "global_secondary_index": [{"name": "index", "hash_key": "pk"}],
                        "local_secondary_index": [{"name": "local", "range_key": "sk"}],
                        "ttl": [{"attribute_name": "until", "enabled": True}],
                        "point_in_time_recovery": [{"enabled": True}],
                        "replica": [{"region_name": "us-east-2"}],
                        "tags": {"a": "b"},
                    },
                }
            ],
            "child_modules": [
                {
                    "resources": [
                        {"type": f"aws_dynamodb_{type_}", "values": {"table_name": "tab"} | values}
                        for type_, values in (
                            ("table_item", {"item": "{}"}),
                            ("global_secondary_index", {"key_schema": [{"attribute_name": "pk"}]}),
                            ("vector_index", {"vector_attribute": {"attribute_name": "v"}}),
                            ("contributor_insights", {"index_name": "index"}),
                            ("kinesis_streaming_destination", {"stream_arn": "arn"}),
                        )
                    ]
                },
                {
                    "resources": [
                        {"type": "aws_dynamodb_tag", "values": {"resource_arn": "arn:table/tab", "key": "k"}},
                        {
                            "type": "aws_dynamodb_resource_policy",
                            "values": {"resource_arn": "arn:table/tab/stream/x", "policy": "{}"},
                        },
                    ]
                },
            ],
        }
    },
}
MODEL: Final[dict[str, Any]] = {
    "DataModel": [
        {
            "TableName": "tab",
            "KeyAttributes": {"PartitionKey": {"AttributeName": "pk", "AttributeType": "S"}},
            "GlobalSecondaryIndexes": [
                {"IndexName": "i", "KeyAttributes": {"PartitionKey": {"AttributeName": "x"}}}
            ],
            "TableData": [{"pk": {"S": "a"}}],
            "ProvisionedCapacitySettings": {"ProvisionedThroughput": {"ReadCapacityUnits": 1}},
        }
    ]
}
COMMAND: Final[dict[str, Any]] = KEYS | {
    "GlobalSecondaryIndexes": [INDEX],
    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
}
DESCRIBED: Final[dict[str, Any]] = {
    "Table": COMMAND
    | {
        "TableStatus": "ACTIVE",
        "BillingModeSummary": {"BillingMode": "PROVISIONED"},
        "SSEDescription": {"Status": "ENABLED", "KMSMasterKeyArn": "arn"},
        "TableClassSummary": {"TableClass": "STANDARD"},
    }
}
DOCUMENTS: Final = (TEMPLATE, PLAN, MODEL, COMMAND, DESCRIBED, [COMMAND])


def paths(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of a document."""
    yield path
    members: Any = document.items() if isinstance(document, dict) else ()
    members = enumerate(document) if isinstance(document, list) else members
    for name, member in members:
        yield from paths(member, (*path, name))


PLACES: Final = [(document, path) for document in DOCUMENTS for path in paths(document)]


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of a document with another value at a path."""
    if not path:
        return value
    if isinstance(document, list):
        return [put(member, path[1:], value) if n == path[0] else member for n, member in enumerate(document)]
    return document | {path[0]: put(document[path[0]], path[1:], value)}


NAMES: Final = sorted({str(name) for _, path in PLACES for name in path})
FUNCTIONS: Final = (
    *("Ref", "Condition", "Fn::Sub", "Fn::Join", "Fn::If", "Fn::FindInMap", "Fn::Select", "Fn::Split"),
    *("Fn::GetAtt", "Fn::ImportValue", "Fn::Equals", "Fn::And", "Fn::Or", "Fn::Not", "Fn::ForEach::X"),
)
TEXTS: Final = st.sampled_from(("", "a", "b", "T", "P", "C", "M", "T.Arn", "AWS::NoValue", "${T}${P}${!x}"))
SCALARS: Final = st.none() | st.booleans() | st.integers() | st.floats() | TEXTS | st.text(max_size=5)
WORDS: Final = st.sampled_from((*FUNCTIONS, *NAMES, "x"))
TREES: Final = st.recursive(
    SCALARS,
    lambda parts: (
        st.lists(parts, max_size=4)
        | st.dictionaries(WORDS, parts, max_size=3)
        | st.builds(lambda name, part: {name: part}, st.sampled_from(FUNCTIONS), parts)
    ),
    max_leaves=8,
)


def is_read(content: bytes, name: str) -> None:
    """The file is read, or refused by its name."""
    with TemporaryDirectory() as folder:
        path = Path(folder, name)
        path.write_bytes(content)
        try:
            read(path, region="us-east-1", account_id="111122223333")
        except DeclarationError as error:
            assert str(error).startswith(str(path))


@given(st.sampled_from(PLACES), TREES)
def test_any_tree_in_any_place_of_a_document(place: tuple[Any, tuple[Any, ...]], tree: Any) -> None:
    document = put(*place, tree)
    is_read(json.dumps(document).encode(), "declared.json")
    is_read(yaml.safe_dump(document).encode(), "declared.yaml")


@given(st.sampled_from(PLACES), WORDS, TREES)
def test_any_property_in_any_place_of_a_document(
    place: tuple[Any, tuple[Any, ...]], name: str, tree: Any
) -> None:
    document, path = place
    holder = document
    for step in path:
        holder = holder[step]
    if isinstance(holder, dict):
        is_read(json.dumps(put(document, path, holder | {name: tree})).encode(), "declared.json")


TEMPLATE_TEXT: Final = yaml.safe_dump(TEMPLATE)
PARTS: Final = (
    *("!Ref P", "!Sub [a]", "!GetAtt T", "!Select [1]", "!Split", "! x", "!!binary aGk=", "!!set {a, b}"),
    *("!!int x", "!!bool x", "!!float x", "!!timestamp x", "!!omap [a: b]", "!!python/name:os.system x"),
    *(
        "&a [*a]",
        "&b {x: *b}",
        "{[a]: b}",
        "{{a: b}: c}",
        "{1: x, null: y}",
        "{<<: x}",
        "<<: [a]",
        "0x" + "f" * 5000,
    ),
    *(
        "9" * 5000,
        "190:20:30",
        ".inf",
        ".nan",
        "2024-01-31",
        "yes",
        "~",
        "'",
        '"',
        "[",
        "}",
        "\t",
        "%",
        "@",
        "---",
    ),
)


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize(
    "whole", [TEMPLATE_TEXT.replace("until", "{}"), TEMPLATE_TEXT.replace("INCLUDE", "{}"), "{}"]
)
def test_any_yaml_in_a_template(part: str, whole: str) -> None:
    is_read(whole.replace("{}", part).encode(), "template.yaml")


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode("utf-8", "surrogatepass")))
def test_any_bytes(content: bytes) -> None:
    is_read(content, "declared")


@pytest.mark.parametrize("depth", [100, 5_000])
def test_what_is_nested_too_deeply_is_refused(depth: int) -> None:
    for opened, closed in ("[]", ('{"a":', "}"), ('{"Fn::Not": [', "]}")):
        tree = opened * depth + "1" + closed * depth
        document = f'{{"Resources": {{"T": {{"Type": "AWS::DynamoDB::Table", "Properties": {tree}}}}}}}'
        is_read(document.encode(), "deep.json")


def test_a_name_that_refers_to_itself_is_refused() -> None:
    for cycle in ({"Ref": "T"}, {"Fn::If": ["D", "a", "b"]}):
        document = put(TEMPLATE, ("Resources", "T", "Properties", "TableName"), cycle)
        document = put(document, ("Conditions",), TEMPLATE["Conditions"] | {"D": {"Condition": "D"}})
        with TemporaryDirectory() as folder:
            path = Path(folder, "t.json")
            path.write_text(json.dumps(document))
            with pytest.raises(DeclarationError, match="refers to itself"):
                read(path, region="us-east-1", account_id="111122223333")
