"""Contributor insights and the auto scaling of replicas, through boto3."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError

from endpoints import OTHER_ENDPOINT
from worlds import index_on

pytestmark = pytest.mark.skipif(bool(OTHER_ENDPOINT), reason="on AWS the states take their time")

BY_G = index_on("by-g", "g")


def test_insights_of_a_table_and_an_index(client: Any, create: Callable[..., str]) -> None:
    table = create("music", pk="S", hash_only=True, g="S", GlobalSecondaryIndexes=[BY_G])
    shown = client.describe_contributor_insights(TableName=table)
    assert shown["ContributorInsightsStatus"] == "DISABLED"
    for index in ({}, {"IndexName": "by-g"}):
        enabled = client.update_contributor_insights(
            TableName=table, ContributorInsightsAction="ENABLE", **index
        )
        assert enabled["ContributorInsightsStatus"] == "ENABLING"
    shown = client.describe_contributor_insights(TableName=table, IndexName="by-g")
    assert shown["ContributorInsightsStatus"] == "ENABLED"
    assert len(shown["ContributorInsightsRuleList"]) == 2
    page = client.list_contributor_insights(TableName=table, MaxResults=1)
    rest = client.list_contributor_insights(TableName=table, MaxResults=1, NextToken=page["NextToken"])
    assert "IndexName" not in page["ContributorInsightsSummaries"][0]
    assert [summary["IndexName"] for summary in rest["ContributorInsightsSummaries"]] == ["by-g"]
    assert "NextToken" not in rest
    client.put_item(TableName=table, Item={"pk": {"S": "a"}, "g": {"S": "red"}})
    disabled = client.update_contributor_insights(TableName=table, ContributorInsightsAction="DISABLE")
    assert disabled["ContributorInsightsStatus"] == "DISABLING"
    left = client.list_contributor_insights(TableName=table)["ContributorInsightsSummaries"]
    assert [summary.get("IndexName") for summary in left] == ["by-g"]
    with pytest.raises(client.exceptions.ResourceNotFoundException, match="Index: nope not found for table"):
        client.describe_contributor_insights(TableName=table, IndexName="nope")


def test_only_a_global_table_has_replicas_that_scale(client: Any, create: Callable[..., str]) -> None:
    table = create("music", pk="S", hash_only=True)
    with pytest.raises(client.exceptions.ResourceNotFoundException, match="Global table with name"):
        client.describe_table_replica_auto_scaling(TableName=table)
    client.update_table(TableName=table, ReplicaUpdates=[{"Create": {"RegionName": "us-west-2"}}])
    units = {"ReadCapacityUnits": 5, "WriteCapacityUnits": 5}
    client.update_table(TableName=table, BillingMode="PROVISIONED", ProvisionedThroughput=units)
    policy = {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70.0}}
    with pytest.raises(ClientError, match="'ScalingPolicyUpdate' are required"):
        client.update_table_replica_auto_scaling(
            TableName=table,
            ProvisionedWriteCapacityAutoScalingUpdate={"MinimumUnits": 1, "MaximumUnits": 10},
        )
    client.update_table_replica_auto_scaling(
        TableName=table,
        ProvisionedWriteCapacityAutoScalingUpdate={
            "MinimumUnits": 10,
            "MaximumUnits": 20,
            "ScalingPolicyUpdate": policy,
        },
    )
    shown = client.describe_table_replica_auto_scaling(TableName=table)["TableAutoScalingDescription"]
    regions = [replica["RegionName"] for replica in shown["Replicas"]]
    assert regions == ["us-east-1", "us-west-2"]
    for replica in shown["Replicas"]:
        assert replica["ReplicaProvisionedWriteCapacityAutoScalingSettings"]["MinimumUnits"] == 10
    table_shown = client.describe_table(TableName=table)["Table"]
    assert table_shown["ProvisionedThroughput"]["WriteCapacityUnits"] == 10
    client.update_table(TableName=table, ReplicaUpdates=[{"Delete": {"RegionName": "us-west-2"}}])
