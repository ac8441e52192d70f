"""Requests about the past of tables: recovery, backups and restores."""

from typing import Final

from hashrange.limits import LIST_BACKUPS_MAX
from hashrange.shapes.members import LONG_ARN, TABLE_ARN, TABLE_NAME
from hashrange.shapes.table_parts import (
    BILLING_MODE,
    GLOBAL_SECONDARY_INDEX_LIST,
    LOCAL_SECONDARY_INDEX_LIST,
    ON_DEMAND_THROUGHPUT,
    PROVISIONED_THROUGHPUT,
    SSE_SPECIFICATION,
    VECTOR_INDEX_LIST,
)
from hashrange.shapes.vocabulary import (
    BOOLEAN,
    NAME_PATTERN,
    TIMESTAMP,
    String,
    Structure,
    enum,
    integer,
    required,
)

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

CREATE_BACKUP: Final = Structure(
    "CreateBackupInput",
    {"TableName": required(TABLE_ARN), "BackupName": required(String(3, 255, NAME_PATTERN))},
)
DELETE_BACKUP: Final = Structure("DeleteBackupInput", {"BackupArn": required(LONG_ARN)})
DESCRIBE_BACKUP: Final = Structure("DescribeBackupInput", {"BackupArn": required(LONG_ARN)})
LIST_BACKUPS: Final = Structure(
    "ListBackupsInput",
    {
        "TableName": TABLE_ARN,
        "Limit": integer(1, LIST_BACKUPS_MAX),
        "TimeRangeLowerBound": TIMESTAMP,
        "TimeRangeUpperBound": TIMESTAMP,
        "ExclusiveStartBackupArn": LONG_ARN,
        "BackupType": enum("USER", "SYSTEM", "AWS_BACKUP", "ALL"),
    },
)
RESTORE_TABLE_FROM_BACKUP: Final = Structure(
    "RestoreTableFromBackupInput",
    {
        "TargetTableName": required(TABLE_NAME),
        "BackupArn": required(LONG_ARN),
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
    "CreateBackup": CREATE_BACKUP,
    "DeleteBackup": DELETE_BACKUP,
    "DescribeBackup": DESCRIBE_BACKUP,
    "DescribeContinuousBackups": DESCRIBE_CONTINUOUS_BACKUPS,
    "ListBackups": LIST_BACKUPS,
    "RestoreTableFromBackup": RESTORE_TABLE_FROM_BACKUP,
    "RestoreTableToPointInTime": RESTORE_TABLE_TO_POINT_IN_TIME,
    "UpdateContinuousBackups": UPDATE_CONTINUOUS_BACKUPS,
}
