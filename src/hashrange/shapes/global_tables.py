"""The requests of the operations for global tables of version 2017.11.29."""

from typing import Final

from hashrange.shapes.members import INDEX_NAME, POSITIVE_LONG, TABLE_NAME
from hashrange.shapes.table_parts import BILLING_MODE, TABLE_CLASS
from hashrange.shapes.vocabulary import (
    BOOLEAN,
    DOUBLE,
    INTEGER,
    TEXT,
    List,
    String,
    Structure,
    integer,
    requests,
    required,
)

_REPLICA: Final = Structure("Replica", {"RegionName": TEXT})
_REPLICA_UPDATE: Final = Structure(
    "ReplicaUpdate",
    {
        "Create": Structure("CreateReplicaAction", {"RegionName": required(TEXT)}),
        "Delete": Structure("DeleteReplicaAction", {"RegionName": required(TEXT)}),
    },
)
_ROLE_ARN: Final = String(1, 1600, r"[\u0020-\uD7FF\uE000-\uFFFD\uD800\uDC00-\uDBFF\uDFFF\r\n\t]*")
_TARGET: Final = Structure(
    "AutoScalingTargetTrackingScalingPolicyConfigurationUpdate",
    {
        "DisableScaleIn": BOOLEAN,
        "ScaleInCooldown": INTEGER,
        "ScaleOutCooldown": INTEGER,
        "TargetValue": required(DOUBLE),
    },
)
_POLICY: Final = Structure(
    "AutoScalingPolicyUpdate",
    {
        "PolicyName": String(1, 256, r"\p{Print}+"),
        "TargetTrackingScalingPolicyConfiguration": required(_TARGET),
    },
)
AUTO_SCALING_SETTINGS_UPDATE: Final = Structure(
    "AutoScalingSettingsUpdate",
    {
        "MinimumUnits": POSITIVE_LONG,
        "MaximumUnits": POSITIVE_LONG,
        "AutoScalingDisabled": BOOLEAN,
        "AutoScalingRoleArn": _ROLE_ARN,
        "ScalingPolicyUpdate": _POLICY,
    },
)
_INDEX_WRITES: Final = Structure(
    "GlobalTableGlobalSecondaryIndexSettingsUpdate",
    {
        "IndexName": required(INDEX_NAME),
        "ProvisionedWriteCapacityUnits": POSITIVE_LONG,
        "ProvisionedWriteCapacityAutoScalingSettingsUpdate": AUTO_SCALING_SETTINGS_UPDATE,
    },
)
_INDEX_READS: Final = Structure(
    "ReplicaGlobalSecondaryIndexSettingsUpdate",
    {
        "IndexName": required(INDEX_NAME),
        "ProvisionedReadCapacityUnits": POSITIVE_LONG,
        "ProvisionedReadCapacityAutoScalingSettingsUpdate": AUTO_SCALING_SETTINGS_UPDATE,
    },
)
_REPLICA_SETTINGS: Final = Structure(
    "ReplicaSettingsUpdate",
    {
        "RegionName": required(TEXT),
        "ReplicaProvisionedReadCapacityUnits": POSITIVE_LONG,
        "ReplicaProvisionedReadCapacityAutoScalingSettingsUpdate": AUTO_SCALING_SETTINGS_UPDATE,
        "ReplicaGlobalSecondaryIndexSettingsUpdate": List(_INDEX_READS, 1, 20),
        "ReplicaTableClass": TABLE_CLASS,
    },
)

OPERATIONS: Final = requests(
    {
        "CreateGlobalTable": {
            "GlobalTableName": required(TABLE_NAME),
            "ReplicationGroup": required(List(_REPLICA)),
        },
        "DescribeGlobalTable": {"GlobalTableName": required(TABLE_NAME)},
        "DescribeGlobalTableSettings": {"GlobalTableName": required(TABLE_NAME)},
        "ListGlobalTables": {
            "ExclusiveStartGlobalTableName": TABLE_NAME,
            "Limit": integer(1),
            "RegionName": TEXT,
        },
        "UpdateGlobalTable": {
            "GlobalTableName": required(TABLE_NAME),
            "ReplicaUpdates": required(List(_REPLICA_UPDATE)),
        },
        "UpdateGlobalTableSettings": {
            "GlobalTableName": required(TABLE_NAME),
            "GlobalTableBillingMode": BILLING_MODE,
            "GlobalTableProvisionedWriteCapacityUnits": POSITIVE_LONG,
            "GlobalTableProvisionedWriteCapacityAutoScalingSettingsUpdate": AUTO_SCALING_SETTINGS_UPDATE,
            "GlobalTableGlobalSecondaryIndexSettingsUpdate": List(_INDEX_WRITES, 1, 20),
            "ReplicaSettingsUpdate": List(_REPLICA_SETTINGS, 1, 50),
        },
    }
)
