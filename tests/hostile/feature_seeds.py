"""Seeds of the requests about what a table has beside its items."""

from __future__ import annotations

from typing import Any

from vector_tables import listed

KINESIS = "arn:aws:kinesis:us-east-1:000000000000:stream/hostile"
PRECISION = "ApproximateCreationDateTimePrecision"
SCALING = {
    "MinimumUnits": 1,
    "MaximumUnits": 10,
    "ScalingPolicyUpdate": {"TargetTrackingScalingPolicyConfiguration": {"TargetValue": 70.0}},
}


def of(main: str) -> dict[str, list[dict[str, Any]]]:
    """The requests, about the table called `main`."""
    return {
        "SearchVectors": [
            {
                "TableName": main, "IndexName": "nearby", "ReturnConsumedCapacity": "INDEXES",
                "SearchVector": listed((1, -0.25))["L"], "TopK": 3, "ProjectionExpression": "pk, v",
                "SearchConditionExpression": "g = :g",
                "ExpressionAttributeValues": {":g": {"S": "g1"}},
            },
        ],
        "EnableKinesisStreamingDestination": [
            {
                "TableName": main,
                "StreamArn": KINESIS,
                "EnableKinesisStreamingConfiguration": {PRECISION: "MICROSECOND"},
            },
        ],
        "DescribeKinesisStreamingDestination": [{"TableName": main}],
        "UpdateKinesisStreamingDestination": [
            {
                "TableName": main,
                "StreamArn": KINESIS,
                "UpdateKinesisStreamingConfiguration": {PRECISION: "MILLISECOND"},
            },
        ],
        "DisableKinesisStreamingDestination": [{"TableName": main, "StreamArn": KINESIS}],
        "UpdateContributorInsights": [
            {
                "TableName": main,
                "ContributorInsightsAction": "ENABLE",
                "ContributorInsightsMode": "THROTTLED_KEYS",
            },
            {"TableName": main, "ContributorInsightsAction": "DISABLE"},
        ],
        "DescribeContributorInsights": [{"TableName": main}],
        "ListContributorInsights": [{"TableName": main, "MaxResults": 1, "NextToken": "6d61696e0a"}],
        "DescribeTableReplicaAutoScaling": [{"TableName": main}],
        "UpdateTableReplicaAutoScaling": [
            {
                "TableName": main,
                "ProvisionedWriteCapacityAutoScalingUpdate": SCALING,
                "GlobalSecondaryIndexUpdates": [
                    {"IndexName": "by-n", "ProvisionedWriteCapacityAutoScalingUpdate": SCALING},
                ],
                "ReplicaUpdates": [
                    {
                        "RegionName": "eu-west-1",
                        "ReplicaProvisionedReadCapacityAutoScalingUpdate": SCALING,
                        "ReplicaGlobalSecondaryIndexUpdates": [
                            {"IndexName": "by-n", "ProvisionedReadCapacityAutoScalingUpdate": SCALING},
                        ],
                    },
                ],
            },
        ],
    }
