"""Requests about what a table has beside its items: Kinesis destinations, contributor insights, and the auto
scaling of replicas."""

from typing import Final

from hashrange.shapes.global_tables import AUTO_SCALING_SETTINGS_UPDATE
from hashrange.shapes.members import INDEX_NAME, LONG_ARN, OWN_TABLE_ARN
from hashrange.shapes.vocabulary import TEXT, List, String, Structure, enum, integer, requests, required

_PRECISION: Final = enum("MILLISECOND", "MICROSECOND")
_ENABLE_CONFIGURATION: Final = Structure(
    "EnableKinesisStreamingConfiguration", {"ApproximateCreationDateTimePrecision": _PRECISION}
)


def _kinesis(stream_arn: String) -> Structure:
    return Structure(
        "KinesisStreamingDestinationInput",
        {
            "TableName": required(OWN_TABLE_ARN),
            "StreamArn": required(stream_arn),
            "EnableKinesisStreamingConfiguration": _ENABLE_CONFIGURATION,
        },
    )


_INSIGHTS_MODE: Final = enum("ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS")

_INDEX_WRITES: Final = Structure(
    "GlobalSecondaryIndexAutoScalingUpdate",
    {
        "IndexName": INDEX_NAME,
        "ProvisionedWriteCapacityAutoScalingUpdate": AUTO_SCALING_SETTINGS_UPDATE,
    },
)
_INDEX_READS: Final = Structure(
    "ReplicaGlobalSecondaryIndexAutoScalingUpdate",
    {
        "IndexName": INDEX_NAME,
        "ProvisionedReadCapacityAutoScalingUpdate": AUTO_SCALING_SETTINGS_UPDATE,
    },
)
_REPLICA_UPDATE: Final = Structure(
    "ReplicaAutoScalingUpdate",
    {
        "RegionName": required(TEXT),
        "ReplicaGlobalSecondaryIndexUpdates": List(_INDEX_READS),
        "ReplicaProvisionedReadCapacityAutoScalingUpdate": AUTO_SCALING_SETTINGS_UPDATE,
    },
)

OPERATIONS: Final = requests(
    {
        "UpdateKinesisStreamingDestination": {
            "TableName": required(OWN_TABLE_ARN),
            "StreamArn": required(LONG_ARN),
            "UpdateKinesisStreamingConfiguration": Structure(
                "UpdateKinesisStreamingConfiguration", {"ApproximateCreationDateTimePrecision": _PRECISION}
            ),
        },
        "DescribeKinesisStreamingDestination": {"TableName": required(OWN_TABLE_ARN)},
        "DescribeContributorInsights": {"TableName": required(OWN_TABLE_ARN), "IndexName": INDEX_NAME},
        "ListContributorInsights": {
            "TableName": OWN_TABLE_ARN,
            "NextToken": TEXT,
            "MaxResults": integer(maximum=100),
        },
        "UpdateContributorInsights": {
            "TableName": required(OWN_TABLE_ARN),
            "IndexName": INDEX_NAME,
            "ContributorInsightsAction": required(enum("ENABLE", "DISABLE")),
            "ContributorInsightsMode": _INSIGHTS_MODE,
        },
        "DescribeTableReplicaAutoScaling": {"TableName": required(OWN_TABLE_ARN)},
        "UpdateTableReplicaAutoScaling": {
            "GlobalSecondaryIndexUpdates": List(_INDEX_WRITES, 1),
            "TableName": required(OWN_TABLE_ARN),
            "ProvisionedWriteCapacityAutoScalingUpdate": AUTO_SCALING_SETTINGS_UPDATE,
            "ReplicaUpdates": List(_REPLICA_UPDATE, 1),
        },
    }
) | {
    "EnableKinesisStreamingDestination": _kinesis(LONG_ARN),
    # [report] ack-api-quirks DDB-TABLE-302: a shorter ARN is only unknown
    "DisableKinesisStreamingDestination": _kinesis(String(maximum=1024)),
}
