"""Requests about the past of tables: recovery and restores."""

from typing import Final

from hashrange.shapes.members import TABLE_ARN, TABLE_NAME
from hashrange.shapes.table_parts import (
    BILLING_MODE,
    GLOBAL_SECONDARY_INDEX_LIST,
    LOCAL_SECONDARY_INDEX_LIST,
    ON_DEMAND_THROUGHPUT,
    PROVISIONED_THROUGHPUT,
    SSE_SPECIFICATION,
    VECTOR_INDEX_LIST,
)
from hashrange.shapes.vocabulary import BOOLEAN, TIMESTAMP, String, Structure, integer, required

DESCRIBE_CONTINUOUS_BACKUPS: Final = Structure(
    "DescribeContinuousBackupsInput", {"TableName": required(TABLE_ARN)}
)
POINT_IN_TIME_RECOVERY_SPECIFICATION: Final = Structure(
    "PointInTimeRecoverySpecification",
    {
        "PointInTimeRecoveryEnabled": required(BOOLEAN),
        "RecoveryPeriodInDays": integer(1, 35),
    },
)
UPDATE_CONTINUOUS_BACKUPS: Final = Structure(
    "UpdateContinuousBackupsInput",
    {
        "TableName": required(TABLE_ARN),
        "PointInTimeRecoverySpecification": required(POINT_IN_TIME_RECOVERY_SPECIFICATION),
    },
)
RESTORE_TABLE_TO_POINT_IN_TIME: Final = Structure(
    "RestoreTableToPointInTimeInput",
    {
        "SourceTableArn": String(1, 1024),
        "SourceTableName": TABLE_NAME,
        "TargetTableName": required(TABLE_NAME),
        "UseLatestRestorableTime": BOOLEAN,
        "RestoreDateTime": TIMESTAMP,
        "BillingModeOverride": BILLING_MODE,
        "GlobalSecondaryIndexOverride": GLOBAL_SECONDARY_INDEX_LIST,
        "LocalSecondaryIndexOverride": LOCAL_SECONDARY_INDEX_LIST,
        "ProvisionedThroughputOverride": PROVISIONED_THROUGHPUT,
        "OnDemandThroughputOverride": ON_DEMAND_THROUGHPUT,
        "SSESpecificationOverride": SSE_SPECIFICATION,
        "VectorIndexOverride": VECTOR_INDEX_LIST,
    },
)

OPERATIONS: Final = {
    "DescribeContinuousBackups": DESCRIBE_CONTINUOUS_BACKUPS,
    "RestoreTableToPointInTime": RESTORE_TABLE_TO_POINT_IN_TIME,
    "UpdateContinuousBackups": UPDATE_CONTINUOUS_BACKUPS,
}
