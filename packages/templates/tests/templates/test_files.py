"""Tables from the files that people have already, made in a database."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hashrange.errors import ValidationException
from hashrange.testing import DeclarationError, LocalDatabase


@pytest.fixture
def database() -> Iterator[LocalDatabase]:
    with LocalDatabase(region="eu-west-1", account_id="111122223333") as database:
        yield database


def described(database: LocalDatabase, name: str) -> dict[str, Any]:
    """What was asked for of a table, without what the service adds."""
    table = database.execute("DescribeTable", {"TableName": name})["Table"]
    ttl = database.execute("DescribeTimeToLive", {"TableName": name})["TimeToLiveDescription"]

    def key(schema: Any) -> str:
        types = {one["AttributeName"]: one["AttributeType"] for one in table["AttributeDefinitions"]}
        return ", ".join(f"{one['AttributeName']}:{types[one['AttributeName']]}" for one in schema)

    found = {"key": key(table["KeySchema"])}
    for member in ("GlobalSecondaryIndexes", "LocalSecondaryIndexes"):
        for index in table.get(member, ()):
            found[index["IndexName"]] = f"{key(index['KeySchema'])} {index['Projection']['ProjectionType']}"
    if "StreamSpecification" in table:
        found["stream"] = table["StreamSpecification"]["StreamViewType"]
    if "AttributeName" in ttl:
        found["ttl"] = ttl["AttributeName"]
    units = table.get("ProvisionedThroughput", {}).get("ReadCapacityUnits")
    if units:
        found["units"] = units
    return found


def scanned(database: LocalDatabase, name: str) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = database.execute("Scan", {"TableName": name})["Items"]
    return sorted(items, key=lambda item: json.dumps(item, sort_keys=True))


ORDERS = {
    "key": "pk:S, sk:N",
    "by-customer": "customer:S, sk:N ALL",
    "by-size": "pk:S, size:N KEYS_ONLY",
    "stream": "NEW_AND_OLD_IMAGES",
    "ttl": "until",
}

TEMPLATE = """
AWSTemplateFormatVersion: 2010-09-09
Parameters:
  Stage: {Type: String, Default: dev}
  Owner: {Type: String}
Mappings:
  Names: {dev: {orders: orders-dev}, live: {orders: orders}}
Conditions:
  IsLive: !Equals [!Ref Stage, live]
  IsDev: !Not [!Condition IsLive]
Resources:
  Function:
    Type: AWS::Serverless::Function
    Properties: {Role: !GetAtt Role.Arn, Code: !Unknown x}
  Orders:
    Type: AWS::DynamoDB::Table
    Properties:
      TableName: !FindInMap [Names, !Ref Stage, orders]
      BillingMode: !If [IsLive, PROVISIONED, PAY_PER_REQUEST]
      ProvisionedThroughput: !If [IsLive, {ReadCapacityUnits: 7, WriteCapacityUnits: "7"}, !Ref AWS::NoValue]
      AttributeDefinitions:
        - {AttributeName: pk, AttributeType: S}
        - {AttributeName: sk, AttributeType: N}
        - {AttributeName: customer, AttributeType: S}
        - {AttributeName: size, AttributeType: N}
      KeySchema:
        - {AttributeName: pk, KeyType: HASH}
        - {AttributeName: sk, KeyType: RANGE}
      GlobalSecondaryIndexes:
        - IndexName: !Join [-, [by, !Select [1, !Split [/, a/customer/b]]]]
          KeySchema: [{AttributeName: customer, KeyType: HASH}, {AttributeName: sk, KeyType: RANGE}]
          Projection: {ProjectionType: ALL}
      LocalSecondaryIndexes:
        - IndexName: by-size
          KeySchema: [{AttributeName: pk, KeyType: HASH}, {AttributeName: size, KeyType: RANGE}]
          Projection: {ProjectionType: KEYS_ONLY}
      StreamSpecification: {StreamViewType: NEW_AND_OLD_IMAGES}
      TimeToLiveSpecification: {AttributeName: until, Enabled: true}
      PointInTimeRecoverySpecification: {PointInTimeRecoveryEnabled: true}
  Simple:
    Type: AWS::Serverless::SimpleTable
    Properties:
      TableName: !Sub
        - "${Owner}-${AWS::Region}-${Name}-${Orders}${!kept}"
        - Name: !Sub "${AWS::AccountId}"
      PrimaryKey: {Name: number, Type: Number}
  OnlyLive:
    Type: AWS::DynamoDB::Table
    Condition: IsLive
    Properties: {}
  OnlyDev:
    Type: AWS::Serverless::SimpleTable
    Condition: IsDev
  Everywhere:
    Type: AWS::DynamoDB::GlobalTable
    Properties:
      AttributeDefinitions: [{AttributeName: pk, AttributeType: B}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      BillingMode: PAY_PER_REQUEST
      Replicas: [{Region: eu-west-1}]
"""


def test_a_template_in_yaml(database: LocalDatabase, tmp_path: Path) -> None:
    (tmp_path / "template.yaml").write_text(TEMPLATE.replace("!Unknown x", "x").replace("${!kept}", ""))
    names = database.create_tables(tmp_path / "template.yaml", parameters={"Owner": "we"})
    assert names == ["orders-dev", "we-eu-west-1-111122223333-orders-dev", "OnlyDev", "Everywhere"]
    assert described(database, "orders-dev") == ORDERS
    assert described(database, names[1]) == {"key": "number:N"}
    assert described(database, "OnlyDev") == {"key": "id:S"}
    assert described(database, "Everywhere") == {"key": "pk:B"}


def test_parameters_choose_conditions_and_throughput(database: LocalDatabase, tmp_path: Path) -> None:
    text = TEMPLATE.replace("!Unknown x", "x").replace("    Condition: IsLive\n    Properties: {}\n", "")
    (tmp_path / "template.yaml").write_text(text.replace("  OnlyLive:\n    Type: AWS::DynamoDB::Table\n", ""))
    with pytest.raises(ValidationException):  # of "${kept}", which is in no name
        database.create_tables(tmp_path / "template.yaml", parameters={"Owner": "we", "Stage": "live"})
    assert described(database, "orders") == ORDERS | {"units": 7}


def test_a_template_in_json(database: LocalDatabase, tmp_path: Path) -> None:
    template = {
        "Resources": {
            "Table": {
                "Type": "AWS::DynamoDB::Table",
                "Properties": {
                    "TableName": {"Fn::Sub": "t-${AWS::Region}"},
                    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
                    "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
                },
            },
            "Other": {
                "Type": "AWS::SSM::Parameter",
                "Properties": {"Value": {"Fn::GetAtt": ["Table", "Arn"]}},
            },
        }
    }
    (tmp_path / "template.json").write_text(json.dumps(template))
    assert database.create_tables(tmp_path / "template.json") == ["t-eu-west-1"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Resources: {T: {Type: AWS::DynamoDB::Table, Properties: {TableName: !Ref Nothing}}}", "Nothing"),
        ("Resources: {T: {Type: AWS::DynamoDB::Table, Properties: {}}}", "no KeySchema"),
        ("Resources: {F: {Type: AWS::Lambda::Function}}", "declares no table"),
        (TEMPLATE, "parameter Owner has no default.*parameters="),
        (
            "Resources: {T: {Type: AWS::DynamoDB::Table, Properties: {TableName: !Transform x}}}",
            "Fn::Transform cannot be resolved",
        ),
        ("some: file", "neither a CloudFormation"),
        ("[]", "declares no table"),
    ],
)
def test_what_cannot_be_read_is_named(
    database: LocalDatabase, tmp_path: Path, text: str, message: str
) -> None:
    path = tmp_path / "tables.yaml"
    path.write_text(text)
    with pytest.raises(DeclarationError, match=rf"tables\.yaml.*{message}"):
        database.create_tables(path)


def test_a_parameter_that_the_template_does_not_have(database: LocalDatabase, tmp_path: Path) -> None:
    (tmp_path / "t.json").write_text('{"Resources": {}}')
    with pytest.raises(DeclarationError, match="no parameter Stage"):
        database.create_tables(tmp_path / "t.json", parameters={"Stage": "x"})


PLAN: dict[str, Any] = {
    "format_version": "1.2",
    "planned_values": {
        "root_module": {
            "resources": [
                {"type": "aws_s3_bucket", "values": {"bucket": "b"}},
                {"type": "aws_dynamodb_table", "mode": "data", "values": {"name": "read-only"}},
                {
                    "type": "aws_dynamodb_table_item",
                    "values": {"table_name": "orders", "item": '{"pk": {"S": "a"}, "sk": {"N": "1"}}'},
                },
            ],
            "child_modules": [
                {
                    "child_modules": [
                        {
                            "resources": [
                                {
                                    "address": "module.a.module.b.aws_dynamodb_table.orders",
                                    "mode": "managed",
                                    "type": "aws_dynamodb_table",
                                    "values": {
                                        "name": "orders",
                                        "billing_mode": "PAY_PER_REQUEST",
                                        "hash_key": "pk",
                                        "range_key": "sk",
                                        "read_capacity": None,
                                        "attribute": [
                                            {"name": "pk", "type": "S"},
                                            {"name": "sk", "type": "N"},
                                            {"name": "customer", "type": "S"},
                                            {"name": "size", "type": "N"},
                                        ],
                                        "global_secondary_index": [
                                            {
                                                "name": "by-customer",
                                                "hash_key": "customer",
                                                "range_key": "sk",
                                                "projection_type": "ALL",
                                                "non_key_attributes": None,
                                                "read_capacity": None,
                                                "write_capacity": None,
                                            }
                                        ],
                                        "local_secondary_index": [
                                            {
                                                "name": "by-size",
                                                "range_key": "size",
                                                "projection_type": "KEYS_ONLY",
                                                "non_key_attributes": [],
                                            }
                                        ],
                                        "stream_enabled": True,
                                        "stream_view_type": "NEW_AND_OLD_IMAGES",
                                        "ttl": [{"attribute_name": "until", "enabled": True}],
                                        "tags": None,
                                    },
                                }
                            ]
                        }
                    ]
                }
            ],
        }
    },
}


def test_a_terraform_plan_and_its_items(database: LocalDatabase, tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(PLAN))
    assert database.create_tables(tmp_path / "plan.json") == ["orders"]
    assert described(database, "orders") == ORDERS
    assert scanned(database, "orders") == [{"pk": {"S": "a"}, "sk": {"N": "1"}}]


def test_a_terraform_state_with_provisioned_throughput(database: LocalDatabase, tmp_path: Path) -> None:
    values = {
        "name": "tab",
        "hash_key": "pk",
        "read_capacity": 5,
        "write_capacity": 5,
        "attribute": [{"name": "pk", "type": "S"}, {"name": "x", "type": "S"}],
        "global_secondary_index": [
            {
                "name": "by-x",
                "key_schema": [{"attribute_name": "x", "key_type": "HASH"}],
                "projection_type": "INCLUDE",
                "non_key_attributes": ["y"],
                "read_capacity": 5,
                "write_capacity": 5,
            }
        ],
        "ttl": [{"attribute_name": "", "enabled": False}],
    }
    resource = {"type": "aws_dynamodb_table", "values": values}
    state = {"format_version": "1.0", "values": {"root_module": {"resources": [resource]}}}
    (tmp_path / "state.json").write_text(json.dumps(state))
    database.create_tables(tmp_path / "state.json")
    assert described(database, "tab") == {"key": "pk:S", "by-x": "x:S INCLUDE", "units": 5}
    values["name"] = None
    (tmp_path / "state.json").write_text(json.dumps(state))
    with pytest.raises(DeclarationError, match="does not know the name"):
        database.create_tables(tmp_path / "state.json")


def test_json_of_the_aws_command(database: LocalDatabase, tmp_path: Path) -> None:
    database.create_table(
        "orders",
        "pk, sk:N",
        indexes={"by-customer": "customer, sk"},
        local_indexes={"by-size": "pk, size:N"},
        stream="NEW_AND_OLD_IMAGES",
        ttl="until",
    )
    assert described(database, "orders") == ORDERS | {"by-size": "pk:S, size:N ALL"}
    output = database.execute("DescribeTable", {"TableName": "orders"})
    (tmp_path / "described.json").write_text(json.dumps(output))
    given = {
        "TableName": "given",
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "ProvisionedThroughput": {"ReadCapacityUnits": 3, "WriteCapacityUnits": 3},
    }
    (tmp_path / "given.json").write_text(json.dumps([given]))
    with LocalDatabase() as other:
        names = other.create_tables(tmp_path / "described.json", tmp_path / "given.json")
        assert names == ["orders", "given"]
        # The time to live is not in the output of describe-table.
        expected = {name: value for name, value in described(database, "orders").items() if name != "ttl"}
        assert described(other, "orders") == expected
        assert described(other, "given") == {"key": "pk:S", "units": 3}


def test_a_model_of_the_workbench_with_its_data(database: LocalDatabase, tmp_path: Path) -> None:
    text = {"AttributeName": "pk", "AttributeType": "S"}
    number = {"AttributeName": "sk", "AttributeType": "N"}
    model: dict[str, Any] = {
        "ModelName": "shop",
        "ModelMetadata": {"Version": "3.0"},
        "DataModel": [
            {
                "TableName": "orders",
                "KeyAttributes": {"PartitionKey": text, "SortKey": number},
                "NonKeyAttributes": [{"AttributeName": "customer", "AttributeType": "S"}],
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "by-customer",
                        "KeyAttributes": {
                            "PartitionKey": {"AttributeName": "customer", "AttributeType": "S"},
                            "SortKey": number,
                        },
                        "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["x"]},
                    }
                ],
                "TableData": [{"pk": {"S": "a"}, "sk": {"N": "1"}, "customer": {"S": "c"}}],
                "DataAccess": {"MySql": {}},
                "BillingMode": "PROVISIONED",
                "ProvisionedCapacitySettings": {
                    "ProvisionedThroughput": {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
                },
            }
        ],
    }
    (tmp_path / "model.json").write_text(json.dumps(model))
    assert database.create_tables(tmp_path / "model.json") == ["orders"]
    expected = {"key": "pk:S, sk:N", "by-customer": "customer:S, sk:N INCLUDE", "units": 5}
    assert described(database, "orders") == expected
    assert len(scanned(database, "orders")) == 1
    del model["DataModel"][0]["KeyAttributes"]
    (tmp_path / "model.json").write_text(json.dumps(model))
    with pytest.raises(DeclarationError, match="no KeyAttributes"):
        database.create_tables(tmp_path / "model.json")
