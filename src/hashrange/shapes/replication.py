"""Requests about a table's surroundings: global tables, auto scaling, Kinesis, insights, policies.

Most of these Hashrange answers with an error of its own; a request of the wrong shape still gets DynamoDB's.
"""

from typing import Final

from hashrange.shapes.members import (
    INDEX_NAME,
    LONG_ARN,
    POSITIVE_INTEGER,
    POSITIVE_LONG,
    RESOURCE_ARN,
    TABLE_ARN,
    TABLE_NAME,
)
from hashrange.shapes.table_parts import BILLING_MODE, TABLE_CLASS
from hashrange.shapes.vocabulary import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    TEXT,
    List,
    String,
    Structure,
    enum,
    integer,
    required,
)

REPLICA: Final = Structure("Replica", {"RegionName": TEXT})
CREATE_GLOBAL_TABLE: Final = Structure(
    "CreateGlobalTableInput",
    {
        "GlobalTableName": required(TABLE_NAME),
        "ReplicationGroup": required(List(REPLICA)),
    },
)

POLICY_REVISION_ID: Final = String(1, 255)
DELETE_RESOURCE_POLICY: Final = Structure(
    "DeleteResourcePolicyInput",
    {
        "ResourceArn": required(RESOURCE_ARN),
        "ExpectedRevisionId": POLICY_REVISION_ID,
    },
)

DESCRIBE_CONTRIBUTOR_INSIGHTS: Final = Structure(
    "DescribeContributorInsightsInput",
    {
        "TableName": required(TABLE_ARN),
        "IndexName": INDEX_NAME,
    },
)

DESCRIBE_GLOBAL_TABLE: Final = Structure(
    "DescribeGlobalTableInput",
    {
        "GlobalTableName": required(TABLE_NAME),
    },
)

DESCRIBE_GLOBAL_TABLE_SETTINGS: Final = Structure(
    "DescribeGlobalTableSettingsInput",
    {
        "GlobalTableName": required(TABLE_NAME),
    },
)

DESCRIBE_KINESIS_STREAMING_DESTINATION: Final = Structure(
    "DescribeKinesisStreamingDestinationInput",
    {
        "TableName": required(TABLE_ARN),
    },
)

DESCRIBE_TABLE_REPLICA_AUTO_SCALING: Final = Structure(
    "DescribeTableReplicaAutoScalingInput",
    {
        "TableName": required(TABLE_ARN),
    },
)

APPROXIMATE_CREATION_DATE_TIME_PRECISION: Final = enum("MILLISECOND", "MICROSECOND")
ENABLE_KINESIS_STREAMING_CONFIGURATION: Final = Structure(
    "EnableKinesisStreamingConfiguration",
    {
        "ApproximateCreationDateTimePrecision": APPROXIMATE_CREATION_DATE_TIME_PRECISION,
    },
)

DISABLE_KINESIS_STREAMING_DESTINATION: Final = Structure(
    "KinesisStreamingDestinationInput",
    {
        "TableName": required(TABLE_ARN),
        "StreamArn": required(LONG_ARN),
        "EnableKinesisStreamingConfiguration": ENABLE_KINESIS_STREAMING_CONFIGURATION,
    },
)

GET_RESOURCE_POLICY: Final = Structure("GetResourcePolicyInput", {"ResourceArn": required(RESOURCE_ARN)})
LIST_CONTRIBUTOR_INSIGHTS: Final = Structure(
    "ListContributorInsightsInput",
    {
        "TableName": TABLE_ARN,
        "NextToken": TEXT,
        "MaxResults": integer(maximum=100),
    },
)

LIST_GLOBAL_TABLES: Final = Structure(
    "ListGlobalTablesInput",
    {
        "ExclusiveStartGlobalTableName": TABLE_NAME,
        "Limit": POSITIVE_INTEGER,
        "RegionName": TEXT,
    },
)

PUT_RESOURCE_POLICY: Final = Structure(
    "PutResourcePolicyInput",
    {
        "ResourceArn": required(RESOURCE_ARN),
        "Policy": required(TEXT),
        "ExpectedRevisionId": POLICY_REVISION_ID,
        "ConfirmRemoveSelfResourceAccess": BOOLEAN,
    },
)

UPDATE_CONTRIBUTOR_INSIGHTS: Final = Structure(
    "UpdateContributorInsightsInput",
    {
        "TableName": required(TABLE_ARN),
        "IndexName": INDEX_NAME,
        "ContributorInsightsAction": required(enum("ENABLE", "DISABLE")),
        "ContributorInsightsMode": enum("ACCESSED_AND_THROTTLED_KEYS", "THROTTLED_KEYS"),
    },
)

CREATE_REPLICA_ACTION: Final = Structure("CreateReplicaAction", {"RegionName": required(TEXT)})
DELETE_REPLICA_ACTION: Final = Structure("DeleteReplicaAction", {"RegionName": required(TEXT)})
REPLICA_UPDATE: Final = Structure(
    "ReplicaUpdate",
    {
        "Create": CREATE_REPLICA_ACTION,
        "Delete": DELETE_REPLICA_ACTION,
    },
)

UPDATE_GLOBAL_TABLE: Final = Structure(
    "UpdateGlobalTableInput",
    {
        "GlobalTableName": required(TABLE_NAME),
        "ReplicaUpdates": required(List(REPLICA_UPDATE)),
    },
)

AUTO_SCALING_ROLE_ARN: Final = String(
    1, 1600, pattern=r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*"
)
AUTO_SCALING_POLICY_NAME: Final = String(1, 256, pattern=r"\p{Print}+")
AUTO_SCALING_TARGET_TRACKING_SCALING_POLICY_CONFIGURATION_UPDATE: Final = Structure(
    "AutoScalingTargetTrackingScalingPolicyConfigurationUpdate",
    {
        "DisableScaleIn": BOOLEAN,
        "ScaleInCooldown": INTEGER,
        "ScaleOutCooldown": INTEGER,
        "TargetValue": required(DOUBLE),
    },
)

AUTO_SCALING_POLICY_UPDATE: Final = Structure(
    "AutoScalingPolicyUpdate",
    {
        "PolicyName": AUTO_SCALING_POLICY_NAME,
        "TargetTrackingScalingPolicyConfiguration": required(
            AUTO_SCALING_TARGET_TRACKING_SCALING_POLICY_CONFIGURATION_UPDATE
        ),
    },
)

AUTO_SCALING_SETTINGS_UPDATE: Final = Structure(
    "AutoScalingSettingsUpdate",
    {
        "MinimumUnits": POSITIVE_LONG,
        "MaximumUnits": POSITIVE_LONG,
        "AutoScalingDisabled": BOOLEAN,
        "AutoScalingRoleArn": AUTO_SCALING_ROLE_ARN,
        "ScalingPolicyUpdate": AUTO_SCALING_POLICY_UPDATE,
    },
)

GLOBAL_TABLE_GLOBAL_SECONDARY_INDEX_SETTINGS_UPDATE: Final = Structure(
    "GlobalTableGlobalSecondaryIndexSettingsUpdate",
    {
        "IndexName": required(INDEX_NAME),
        "ProvisionedWriteCapacityUnits": POSITIVE_LONG,
        "ProvisionedWriteCapacityAutoScalingSettingsUpdate": AUTO_SCALING_SETTINGS_UPDATE,
    },
)

REPLICA_GLOBAL_SECONDARY_INDEX_SETTINGS_UPDATE: Final = Structure(
    "ReplicaGlobalSecondaryIndexSettingsUpdate",
    {
        "IndexName": required(INDEX_NAME),
        "ProvisionedReadCapacityUnits": POSITIVE_LONG,
        "ProvisionedReadCapacityAutoScalingSettingsUpdate": AUTO_SCALING_SETTINGS_UPDATE,
    },
)

REPLICA_SETTINGS_UPDATE: Final = Structure(
    "ReplicaSettingsUpdate",
    {
        "RegionName": required(TEXT),
        "ReplicaProvisionedReadCapacityUnits": POSITIVE_LONG,
        "ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate": AUTO_SCALING_SETTINGS_UPDATE,
        "ReplicaGlobalSecondaryIndexSettingsUpdate": List(
            REPLICA_GLOBAL_SECONDARY_INDEX_SETTINGS_UPDATE, 1, 20
        ),
        "ReplicaTableClass": TABLE_CLASS,
    },
)

UPDATE_GLOBAL_TABLE_SETTINGS: Final = Structure(
    "UpdateGlobalTableSettingsInput",
    {
        "GlobalTableName": required(TABLE_NAME),
        "GlobalTableBillingMode": BILLING_MODE,
        "GlobalTableProvisionedWriteCapacityUnits": POSITIVE_LONG,
        "GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate": AUTO_SCALING_SETTINGS_UPDATE,
        "GlobalTableGlobalSecondaryIndexSettingsUpdate": List(
            GLOBAL_TABLE_GLOBAL_SECONDARY_INDEX_SETTINGS_UPDATE, 1, 20
        ),
        "ReplicaSettingsUpdate": List(REPLICA_SETTINGS_UPDATE, 1, 50),
    },
)

UPDATE_KINESIS_STREAMING_CONFIGURATION: Final = Structure(
    "UpdateKinesisStreamingConfiguration",
    {
        "ApproximateCreationDateTimePrecision": APPROXIMATE_CREATION_DATE_TIME_PRECISION,
    },
)

UPDATE_KINESIS_STREAMING_DESTINATION: Final = Structure(
    "UpdateKinesisStreamingDestinationInput",
    {
        "TableName": required(TABLE_ARN),
        "StreamArn": required(LONG_ARN),
        "UpdateKinesisStreamingConfiguration": UPDATE_KINESIS_STREAMING_CONFIGURATION,
    },
)

GLOBAL_SECONDARY_INDEX_AUTO_SCALING_UPDATE: Final = Structure(
    "GlobalSecondaryIndexAutoScalingUpdate",
    {
        "IndexName": INDEX_NAME,
        "ProvisionedWriteCapacityAutoScalingUpdate": AUTO_SCALING_SETTINGS_UPDATE,
    },
)

REPLICA_GLOBAL_SECONDARY_INDEX_AUTO_SCALING_UPDATE: Final = Structure(
    "ReplicaGlobalSecondaryIndexAutoScalingUpdate",
    {
        "IndexName": INDEX_NAME,
        "ProvisionedReadCapacityAutoScalingUpdate": AUTO_SCALING_SETTINGS_UPDATE,
    },
)

REPLICA_AUTO_SCALING_UPDATE: Final = Structure(
    "ReplicaAutoScalingUpdate",
    {
        "RegionName": required(TEXT),
        "ReplicaGlobalSecondaryIndexUpdates": List(REPLICA_GLOBAL_SECONDARY_INDEX_AUTO_SCALING_UPDATE),
        "ReplicaProvisionedReadCapacityAutoScalingUpdate": AUTO_SCALING_SETTINGS_UPDATE,
    },
)

UPDATE_TABLE_REPLICA_AUTO_SCALING: Final = Structure(
    "UpdateTableReplicaAutoScalingInput",
    {
        "GlobalSecondaryIndexUpdates": List(GLOBAL_SECONDARY_INDEX_AUTO_SCALING_UPDATE, 1),
        "TableName": required(TABLE_ARN),
        "ProvisionedWriteCapacityAutoScalingUpdate": AUTO_SCALING_SETTINGS_UPDATE,
        "ReplicaUpdates": List(REPLICA_AUTO_SCALING_UPDATE, 1),
    },
)

OPERATIONS: Final = {
    "CreateGlobalTable": CREATE_GLOBAL_TABLE,
    "DeleteResourcePolicy": DELETE_RESOURCE_POLICY,
    "DescribeContributorInsights": DESCRIBE_CONTRIBUTOR_INSIGHTS,
    "DescribeGlobalTable": DESCRIBE_GLOBAL_TABLE,
    "DescribeGlobalTableSettings": DESCRIBE_GLOBAL_TABLE_SETTINGS,
    "DescribeKinesisStreamingDestination": DESCRIBE_KINESIS_STREAMING_DESTINATION,
    "DescribeTableReplicaAutoScaling": DESCRIBE_TABLE_REPLICA_AUTO_SCALING,
    "DisableKinesisStreamingDestination": DISABLE_KINESIS_STREAMING_DESTINATION,
    "EnableKinesisStreamingDestination": DISABLE_KINESIS_STREAMING_DESTINATION,
    "GetResourcePolicy": GET_RESOURCE_POLICY,
    "ListContributorInsights": LIST_CONTRIBUTOR_INSIGHTS,
    "ListGlobalTables": LIST_GLOBAL_TABLES,
    "PutResourcePolicy": PUT_RESOURCE_POLICY,
    "UpdateContributorInsights": UPDATE_CONTRIBUTOR_INSIGHTS,
    "UpdateGlobalTable": UPDATE_GLOBAL_TABLE,
    "UpdateGlobalTableSettings": UPDATE_GLOBAL_TABLE_SETTINGS,
    "UpdateKinesisStreamingDestination": UPDATE_KINESIS_STREAMING_DESTINATION,
    "UpdateTableReplicaAutoScaling": UPDATE_TABLE_REPLICA_AUTO_SCALING,
}
