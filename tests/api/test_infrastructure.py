"""What Terraform, Pulumi, CloudFormation (and so CDK and SAM) and `aws dynamodb wait` ask of a table.

The calls of each tool are replayed in their order, for a table that is made, read, changed and deleted;
docs/infrastructure.md lists those of Terraform. After each step the tool reads the table and compares it with
what was declared; a difference would be a change that it plans again and again.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError, WaiterError

from endpoints import OTHER_ENDPOINT, REGION

pytestmark = pytest.mark.skipif(bool(OTHER_ENDPOINT), reason="on AWS the states take minutes")

STREAM = f"arn:aws:kinesis:{REGION}:000000000000:stream/changes"
POLLS_MAX = 200
INDEX = {
    "IndexName": "by-owner",
    "KeySchema": [
        {"AttributeName": "owner", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}
    ],
    "Projection": {"ProjectionType": "INCLUDE", "NonKeyAttributes": ["title"]},
}  # fmt: skip
DECLARED: dict[str, Any] = {
    "AttributeDefinitions": [{"AttributeName": name, "AttributeType": "S"} for name in ("owner", "pk", "sk")],
    "KeySchema": [
        {"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}
    ],
    "BillingMode": "PAY_PER_REQUEST",
    "GlobalSecondaryIndexes": [INDEX],
    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
    "SSESpecification": {"Enabled": False},
    "TableClass": "STANDARD",
    "DeletionProtectionEnabled": False,
    "Tags": [{"Key": "stage", "Value": "test"}],
}  # fmt: skip


@pytest.fixture
def table(client: Any, name_table: Callable[..., str]) -> str:
    """The name of a table that the test makes and deletes."""
    return name_table("infrastructure")


def until(ask: Callable[[], Any], wanted: Any) -> None:
    """Ask until the answer is `wanted`, as the tools do, but not for minutes."""
    waiting = threading.Event()
    for _ in range(POLLS_MAX):
        found = ask()
        if found == wanted:
            return
        waiting.wait(0.02)
    raise AssertionError(f"{found}, not {wanted}")


def code_of(call: Callable[[], Any]) -> str:
    """The code of the error of a call, "" if it has none."""
    try:
        call()
    except ClientError as error:
        return error.response["Error"]["Code"]
    return ""


class Terraform:
    """`aws_dynamodb_table` of the provider hashicorp/aws 6, which Pulumi's package `aws` wraps.

    Source: [report] ServiceNow's list of the requests of Cloud Services Catalog, which runs Terraform;
    localstack 6909; floci pull 89; the provider's documentation.
    """

    def __init__(self, client: Any, table: str) -> None:
        self.client = client
        self.table = table

    def described(self) -> dict[str, Any]:
        shown: dict[str, Any] = self.client.describe_table(TableName=self.table)["Table"]
        return shown

    def wait_active(self) -> None:
        until(lambda: self.described()["TableStatus"], "ACTIVE")
        for index in self.described().get("GlobalSecondaryIndexes", []):
            name = index["IndexName"]
            until(lambda: self.index_status(name), "ACTIVE")  # noqa: B023 (used at once)

    def index_status(self, name: str) -> str:
        indexes = self.described().get("GlobalSecondaryIndexes", [])
        return next((str(index["IndexStatus"]) for index in indexes if index["IndexName"] == name), "absent")

    def time_to_live(self) -> str:
        shown = self.client.describe_time_to_live(TableName=self.table)["TimeToLiveDescription"]
        return str(shown["TimeToLiveStatus"])

    def recovery(self) -> str:
        shown = self.client.describe_continuous_backups(TableName=self.table)["ContinuousBackupsDescription"]
        return str(shown["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"])

    def create(self) -> None:
        self.client.create_table(TableName=self.table, **DECLARED)
        self.wait_active()
        self.set_time_to_live(True)
        self.set_recovery(True)
        # [report] floci pull 89: version 6 waits for this
        until(lambda: self.described()["WarmThroughput"]["Status"], "ACTIVE")

    def set_time_to_live(self, enabled: bool) -> None:
        specification = {"AttributeName": "expires", "Enabled": enabled}
        self.client.update_time_to_live(TableName=self.table, TimeToLiveSpecification=specification)
        until(self.time_to_live, "ENABLED" if enabled else "DISABLED")

    def set_recovery(self, enabled: bool) -> None:
        specification = {"PointInTimeRecoveryEnabled": enabled}
        self.client.update_continuous_backups(
            TableName=self.table, PointInTimeRecoverySpecification=specification
        )
        until(self.recovery, "ENABLED" if enabled else "DISABLED")

    def read(self) -> dict[str, Any]:
        """The attributes of the resource, as the provider reads them."""
        shown = self.described()
        tags = self.client.list_tags_of_resource(ResourceArn=shown["TableArn"])["Tags"]
        indexes = [
            {name: index[name] for name in ("IndexName", "KeySchema", "Projection")}
            for index in shown.get("GlobalSecondaryIndexes", [])
        ]
        stream = shown.get("StreamSpecification", {"StreamEnabled": False})
        return {
            "AttributeDefinitions": sorted(
                shown["AttributeDefinitions"], key=lambda definition: str(definition["AttributeName"])
            ),
            "KeySchema": shown["KeySchema"],
            "BillingMode": shown.get("BillingModeSummary", {}).get("BillingMode", "PROVISIONED"),
            "GlobalSecondaryIndexes": indexes,
            "StreamSpecification": stream,
            "SSESpecification": {"Enabled": shown.get("SSEDescription", {}).get("Status") == "ENABLED"},
            "TableClass": shown.get("TableClassSummary", {}).get("TableClass", "STANDARD"),
            "DeletionProtectionEnabled": shown["DeletionProtectionEnabled"],
            "Tags": tags,
            "ttl": self.time_to_live(),
            "point_in_time_recovery": self.recovery(),
        }

    def update(self, **given: Any) -> None:
        self.client.update_table(TableName=self.table, **given)
        self.wait_active()

    def delete(self) -> None:
        self.client.delete_table(TableName=self.table)
        until(lambda: code_of(self.described), "ResourceNotFoundException")


def test_terraform_makes_reads_changes_and_deletes_a_table(client: Any, table: str) -> None:
    terraform = Terraform(client, table)
    terraform.create()
    declared = {**DECLARED, "ttl": "ENABLED", "point_in_time_recovery": "ENABLED"}
    assert terraform.read() == declared  # "No changes. Your infrastructure matches the configuration."

    # Indexes are deleted and made one by one, each in a request of its own.
    definitions = [*DECLARED["AttributeDefinitions"], {"AttributeName": "title", "AttributeType": "S"}]
    new = {
        "IndexName": "by-title",
        "KeySchema": [{"AttributeName": "title", "KeyType": "HASH"}],
        "Projection": {"ProjectionType": "ALL"},
    }
    terraform.update(AttributeDefinitions=definitions, GlobalSecondaryIndexUpdates=[{"Create": new}])
    terraform.update(
        AttributeDefinitions=definitions[1:],
        GlobalSecondaryIndexUpdates=[{"Delete": {"IndexName": "by-owner"}}],
    )
    until(lambda: terraform.index_status("by-owner"), "absent")
    # A stream with another view is disabled first.
    terraform.update(StreamSpecification={"StreamEnabled": False})
    terraform.update(StreamSpecification={"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"})
    terraform.update(TableClass="STANDARD_INFREQUENT_ACCESS")
    terraform.update(DeletionProtectionEnabled=True)
    terraform.update(
        BillingMode="PROVISIONED",
        ProvisionedThroughput={"ReadCapacityUnits": 3, "WriteCapacityUnits": 2},
        GlobalSecondaryIndexUpdates=[
            {
                "Update": {
                    "IndexName": "by-title",
                    "ProvisionedThroughput": {"ReadCapacityUnits": 1, "WriteCapacityUnits": 1},
                }
            }
        ],
    )
    terraform.set_time_to_live(False)
    terraform.set_recovery(False)
    arn = terraform.described()["TableArn"]
    client.untag_resource(ResourceArn=arn, TagKeys=["stage"])
    client.tag_resource(ResourceArn=arn, Tags=[{"Key": "owner", "Value": "me"}])
    assert terraform.read() == {
        **DECLARED,
        "AttributeDefinitions": [
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "title")
        ],
        "BillingMode": "PROVISIONED",
        "GlobalSecondaryIndexes": [new],
        "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "KEYS_ONLY"},
        "TableClass": "STANDARD_INFREQUENT_ACCESS",
        "DeletionProtectionEnabled": True,
        "Tags": [{"Key": "owner", "Value": "me"}],
        "ttl": "DISABLED",
        "point_in_time_recovery": "DISABLED",
    }
    terraform.update(DeletionProtectionEnabled=False)
    terraform.delete()


def test_terraform_adds_and_removes_a_replica(client: Any, table: str) -> None:
    terraform = Terraform(client, table)
    client.create_table(TableName=table, **DECLARED)
    terraform.wait_active()
    terraform.update(ReplicaUpdates=[{"Create": {"RegionName": "eu-west-1"}}])
    until(lambda: [replica["ReplicaStatus"] for replica in terraform.described()["Replicas"]], ["ACTIVE"])
    assert terraform.read()["StreamSpecification"] == DECLARED["StreamSpecification"]
    terraform.update(ReplicaUpdates=[{"Delete": {"RegionName": "eu-west-1"}}])
    until(lambda: terraform.described().get("Replicas", []), [])
    terraform.delete()


def test_terraforms_resources_beside_a_table(client: Any, table: str) -> None:
    terraform = Terraform(client, table)
    client.create_table(TableName=table, **DECLARED)
    terraform.wait_active()

    # aws_dynamodb_kinesis_streaming_destination
    def destination() -> str:
        shown = client.describe_kinesis_streaming_destination(TableName=table)
        return next(
            (
                str(found["DestinationStatus"])
                for found in shown["KinesisDataStreamDestinations"]
                if found["StreamArn"] == STREAM
            ),
            "absent",
        )

    client.enable_kinesis_streaming_destination(
        TableName=table,
        StreamArn=STREAM,
        EnableKinesisStreamingConfiguration={"ApproximateCreationDateTimePrecision": "MILLISECOND"},
    )
    until(destination, "ACTIVE")
    client.update_kinesis_streaming_destination(
        TableName=table,
        StreamArn=STREAM,
        UpdateKinesisStreamingConfiguration={"ApproximateCreationDateTimePrecision": "MICROSECOND"},
    )
    until(destination, "ACTIVE")
    client.disable_kinesis_streaming_destination(TableName=table, StreamArn=STREAM)
    until(destination, "DISABLED")

    # aws_dynamodb_contributor_insights
    def insights(**index: str) -> str:
        shown = client.describe_contributor_insights(TableName=table, **index)
        return str(shown["ContributorInsightsStatus"])

    for index in ({}, {"IndexName": "by-owner"}):
        client.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE", **index)
        until(lambda: insights(**index), "ENABLED")  # noqa: B023 (used at once)
        client.update_contributor_insights(TableName=table, ContributorInsightsAction="DISABLE", **index)
        until(lambda: insights(**index), "DISABLED")  # noqa: B023 (used at once)

    # aws_dynamodb_resource_policy
    arn = terraform.described()["TableArn"]
    statement = {"Sid": "a", "Effect": "Deny", "Principal": "*", "Action": "dynamodb:Scan", "Resource": arn}
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]}, separators=(",", ":"))
    put = client.put_resource_policy(ResourceArn=arn, Policy=policy)
    shown = client.get_resource_policy(ResourceArn=arn)
    assert (json.loads(shown["Policy"]), shown["RevisionId"]) == (json.loads(policy), put["RevisionId"])
    client.delete_resource_policy(ResourceArn=arn)
    assert code_of(lambda: client.get_resource_policy(ResourceArn=arn)) == "PolicyNotFoundException"

    # aws_dynamodb_table_item
    key = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    once = {"ConditionExpression": "attribute_not_exists(#k)", "ExpressionAttributeNames": {"#k": "pk"}}
    client.put_item(TableName=table, Item={**key, "v": {"N": "1"}}, **once)
    again = code_of(lambda: client.put_item(TableName=table, Item=key, **once))
    assert again == "ConditionalCheckFailedException"
    assert client.get_item(TableName=table, Key=key, ConsistentRead=True)["Item"]["v"] == {"N": "1"}
    client.delete_item(TableName=table, Key=key)
    terraform.delete()


class CloudFormation:
    """The handlers of AWS::DynamoDB::Table: of CDK's `Table`, SAM's `AWS::Serverless::SimpleTable`, and
    Pulumi's `aws-native`.

    Source: [docs] the permissions that the resource type names for each handler; the order of the requests
    after CreateTable is [assumed].
    """

    def __init__(self, client: Any, table: str) -> None:
        self.client = client
        self.table = table

    def status(self) -> str:
        return str(self.client.describe_table(TableName=self.table)["Table"]["TableStatus"])

    def create(self, policy: str) -> None:
        self.client.create_table(TableName=self.table, ResourcePolicy=policy, **DECLARED)
        until(self.status, "ACTIVE")
        name = {"TableName": self.table}
        specification = {"AttributeName": "expires", "Enabled": True}
        self.client.update_time_to_live(TimeToLiveSpecification=specification, **name)
        recovery = {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 7}
        self.client.update_continuous_backups(PointInTimeRecoverySpecification=recovery, **name)
        self.client.update_contributor_insights(ContributorInsightsAction="ENABLE", **name)
        self.client.update_contributor_insights(
            ContributorInsightsAction="ENABLE", IndexName="by-owner", **name
        )
        self.client.enable_kinesis_streaming_destination(StreamArn=STREAM, **name)
        until(lambda: self.read()["KinesisStreamSpecification"], [STREAM])
        until(lambda: self.read()["ContributorInsights"], ["ENABLED", "ENABLED"])

    def read(self) -> dict[str, Any]:
        """The properties of the resource, as its read handler finds them."""
        client, name = self.client, {"TableName": self.table}
        shown = client.describe_table(**name)["Table"]
        backups = client.describe_continuous_backups(**name)["ContinuousBackupsDescription"]
        streams = client.describe_kinesis_streaming_destination(**name)["KinesisDataStreamDestinations"]
        insights = [client.describe_contributor_insights(**name)]
        insights += [
            client.describe_contributor_insights(IndexName=index["IndexName"], **name)
            for index in shown["GlobalSecondaryIndexes"]
        ]
        arn = {"ResourceArn": shown["TableArn"]}
        return {
            "TimeToLiveSpecification": client.describe_time_to_live(**name)["TimeToLiveDescription"],
            "RecoveryPeriodInDays": backups["PointInTimeRecoveryDescription"].get("RecoveryPeriodInDays"),
            "ContributorInsights": [found["ContributorInsightsStatus"] for found in insights],
            "KinesisStreamSpecification": [
                found["StreamArn"] for found in streams if found["DestinationStatus"] == "ACTIVE"
            ],
            "Tags": client.list_tags_of_resource(**arn)["Tags"],
            "ResourcePolicy": json.loads(client.get_resource_policy(**arn)["Policy"]),
        }


def test_cloudformation_makes_reads_changes_and_deletes_a_table(client: Any, table: str) -> None:
    stack = CloudFormation(client, table)
    arn = f"arn:aws:dynamodb:{REGION}:000000000000:table/{table}"
    statement = {"Sid": "a", "Effect": "Deny", "Principal": "*", "Action": "dynamodb:Scan", "Resource": arn}
    policy = {"Version": "2012-10-17", "Statement": [statement]}
    stack.create(json.dumps(policy))
    declared = {
        "TimeToLiveSpecification": {"TimeToLiveStatus": "ENABLED", "AttributeName": "expires"},
        "RecoveryPeriodInDays": 7,
        "ContributorInsights": ["ENABLED", "ENABLED"],
        "KinesisStreamSpecification": [STREAM],
        "Tags": DECLARED["Tags"],
        "ResourcePolicy": policy,
    }
    assert stack.read() == declared  # drift detection: IN_SYNC

    # An update of KinesisStreamSpecification disables the stream and enables another.
    other = f"{STREAM}-of-another"
    client.disable_kinesis_streaming_destination(TableName=table, StreamArn=STREAM)
    until(lambda: stack.read()["KinesisStreamSpecification"], [])
    client.enable_kinesis_streaming_destination(TableName=table, StreamArn=other)
    until(lambda: stack.read()["KinesisStreamSpecification"], [other])
    client.update_contributor_insights(TableName=table, ContributorInsightsAction="DISABLE")
    until(lambda: stack.read()["ContributorInsights"], ["DISABLED", "ENABLED"])
    client.delete_table(TableName=table)
    until(lambda: code_of(stack.status), "ResourceNotFoundException")


def test_every_waiter_of_the_aws_cli_ends(client: Any, table: str) -> None:
    """`aws dynamodb wait` and the SDKs have these waiters; those of exports, imports and bulk operations are
    in the tests of these."""
    assert client.waiter_names == [
        "bulk_operation_completed",
        "contributor_insights_enabled",
        "export_completed",
        "import_completed",
        "kinesis_streaming_destination_active",
        "table_exists",
        "table_not_exists",
    ]
    soon = {"WaiterConfig": {"Delay": 0, "MaxAttempts": 5}}

    def wait(name: str) -> None:
        client.get_waiter(name).wait(TableName=table, **soon)

    client.create_table(TableName=table, **DECLARED)
    wait("table_exists")
    client.update_contributor_insights(TableName=table, ContributorInsightsAction="ENABLE")
    wait("contributor_insights_enabled")
    client.enable_kinesis_streaming_destination(TableName=table, StreamArn=STREAM)
    wait("kinesis_streaming_destination_active")
    client.disable_kinesis_streaming_destination(TableName=table, StreamArn=STREAM)
    with pytest.raises(WaiterError, match="terminal failure state"):
        wait("kinesis_streaming_destination_active")
    client.delete_table(TableName=table)
    wait("table_not_exists")
