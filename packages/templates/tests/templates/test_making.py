"""A template and a plan with every setting make a table that has them all; what cannot be made is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from hashrange.settings import Settings
from hashrange.testing import DeclarationError, DeclarationWarning, LocalDatabase
from hashrange_templates.reading import of_document

REGION, OTHER = "eu-west-1", "us-east-1"
ACCOUNT = "111122223333"


def as_template(type_: str, properties: Any) -> dict[str, Any]:
    return {"Resources": {"T": {"Type": type_, "Properties": properties}}}


def as_plan(values: Any, *beside: dict[str, Any]) -> dict[str, Any]:
    resource = {"type": "aws_dynamodb_table", "address": "aws_dynamodb_table.t", "values": values}
    root = {"resources": [resource, *beside]}
    return {"format_version": "1.2", "planned_values": {"root_module": root}}


def policy(action: str) -> dict[str, Any]:
    statement = {"Effect": "Allow", "Principal": {"AWS": ACCOUNT}, "Action": action, "Resource": "*"}
    return {"PolicyDocument": {"Version": "2012-10-17", "Statement": [statement]}}


KEYS: Final[dict[str, Any]] = {
    "TableName": "tab",
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("pk", "x")],
    "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    "TimeToLiveSpecification": {"AttributeName": "until", "Enabled": "true"},
}
INDEX: Final = {
    "IndexName": "by-x",
    "KeySchema": [{"AttributeName": "x", "KeyType": "HASH"}],
    "Projection": {"ProjectionType": "ALL"},
}
INSIGHTS: Final = {"Enabled": "true", "Mode": "THROTTLED_KEYS"}
STREAM_ARN: Final = f"arn:aws:kinesis:{REGION}:{ACCOUNT}:stream/changes"
OF_REGION: Final = {
    "TableClass": "STANDARD_INFREQUENT_ACCESS",
    "DeletionProtectionEnabled": "true",
    "Tags": [{"Key": "cost", "Value": 42}],
    "PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": "true", "RecoveryPeriodInDays": "7"},
    "ContributorInsightsSpecification": INSIGHTS,
    "ResourcePolicy": policy("dynamodb:GetItem"),
    "KinesisStreamSpecification": {"StreamArn": STREAM_ARN},
}
WARM: Final = {"ReadUnitsPerSecond": "13000", "WriteUnitsPerSecond": 5000}
TEMPLATES: Final = {
    "AWS::DynamoDB::Table": KEYS
    | OF_REGION
    | {
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [
            INDEX
            | {
                "ContributorInsightsSpecification": INSIGHTS,
                "OnDemandThroughput": {"MaxReadRequestUnits": "8", "MaxWriteRequestUnits": 9},
            }
        ],
        "OnDemandThroughput": {"MaxReadRequestUnits": "8", "MaxWriteRequestUnits": 9},
        "WarmThroughput": WARM,
        "SSESpecification": {"SSEEnabled": "true", "KMSMasterKeyId": "alias/own"},
        "StreamSpecification": {
            "StreamViewType": "NEW_IMAGE",
            "ResourcePolicy": policy("dynamodb:GetRecords"),
        },
    },
    "AWS::DynamoDB::GlobalTable": KEYS
    | {
        "BillingMode": "PAY_PER_REQUEST",
        "GlobalSecondaryIndexes": [INDEX | {"WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": 9}}],
        "WriteOnDemandThroughputSettings": {"MaxWriteRequestUnits": "9"},
        "WarmThroughput": WARM,
        "SSESpecification": {"SSEEnabled": True, "SSEType": "KMS"},
        "StreamSpecification": {"StreamViewType": "NEW_IMAGE"},
        "Replicas": [
            {"Region": OTHER, "TableClass": "STANDARD"},
            OF_REGION
            | {
                "Region": REGION,
                "ReadOnDemandThroughputSettings": {"MaxReadRequestUnits": 8},
                "SSESpecification": {"KMSMasterKeyId": "alias/own"},
                "ReplicaStreamSpecification": {"ResourcePolicy": policy("dynamodb:GetRecords")},
                "GlobalSecondaryIndexes": [
                    {
                        "IndexName": "by-x",
                        "ContributorInsightsSpecification": INSIGHTS,
                        "ReadOnDemandThroughputSettings": {"MaxReadRequestUnits": "8"},
                    }
                ],
            },
        ],
    },
}


@pytest.fixture
def database() -> Iterator[LocalDatabase]:
    with LocalDatabase(region=REGION, account_id=ACCOUNT) as database:
        yield database


def create(database: LocalDatabase, tmp_path: Path, document: Any) -> None:
    (tmp_path / "declared.json").write_text(json.dumps(document))
    database.create_tables(tmp_path / "declared.json")


def settings(database: LocalDatabase) -> dict[str, Any]:
    """Everything that can be asked of the table `tab` and that a template declares."""
    of_table = {"TableName": "tab"}
    table = database.execute("DescribeTable", of_table)["Table"]
    of_arn = {"ResourceArn": table["TableArn"]}
    of_stream = {"ResourceArn": table["LatestStreamArn"]}
    recovery = database.execute("DescribeContinuousBackups", of_table)["ContinuousBackupsDescription"]
    kinesis = database.execute("DescribeKinesisStreamingDestination", of_table)
    (index,) = table["GlobalSecondaryIndexes"]
    units = ("OnDemandThroughput", "ProvisionedThroughput", "WarmThroughput")
    return {
        "class": table["TableClassSummary"]["TableClass"],
        "protection": table["DeletionProtectionEnabled"],
        "encryption": table["SSEDescription"]["KMSMasterKeyArn"],
        "mode": table["BillingModeSummary"]["BillingMode"],
        "units": [{name: part.get(name) for name in units} for part in (table, index)],
        "stream": table["StreamSpecification"]["StreamViewType"],
        "ttl": database.execute("DescribeTimeToLive", of_table)["TimeToLiveDescription"]["AttributeName"],
        "tags": database.execute("ListTagsOfResource", of_arn)["Tags"],
        "recovery": recovery["PointInTimeRecoveryDescription"]["RecoveryPeriodInDays"],
        "insights": [
            database.execute("DescribeContributorInsights", of_table | named)["ContributorInsightsMode"]
            for named in ({}, {"IndexName": index["IndexName"]})
        ],
        "policies": [
            json.loads(database.execute("GetResourcePolicy", one)["Policy"])["Statement"][0]["Action"]
            for one in (of_arn, of_stream)
        ],
        "kinesis": [one["StreamArn"] for one in kinesis["KinesisDataStreamDestinations"]],
    }


CEILINGS: Final = {"MaxReadRequestUnits": 8, "MaxWriteRequestUnits": 9}
NO_UNITS: Final = {"NumberOfDecreasesToday": 0, "ReadCapacityUnits": 0, "WriteCapacityUnits": 0}
SETTINGS: Final[dict[str, Any]] = {
    "class": "STANDARD_INFREQUENT_ACCESS",
    "protection": True,
    "encryption": f"arn:aws:kms:{REGION}:{ACCOUNT}:alias/own",
    "mode": "PAY_PER_REQUEST",
    "units": [
        {
            "OnDemandThroughput": CEILINGS,
            "ProvisionedThroughput": NO_UNITS,
            "WarmThroughput": {"ReadUnitsPerSecond": 13000, "WriteUnitsPerSecond": 5000, "Status": "ACTIVE"},
        },
        {
            "OnDemandThroughput": CEILINGS,
            "ProvisionedThroughput": NO_UNITS,
            "WarmThroughput": {"ReadUnitsPerSecond": 12000, "WriteUnitsPerSecond": 4000, "Status": "ACTIVE"},
        },
    ],
    "stream": "NEW_IMAGE",
    "ttl": "until",
    "tags": [{"Key": "cost", "Value": "42"}],
    "recovery": 7,
    "insights": ["THROTTLED_KEYS", "THROTTLED_KEYS"],
    "policies": ["dynamodb:GetItem", "dynamodb:GetRecords"],
    "kinesis": [STREAM_ARN],
}


@pytest.mark.filterwarnings("ignore::hashrange.testing.DeclarationWarning")
@pytest.mark.parametrize("type_", TEMPLATES)
def test_a_template_makes_all_that_it_declares(database: LocalDatabase, tmp_path: Path, type_: str) -> None:
    create(database, tmp_path, as_template(type_, TEMPLATES[type_]))
    assert settings(database) == SETTINGS


def beside(type_: str, **values: Any) -> dict[str, Any]:
    return {"type": f"aws_dynamodb_{type_}", "address": f"aws_dynamodb_{type_}.x", "values": values}


ARN: Final = f"arn:aws:dynamodb:{REGION}:{ACCOUNT}:table/tab"


def test_a_plan_makes_all_that_it_declares(database: LocalDatabase, tmp_path: Path) -> None:
    values = {
        "name": "tab",
        "billing_mode": "PAY_PER_REQUEST",
        "hash_key": "pk",
        "attribute": [{"name": "pk", "type": "S"}],
        "stream_enabled": True,
        "stream_view_type": "NEW_IMAGE",
        "ttl": [{"attribute_name": "until", "enabled": True}],
        "table_class": "STANDARD_INFREQUENT_ACCESS",
        "deletion_protection_enabled": True,
        "tags": None,
        "tags_all": {"cost": "42"},
        "point_in_time_recovery": [{"enabled": True, "recovery_period_in_days": 7}],
        "server_side_encryption": [{"enabled": True, "kms_key_arn": "alias/own"}],
        "on_demand_throughput": [{"max_read_request_units": 8, "max_write_request_units": 9}],
        "warm_throughput": [{"read_units_per_second": 13000, "write_units_per_second": 5000}],
    }
    index = {
        "table_name": "tab",
        "index_name": "by-x",
        "key_schema": [{"attribute_name": "x", "attribute_type": "S", "key_type": "HASH"}],
        "projection": [{"projection_type": "ALL", "non_key_attributes": None}],
        "on_demand_throughput": [{"max_read_request_units": 8, "max_write_request_units": 9}],
        "warm_throughput": [{"read_units_per_second": 12000, "write_units_per_second": 4000}],
    }
    vector = {
        "table_name": "tab",
        "index_name": "near",
        "dimensions": 3,
        "distance_function": "COSINE",
        "vector_attribute": {"attribute_name": "embedding"},
        "projection": [{"projection_type": "KEYS_ONLY"}],
        "search_schema": [{"attribute_name": "tenant", "attribute_type": "S", "type": "HASH"}],
    }
    statement = json.dumps(policy("dynamodb:GetItem")["PolicyDocument"])
    plan = as_plan(
        values,
        beside("global_secondary_index", **index),
        beside("vector_index", **vector),
        beside("contributor_insights", table_name="tab", index_name="", mode="THROTTLED_KEYS"),
        beside("contributor_insights", table_name="tab", index_name="by-x", mode="THROTTLED_KEYS"),
        beside("kinesis_streaming_destination", table_name="tab", stream_arn=STREAM_ARN),
        beside("resource_policy", resource_arn=ARN, policy=statement),
        beside(
            "resource_policy",
            resource_arn=f"{ARN}/stream/2026",
            policy=statement.replace("GetItem", "GetRecords"),
        ),
        beside("tag", resource_arn=ARN, key="team", value="shop"),
        beside("table_item", table_name="tab", hash_key="pk", item='{"pk": {"S": "a"}}'),
    )
    create(database, tmp_path, plan)
    assert settings(database) == SETTINGS | {"tags": [*SETTINGS["tags"], {"Key": "team", "Value": "shop"}]}
    table = database.execute("DescribeTable", {"TableName": "tab"})["Table"]
    (made,) = table["VectorIndexes"]
    assert (made["Dimensions"], made["SearchSchema"][0]["AttributeName"]) == (3, "tenant")
    assert table["ItemCount"] == 1


WITH_INDEX: Final = KEYS | {"GlobalSecondaryIndexes": [INDEX]}
NOTED: Final = [
    (
        as_template(
            "AWS::DynamoDB::GlobalTable", WITH_INDEX | {"Replicas": [{"Region": REGION}, {"Region": OTHER}]}
        ),
        "replicas in us-east-1 are not made.*local.shared_regions=True",
    ),
    (
        as_template(
            "AWS::DynamoDB::Table", WITH_INDEX | {"ImportSourceSpecification": {"InputFormat": "CSV"}}
        ),
        "Properties/ImportSourceSpecification: items are not imported",
    ),
    (
        as_template(
            "AWS::DynamoDB::Table",
            WITH_INDEX | {"KinesisStreamSpecification": {"StreamArn": {"Fn::ImportValue": "stream"}}},
        ),
        "only a stack knows this stream",
    ),
    (
        as_template(
            "AWS::DynamoDB::Table",
            WITH_INDEX
            | {"ResourcePolicy": {"PolicyDocument": {"Principal": {"Fn::GetAtt": ["Proxy", "Role"]}}}},
        ),
        "only a stack knows parts of this policy",
    ),
]
SCALING: Final = {"MinCapacity": 1, "MaxCapacity": 9}
NOTED_OF_REPLICAS: Final = [
    (
        KEYS
        | {
            "AttributeDefinitions": KEYS["AttributeDefinitions"][:1],
            "ReadProvisionedThroughputSettings": {"ReadCapacityUnits": 5},
            "WriteProvisionedThroughputSettings": {"WriteCapacityAutoScalingSettings": SCALING},
        },
        "MaxCapacity: nothing scales here",
    ),
    (
        WITH_INDEX | {"Replicas": [{"Region": REGION}, {"Region": OTHER, "DeletionProtectionEnabled": True}]},
        "Replicas/us-east-1: .* not DeletionProtectionEnabled",
    ),
    (
        WITH_INDEX
        | {
            "BillingMode": "PAY_PER_REQUEST",
            "Replicas": [{"Region": REGION, "ReadProvisionedThroughputSettings": {"ReadCapacityUnits": 5}}],
        },
        "ReadProvisionedThroughputSettings: it has no effect with the billing mode PAY_PER_REQUEST",
    ),
]
SMALL: Final = {"name": "tab", "hash_key": "pk", "attribute": [{"name": "pk", "type": "S"}]} | {
    "billing_mode": "PAY_PER_REQUEST"
}
SCALED: Final = {"type": "aws_appautoscaling_target", "address": "scaling.x"}
NOTED_OF_PLANS: Final = [
    (as_plan(SMALL | {"restore_source_name": "old"}), "restore_source_name: the table is not restored"),
    (as_plan(SMALL, beside("table_export", table_arn=ARN)), "table_export.x: this resource is not made"),
    (as_plan(SMALL, SCALED | {"values": {"service_namespace": "dynamodb"}}), "scaling.x: .*nothing scales"),
    (as_plan(SMALL, SCALED), "scaling.x: .*nothing scales here"),
    (as_plan(SMALL, {"type": "awscc_dynamodb_table", "address": "awscc.x"}), "awscc.x: this resource is not"),
    (as_plan(SMALL, beside("tag", key="a", value="b")), "known only after apply"),
    (as_plan(SMALL, beside("table_item", table_name="gone", item="{}")), "its table, gone, is not in"),
]


NOTED_OF_COMMANDS: Final = [
    (
        {
            "DataModel": [
                {
                    "TableName": "tab",
                    "KeyAttributes": {"PartitionKey": {"AttributeName": "pk", "AttributeType": "S"}},
                    "ProvisionedCapacitySettings": {"AutoScalingRead": {"ScalableTargetRequest": {}}},
                }
            ]
        },
        "AutoScalingRead: nothing scales here",
    ),
]


def test_scaling_of_another_service_is_left_alone(database: LocalDatabase, tmp_path: Path) -> None:
    create(database, tmp_path, as_plan(SMALL, SCALED | {"values": {"service_namespace": "ecs"}}))
    assert database.execute("ListTables", {})["TableNames"] == ["tab"]


@pytest.mark.filterwarnings("ignore::hashrange.testing.DeclarationWarning")
@pytest.mark.parametrize(
    ("document", "text"),
    [
        *NOTED,
        *NOTED_OF_COMMANDS,
        *((as_template("AWS::DynamoDB::GlobalTable", given), text) for given, text in NOTED_OF_REPLICAS),
        *NOTED_OF_PLANS,
    ],
)
def test_what_is_not_made_is_told(database: LocalDatabase, tmp_path: Path, document: Any, text: str) -> None:
    with pytest.warns(DeclarationWarning, match=text):
        create(database, tmp_path, document)
    assert database.execute("ListTables", {})["TableNames"] == ["tab"]


def as_described(database: LocalDatabase, name: str) -> dict[str, Any]:
    """What DescribeTable answers, as the output of the AWS CLI has it."""
    return database.execute("DescribeTable", {"TableName": name})


def test_replicas_of_a_described_table_are_made_or_told(tmp_path: Path) -> None:
    def shared() -> LocalDatabase:
        return LocalDatabase(settings=Settings(separate_accounts=True), region=REGION)

    with shared() as database:
        replicas = {"Replicas": [{"Region": REGION}, {"Region": OTHER}]}
        create(database, tmp_path, as_template("AWS::DynamoDB::GlobalTable", WITH_INDEX | replicas))
        answer = as_described(database, "tab")
    with shared() as database:
        create(database, tmp_path, answer)
        assert as_described(database, "tab")["Table"]["Replicas"][0]["RegionName"] == OTHER
    with LocalDatabase(region=OTHER) as database:
        create(database, tmp_path, answer)  # (from the other region, whose table is that replica)
    with (
        LocalDatabase(region=REGION) as database,
        pytest.warns(DeclarationWarning, match=f"its replicas in {OTHER} are not made"),
    ):
        create(database, tmp_path, answer)


def test_replicas_are_made_where_regions_share_their_tables(tmp_path: Path) -> None:
    with LocalDatabase(
        settings=Settings(separate_accounts=True, create_seconds=9), region=REGION
    ) as database:
        template = TEMPLATES["AWS::DynamoDB::GlobalTable"] | {"SSESpecification": {"SSEEnabled": False}}
        create(database, tmp_path, as_template("AWS::DynamoDB::GlobalTable", template))
        described = database.execute("DescribeTable", {"TableName": "tab"})["Table"]
        assert [replica["RegionName"] for replica in described["Replicas"]] == [OTHER]
        assert database.database.settings.create_seconds == 9


def test_a_table_with_provisioned_capacity_gets_no_replicas(tmp_path: Path) -> None:
    capacity = {"read_capacity": 5, "write_capacity": 5, "replica": [{"region_name": OTHER}]}
    with (
        LocalDatabase(settings=Settings(separate_accounts=True), region=REGION) as database,
        pytest.warns(DeclarationWarning, match="replicas in us-east-1 are not made.*provisioned"),
    ):
        create(database, tmp_path, as_plan(SMALL | capacity | {"billing_mode": "PROVISIONED"}))


def test_an_index_of_a_replica_that_the_table_does_not_have_is_refused() -> None:
    replicas = [{"Region": REGION, "GlobalSecondaryIndexes": [{"IndexName": "by-y"}]}]
    document = as_template("AWS::DynamoDB::GlobalTable", WITH_INDEX | {"Replicas": replicas})
    with pytest.raises(DeclarationError, match=r"Properties/Replicas: .* no global secondary index by-y"):
        of_document(document, {}, REGION, ACCOUNT)


def test_a_described_table_comes_back_whole(database: LocalDatabase, tmp_path: Path) -> None:
    create(database, tmp_path, as_template("AWS::DynamoDB::Table", TEMPLATES["AWS::DynamoDB::Table"]))
    described = database.execute("DescribeTable", {"TableName": "tab"})
    with LocalDatabase(region=REGION, account_id=ACCOUNT) as other:
        create(other, tmp_path, described)
        again = other.execute("DescribeTable", {"TableName": "tab"})["Table"]
    for member in ("TableClassSummary", "SSEDescription", "OnDemandThroughput", "WarmThroughput"):
        assert again[member] == described["Table"][member]
    assert again["DeletionProtectionEnabled"] is True


@pytest.mark.parametrize("member", ["ResourcePolicy", "TableClass", "WarmThroughput", "SSESpecification"])
def test_members_of_create_table_are_kept_and_misspelt_ones_refused(member: str) -> None:
    request = {name: KEYS[name] for name in ("TableName", "AttributeDefinitions", "KeySchema")}
    values: dict[str, Any] = {"ResourcePolicy": "{}", "TableClass": "STANDARD"}
    (declaration,) = of_document(request | {member: values.get(member, {})}, {}, REGION, ACCOUNT)
    assert member in declaration.create
    with pytest.raises(DeclarationError, match=f"{member}s.*did you mean"):
        of_document(request | {f"{member}s": {}}, {}, REGION, ACCOUNT)
