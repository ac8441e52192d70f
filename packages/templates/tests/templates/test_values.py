"""CloudFormation's scalars, functions and parameters."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from hashrange.testing import DeclarationError
from hashrange.testing.declarations import Declaration
from hashrange_templates.reading import of_document, read

REGION, ACCOUNT = "eu-west-1", "111122223333"

TEMPLATE: Final[dict[str, Any]] = {
    "Parameters": {
        "Names": {"Type": "CommaDelimitedList", "Default": "a, by-x ,c"},
        "Units": {"Type": "List<Number>", "Default": "5, 7"},
        "Flag": {"Type": "String", "Default": "true", "AllowedValues": ["true", "false"]},
        "Count": {"Type": "Number", "Default": 3},
    },
    "Mappings": {ACCOUNT: {"of": {"name": "mapped"}}, "Ports": {"8000": {"name": "by-port"}}},
    "Conditions": {
        "IsOn": {"Fn::Equals": [{"Ref": "Flag"}, True]},
        "IsThree": {"Fn::Equals": [{"Ref": "Count"}, "3"]},
        "Both": {"Fn::And": [{"Condition": "IsOn"}, {"Condition": "IsThree"}]},
    },
    "Resources": {
        "Table": {
            "Type": "AWS::DynamoDB::Table",
            "Condition": "Both",
            "DeletionPolicy": "Retain",
            "Properties": {
                "TableName": "tab",
                "AttributeDefinitions": [
                    {"AttributeName": "pk", "AttributeType": "S"},
                    {"AttributeName": "x", "AttributeType": "S"},
                ],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "BillingMode": "PAY_PER_REQUEST",
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "by-x",
                        "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}],
                        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["y"]},
                        "OnDemandThroughput": {"MaxReadRequestUnits": 5},
                    }
                ],
                "OnDemandThroughput": {"MaxReadRequestUnits": 5},
                "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000},
                "StreamSpecification": {"StreamViewType": "KEYS_ONLY"},
                "DeletionProtectionEnabled": True,
                "Tags": [{"Key": "cost", "Value": "center"}],
                "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": True},
                "PointInTimeRecoverySpecification": {
                    "PointInTimeRecoveryEnabled": True,
                    "RecoveryPeriodInDays": 7,
                },
                "SSESpecification": {"SSEEnabled": True, "KMSMasterKeyId": "key"},
                "ResourcePolicy": {"PolicyDocument": {"Statement": [{"Effect": "Allow", "Sid": True}]}},
            },
        },
        "Simple": {
            "Type": "AWS::Serverless::SimpleTable",
            "Properties": {
                "TableName": {"Fn::Sub": "simple-${Count}"},
                "Tags": {"a": "b"},
                "PrimaryKey": {"Name": "id", "Type": "String"},
            },
        },
        "Global": {
            "Type": "AWS::DynamoDB::GlobalTable",
            "Properties": {
                "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                "BillingMode": "PROVISIONED",
                "WriteProvisionedThroughputSettings": {
                    "WriteCapacityAutoScalingSettings": {"MinCapacity": 1, "MaxCapacity": 9}
                },
                "Replicas": [
                    {
                        "Region": {"Ref": "AWS::Region"},
                        "ReadProvisionedThroughputSettings": {"ReadCapacityUnits": 3},
                    }
                ],
            },
        },
    },
}
PROPERTIES: Final = ("Resources", "Table", "Properties")


def put(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of a document with another value at a path."""
    if not path:
        return value
    if isinstance(document, list):
        return [put(member, path[1:], value) if n == path[0] else member for n, member in enumerate(document)]
    return document | {path[0]: put(document[path[0]], path[1:], value)}


def at(document: Any, path: tuple[Any, ...]) -> Any:
    for name in path:
        document = document[name]
    return document


def of(document: Any, **parameters: Any) -> list[Declaration]:
    return of_document(document, parameters, REGION, ACCOUNT)


SCALARS: Final[list[tuple[tuple[Any, ...], Any, Any]]] = [
    (("Tags", 0, "Value"), 42, "42"),
    (("Tags", 0, "Value"), True, "true"),
    (("Tags", 0, "Value"), 1.5, "1.5"),
    (("Tags", 0, "Key"), 2026, "2026"),
    (("TableName",), 12345, "12345"),
    (("KeySchema", 0, "AttributeName"), 7, "7"),
    (("AttributeDefinitions", 0, "AttributeName"), False, "false"),
    (("GlobalSecondaryIndexes", 0, "IndexName"), 100, "100"),
    (("GlobalSecondaryIndexes", 0, "Projection", "NonKeyAttributes", 0), 1, "1"),
    (("OnDemandThroughput", "MaxReadRequestUnits"), "5", 5),
    (("GlobalSecondaryIndexes", 0, "OnDemandThroughput", "MaxReadRequestUnits"), " 6 ", 6),
    (("WarmThroughput", "ReadUnitsPerSecond"), "12001", 12001),
    (("WarmThroughput", "WriteUnitsPerSecond"), 4001.0, 4001),
    (("DeletionProtectionEnabled",), "true", True),
    (("DeletionProtectionEnabled",), "False", False),
]


@pytest.mark.parametrize(("path", "given_", "wanted"), SCALARS)
def test_a_scalar_has_the_type_of_its_place(path: tuple[Any, ...], given_: Any, wanted: Any) -> None:
    table = of(put(TEMPLATE, (*PROPERTIES, *path), given_))[0]
    assert at(table.create, path) == wanted
    assert type(at(table.create, path)) is type(wanted)


def test_scalars_outside_of_create_table_and_of_yaml(tmp_path: Path) -> None:
    text = yaml.safe_dump(TEMPLATE, sort_keys=False).replace("Value: center", "Value: 2024-01-31")
    text = text.replace("Enabled: true", "Enabled: 'true'").replace(
        "AttributeName: until", "AttributeName: 5"
    )
    text = text.replace("RecoveryPeriodInDays: 7", "RecoveryPeriodInDays: '7'")
    (tmp_path / "t.yaml").write_text(text)
    table, simple, shared = read(tmp_path / "t.yaml", region=REGION, account_id=ACCOUNT)
    assert table.create["Tags"] == [{"Key": "cost", "Value": "2024-01-31"}]
    assert table.ttl == "5"
    recovery = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 7}
    assert table.settings == (("UpdateContinuousBackups", {"PointInTimeRecoverySpecification": recovery}),)
    assert json.loads(table.create["ResourcePolicy"])["Statement"][0]["Sid"] is True
    assert simple.name == "simple-3"
    assert shared.create["ProvisionedThroughput"] == {"ReadCapacityUnits": 3, "WriteCapacityUnits": 1}


FUNCTIONS: Final = [
    ({"Fn::Select": [1, {"Ref": "Names"}]}, "by-x"),
    ({"Fn::Select": ["0", {"Ref": "Units"}]}, "5"),
    ({"Fn::Join": ["-", {"Ref": "Names"}]}, "a-by-x-c"),
    ({"Fn::Join": ["-", [True, 1, 1.5]]}, "true-1-1.5"),
    ({"Fn::Sub": "${Count}-${Flag}-${AWS::Region}-${!kept}"}, f"3-true-{REGION}-${{kept}}"),
    ({"Fn::Sub": ["${N}", {"N": {"Fn::Select": [2, {"Ref": "Names"}]}}]}, "c"),
    ({"Fn::FindInMap": [{"Ref": "AWS::AccountId"}, "of", "name"]}, "mapped"),
    ({"Fn::FindInMap": ["Ports", 8000, "name"]}, "by-port"),
    ({"Fn::FindInMap": ["Ports", 8001, "name", {"DefaultValue": "none"}]}, "none"),
    ({"Fn::Select": [1, {"Fn::Split": ["/", "a/b"]}]}, "b"),
    ({"Fn::If": ["IsOn", "on", "off"]}, "on"),
    ({"Fn::GetAtt": "Simple.Arn"}, f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/simple-3"),
    ({"Fn::ImportValue": {"Fn::Sub": "${Flag}"}}, "true"),
    ({"Fn::Length": {"Ref": "Names"}}, "3"),
    ({"Fn::ToJsonString": {"a": [{"Ref": "Count"}, {"Ref": "AWS::NoValue"}], "b": "x"}}, '{"a":[3],"b":"x"}'),
    ({"Fn::Base64": {"Ref": "Flag"}}, "dHJ1ZQ=="),
    ({"Fn::GetStackOutput": {"StackName": "s", "OutputName": "o"}}, "{'StackName': 's', 'OutputName': 'o'}"),
]


@pytest.mark.parametrize(("value", "wanted"), FUNCTIONS)
def test_functions_see_texts_and_lists(value: Any, wanted: str) -> None:
    document = put(TEMPLATE, (*PROPERTIES, "Tags", 0, "Value"), value)
    assert of(document)[0].create["Tags"][0]["Value"] == wanted


def test_parameters_are_converted_too() -> None:
    names = of(
        put(TEMPLATE, (*PROPERTIES, "Tags", 0, "Value"), {"Fn::Select": [0, {"Ref": "Names"}]}), Names="z , y"
    )
    assert names[0].create["Tags"][0]["Value"] == "z"
    assert [one.name for one in of(TEMPLATE, Flag="false")] == ["simple-3", "Global"]
    assert [one.name for one in of(TEMPLATE, Flag=True, Count=3)] == ["tab", "simple-3", "Global"]


REFUSED: Final[list[tuple[tuple[Any, ...], Any, str]]] = [
    ((*PROPERTIES, "OnDemandThroughput", "MaxReadRequestUnits"), "five", "a whole number, not 'five'"),
    ((*PROPERTIES, "DeletionProtectionEnabled"), "maybe", "true or false, not 'maybe'"),
    ((*PROPERTIES, "DeletionProtectionEnabled"), 1, "true or false, not 1"),
    ((*PROPERTIES, "Tags"), {"a": "b"}, "a list, not"),
    ((*PROPERTIES, "Tags", 0), "a", "an object, not 'a'"),
    ((*PROPERTIES, "TableName"), ["a"], "a text is needed here"),
    ((*PROPERTIES, "TableName"), {"Fn::Join": ["-", {"Ref": "AWS::NoValue"}]}, "a list is needed here"),
    ((*PROPERTIES, "TableName"), {"Fn::GetAZs": "x"}, "Fn::GetAZs cannot be resolved"),
    ((*PROPERTIES, "Tags", 0, "Value"), {"Fn::Cidr": ["x", 1]}, "Fn::Cidr cannot be resolved"),
    ((*PROPERTIES, "Tags", 0, "Value"), {"Fn::Select": [9, {"Ref": "Names"}]}, "no value 9"),
    ((*PROPERTIES, "Tags", 0, "Value"), {"Fn::Split": ["", "a"]}, "the delimiter is empty"),
    ((*PROPERTIES, "Tags", 0, "Value"), {"Fn::If": ["IsOn", 1]}, "takes a list of 3"),
    ((*PROPERTIES, "Tags", 0, "Value"), {"Fn::Sub": "${Names}"}, "a text is needed here"),
    ((*PROPERTIES, "Tags", 0, "Value"), {"Fn::If": ["Off", 1, 2]}, "no condition 'Off'"),
    ((*PROPERTIES, "Fn::ForEach::Tag"), [], "Fn::ForEach::Tag cannot be resolved"),
    ((*PROPERTIES, "KeySchmea"), [], "'KeySchmea' here; did you mean 'KeySchema'"),
    (("Resources", "Table", "TimeToLiveSpecification"), {}, "no property 'TimeToLiveSpecification' here"),
    (("Resources", "Table", "Properties"), [1], "an object, not"),
    (("Resources", "Table"), 5, "not a resource with a Type"),
    (("Resources", "Simple", "Properties", "PrimaryKey", "Type"), "Text", "not 'Text'"),
    (("Conditions", "Both"), {"Fn::And": [{"Ref": "Names"}, True]}, "a condition is needed here"),
    (("Parameters",), [], "this is an object, not"),
]


@pytest.mark.parametrize(("path", "value", "text"), REFUSED)
def test_what_cannot_be_read_is_refused_by_its_place(path: tuple[Any, ...], value: Any, text: str) -> None:
    holder = at(TEMPLATE, path[:-1])
    document = put(TEMPLATE, path[:-1], holder | {path[-1]: value} if isinstance(holder, dict) else [value])
    with pytest.raises(DeclarationError, match=text) as caught:
        of(document)
    assert str(caught.value).startswith("/".join(map(str, path[:2])))


LOOP: Final = ["Name", ["a", "b"], {"T${Name}": {"Type": "AWS::DynamoDB::Table", "Properties": {}}}]


@pytest.mark.parametrize(
    ("name", "loop"),
    [
        ("Fn::ForEach::Tables", LOOP),
        ("Fn::ForEach::Outer", ["X", ["a"], {"Fn::ForEach::Tables": LOOP}]),
        ("Fn::Transform", {"Name": "AWS::Include", "Parameters": {"Location": "s3://x"}}),
    ],
)
def test_a_loop_that_may_make_tables_is_refused(name: str, loop: Any) -> None:
    with pytest.raises(DeclarationError, match=f"Resources/{name}: .*get-template"):
        of(put(TEMPLATE, ("Resources",), TEMPLATE["Resources"] | {name: loop}))


def test_a_loop_of_other_resources_is_left_alone() -> None:
    loop = ["Name", ["a"], {"Topic${Name}": {"Type": "AWS::SNS::Topic", "Properties": {"Name": "x"}}}]
    resources = TEMPLATE["Resources"] | {"Fn::ForEach::Topics": loop}
    assert len(of(put(TEMPLATE, ("Resources",), resources))) == 3


ELSEWHERE: Final = [
    ("AWS::CloudFormation::Stack", "the template of this stack"),
    ("AWS::Serverless::Application", "the template of this application"),
    ("My::Org::Tables::MODULE", "get-template"),
    ("AWS::DynamoDB::Newer", "nothing is known here of AWS::DynamoDB::Newer"),
    ("Custom::DynamoDBReplica", "use a GlobalTable"),
]


@pytest.mark.parametrize(("type_", "text"), ELSEWHERE)
def test_resources_that_may_have_tables_are_noted_if_they_are_made(type_: str, text: str) -> None:
    never = {"Never": {"Fn::Not": [{"Condition": "Both"}]}}
    document = TEMPLATE | {"Conditions": TEMPLATE["Conditions"] | never}

    def notes(**condition: str) -> list[str]:
        resource = {"Type": type_, "Properties": {}, **condition}
        tables = of(put(document, ("Resources",), {**TEMPLATE["Resources"], "Other": resource}))
        return [note for table in tables for note in table.notes if note.startswith("Resources/Other: ")]

    (note,) = notes()
    assert text in note
    assert notes(Condition="Both") == [note]
    assert notes(Condition="Never") == []


@pytest.mark.parametrize(
    ("type_", "properties", "noted"),
    [
        ("ScalableTarget", {"ServiceNamespace": "dynamodb", "ResourceId": {"Ref": "Gone"}}, True),
        ("ScalingPolicy", {"ScalableDimension": "dynamodb:table:ReadCapacityUnits"}, True),
        ("ScalableTarget", {"ServiceNamespace": "ecs"}, False),
        ("ScalingPolicy", {"ScalingTargetId": {"Ref": "Target"}}, False),
        ("ScalingPolicy", None, False),
    ],
)
def test_auto_scaling_of_tables_is_noted(type_: str, properties: Any, noted: bool) -> None:
    scaling = {"Type": f"AWS::ApplicationAutoScaling::{type_}", "Properties": properties}
    tables = of(put(TEMPLATE, ("Resources",), {**TEMPLATE["Resources"], "Scaling": scaling}))
    note = "Resources/Scaling: this resource is not made: nothing scales here: the units stay as declared"
    assert (note in tables[0].notes) == noted
    assert not [other for table in tables for other in table.notes if other != note and "Scaling:" in other]


@pytest.mark.parametrize(
    ("macros", "noted"),
    [
        ("AWS::Serverless-2016-10-31", []),
        (["AWS::LanguageExtensions", "Own::Macro"], ["Own::Macro"]),
        ({"Name": "AWS::Include", "Parameters": {"Location": "s3://x"}}, ["AWS::Include"]),
    ],
)
def test_macros_that_may_make_tables_are_noted(macros: Any, noted: list[str]) -> None:
    notes = [note for table in of(TEMPLATE | {"Transform": macros}) for note in table.notes]
    assert [note.split()[3] for note in notes if note.startswith("Transform: the macro")] == noted


def test_each_document_of_a_list_has_its_own_notes() -> None:
    first, second = TEMPLATE | {"Transform": "One"}, TEMPLATE | {"Transform": "Two"}
    notes = [[note.split()[3] for note in table.notes if "macro" in note] for table in of([first, second])]
    assert notes == [["One"], [], [], ["Two"], [], []]


def test_globals_of_sam_are_the_defaults_of_simple_tables() -> None:
    document = TEMPLATE | {"Globals": {"SimpleTable": {"SSESpecification": {"SSEEnabled": "true"}}}}
    table, simple, _ = of(document)
    assert simple.create["SSESpecification"] == {"Enabled": True, "SSEType": "KMS"}
    assert table.create["SSESpecification"]["KMSMasterKeyId"] == "key"
    ignored = put(document, ("Resources", "Simple"), TEMPLATE["Resources"]["Simple"] | {"IgnoreGlobals": "*"})
    assert "SSESpecification" not in of(ignored)[1].create
